"""Packages that no job uses, hidden from imports in the processes of the command line.

pyarrow imports them wherever they are installed: pandas, to ask whether a list is of pandas, takes
0.2 to 0.3 s; cloudpickle, to pickle functions of its own, takes 6 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

UNUSED_PACKAGES = frozenset(["cloudpickle", "pandas"])


class _WithoutUnusedPackages(PathFinder):
    """Finds modules as `PathFinder` does in an environment that lacks the unused packages."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, or None if there is none."""
        if fullname in UNUSED_PACKAGES:
            return None
        return super().find_spec(fullname, path, target)


def hide_unused_packages() -> None:
    """Have this process import no unused package, as on a base install.

    Only for processes that run nothing but this package: pyarrow's `to_pandas` fails afterwards.
    """
    sys.meta_path[:] = [
        _WithoutUnusedPackages if finder is PathFinder else finder for finder in sys.meta_path
    ]
