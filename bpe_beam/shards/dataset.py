"""The documents of a tokens folder for training loops: any position, any order, resumable.

A view is a data set and an order. Slices, parts and shuffles of a view are views of the same open
folder: nothing is copied, and no table of positions is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from operator import index as integer
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.errors import require, require_whole
from bpe_beam.shards.arrangement import MAX_SEED
from bpe_beam.shards.folder_reader import FolderReader
from bpe_beam.shards.order import Order
from bpe_beam.shards.stored_shard import Ids, IdType
from bpe_beam.storage import Storage, redact

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpe_beam.shards.torch_dataset import TorchTokens

Batch = TypeVar("Batch")
Item = TypeVar("Item")

MEMORY = 64 << 20
"""The bytes of blocks of remote files in memory, by default."""

_POSITIONS = 4096
"""The positions of an order that are computed at a time by iterators."""
_BLOCK = 256
"""The positions that are computed for one of them: little more time than for one."""
_RUN_IDS = 1 << 18
"""The ids that are read at a time where documents follow each other, unless one has more."""
_ARROW_IDS = 1 << 24
"""The most ids of an Arrow batch, unless one item has more."""
_THREADS = 16
_AHEAD = 64
"""The documents of a remote folder that are read ahead where they do not follow each other."""
_STATE_VERSION = 2
_UINT32 = np.dtype(np.uint32)


def open_dataset(storage: Storage, url: str, *, memory: int = MEMORY) -> TokenDataset:
    """Open a finished tokens folder of any format.

    Args:
        storage: The storage client.
        url: Path or URL of the folder.
        memory: See `bpe_beam.shards.open`.

    Returns:
        Its documents.

    Raises:
        UsageError: `memory` is out of range, or the folder is of another kind.
        DataError: The folder is missing, not finished, or damaged.
    """
    require(memory >= 1 << 20, f"must be at least {1 << 20:,} bytes, got {memory:,}", "memory")
    reader = FolderReader(storage, url, memory)
    return TokenDataset(reader, Order.of_all(reader.documents), _UINT32)


class TokenView(Generic[Batch]):
    """Arrays of ids in some order: what documents and sequences share.

    It pickles, and reads its folder again where it is used: workers may be threads, forked or
    spawned. Its length and items are what grain's `RandomAccessDataSource` and a map-style data set
    of torch need.

    Args:
        reader: Reads the folder.
        order: The order of the items.
        dtype: The type of the items.
    """

    def __init__(self, reader: FolderReader, order: Order, dtype: IdType) -> None:
        self.reader = reader
        self.order = order
        self.dtype = dtype
        self._count, self._first = len(order), order.run
        self._block: tuple[int, list[int]] = 0, []

    # ---- what documents and sequences define ----

    def _read(self, item: int) -> Ids:
        raise NotImplementedError

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        """Return the items from `start` on: at least one, at most those before `stop`."""
        raise NotImplementedError

    def _batch(self, items: list[Ids]) -> Batch:
        raise NotImplementedError

    def _same(self, order: Order, dtype: IdType) -> Self:
        """Return a view of the same items in another order, or of another type."""
        raise NotImplementedError

    # ---- the same for both ----

    @property
    def format(self) -> str:
        """The name of the shards' format."""
        return self.reader.format

    @property
    def vocab_size(self) -> int:
        """One more than the greatest id of the tokenizer."""
        return self.reader.vocab_size

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Ids: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: Sequence[int] | NDArray[np.integer[Any]]) -> list[Ids]: ...

    def __getitem__(self, index: Any) -> Any:
        """Return items.

        Args:
            index: A position, where -1 is the last; a slice; or a list or array of positions.

        Returns:
            Of a position: the ids, a new array of type `dtype`. Of a slice: a view, of which
            nothing is read yet. Of positions: a list of arrays.

        Raises:
            IndexError: A position is out of range.
            DataError: The folder is damaged or cannot be read.
        """
        count = self._count
        if type(index) is not int or not 0 <= index < count:
            if isinstance(index, slice):
                return self._same(self.order.sliced(index), self.dtype)
            if isinstance(index, np.ndarray | list | tuple):
                return self._gather(self._checked(index))
            index = integer(index)
            if not -count <= index < count:
                raise IndexError(f"index must be from -{count} to {count - 1}, got {index}")
            index = index + count if index < 0 else index
        if self._first is None:
            return self._read(self._item_at(index))
        return self._read(self._first + index)

    def __getitems__(self, positions: Sequence[int]) -> list[Ids]:
        """Return several items; torch's DataLoader asks so for a batch."""
        return self._gather(self._checked(positions))

    def __iter__(self) -> TokenIterator[Ids]:
        return TokenIterator(self, None)

    def batches(self, size: int) -> TokenIterator[Batch]:
        """Return an iterator over batches of items; the last may be smaller.

        Args:
            size: The number of items of a batch, at least 1.

        Returns:
            Batches of documents are lists of arrays, those of sequences arrays uint32[n, length].
            The iterator can be saved and resumed, see `TokenIterator`.

        Raises:
            UsageError: `size` is out of range.
        """
        require_whole("size", size, 1)
        return TokenIterator(self, size)

    def shuffled(self, seed: int) -> Self:
        """Return all items in the order of a seed; each epoch should have a seed of its own.

        The order is the permutation of grain's `index_shuffle`, computed item by item: it needs no
        table, and is the same in every process.

        Args:
            seed: 0 to 2^32 - 1.

        Raises:
            UsageError: `seed` is out of range.
        """
        require(0 <= seed <= MAX_SEED, f"must be 0 to {MAX_SEED}, got {seed}", "seed")
        return self._same(self.order.shuffled(integer(seed)), self.dtype)

    def part(self, number: int, count: int) -> Self:
        """Return every `count`-th item from `number` on: the part of one of several processes.

        The parts of one view are disjoint, and have all its items; their lengths differ by at most
        one.

        Args:
            number: The number of the part, 0 to `count - 1`; such as the rank.
            count: The number of parts; such as the number of ranks.

        Raises:
            UsageError: `number` or `count` is out of range.
        """
        require_whole("count", count, 1)
        require(0 <= number < count, f"must be 0 to {count - 1}, got {number}", "number")
        return self._same(self.order.sliced(slice(number, None, count)), self.dtype)

    def astype(self, dtype: Any) -> Self:
        """Return a view whose items have another type, such as int64, without another copy.

        Args:
            dtype: A type of integers that holds every id of the vocabulary.

        Raises:
            UsageError: It is another type.
        """
        wanted = np.dtype(dtype)
        require(
            wanted.kind in "iu" and np.iinfo(wanted).max >= self.vocab_size - 1,
            f"must be a type of integers that holds {self.vocab_size - 1:,}, got {wanted}",
            "dtype",
        )
        return self._same(self.order, wanted)

    def to_torch(self) -> TorchTokens:
        """Return a map-style data set of torch, whose items are int64 tensors.

        The workers of a DataLoader read disjoint items, since its sampler hands them out.

        Raises:
            UsageError: torch is not installed.
        """
        try:
            from bpe_beam.shards.torch_dataset import TorchTokens
        except ImportError as error:
            require(False, f"to_torch needs torch, which cannot be imported ({error})")
            raise
        return TorchTokens(self.astype(np.int64))

    def to_arrow(self, rows: int = 1024) -> pa.RecordBatchReader:
        """Return the items as a stream of Arrow batches with a column `input_ids`, list<int32>.

        Args:
            rows: The most items of a batch, at least 1. A batch has fewer if they are long.

        Raises:
            UsageError: `rows` is out of range.
        """
        require_whole("rows", rows, 1)
        schema = pa.schema([("input_ids", pa.list_(pa.int32()))])

        def batch(items: list[Ids]) -> pa.RecordBatch:
            ends = np.cumsum([0, *(item.size for item in items)])
            ids = np.concatenate(items).astype(np.int32)
            lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(ids))
            return pa.record_batch([lists], schema=schema)

        def batches() -> Iterator[pa.RecordBatch]:
            items: list[Ids] = []
            size = 0
            for item in self:
                if items and (len(items) == rows or size + item.size > _ARROW_IDS):
                    yield batch(items)
                    items, size = [], 0
                items.append(item)
                size += item.size
            if items:
                yield batch(items)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def identity(self) -> dict[str, Any]:
        """Return what a saved position belongs to: the tokens and the order, not the format."""
        return {
            "tokenizer": self.reader.tokenizer,
            "content": self.reader.content,
            "documents": self.reader.documents,
            "tokens": self.reader.tokens,
            "order": self.order.as_json(),
        }

    def items_from(self, position: int) -> Iterator[Ids]:
        """Yield the items from a position on."""
        first, count = self._first, self._count
        if first is None:
            yield from self._scattered_from(position)
            return
        while position < count:
            found = self._read_run(first + position, first + count)
            yield from found
            position += len(found)

    def _scattered_from(self, position: int) -> Iterator[Ids]:
        if not self.reader.remote:
            yield from map(self._read, self._items(position))
            return
        waiting: deque[Future[Ids]] = deque()
        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                for item in self._items(position):
                    waiting.append(pool.submit(self._read, item))
                    if len(waiting) >= _AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _items(self, position: int) -> Iterator[int]:
        """Yield the numbers of the items from a position on."""
        count = len(self)
        for start in range(position, count, _POSITIONS):
            yield from self.order.items(np.arange(start, min(start + _POSITIONS, count))).tolist()

    def _item_at(self, position: int) -> int:
        """Return the number of an item; those of a block of positions are computed together."""
        start, items = self._block
        if not 0 <= position - start < len(items):
            start = position - position % _BLOCK
            items = self.order.items(np.arange(start, min(start + _BLOCK, self._count))).tolist()
            self._block = start, items
        return items[position - start]

    def _checked(self, positions: Any) -> list[int]:
        """Return the numbers of the items at positions."""
        found = np.asarray(positions)
        if found.size == 0:
            return []
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise TypeError(
                f"index must be integers in one dimension, got {found.dtype} of shape {found.shape}"
            )
        found, count = found.astype(np.int64), len(self)
        wrong = (found < -count) | (found >= count)
        if wrong.any():
            bad = int(found[np.argmax(wrong)])
            raise IndexError(f"index must be from -{count} to {count - 1}, got {bad}")
        found = np.where(found < 0, found + count, found)
        numbers: list[int] = self.order.items(found).tolist()
        return numbers

    def _gather(self, items: list[int]) -> list[Ids]:
        if not self.reader.remote or len(items) < 2:
            return [self._read(item) for item in items]
        with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
            return list(pool.map(self._read, items))


class TokenDataset(TokenView[list[Ids]]):
    """Documents, each an array of ids. `bpe_beam.shards.open` makes it."""

    @property
    def token_count(self) -> int:
        """The number of ids of the whole folder."""
        return self.reader.tokens

    def labels(self, index: int) -> dict[str, Any]:
        """Return what the format stores of an item beside its ids.

        Args:
            index: The position of the item, where -1 is the last.

        Returns:
            Of a document its `id`, its `source`, and `text_bytes`, the size of its text. Of a
            sequence that `tokenize` has made `seq_lengths`, the tokens of each of its documents;
            those behind them are padding. None where nobody knows a value. Empty if the format has
            no place for labels.

        Raises:
            IndexError: The position is out of range.
            DataError: The folder is damaged or cannot be read.
        """
        (item,) = self._checked([index])
        return self.reader.labels(item)

    def position_ids(self, index: int) -> NDArray[np.int64]:
        """Return int64[tokens]: the position of each token of an item in its document.

        They begin anew with each document of a sequence that `tokenize` has made, and with its
        padding.

        Args:
            index: The position of the item, where -1 is the last.

        Raises:
            UsageError: The format does not store where documents begin in sequences.
        """
        begins, tokens = self._document_begins(index)
        positions = np.arange(tokens)
        return positions - begins[np.searchsorted(begins, positions, side="right") - 1]

    def loss_mask(self, index: int) -> NDArray[np.bool_]:
        """Return bool[tokens]: which tokens of an item are those of documents, not padding.

        Args:
            index: The position of the item, where -1 is the last.

        Raises:
            UsageError: The format does not store where documents begin in sequences.
        """
        tokens = self[index].size
        found = self._seq_lengths(index)
        return np.arange(tokens) < (tokens if found is None else sum(found))

    def _document_begins(self, index: int) -> tuple[NDArray[np.int64], int]:
        """Return where the documents of an item begin, and its padding, and its tokens."""
        tokens = self[index].size
        found = self._seq_lengths(index)
        return np.cumsum([0, *([] if found is None else found)]), tokens

    def _seq_lengths(self, index: int) -> list[int] | None:
        """Return the tokens of each document of a sequence; None of a document."""
        (item,) = self._checked([index])
        if not self.reader.is_sequence(item):
            return None
        labels = self.reader.labels(item)
        found: list[int] | None = labels.get("seq_lengths")
        require(
            found is not None,
            f"{self.format} does not store where documents begin in sequences"
            if not labels
            else f"it is unknown where documents begin in sequence {item}: it was converted from a "
            "format that does not store it",
            remedy="tokenize with --format parquet or arrow, which do",
        )
        return found

    def sequences(self, length: int, *, stride: int | None = None) -> TokenSequences:
        """Return the folder's ids as sequences of one length, across documents and shards.

        Sequence i has the ids from `i * stride` on, of all documents one after the other; ids at
        the end that fill no sequence are left out. For inputs and targets in one array, ask for one
        more id than the model gets, and for a stride of `length - 1`.

        Args:
            length: The number of ids of a sequence, at least 1.
            stride: The distance of their starts, at least 1; None for `length`.

        Raises:
            UsageError: `length` or `stride` is out of range, or this view has not all documents in
                the order of the folder; sequences can be sliced and shuffled in turn.
        """
        stride = length if stride is None else stride
        require_whole("length", length, 1)
        require_whole("stride", stride, 1)
        require(
            self.order == Order.of_all(self.reader.documents),
            "sequences are of a whole folder: ask for them first, then slice or shuffle them",
        )
        count = max(self.reader.tokens - length, -stride) // stride + 1
        return TokenSequences(self.reader, Order.of_all(count), self.dtype, length, stride)

    def __repr__(self) -> str:
        return (
            f"<TokenDataset: {redact(self.reader.url)!r}, {self.format}, {len(self):,} documents>"
        )

    def _read(self, item: int) -> Ids:
        return self.reader.document(item, self.dtype)

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        stop = min(stop, start + _POSITIONS)
        return self.reader.documents_from(start, stop, _RUN_IDS, self.dtype)

    def _batch(self, items: list[Ids]) -> list[Ids]:
        return items

    def _same(self, order: Order, dtype: IdType) -> Self:
        return type(self)(self.reader, order, dtype)


class TokenSequences(TokenView[Ids]):
    """Sequences of one length, see `TokenDataset.sequences`.

    Args:
        reader: Reads the folder.
        order: The order of the sequences.
        dtype: The type of the sequences.
        length: The number of ids of a sequence.
        stride: The distance of their starts.
    """

    def __init__(
        self, reader: FolderReader, order: Order, dtype: IdType, length: int, stride: int
    ) -> None:
        super().__init__(reader, order, dtype)
        self.length, self.stride = length, stride

    def document_starts(self, index: int) -> NDArray[np.int64]:
        """Return int64[n]: the positions in a sequence at which documents begin.

        A document that goes on from the sequence before does not begin in this one, and documents
        without tokens begin nowhere.

        Args:
            index: The position of the sequence, where -1 is the last.

        Raises:
            IndexError: The position is out of range.
            DataError: The folder is damaged or cannot be read.
        """
        (item,) = self._checked([index])
        start = item * self.stride
        return self.reader.starts(start, start + self.length) - start

    def identity(self) -> dict[str, Any]:
        """See `TokenView.identity`."""
        return {**super().identity(), "length": self.length, "stride": self.stride}

    def __repr__(self) -> str:
        return (
            f"<TokenSequences: {redact(self.reader.url)!r}, {self.format}, {len(self):,} sequences "
            f"of {self.length:,} tokens>"
        )

    def _read(self, item: int) -> Ids:
        start = item * self.stride
        return self.reader.ids(start, start + self.length, self.dtype)

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        stop = min(stop, start + max(_RUN_IDS // max(self.length, self.stride), 1))
        first = start * self.stride
        ids = self.reader.ids(first, (stop - 1) * self.stride + self.length, self.dtype)
        starts = range(0, (stop - start) * self.stride, self.stride)
        return [ids[at : at + self.length].copy() for at in starts]

    def _batch(self, items: list[Ids]) -> Ids:
        return np.stack(items)

    def _same(self, order: Order, dtype: IdType) -> Self:
        return type(self)(self.reader, order, dtype, self.length, self.stride)


class TokenIterator(Generic[Item]):
    """Reads a view from a position on; the position can be saved, and read from again.

    `state_dict` and `load_state_dict` are called as torch calls them; the state is JSON.

    Args:
        view: The view.
        size: The number of items of a batch; None to yield items alone.
    """

    def __init__(self, view: TokenView[Any], size: int | None) -> None:
        self._view, self._size = view, size
        self._position = 0
        self._items: Iterator[Ids] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._items is None:
            self._items = self._view.items_from(self._position)
        try:
            if self._size is None:
                item: Any = next(self._items)
                self._position += 1
                return item  # type: ignore[no-any-return]
            items = list(islice(self._items, self._size))
        except StopIteration:
            raise
        except BaseException:
            # A generator that raised has ended: the next call tries again from the same position.
            self._items = None
            raise
        if not items:
            raise StopIteration
        self._position += len(items)
        return self._view._batch(items)  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Return the position, and what it belongs to, as values of JSON."""
        return {
            "version": _STATE_VERSION,
            "position": self._position,
            **self._view.identity(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position, of the same documents in the same order.

        The format and the place of the folder may be others, and the size of a batch. The folder
        must be the one that was read, or one that `convert` made of it with the same shards.

        Raises:
            UsageError: The state is of other documents, of another order, or no state.
        """
        require(
            isinstance(state, Mapping),
            f"state must be what state_dict returned, got {state!r}",
        )
        require(
            state.get("version") == _STATE_VERSION,
            f"state must be of version {_STATE_VERSION}, got {state.get('version')!r}",
            remedy="read from the start, or slice the view at the position",
        )
        expected = self.state_dict()
        position = state.get("position")
        for name, value in expected.items():
            require(
                name == "position" or state.get(name) == value,
                f"state is of another data set: its {name} is {state.get(name)!r}; expected "
                f"{value!r}",
            )
        require(
            isinstance(position, int) and 0 <= position <= len(self._view),
            f"state must have a position from 0 to {len(self._view)}, got {position!r}",
        )
        assert isinstance(position, int)
        self._position, self._items = position, None
