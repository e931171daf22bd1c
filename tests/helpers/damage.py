"""Damage to the JSON files of a folder: every kind of edit of every field, drawn from a seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[Any, ...]


def paths(value: Any, path: Path = ()) -> list[Path]:
    """Yield the keys from the top down to each value."""
    found = [path]
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        found += paths(inner, (*path, key))
    return found


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _other(value: Any, made: random.Random) -> Any:
    """Return another value of the same type, as a flipped bit or a typing error makes it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + made.choice((-1, 1, 10))) if value else 1
    if isinstance(value, str) and value:
        index = made.randrange(len(value))
        other = made.choice([c for c in "0123456789abcdef" if c != value[index]])
        return value[:index] + other + value[index + 1 :]
    return {None: 1, "": "x"}.get(value, 0)


def structural_edits(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Edit each field once: another value, or an entry dropped, doubled or swapped with the next.

    Yields:
        What was done, and the edited copy.
    """
    made = random.Random(seed)
    for path in paths(value)[1:]:
        found = at(value, path)
        edits: dict[str, Callable[[Any, Any], Any]] = {}
        if not isinstance(found, dict | list):
            edits["changed"] = lambda holder, key: holder.__setitem__(
                key, _other(holder[key], made)
            )
        edits["dropped"] = lambda holder, key: holder.pop(key)
        if isinstance(path[-1], int):
            edits["doubled"] = lambda holder, key: holder.insert(key, copy.deepcopy(holder[key]))
        if isinstance(path[-1], int) and path[-1] and at(value, path[:-1])[path[-1] - 1] != found:
            edits["swapped"] = lambda holder, key: holder.insert(key - 1, holder.pop(key))
        for name, edit in edits.items():
            edited = copy.deepcopy(value)
            edit(at(edited, path[:-1]), path[-1])
            yield f"{'.'.join(map(str, path))} {name}", edited


def byte_edits(data: bytes, seed: int, count: int) -> Iterator[tuple[str, bytes]]:
    """Change single bytes of a file to other printable ones."""
    made = random.Random(seed)
    for _ in range(count):
        index = made.randrange(len(data))
        other = made.choice([byte for byte in range(32, 127) if byte != data[index]])
        yield f"byte {index} changed", data[:index] + bytes([other]) + data[index + 1 :]


def all_edits(
    data: bytes, seed: int, to_bytes: Callable[[Any], bytes], bytes_changed: int = 40
) -> Iterator[tuple[str, bytes]]:
    """Return the edits of a JSON file that change its meaning.

    Args:
        data: The file.
        seed: Other seeds give other edits.
        to_bytes: Writes edited values as a file.
        bytes_changed: How many single bytes are changed besides.
    """
    value = json.loads(data)
    for name, edited in structural_edits(value, seed):
        yield name, to_bytes(edited)
    # The name of the checksum's key, as if there were no checksum.
    key = data.rfind(b'"sha256"') + 1
    renamed = ("checksum renamed", data[:key] + b"sha" + data[key + 4 :])
    for name, changed in (*byte_edits(data, seed, bytes_changed), renamed):
        try:
            same = json.loads(changed) == value
        except ValueError:
            same = False
        if not same:
            yield name, changed


def pretty(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def sample(edits: Iterator[tuple[str, bytes]], most: int, seed: int) -> list[tuple[str, bytes]]:
    """Return at most so many of the edits, drawn from a seed."""
    found = list(edits)
    return found if len(found) <= most else random.Random(seed).sample(found, most)
