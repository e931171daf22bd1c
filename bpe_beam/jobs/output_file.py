"""The files that a job writes beside its folder: a report, a plan, its summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import require
from bpe_beam.jobs.standard_streams import STDOUT, require_stdout, write_stdout
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.storage.names import parent

if TYPE_CHECKING:
    from bpe_beam.storage import Storage


def prepare_file(storage: Storage, target: str, parameter: str) -> None:
    """Make the folder of a file, and find out before the job works whether it can be written."""
    if target == STDOUT:
        require_stdout()
        return
    require(not storage.is_folder(target), f"must be a file, got the folder {target!r}", parameter)
    storage.make_folder(parent(target))
    storage.check_writable(target)


def write_json(
    value: Mapping[str, Any], target: str, storage_options: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a value as JSON to a path, a URL, or stdout."""
    data = json_bytes(dict(value))
    if target == STDOUT:
        write_stdout(data)
        return
    from bpe_beam.storage import Storage  # imports fsspec, which stdout does not need

    Storage(storage_options).write_bytes(target, data)
