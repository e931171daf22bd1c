"""Types of the native module; bpe_beam/native/bind/module.cpp says what each does."""

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Bytes = bytes | memoryview | pa.Buffer | NDArray[np.uint8]
_Columns = tuple[
    NDArray[np.int64], memoryview, NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]
]

_Packed = tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]
_Pairs = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64]]

RECORD_FLAWS: Sequence[str]
SCANNERS: Sequence[str]
MAX_PATH_DEPTH: int
UPPER_LIKE: int
CLASS_BITS: int
NUMBER: int
TEXT_BYTES_PER_SECOND: float

class MissingSymbolError(ValueError): ...
class TextGrowthError(ValueError): ...

TF_RECORD_FLAWS: Sequence[str]

def tf_records(ids: NDArray[np.uint32], offsets: NDArray[np.int64]) -> NDArray[np.uint8]: ...
def read_tf_records(
    data: _Bytes,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64], int, int]: ...
def examples(
    ids: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def read_examples(
    data: _Bytes, ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...

class StoredIds:
    def __init__(
        self,
        ids: NDArray[Any],
        bounds: NDArray[np.uint8],
        *,
        unit: int,
        without_first: bool,
        without_last: bool,
    ) -> None: ...
    def document(self, index: int, type: int) -> NDArray[Any] | None: ...

class IdDictionary:
    def add(self, ids: NDArray[np.uint32]) -> None: ...
    def ids(self) -> NDArray[np.uint32]: ...
    def width(self) -> int: ...
    def take(self, head: bytes) -> NDArray[np.uint8]: ...

def read_str_in_place(enabled: bool) -> bool: ...
def scan_words(text: _Bytes, scanner: str) -> NDArray[np.int64]: ...
def char_bits(code_point: int) -> int: ...
def texts_ascend(data: _Bytes, offsets: NDArray[np.int64]) -> bool: ...
def add_word_tokens(
    data: _Bytes,
    offsets: NDArray[np.int64],
    times: NDArray[np.int64],
    ids: NDArray[np.uint32],
    ends: NDArray[np.int64],
    positions: NDArray[np.int64],
    known: NDArray[np.int64],
    unknown: int | None,
    with_tokens: bool,
    tokens: NDArray[np.int64],
    whole: NDArray[np.int64],
) -> tuple[int, int, int, int, float]: ...

class WholeWords:
    def __init__(self, data: _Bytes, offsets: NDArray[np.int64]) -> None: ...
    def add(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        whole: NDArray[np.int64],
    ) -> tuple[int, int, int, int, float]: ...

def add_times_made(merges: NDArray[np.int64], made: NDArray[np.int64]) -> bool: ...
def add_id_counts(
    ids: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.uint32],
    table: NDArray[np.int64],
) -> None: ...
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
    id_prefix: str | None,
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
    text: Sequence[str],
    id: Sequence[str],
    source: Sequence[str],
    other_source: str,
) -> tuple[Any, ...]: ...
def csv_records(
    data: _Bytes,
    start: int,
    stop: int,
    final: bool,
    max_records: int,
    max_bytes: int,
    delimiter: str,
    columns: int,
    taken: Sequence[int],
    other_source: str,
) -> tuple[Any, ...]: ...
def csv_fields(
    data: _Bytes, start: int, final: bool, delimiter: str
) -> tuple[list[bytes], int] | None: ...
def find_csv_record(data: _Bytes, start: int, final: bool, delimiter: str, columns: int) -> int: ...
def separator_end(
    data: _Bytes, separator: bytes, search: int, at_least: int
) -> tuple[int, int]: ...
def last_gap(data: _Bytes, separator: bytes) -> int: ...
def normalize(
    step: tuple[Any, ...], text: bytes, with_origins: bool
) -> tuple[bytes, NDArray[np.int64] | None]: ...

class TextDeadline:
    def __init__(self, seconds: float) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def seconds_left() -> float: ...
def check_deadline() -> None: ...
def read_json(data: bytes) -> Any: ...
def join_json(parts: list[bytes | dict[str, int] | Merges]) -> bytes: ...
def is_plain_vocab(vocab: dict[str, int], max_id: int) -> bool: ...

class Merges(Sequence[tuple[str, str]]):
    def __init__(self, merges: Sequence[Any]) -> None: ...
    @overload
    def __getitem__(self, rank: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[tuple[str, str]]: ...
    def __len__(self) -> int: ...

class MergeIds:
    def __init__(
        self, vocab: dict[str, int], merges: Sequence[tuple[str, str]], prefix: str
    ) -> None: ...
    def __len__(self) -> int: ...
    def ids(self) -> NDArray[np.uint32]: ...

class TokenFinder:
    def __init__(self, tokens: Sequence[tuple[bytes, int, bool]]) -> None: ...
    def find(
        self, data: _Bytes, allowed: Sequence[int] = ()
    ) -> list[tuple[int | None, int, int]]: ...

class Pipeline:
    def __init__(
        self,
        added: Sequence[tuple[bytes, int, bool, bool, bool, bool, bool]],
        normalizer: tuple[Any, ...] | None,
        steps: Sequence[tuple[Any, ...]],
        text_seconds: float = ...,
    ) -> None: ...
    def words(self, text: _Bytes, allowed: Sequence[int] = ...) -> list[bytes]: ...

class WordTable:
    def __init__(self, with_places: bool) -> None: ...
    def add_texts(
        self,
        pipeline: Pipeline,
        added: Sequence[int],
        data: _Bytes,
        offsets: NDArray[np.int64],
        documents: NDArray[np.uint64] | None = ...,
        max_bytes: int = ...,
        partitions: int = ...,
        on_full: Callable[[list[_Columns]], None] | None = ...,
    ) -> int: ...
    def add_text_list(
        self,
        pipeline: Pipeline,
        added: Sequence[int],
        texts: list[str] | list[bytes],
        first_document: int = ...,
        max_bytes: int = ...,
        partitions: int = ...,
        on_full: Callable[[list[_Columns]], None] | None = ...,
    ) -> tuple[int, int, int]: ...
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
    def unsorted(self) -> _Columns: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def with_places(self) -> bool: ...
    @property
    def memory_bytes(self) -> int: ...

MAX_POSITIONS: int

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
        score: str = ...,
        prefix: bytes = ...,
        max_token_length: int | None = ...,
        spans: NDArray[np.uint32] | None = ...,
        stop_at_known: bool = ...,
        max_text: int | None = ...,
        max_positions: int | None = ...,
    ) -> None: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def text_full(self) -> bool: ...
    @property
    def token_count(self) -> int: ...
    def learn(self, limit: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def tokens(self) -> list[bytes]: ...

_Wide = NDArray[np.uint64]  # counts of 128 bits in two columns, the low half first
_Bits = NDArray[np.uint64]  # doubles

def count_characters(
    data: _Bytes, offsets: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
def shares(weights: _Wide) -> _Bits: ...
def exact_exp(values: _Bits) -> _Bits: ...
def exact_log(values: _Bits) -> _Bits: ...

class Segments:
    def __init__(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        kept: NDArray[np.uint32],
        by_script: bool,
        max_characters: int = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    def columns(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]: ...
    def seeds(
        self,
        characters: NDArray[np.uint32],
        counts: NDArray[np.int64],
        max_characters: int,
        limit: int,
        reserved: Sequence[str],
        threads: int,
    ) -> tuple[Pieces, _Wide]: ...

class Pieces:
    def __init__(self, texts: Sequence[bytes]) -> None: ...
    def __len__(self) -> int: ...
    def texts(self) -> list[bytes]: ...
    def subset(self, kept: NDArray[np.uint8]) -> Pieces: ...
    def expected_counts(self, segments: Segments, probabilities: _Bits, threads: int) -> _Wide: ...
    def path_counts(
        self, segments: Segments, scores: NDArray[np.int64], threads: int
    ) -> NDArray[np.int64]: ...
    def estimate(self, expected: _Wide) -> tuple[NDArray[np.uint8], _Wide, _Bits]: ...
    def prune(
        self,
        scores: NDArray[np.int64],
        counts: NDArray[np.int64],
        expected: _Wide,
        desired: int,
        target: int,
        threads: int,
    ) -> NDArray[np.uint8]: ...

class Model: ...

def byte_bpe(
    merges: NDArray[np.uint32] | MergeIds,
    byte_ids: Sequence[int],
    whole_words: Sequence[tuple[bytes, int]] | dict[str, int],
) -> Model: ...
def char_bpe(
    merges: NDArray[np.uint32] | MergeIds,
    tokens: Sequence[tuple[bytes, int]] | dict[str, int],
    prefix: bytes,
    suffix: bytes,
    unk: int | None,
    fuse_unk: bool,
    ignore_merges: bool,
    byte_fallback: Sequence[int],
) -> Model: ...
def check_charsmap(data: bytes) -> None: ...
def unigram(
    pieces: Sequence[tuple[str, float]], unk: int | None, byte_ids: Sequence[int]
) -> Model: ...
def sentencepiece_bpe(
    merges: NDArray[np.uint32],
    ranks: NDArray[np.uint32],
    symbols: Sequence[tuple[bytes, int]] | dict[str, int],
    unk: int,
    byte_ids: Sequence[int],
) -> Model: ...
def sentencepiece_unigram(
    pieces: Sequence[tuple[str, int, float, bool]], unk: int, byte_ids: Sequence[int]
) -> Model: ...
def wordpiece(
    tokens: Sequence[tuple[bytes, int]] | dict[str, int],
    prefix: bytes,
    unk: int | None,
    max_characters: int,
) -> Model: ...
def word_level(tokens: Sequence[tuple[bytes, int]] | dict[str, int], unk: int | None) -> Model: ...
def rank_merges(tokens: Sequence[bytes]) -> NDArray[np.uint32]: ...
def texts_are_utf8(data: _Bytes, offsets: NDArray[np.int64]) -> bool: ...
def ids_of_lists(
    rows: list[Any],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]] | None: ...

class TokenBytes:
    def __init__(self, tokens: dict[int, str], replaced: dict[int, bytes]) -> None: ...
    def decode_batch(
        self, ids: NDArray[np.uint32], offsets: NDArray[np.int64]
    ) -> tuple[bytes, NDArray[np.int64]] | None: ...

class Encoder:
    def __init__(self, pipeline: Pipeline, model: Model, cache_bytes: int = ...) -> None: ...
    def encode(self, text: _Bytes, allowed: Sequence[int] = ...) -> NDArray[np.uint32]: ...
    def encode_to_list(self, text: _Bytes, allowed: Sequence[int] = ...) -> list[int]: ...
    def encode_with_offsets(
        self, text: _Bytes, allowed: Sequence[int] = ...
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]: ...
    def encode_batch(
        self, data: _Bytes, offsets: NDArray[np.int64], allowed: Sequence[int] = ...
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def encode_words(
        self, data: _Bytes, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def encode_texts(
        self, texts: list[str], allowed: Sequence[int] = ...
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...
    def clear_cache(self) -> None: ...

def pack_symbols(
    symbols: NDArray[np.uint32], offsets: NDArray[np.int64]
) -> tuple[memoryview, NDArray[np.int64]]: ...
def unpack_symbols(
    data: _Bytes, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...

class PairTable:
    def __init__(self) -> None: ...
    def add_words(
        self,
        data: _Bytes,
        offsets: NDArray[np.int64],
        counts: NDArray[np.int64],
        widths: NDArray[np.uint32] | None = ...,
        max_length: int | None = ...,
    ) -> None: ...
    def add(
        self, lefts: NDArray[np.uint32], rights: NDArray[np.uint32], counts: NDArray[np.int64]
    ) -> None: ...
    def add_table(self, other: PairTable) -> None: ...
    def split(self, shards: int) -> list[_Pairs]: ...
    def frequent(
        self, floor: int, limit: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64], int]: ...
    def best(self, limit: int, ranks: NDArray[np.uint32] | None = ...) -> _Pairs: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...

class Rewriter:
    def __init__(self, batches: Sequence[NDArray[np.uint32]]) -> None: ...
    def rewrite(
        self, data: _Bytes, offsets: NDArray[np.int64], counts: NDArray[np.int64]
    ) -> _Packed: ...

class FrequentPairs:
    def __init__(self, lefts: NDArray[np.uint32], rights: NDArray[np.uint32]) -> None: ...
    def segments(
        self, data: _Bytes, offsets: NDArray[np.int64], counts: NDArray[np.int64], singles: bool
    ) -> _Packed: ...
