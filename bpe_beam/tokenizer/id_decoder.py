"""`IdDecoder`: ids to text."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.decoders import ByteLevelDecoder
from bpe_beam.tokenizer.spec import TokenizerSpec


class IdDecoder:
    """Decodes a tokenizer's ids.

    Args:
        spec: The tokenizer.
        tokens: Token by id, added tokens included.
    """

    def __init__(self, spec: TokenizerSpec, tokens: Mapping[int, str]) -> None:
        self._spec = spec
        self._tokens = tokens

    @cached_property
    def _pieces(self) -> dict[int, bytes]:
        """The UTF-8 of each id's token, which is the input of the decoder.

        A byte-level decoder only joins, so its inputs are the bytes of the tokens; those of an
        added token are its own text.
        """
        pieces = {token_id: token.encode() for token_id, token in self._tokens.items()}
        own_text = {token.id for token in self._spec.added_tokens}
        for token_id, text in self._normalized().items():
            pieces[token_id] = text
            own_text.remove(token_id)
        if not self._joins_bytes:
            return pieces
        for token_id, piece in pieces.items():
            token = piece.decode()
            if token_id not in own_text and byte_level.is_byte_level(token):
                pieces[token_id] = byte_level.to_bytes(token)
        return pieces

    def _normalized(self) -> dict[int, bytes]:
        """Return the added tokens that the normalizer changes, with the changed text.

        Decoding returns the changed text, as in Hugging Face.
        """
        if self._spec.normalizer is None:
            return {}
        from bpe_beam import _native

        step = self._spec.normalizer.native()
        texts = {t.id: t.content.encode() for t in self._spec.added_tokens if t.normalized}
        found = {i: _native.normalize(step, text, False)[0] for i, text in texts.items()}
        return {i: text for i, text in found.items() if text != texts[i]}

    @property
    def _joins_bytes(self) -> bool:
        return isinstance(self._spec.decoder, ByteLevelDecoder)

    def decode(self, ids: Iterable[int], skipped: Collection[int], *, lossy: bool) -> bytes:
        """Return the text of ids.

        Args:
            ids: Integers, also as a NumPy or Arrow array.
            skipped: Ids that are ignored.
            lossy: Whether the decoder replaces bytes that are not UTF-8 by U+FFFD, as in Hugging
                Face.

        Returns:
            UTF-8; with `lossy` false also other bytes, where the ids are not those of a text.

        Raises:
            DataError: The tokenizer does not have an id; the message has its number, from 1.
        """
        numbers = integers(ids)
        if skipped:
            numbers = [number for number in numbers if number not in skipped]
        try:
            pieces = list(map(self._pieces.__getitem__, numbers))
        except KeyError as error:
            unknown = error.args[0]
            raise DataError(
                f"id {shortened(unknown)} (number {numbers.index(unknown) + 1} of these ids): "
                f"the tokenizer has {len(self._tokens)} tokens, ids from 0 to "
                f"{max(self._tokens, default=-1)}"
            ) from None
        if self._joins_bytes:
            return b"".join(pieces)
        decoder = self._spec.decoder
        if decoder is None:
            return b" ".join(pieces)
        with deadline_of(sum(map(len, pieces))):
            return b"".join(decoder.apply(pieces, lossy=lossy))


def integers(ids: Iterable[int]) -> list[int]:
    """Return Python integers from an iterable or array of integers.

    Raises:
        UsageError: A value is not an integer.
    """
    for name in ("tolist", "to_pylist"):  # NumPy, Arrow: far quicker than one by one
        if hasattr(ids, name):
            ids = getattr(ids, name)()
            break
    try:
        return list(map(operator.index, ids))
    except TypeError as error:
        raise UsageError(f"ids must be integers: {error}") from None
