"""The corpus: a plan of files and splits, readers to Arrow batches of documents, rejects.

`split_planning` makes the plan, `read_split` reads a split of it; `formats/` has a module a format,
`streams/` the compressions. `ReadSettings`, which users' pipelines name, is imported on first use,
so that the names of formats cost no other import.
"""

from typing import Any

__all__ = ["ReadSettings"]


def __getattr__(name: str) -> Any:
    if name != "ReadSettings":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bpe_beam.corpus.read_settings import ReadSettings

    return ReadSettings
