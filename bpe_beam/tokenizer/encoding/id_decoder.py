"""`IdDecoder`: ids to text."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from bpe_beam import _native
from bpe_beam.errors import DataError, TextError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.decoders import ByteLevelDecoder, bytes_of_token
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_Rows: TypeAlias = "list[Iterable[int]] | pa.Array"

# Number of unused ids for which joining natively may take memory, besides one for each token.
_SPARE_IDS = 1_000_000


class _TokenBytes(dict[int, bytes]):
    """The input of the decoder for each id: the token's UTF-8, made when it is first needed.

    A byte-level decoder only joins, so its inputs are the tokens' bytes; the bytes of an added
    token are its own text, as the normalizer changes it.
    """

    def __init__(self, spec: TokenizerSpec, tokens: Mapping[int, str]) -> None:
        super().__init__()
        self._tokens = tokens
        joins_bytes = isinstance(spec.decoder, ByteLevelDecoder)
        self._convert = bytes_of_token if joins_bytes else lambda token: token
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


class IdDecoder:
    """Decodes a tokenizer's ids."""

    def __init__(self, spec: TokenizerSpec, tokens: dict[int, str]) -> None:
        self._decoder = spec.decoder
        self._tokens = tokens
        self._token_bytes = _TokenBytes(spec, tokens)
        self._joined: dict[frozenset[int], _native.TokenBytes] = {}

    def decode(self, ids: Iterable[int], skipped: Collection[int], *, lossy: bool) -> bytes:
        """Return the text of ids, in UTF-8."""
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

    def decode_batch(
        self, ids: Sequence[Iterable[int]] | pa.Array | pa.ChunkedArray, skipped: frozenset[int]
    ) -> pa.LargeBinaryArray:
        """Return the bytes of the ids of many texts, joined natively if the decoder only joins."""
        import pyarrow as pa

        rows = _rows(ids)
        flat = _flat(rows) if isinstance(self._decoder, ByteLevelDecoder) else None
        if flat and (skipped in self._joined or self._suits_native(flat[1])):
            if skipped not in self._joined:
                replaced = self._token_bytes | dict.fromkeys(skipped, b"")
                self._joined[skipped] = _native.TokenBytes(self._tokens, replaced)
            if decoded := self._joined[skipped].decode_batch(*flat):
                data, offsets = decoded
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
                return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
        return pa.array(self._one_by_one(rows, skipped, lossy=False), pa.large_binary())

    def decode_texts(
        self, ids: Sequence[Iterable[int]] | pa.Array | pa.ChunkedArray, skipped: frozenset[int]
    ) -> pa.LargeStringArray:
        """Return the texts of the ids of many texts; bytes that are not UTF-8 become U+FFFD."""
        import numpy as np
        import pyarrow as pa

        if not isinstance(self._decoder, ByteLevelDecoder):
            texts = self._one_by_one(_rows(ids), skipped, lossy=True)
            return pa.array([text.decode(errors="replace") for text in texts], pa.large_string())
        joined = self.decode_batch(ids, skipped)
        _, ends, data = joined.buffers()
        offsets = np.frombuffer(ends, np.int64)[: len(joined) + 1]
        if _native.texts_are_utf8(memoryview(data), offsets):
            return pa.Array.from_buffers(pa.large_string(), len(joined), [None, ends, data])
        texts = [text.decode(errors="replace") for text in joined.to_pylist()]
        return pa.array(texts, pa.large_string())

    def _suits_native(self, offsets: npt.NDArray[np.int64]) -> bool:
        """Return whether so many ids are worth a native table, which has a row for each id."""
        tokens = len(self._tokens)
        ids = int(offsets[-1] - offsets[0])
        return ids * 8 >= tokens > 0 and max(self._tokens) <= 2 * tokens + _SPARE_IDS

    def _one_by_one(self, rows: _Rows, skipped: frozenset[int], *, lossy: bool) -> list[bytes]:
        decoded = []
        for number, row in enumerate(rows if isinstance(rows, list) else rows.to_pylist()):
            try:
                decoded.append(self.decode(row, skipped, lossy=lossy))
            except DataError as error:
                raise TextError(number, str(error)) from None
            except UsageError as error:
                raise UsageError(f"text {number}: {error}") from None
        return decoded


def _rows(ids: Sequence[Iterable[int]] | pa.Array | pa.ChunkedArray) -> _Rows:
    """Return Arrow lists in one piece, or a list of what can be read more than once."""
    import pyarrow as pa

    if isinstance(ids, pa.ChunkedArray):
        return ids.combine_chunks()
    if isinstance(ids, pa.Array):
        return ids
    try:
        return [row if hasattr(row, "dtype") else list(row) for row in ids]
    except TypeError as error:
        raise UsageError(f"ids must be the ids of many texts: {error}") from None


def _flat(rows: _Rows) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]] | None:
    """Return all ids and the offsets of each text's first; None if they are not all uint32."""
    import numpy as np
    import pyarrow as pa

    try:
        if isinstance(rows, pa.Array):
            if not (len(rows) and pa.types.is_integer(getattr(rows.type, "value_type", rows.type))):
                return None
            wanted = pa.large_list(pa.uint32())
            # A cast imports pyarrow.compute, also where there is nothing to change.
            lists = rows if rows.type == wanted else rows.cast(wanted)
            if lists.null_count or lists.values.null_count:
                return None
            return lists.values.to_numpy(), lists.offsets.to_numpy()
        if (ids_and_offsets := _native.ids_of_lists(rows)) is not None:
            return ids_and_offsets
        arrays = [np.asarray(row) for row in rows]
        flat = np.concatenate([array for array in arrays if len(array)] or [np.zeros(0, np.uint32)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError):
        return None
    if flat.ndim != 1:
        return None
    if flat.size and (flat.dtype.kind not in "iu" or flat.min() < 0 or flat.max() >= 2**32):
        return None
    return flat.astype(np.uint32, copy=False), np.cumsum([0, *map(len, arrays)], dtype=np.int64)


def integers(ids: Iterable[int]) -> list[int]:
    """Return Python integers from an iterable or array of integers."""
    in_one_call = getattr(ids, "tolist", None) or getattr(ids, "to_pylist", None)
    if in_one_call is not None:  # of NumPy and Arrow: far quicker than one by one
        ids = in_one_call()
    try:
        return list(map(operator.index, ids))
    except TypeError as error:
        raise UsageError(f"ids must be integers: {error}") from None
