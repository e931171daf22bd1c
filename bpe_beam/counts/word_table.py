"""Tables of words and 64-bit counts: texts in, by the rules that split them, Arrow out.

The native table with Arrow on both sides. One table takes 24 bytes a slot, at most 5/8 full, and
the bytes of words over 15 bytes; with positions 16 bytes a slot more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.tokenizer import text_input
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.tokenizer.encoding.native_encoder import holds_gil, pipeline_of

BLOCK_BYTES = 1_000_000
"""Maximum bytes of a block of words, and of any element that a pipeline shuffles. Only a block of
one longer word is larger."""

PARTITIONS = 32
"""Partitions of a counts artifact: fixed, so that equal counts give equal files."""

WORD_SCHEMA = pa.schema([("word", pa.large_string()), ("count", pa.int64())])
PLACED_SCHEMA = pa.schema(
    [*WORD_SCHEMA, ("first_document", pa.uint64()), ("first_word", pa.uint64())]
)

Blocks = Iterator[tuple[int, pa.RecordBatch]]
"""Rows by partition, sorted by their keys within it."""

_BLOCK_OVERHEAD = 1024


def schema_of(with_places: bool, with_sources: bool = False) -> pa.Schema:
    """Return the columns of counted words."""
    schema = PLACED_SCHEMA if with_places else WORD_SCHEMA
    return pa.schema([("source", pa.large_string()), *schema]) if with_sources else schema


class CountTable:
    """A native table of counts. Not for several threads at once; they would wait for each other."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @property
    def memory_bytes(self) -> int:
        """The bytes of the table: a caller can write it out before it grows too large."""
        return int(self._table.memory_bytes)

    def clear(self) -> None:
        """Remove all keys, and free their memory."""
        self._table.clear()

    def blocks(self, partitions: int = PARTITIONS, max_bytes: int = BLOCK_BYTES) -> Blocks:
        """Yield the rows by partition, sorted by their keys; equal tables give equal blocks.

        A partition without rows has no block. Cost: about the table's memory again while it runs.
        """
        yield from self._blocks(self._table.split(partitions), max_bytes)

    def _blocks(self, parts: Iterable[Sequence[Any]], max_bytes: int = BLOCK_BYTES) -> Blocks:
        """Yield the blocks of the native table's partitions."""
        for partition, columns in enumerate(parts):
            whole = self._batch(columns)
            fixed = [each.type.bit_width // 8 for each in whole.schema if each.name != "word"]
            sizes = np.full(whole.num_rows, sum(fixed), np.int64)
            if "word" in whole.schema.names:
                sizes += 8 + np.diff(columns[0])
            ends = np.cumsum(sizes, out=sizes)
            start = begun = 0
            while start < whole.num_rows:
                room = begun + max_bytes - _BLOCK_OVERHEAD
                end = max(start + 1, int(np.searchsorted(ends, room, side="right")))
                yield partition, whole.slice(start, end - start)
                start, begun = end, int(ends[end - 1])

    def _batch(self, columns: Sequence[Any]) -> pa.RecordBatch:
        """Return the columns of a native partition as one batch."""
        raise NotImplementedError


class WordTable(CountTable):
    """Words and how often they occur."""

    def __init__(self, *, with_places: bool = False) -> None:
        super().__init__(_native.WordTable(with_places))
        self.with_places = with_places

    def add_block(self, block: pa.RecordBatch) -> None:
        """Add words with their counts (`schema_of`)."""
        data, offsets = string_buffers(block.column("word"))
        places = [
            block.column(name).to_numpy() if self.with_places else None
            for name in ("first_document", "first_word")
        ]
        with data_errors("counted words cannot be added"):
            self._table.add_words(data, offsets, block.column("count").to_numpy(), *places)

    def add(self, other: WordTable) -> None:
        """Add another table's words."""
        self._table.add_table(other._table)

    def unsorted(self) -> pa.RecordBatch:
        """Return all words in no particular order, without positions; cheaper than sorted ones."""
        offsets, data, counts, *_ = self._table.unsorted()
        return self._batch_of((offsets, data, counts), schema_of(False))

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield all words, sorted by their bytes, then remove them."""
        for _, block in self.blocks(partitions=1):
            yield block
        self.clear()

    def _batch(self, columns: Sequence[Any]) -> pa.RecordBatch:
        return self._batch_of(columns, schema_of(self.with_places))

    @staticmethod
    def _batch_of(columns: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
        offsets, data, *others = columns
        words = pa.LargeStringArray.from_buffers(
            len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
        )
        # Over the memory of the arrays; `pa.array` would import `numpy.ma`.
        others = [
            pa.Array.from_buffers(field.type, len(values), [None, pa.py_buffer(values)])
            for field, values in zip(list(schema)[1:], others, strict=False)
        ]
        return pa.RecordBatch.from_arrays([words, *others], schema=schema)


class WordRules(msgspec.Struct, frozen=True):
    """The rules by which texts are split into words; plain and picklable.

    Attributes:
        special_tokens: Tokens that are extracted from texts and never counted.
        with_places: Whether to keep where each word occurs first; `add_texts` then needs positions.
        added_tokens: The special tokens that a tokenizer's own settings extract.
    """

    normalizer: str = "none"
    pretokenizer: str = "gpt2"
    special_tokens: tuple[str, ...] = ()
    with_places: bool = False
    added_tokens: tuple[AddedToken, ...] = ()

    @property
    def of_counts(self) -> JsonObject:
        """The fields that a counts folder's manifest has."""
        names = ("normalizer", "pretokenizer", "special_tokens", "with_places")
        return {name: getattr(self, name) for name in names}

    @property
    def identity(self) -> JsonObject:
        """The fields as JSON values, by which an unfinished count is resumed."""
        added: list[Any] = msgspec.to_builtins(self.added_tokens)
        return {**self.of_counts, **({"added_tokens": added} if added else {})}

    @property
    def hold_gil(self) -> bool:
        """Return whether counting holds the GIL, so that threads take turns."""
        return holds_gil(
            normalizer_from_name(self.normalizer),
            pretokenizer_from_name(self.pretokenizer, byte_level=True),
        )


_DEFAULT_RULES = WordRules()


class WordCounter(WordTable):
    """A word table that counts words as text: for tokenizers of bytes and characters."""

    def __init__(self, rules: WordRules = _DEFAULT_RULES) -> None:
        super().__init__(with_places=rules.with_places)
        known = {token.content: token for token in rules.added_tokens}
        special_tokens = [
            replace(known.get(text, AddedToken(number, text)), id=number, special=True)
            for number, text in enumerate(rules.special_tokens)
        ]
        self._special_ids = range(len(special_tokens))
        self._pipeline = pipeline_of(
            special_tokens,
            normalizer_from_name(rules.normalizer),
            pretokenizer_from_name(rules.pretokenizer, byte_level=True),
            last_as_bytes=True,
        )

    def add_texts(
        self,
        texts: pa.Array,
        places: pa.Array | None = None,
        *,
        max_bytes: int = 0,
        on_full: Callable[[Blocks], None] | None = None,
        partitions: int = PARTITIONS,
    ) -> int:
        """Count the words of a batch of texts.

        Returns:
            The number of words in the texts, each occurrence counted.
        """
        data, offsets = string_buffers(texts)
        documents = None if places is None else places.to_numpy(zero_copy_only=False)
        to_count = (self._pipeline, self._special_ids, data, offsets, documents)
        return int(self._table.add_texts(*to_count, *self._limit(max_bytes, on_full, partitions)))

    def add_text_list(
        self,
        texts: list[str] | list[bytes],
        first_document: int = 0,
        *,
        max_bytes: int = 0,
        on_full: Callable[[Blocks], None] | None = None,
    ) -> tuple[int, int]:
        """Count the words of a list of texts, which is not copied.

        Returns:
            The number of words, each occurrence counted, and of bytes of UTF-8.
        """
        to_count = (self._pipeline, self._special_ids, texts, first_document)
        limit = self._limit(max_bytes, on_full)
        words, size, counted = self._table.add_text_list(*to_count, *limit)
        if counted < len(texts):
            text_input.refuse(texts[counted], first_document + counted)
        return words, size

    def _limit(
        self,
        max_bytes: int,
        on_full: Callable[[Blocks], None] | None,
        partitions: int = PARTITIONS,
    ) -> tuple[Any, ...]:
        """Return the arguments of the native table that limit its memory."""
        if on_full is None:
            return ()

        def hand_over(parts: list[Any]) -> None:
            on_full(self._blocks(parts))

        return max_bytes, partitions, hand_over


def string_buffers(texts: pa.Array) -> tuple[pa.Buffer, np.ndarray]:
    """Return the bytes of a string array, and int64 offsets: text i is data[o[i]:o[i + 1]]."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        raise ValueError(f"texts must be an Arrow string array, got {texts.type}")
    if texts.null_count:
        raise ValueError(f"texts must not be null, got {texts.null_count} nulls")
    # A cast imports much, which is slow.
    return buffers_of(texts.cast(pa.large_string()) if pa.types.is_string(texts.type) else texts)


def buffers_of(values: pa.Array) -> tuple[pa.Buffer, np.ndarray]:
    """Return the bytes of a large_string or large_binary array, and int64 offsets."""
    _, offsets, data = values.buffers()
    if len(values) == 0 or data is None:
        return pa.py_buffer(b""), np.zeros(len(values) + 1, np.int64)
    return data, np.frombuffer(offsets, np.int64)[values.offset :][: len(values) + 1]


def code_points(
    data: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the code points of texts in UTF-8, and the offsets of the texts in them."""
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    # The number of characters that begin before each byte.
    begun = np.cumsum(np.concatenate(([0], (data & 0xC0) != 0x80)), dtype=np.int64)
    return codes, begun[offsets]


def string_bytes(texts: pa.Array) -> int:
    """Return the bytes of UTF-8 of a string array."""
    _, offsets = string_buffers(texts)
    return int(offsets[-1] - offsets[0])


def weighted_total(sizes: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Return the sum of sizes, each weighted by its count, beyond 64 bits too."""
    # In halves, whose sums stay within 64 bits.
    return (int(np.dot(sizes, counts >> 32)) << 32) + int(np.dot(sizes, counts & 0xFFFFFFFF))


@contextmanager
def data_errors(problem: str) -> Iterator[None]:
    """Raise the errors of a native function, or of Arrow, as a DataError with this problem."""
    try:
        yield
    except (ValueError, OverflowError, pa.ArrowException, OSError, EOFError) as error:
        raise DataError(f"{problem}: {error}") from error


def encode_block(block: pa.RecordBatch) -> bytes:
    """Return a block as bytes: Arrow's IPC message without its schema."""
    return bytes(block.serialize())


def decode_block(data: bytes | pa.Buffer, with_places: bool) -> pa.RecordBatch:
    """Return the block of words that `encode_block` encoded."""
    with data_errors("a block of word counts cannot be read"):
        return pa.ipc.read_record_batch(pa.py_buffer(data), schema_of(with_places))
