"""The formats of input files: a module a format, with its name.

This module has the names only, as `bpe-beam --help` needs no more; see `interface.py`.
"""

INPUT_FORMATS = ("text", "jsonl", "parquet", "arrow", "csv", "tsv", "warc", "tar")
"""The names of all formats. Each names the module of this folder that defines its `FORMAT`."""

DEFAULT_INPUT_FORMAT = INPUT_FORMATS[0]
"""The format of files whose first bytes and name show none."""

INPUT_FORMAT_CHOICES = ("auto", *INPUT_FORMATS)
"""The values of `--input-format`; "auto" goes by a file's first bytes and its name."""
