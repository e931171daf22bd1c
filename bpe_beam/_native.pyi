"""Types of the native module; bpe_beam/native/module.cpp says what each does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Bytes = bytes | memoryview | pa.Buffer | NDArray[np.uint8]
_Columns = tuple[
    NDArray[np.int64], memoryview, NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]
]

RECORD_FLAWS: Sequence[str]

class MissingByteError(ValueError): ...

def scan(text: _Bytes) -> NDArray[np.int64]: ...
def normalize(
    step: tuple[object, ...], text: bytes, with_origins: bool
) -> tuple[bytes, NDArray[np.int64] | None]: ...
def partition_of(word: bytes, partitions: int) -> int: ...
def text_records(
    data: _Bytes,
    separator: bytes,
    start: int,
    search: int,
    stop: int,
    final: bool,
    max_records: int,
    max_bytes: int,
    id_prefix: str,
    base: int,
) -> tuple[Any, ...]: ...
def jsonl_records(
    data: _Bytes,
    start: int,
    search: int,
    stop: int,
    final: bool,
    max_records: int,
    max_bytes: int,
    text_field: str,
    id_field: str,
) -> tuple[Any, ...]: ...
def separator_end(
    data: _Bytes, separator: bytes, search: int, at_least: int
) -> tuple[int, int]: ...
def last_gap(data: _Bytes, separator: bytes) -> int: ...

class WordTable:
    def __init__(
        self, with_places: bool = ..., specials: Sequence[tuple[bytes, int]] = ...
    ) -> None: ...
    def add_texts(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        documents: NDArray[np.uint64] | None = ...,
    ) -> int: ...
    def add_words(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        documents: NDArray[np.uint64] | None = ...,
        words: NDArray[np.uint64] | None = ...,
    ) -> None: ...
    def add_table(self, other: WordTable) -> None: ...
    def split(self, partitions: int) -> list[_Columns]: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def with_places(self) -> bool: ...
    @property
    def memory_bytes(self) -> int: ...

class BpeLearner:
    def __init__(
        self,
        symbols: NDArray[np.uint32],
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        tokens: Sequence[bytes],
        vocab_size: int,
        min_frequency: int,
        tie_break: str,
    ) -> None: ...
    def learn(self, limit: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def tokens(self) -> list[bytes]: ...

class BpeEncoder:
    def __init__(
        self,
        merges: NDArray[np.uint32],
        byte_ids: NDArray[np.uint32],
        specials: Sequence[tuple[bytes, int]] = ...,
        cache_bytes: int = ...,
    ) -> None: ...
    def encode(self, text: _Bytes, allowed: Sequence[int] = ...) -> NDArray[np.uint32]: ...
    def encode_batch(
        self, data: _Bytes, offsets: NDArray[np.int64], allowed: Sequence[int] = ...
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
