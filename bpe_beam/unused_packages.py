"""Modules that no job uses, hidden from imports in the processes of the command line.

pyarrow imports some wherever they are installed: pandas, to ask whether a list is of pandas, takes
0.2 to 0.3 s; cloudpickle, to pickle functions of its own, takes 6 ms. Its clients of stores take
3 ms, and jobs use fsspec. NumPy's docstrings take 6 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

UNUSED_MODULES = frozenset(
    [
        *("cloudpickle", "pandas"),
        *("pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs"),
    ]
)

DOCSTRINGS = frozenset(["numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"])
"""Modules that only give docstrings to objects of other modules."""


class _Empty:
    """Loads a module without its content; `importlib.abc` and what it imports take 7 ms."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing."""


class _WithoutUnusedModules(PathFinder):
    """Finds modules as `PathFinder` does in an environment that lacks the unused modules."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, or None if there is none."""
        if fullname in UNUSED_MODULES:
            return None
        if fullname in DOCSTRINGS:
            return ModuleSpec(fullname, _Empty())  # type: ignore[arg-type]
        return super().find_spec(fullname, path, target)


def hide_unused_packages() -> None:
    """Have this process import no unused module, as on a base install.

    Only for processes that run nothing but this package: pyarrow's `to_pandas` fails afterwards.
    """
    sys.meta_path[:] = [
        _WithoutUnusedModules if finder is PathFinder else finder for finder in sys.meta_path
    ]
