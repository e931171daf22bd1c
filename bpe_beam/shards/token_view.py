"""Arrays of ids in some order, as data sets for training loops see them, and their iterators.

A view is a data set and an order. Slices, parts and shuffles of a view are views of the same open
folder: nothing is copied, and orders are numbers by arithmetic, never a table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from operator import index as integer
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.errors import require, require_whole
from bpe_beam.shards.folder_reader import FolderReader
from bpe_beam.shards.index_shuffle import index_shuffle
from bpe_beam.shards.shard_rows import MAX_SEED
from bpe_beam.shards.stored_shard import Ids, IdType
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.read_ahead import read_ahead

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpe_beam.shards.torch_dataset import TorchTokens

Batch = TypeVar("Batch")
Item = TypeVar("Item")

POSITIONS = 4096  # the positions of an order that are computed at a time by iterators

RUN_IDS = 1 << 18
"""The ids that are read at a time where documents follow each other, unless one has more."""

_BLOCK = 256  # the positions that are computed when one is asked for: it takes little more time

_MAX_ARROW_IDS = 1 << 24  # the maximum ids of an Arrow batch, unless one item has more

_THREADS = 16

_STATE_VERSION = 1

_AHEAD = 64
"""The documents of a remote folder that are read ahead where they do not follow each other."""


class Stride(Struct, frozen=True):
    """Every `step`-th item from `first` on, `count` in total; `step` may be negative.

    It `grows` if items that are added to the data set are added to it, too.
    """

    first: int
    step: int
    count: int
    grows: bool = False


class Shuffle(Struct, frozen=True):
    """All `count` items in the order of a seed."""

    seed: int
    count: int


class Order(Struct, frozen=True):
    """The items of a view, in their order."""

    # The steps that make the order from the order of the data set: the first chooses from the
    # data set, each other from what the step before has chosen.
    steps: tuple[Stride | Shuffle, ...]

    @staticmethod
    def of_all(count: int) -> Order:
        """Return the order of the data set itself."""
        return Order((Stride(0, 1, count, grows=True),))

    def __len__(self) -> int:
        return self.steps[-1].count

    def shuffled(self, seed: int) -> Order:
        """Return the same items in the order of a seed."""
        return Order((*self.steps, Shuffle(seed, len(self))))

    def sliced(self, bounds: slice) -> Order:
        """Return the items that a slice of a list would have."""
        chosen = range(len(self))[bounds]
        last = self.steps[-1]
        if isinstance(last, Shuffle):
            return Order((*self.steps, Stride(chosen.start, chosen.step, len(chosen))))
        start = bounds.start or 0
        grows = last.grows and bounds.stop is None and start >= 0 and chosen.step > 0
        # The part of a process that has no items yet begins where it was told to.
        start = start if grows else chosen.start
        first, step = last.first + last.step * start, last.step * chosen.step
        return Order((*self.steps[:-1], Stride(first, step, len(chosen), grows)))

    def as_json(self) -> list[list[str | int]]:
        """Return the steps as values of JSON, for saved positions."""
        return [
            ["shuffle", step.seed, step.count]
            if isinstance(step, Shuffle)
            else ["stride", step.first, step.step, step.count]
            for step in self.steps
        ]

    def resized(self, count: int) -> Order | None:
        """Return the order after its data set has got `count` items; None if it does not grow."""
        (stride, *others) = self.steps
        if others or not isinstance(stride, Stride) or not stride.grows:
            return None
        length = len(range(stride.first, count, stride.step))
        return Order((Stride(stride.first, stride.step, length, grows=True),))

    @property
    def run(self) -> int | None:
        """The first item, if the items follow each other in the data set; else None."""
        (first, *others) = self.steps
        if others or not isinstance(first, Stride) or first.step != 1:
            return None
        return first.first

    def items(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return int64[n]: the numbers in the data set of the items at positions, int64[n]."""
        for step in reversed(self.steps):
            if isinstance(step, Stride):
                positions = step.first + step.step * positions
            elif positions.size:
                shuffle = index_shuffle(step.count, step.seed)
                positions = shuffle.number_at(positions.astype(np.uint64)).astype(np.int64)
        return positions


class TokenView(Generic[Batch]):
    """Arrays of ids in some order; the base of documents and sequences.

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

    # ---- defined by documents and by sequences ----

    def _read(self, item: int) -> Ids:
        raise NotImplementedError

    def _read_run(self, start: int, stop: int) -> Sequence[Ids]:
        """Return the items from `start` on: at least one, at most those before `stop`."""
        raise NotImplementedError

    def batch(self, items: list[Ids]) -> Batch:
        """Return a batch of items."""
        raise NotImplementedError

    def _same(self, order: Order, dtype: IdType) -> Self:
        """Return a view of the same items in another order, or of another type."""
        raise NotImplementedError

    def _total(self, reader: FolderReader) -> int:
        """Return the number of all items of the data set in a folder."""
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
            For a position: the ids, a new array of type `dtype`. For a slice: a view; nothing is
            read yet. For positions: a list of arrays.

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
            Batches of documents are lists of arrays, batches of sequences uint32[n, length].
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

    @property
    def windows(self) -> int | None:
        """The number of finished windows that were opened; None unless it is a stream's output."""
        return None if self.reader.windows is None else len(self.reader.windows)

    def refresh(self) -> Self:
        """Return the same view with the windows of the stream that have finished since.

        New items follow those of this view, so positions stay valid. Without new windows it returns
        the view itself.

        Raises:
            UsageError: The folder is no output of a stream, or the view does not grow: it is
                shuffled, reversed, or a slice with an end.
        """
        reader = self.reader.refreshed()
        return self if reader is self.reader else self.on(reader)

    def follow(self, size: int | None = None, *, poll_seconds: float = 10.0) -> TokenIterator[Any]:
        """Return an iterator over the stream's items that waits for new windows, and never ends.

        Args:
            size: The number of items of a batch, at least 1; a batch waits until it is full. None
                to yield items alone.
            poll_seconds: The seconds between two looks for new windows, greater than 0.

        Returns:
            The iterator can be saved and resumed, see `TokenIterator`.

        Raises:
            UsageError: As `refresh`, or an argument is out of range.
        """
        if size is not None:
            require_whole("size", size, 1)
        require(poll_seconds > 0, f"must be greater than 0, got {poll_seconds}", "poll_seconds")
        return TokenIterator(self.refresh(), size, poll_seconds)

    def on(self, reader: FolderReader) -> Self:
        """Return the same view of fewer or more windows of the same stream."""
        order = self.order.resized(self._total(reader))
        require(
            order is not None,
            "a view that is shuffled, reversed or has an end does not grow with its stream",
            remedy="refresh the whole data set, then shuffle or slice it",
        )
        assert order is not None
        view = self._same(order, self.dtype)
        view.reader = reader
        return view

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
            rows: The maximum number of items of a batch, at least 1. A batch has fewer if they are
                long.

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
                if items and (len(items) == rows or size + item.size > _MAX_ARROW_IDS):
                    yield batch(items)
                    items, size = [], 0
                items.append(item)
                size += item.size
            if items:
                yield batch(items)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def identity(self) -> JsonObject:
        """Return the tokens and the order that a saved position belongs to; not the format."""
        return {
            "tokenizer": self.reader.tokenizer,
            "content": self.reader.content,
            "documents": self.reader.documents,
            "tokens": self.reader.tokens,
            **({} if self.windows is None else {"windows": self.windows}),
            "order": self.order.as_json(),
        }

    def items_from(self, position: int) -> Iterator[Ids]:
        """Yield the items from a position on."""
        first, count = self._first, self._count
        if first is None:
            yield from self._scattered_from(position)
            return
        while position < count:
            items = self._read_run(first + position, first + count)
            yield from items
            position += len(items)

    def _scattered_from(self, position: int) -> Iterator[Ids]:
        ahead = _AHEAD if self.reader.remote else 0
        yield from read_ahead(self._read, self._items(position), ahead, _THREADS)

    def _items(self, position: int) -> Iterator[int]:
        """Yield the numbers of the items from a position on."""
        count = len(self)
        for start in range(position, count, POSITIONS):
            yield from self.order.items(np.arange(start, min(start + POSITIONS, count))).tolist()

    def _item_at(self, position: int) -> int:
        """Return the number of an item; a block of positions is computed together."""
        start, items = self._block
        if not 0 <= position - start < len(items):
            start = position - position % _BLOCK
            items = self.order.items(np.arange(start, min(start + _BLOCK, self._count))).tolist()
            self._block = start, items
        return items[position - start]

    def _checked(self, positions: Any) -> list[int]:
        """Return the numbers of the items at positions."""
        numbers = np.asarray(positions)
        if numbers.size == 0:
            return []
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            got = f"{numbers.dtype} of shape {numbers.shape}"
            raise TypeError(f"index must be integers in one dimension, got {got}")
        numbers, count = numbers.astype(np.int64), len(self)
        wrong = (numbers < -count) | (numbers >= count)
        if wrong.any():
            bad = int(numbers[np.argmax(wrong)])
            raise IndexError(f"index must be from -{count} to {count - 1}, got {bad}")
        numbers = np.where(numbers < 0, numbers + count, numbers)
        items: list[int] = self.order.items(numbers).tolist()
        return items

    def _gather(self, items: list[int]) -> list[Ids]:
        if not self.reader.remote or len(items) < 2:
            return [self._read(item) for item in items]
        with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
            return list(pool.map(self._read, items))


class TokenIterator(Generic[Item]):
    """Iterates over a view from a position on. The position can be saved, and resumed from.

    `state_dict` and `load_state_dict` are called as torch calls them; the state is JSON.

    Args:
        view: The view.
        size: The number of items of a batch; None to yield items alone.
        poll_seconds: The seconds between two looks for new windows of a stream; None not to wait.
    """

    def __init__(
        self, view: TokenView[Any], size: int | None, poll_seconds: float | None = None
    ) -> None:
        self._view, self._size, self._poll_seconds = view, size, poll_seconds
        self._position = 0
        self._items: Iterator[Ids] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._poll_seconds is not None:
            self._wait(self._poll_seconds)
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
        return self._view.batch(items)  # type: ignore[no-any-return]

    def _wait(self, poll_seconds: float) -> None:
        """Wait until the view has a whole batch after the position."""
        while len(self._view) - self._position < (self._size or 1):
            view = self._view.refresh()
            if view is self._view:
                time.sleep(poll_seconds)
            self._view, self._items = view, None

    def state_dict(self) -> JsonObject:
        """Return the position, and the data set and order that it belongs to, as values of JSON."""
        return {
            "version": _STATE_VERSION,
            "position": self._position,
            **self._view.identity(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue at a saved position, of the same documents in the same order.

        The format, the location of the folder and the size of a batch may differ. The folder
        must be the one that was read, or one that `convert` made of it with the same shards. The
        output of a stream may have more windows than then, if the view is not shuffled.

        Raises:
            UsageError: It is no state, or one of other documents or of another order.
        """
        require(
            isinstance(state, Mapping),
            f"state must be the result of state_dict, got {state!r}",
        )
        require(
            state.get("version") == _STATE_VERSION,
            f"state must be of version {_STATE_VERSION}, got {state.get('version')!r}",
            remedy="read from the start, or slice the view at the position",
        )
        expected = {**self.state_dict(), **self._view_of(state).identity()}
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

    def _view_of(self, state: Mapping[str, Any]) -> TokenView[Any]:
        """Return the view of the windows that a state was saved for."""
        windows, now = state.get("windows"), self._view.windows
        if now is None or not isinstance(windows, int) or windows == now:
            return self._view
        require(
            0 < windows < now,
            f"state is of {windows:,} windows of the stream, and {now:,} were opened",
            remedy="refresh the data set, or wait until a window that is repaired is finished",
        )
        return self._view.on(self._view.reader.first_windows(windows))
