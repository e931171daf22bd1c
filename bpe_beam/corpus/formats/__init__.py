"""The formats of input files: a module a format, found by its name.

Importing this registry imports no format: `bpe-beam --help` needs the names only.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_beam.corpus.formats.interface import InputFormat

INPUT_FORMATS = ("text", "jsonl", "parquet", "arrow", "csv", "tsv", "warc", "tar")
"""The names of all formats. Each names the module of this folder that defines its `FORMAT`."""

DEFAULT_INPUT_FORMAT = INPUT_FORMATS[0]
"""The format of files whose first bytes and name show none."""

INPUT_FORMAT_CHOICES = ("auto", *INPUT_FORMATS)
"""The values of `--input-format`; "auto" goes by a file's first bytes and its name."""


@functools.cache
def input_format(name: str) -> InputFormat:
    """Return the format with this name, one of INPUT_FORMATS."""
    if name not in INPUT_FORMATS:
        raise ValueError(f"format must be one of {', '.join(INPUT_FORMATS)}, got {name!r}")
    found: InputFormat = importlib.import_module(f"{__name__}.{name}").FORMAT
    return found
