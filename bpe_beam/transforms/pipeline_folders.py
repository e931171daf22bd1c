"""The folders that the transforms of a pipeline write to: no two write to the same one."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import apache_beam as beam

from bpe_beam.errors import require

_folders: WeakKeyDictionary[beam.Pipeline, set[str]] = WeakKeyDictionary()


def take_folder(pipeline: beam.Pipeline, folder: str, parameter: str) -> None:
    """Note that a transform of a pipeline writes to a folder."""
    taken = _folders.setdefault(pipeline, set())
    name = folder.rstrip("/")
    require(
        name not in taken,
        f"must be different for each transform of a pipeline, got {name} twice",
        parameter,
    )
    taken.add(name)
