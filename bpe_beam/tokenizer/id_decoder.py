"""`IdDecoder`: ids to text."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.decoders import ByteLevelDecoder, bytes_of_token
from bpe_beam.tokenizer.spec import TokenizerSpec


class _TokenBytes(dict[int, bytes]):
    """The input of the decoder for each id: the token's UTF-8, made when it is first needed.

    A byte-level decoder only joins, so its inputs are the bytes of the tokens; those of an added
    token are its own text, as the normalizer changes it.
    """

    def __init__(self, spec: TokenizerSpec, tokens: Mapping[int, str]) -> None:
        super().__init__()
        self._tokens = tokens
        self._joins_bytes = isinstance(spec.decoder, ByteLevelDecoder)
        for token in spec.added_tokens:
            text = token.content.encode()
            normalized = text
            if token.normalized and spec.normalizer is not None:
                normalized, _ = _native.normalize(spec.normalizer.native(), text, False)
            self[token.id] = text if normalized == text else self._convert(normalized)

    def __missing__(self, token_id: int) -> bytes:
        """Return the input for the id of a token of the model."""
        self[token_id] = self._convert(self._tokens[token_id].encode())
        return self[token_id]

    def _convert(self, token: bytes) -> bytes:
        return bytes_of_token(token) if self._joins_bytes else token


class IdDecoder:
    """Decodes a tokenizer's ids.

    Args:
        spec: The tokenizer.
        tokens: Token by id, added tokens included.
    """

    def __init__(self, spec: TokenizerSpec, tokens: Mapping[int, str]) -> None:
        self._decoder = spec.decoder
        self._tokens = tokens
        self._token_bytes = _TokenBytes(spec, tokens)

    def decode(self, ids: Iterable[int], skipped: Collection[int], *, lossy: bool) -> bytes:
        """Return the text of ids, in UTF-8.

        Args:
            ids: Integers, also as a NumPy or Arrow array.
            skipped: Ids that are ignored.
            lossy: Whether the decoder replaces bytes that are not UTF-8 by U+FFFD, as in Hugging
                Face. If false, they stay.

        Raises:
            DataError: The tokenizer does not have an id; the message has its number, from 1.
        """
        numbers = integers(ids)
        if skipped:
            numbers = [number for number in numbers if number not in skipped]
        try:
            tokens = list(map(self._token_bytes.__getitem__, numbers))
        except KeyError as error:
            unknown = error.args[0]
            raise DataError(
                f"id {shortened(unknown)} (number {numbers.index(unknown) + 1} of these ids): "
                f"the tokenizer has {len(self._tokens)} tokens, ids from 0 to "
                f"{max(self._tokens, default=-1)}"
            ) from None
        if isinstance(self._decoder, ByteLevelDecoder):
            return b"".join(tokens)
        if self._decoder is None:
            return b" ".join(tokens)
        with deadline_of(sum(map(len, tokens))):
            return b"".join(self._decoder.apply(tokens, lossy=lossy))


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
