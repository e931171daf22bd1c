"""Tokenizers that a process holds: each made once, whoever asks and however many threads do.

Beam's own `Shared` keeps one object of a process alive: two steps with a tokenizer each would make
theirs anew at every element.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from bpe_beam.tokenizer.tokenizer import Tokenizer

MOST_HELD = 8
"""Beyond so many, those that nobody asked for the longest are let go."""

_lock = threading.Lock()
_held: OrderedDict[str, Tokenizer] = OrderedDict()


def held_tokenizer(key: str, make: Callable[[], Tokenizer]) -> Tokenizer:
    """The tokenizer under a key, made at the first call.

    Args:
        key: What tells it from all others: equal keys, equal tokenizers.
        make: Makes it; others wait meanwhile.
    """
    with _lock:
        found = _held.get(key)
        if found is None:
            found = _held[key] = make()
            if len(_held) > MOST_HELD:
                _held.popitem(last=False)
        _held.move_to_end(key)
        return found
