"""How the files of a finished task get their final names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Publication:
    """A task's receipt, and the renames that bring its files to their final names.

    Attributes:
        receipt: The receipt with the final names.
        moves: (current name, final name) of each file that is renamed.
    """

    receipt: dict[str, Any]
    moves: tuple[tuple[str, str], ...]
