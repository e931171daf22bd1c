"""Write JSON to a path, a URL, or stdout."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from bpe_beam.storage.json_file import json_bytes


def write_json(
    value: Mapping[str, Any], target: str, storage_options: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write a value as JSON.

    Args:
        value: JSON values by name; they are written in this order.
        target: A path or URL; `-` is stdout.
        storage_options: Options of file systems by protocol.

    Raises:
        DataError: The file cannot be written.
    """
    data = json_bytes(dict(value))
    if target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    from bpe_beam.storage import Storage  # imports fsspec, which stdout does not need

    Storage(storage_options).write_bytes(target, data)
