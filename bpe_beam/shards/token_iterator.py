"""Iteration over a view from a position on, which can be saved and read from again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from bpe_beam.errors import require
from bpe_beam.shards.stored_shard import Ids
from bpe_beam.storage.json_file import JsonObject

if TYPE_CHECKING:
    from typing_extensions import Self

Item = TypeVar("Item")

_STATE_VERSION = 1


class _View(Protocol):
    """The methods of a `TokenView` that an iterator needs."""

    def __len__(self) -> int: ...
    def items_from(self, position: int) -> Iterator[Ids]: ...
    def batch(self, items: list[Ids]) -> Any: ...
    def identity(self) -> JsonObject: ...


class TokenIterator(Generic[Item]):
    """Iterates over a view from a position on. The position can be saved, and resumed from.

    `state_dict` and `load_state_dict` are called as torch calls them; the state is JSON.

    Args:
        view: The view.
        size: The number of items of a batch; None to yield items alone.
    """

    def __init__(self, view: _View, size: int | None) -> None:
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
        return self._view.batch(items)  # type: ignore[no-any-return]

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
        must be the one that was read, or one that `convert` made of it with the same shards.

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
