"""Ids to text: what each id stands for, and the decoder that joins it."""

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
    """Turns a tokenizer's ids into text.

    Args:
        spec: The tokenizer's spec.
        tokens: Token by id, added tokens included.
    """

    def __init__(self, spec: TokenizerSpec, tokens: Mapping[int, str]) -> None:
        self._spec = spec
        self._tokens = tokens

    @cached_property
    def _pieces(self) -> dict[int, bytes]:
        """What the decoder gets for each id: a token's UTF-8.

        A decoder that is byte-level alone only joins, so it gets the bytes themselves; there an
        added token stands for its own text.
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
        """Added tokens that a normalizer changes: as Hugging Face, they come back changed."""
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

    def decode(self, ids: Iterable[int], left_out: Collection[int], *, lossy: bool) -> bytes:
        """Applies the file's decoder.

        Args:
            ids: Any integers; a NumPy or Arrow array of them, too.
            left_out: Ids that are passed over.
            lossy: Whether byte tokens that are no UTF-8 become U+FFFD already in the decoder, as
                in Hugging Face, or stay bytes.

        Returns:
            UTF-8, or what would be if the ids were those of a text.

        Raises:
            DataError: An id that the tokenizer does not have; names it and its place, from 0.
        """
        numbers = integers(ids)
        if left_out:
            numbers = [number for number in numbers if number not in left_out]
        try:
            pieces = list(map(self._pieces.__getitem__, numbers))
        except KeyError as error:
            unknown = error.args[0]
            raise DataError(
                f"id {shortened(unknown)} (number {numbers.index(unknown) + 1} of those given): "
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
    """Python integers from whatever holds integers.

    Raises:
        UsageError: Something that is no integer.
    """
    for name in ("tolist", "to_pylist"):  # NumPy, Arrow: far quicker than one by one
        if hasattr(ids, name):
            ids = getattr(ids, name)()
            break
    try:
        return list(map(operator.index, ids))
    except TypeError as error:
        raise UsageError(f"ids: must be integers: {error}") from None
