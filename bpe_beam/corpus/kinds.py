"""What a file of the corpus is, by its first bytes and its name: its compression, its format."""

from __future__ import annotations

import re

from bpe_beam.errors import UsageError

COMPRESSIONS = ("none", "gzip", "zstd", "bz2", "xz")
HEAD_BYTES = 16
"""So many first bytes tell the compression."""

COLUMN_FORMATS = ("parquet", "arrow")
"""Formats that compress by themselves."""

_BZIP2_BLOCK = b"\x31\x41\x59\x26\x53\x59"  # "BZh" alone could be text
_BZIP2_END = b"\x17\x72\x45\x38\x50\x90"
_MAGIC_FORMATS = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_COMPRESSED_ENDINGS = (".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz")
_ENDINGS = {
    "jsonl": (".jsonl", ".ndjson", ".json"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "warc": (".warc", ".wet"),
    "tar": (".tar", ".tgz"),
}


_NO_LINES = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[{\"\]]|\n|$)|\{[ \t\r]*\n)")
"""How a file begins that holds an array of objects or texts, or an object over several lines."""


def is_skippable_zstd(head: bytes) -> bool:
    """Whether these bytes begin a skippable frame: 0x184D2A50 to 0x184D2A5F, little-endian."""
    return head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F


def compression_of(head: bytes) -> str:
    """The compression of a file by its first HEAD_BYTES bytes: one of COMPRESSIONS."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd") or is_skippable_zstd(head):
        return "zstd"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head.startswith(b"BZh") and head[4:10] in (_BZIP2_BLOCK, _BZIP2_END):
        return "bz2"
    return "none"


def format_of(name: str, head: bytes, compression: str, input_format: str) -> str:
    """The format of a file.

    Args:
        name: Its name.
        head: Its first HEAD_BYTES bytes as stored, or all if it has fewer.
        compression: See `compression_of`.
        input_format: What it is said to be; "auto": by its first bytes if they tell, else by its
            name without the ending of a compression, else text.

    Raises:
        UsageError: It is a ZIP archive, or surely not what it is said to be.
    """
    if head.startswith(b"PK\x03\x04"):
        raise UsageError("is a ZIP archive, which is not read; unpack it first")
    magic = next((kind for start, kind in _MAGIC_FORMATS.items() if head.startswith(start)), None)
    found = magic or (_by_name(name) if input_format == "auto" else input_format)
    if magic is not None and input_format not in ("auto", magic):
        raise UsageError(f"is {magic}, not {input_format}; leave --input-format out")
    if found in COLUMN_FORMATS and compression != "none":
        raise UsageError(f"is {found} within {compression}, which is not read; unpack it first")
    if found == "jsonl" and compression == "none" and _NO_LINES.match(head):
        raise UsageError(
            "is an array, or an object over several lines, not JSON Lines, which has an object on "
            "each line: convert it with jq -c '.[]' FILE > FILE.jsonl, or jq -c . for objects"
        )
    if input_format == "auto" and head.startswith(b"WARC/1."):
        return "warc"
    return found


def _by_name(name: str) -> str:
    name = name.lower()
    if name.endswith(".tgz"):
        return "tar"
    for ending in _COMPRESSED_ENDINGS:
        name = name.removesuffix(ending)
    return next((kind for kind, ends in _ENDINGS.items() if name.endswith(ends)), "text")
