"""Parts of many cases: a default test takes some of them, a slow test the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pytest


class SomeOf(Protocol):
    """The fixture `some_of`."""

    def __call__(self, cases: Sequence[Any], every: int = 4) -> list[Any]:
        """Return every fourth case by default, and all others in the slow tests."""


def in_turn(many: Iterable[Any], few: Iterable[Any]) -> list[Any]:
    """Return all pairs of two axes as parameters; most of them are slow tests.

    By default each of `many` is tested with one of `few`, which take turns.
    """
    second = list(few)
    return [
        pytest.param(one, other, marks=() if i % len(second) == j else pytest.mark.slow)
        for i, one in enumerate(many)
        for j, other in enumerate(second)
    ]
