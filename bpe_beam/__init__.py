"""Learn subword tokenizers from corpora of any size, and turn them into token shards, on Beam.

Public names are imported when they are first used: the command line needs none of them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_beam.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer"]


def __getattr__(name: str) -> object:
    """Return a public name of the package."""
    if name != "Tokenizer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bpe_beam.tokenizer.tokenizer import Tokenizer

    globals()[name] = Tokenizer
    return Tokenizer
