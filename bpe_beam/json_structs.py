"""Structs from JSON values and from JSON, from any thread.

msgspec learns a class of structs when it is first used. A second thread that needs the class
meanwhile ends the process (msgspec 0.22: a null pointer), so a class is learned under a lock.
Modules use these functions instead of msgspec's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_LEARNED: set[type] = set()
_LEARNING = threading.Lock()


def convert(value: object, struct: type[T], *, from_attributes: bool = False) -> T:
    """Return JSON values as an object of a class, after a check of every key and value.

    With `from_attributes` the value may also be an object that has the fields as attributes.
    """
    _learn(struct)
    return msgspec.convert(value, struct, from_attributes=from_attributes)


def decode(
    data: bytes | str, struct: type[T], dec_hook: Callable[[type, Any], Any] | None = None
) -> T:
    """Return JSON as an object of a class, after a check of every key and value."""
    _learn(struct)
    return msgspec.json.decode(data, type=struct, dec_hook=dec_hook)


def _learn(struct: type) -> None:
    if struct in _LEARNED:
        return
    with _LEARNING:
        msgspec.json.Decoder(struct)
        _LEARNED.add(struct)
