"""Learn subword tokenizers from corpora of any size, and turn them into token shards, on Beam.

Public names are imported when they are first used: the command line needs none of them.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_beam import shards
    from bpe_beam.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer", "shards"]

_MODULES = {"Tokenizer": "bpe_beam.tokenizer.tokenizer"}


def __getattr__(name: str) -> object:
    """Return a public name of the package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found
