"""JSON Lines: an object a line, of which a field is the text.

The parser is our own (`native/read/jsonl.hpp`): pyarrow's takes twice the time and fails a whole
block for one bad line; orjson and json hold the GIL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import OTHER_SOURCE
from bpe_beam.corpus.reading.records import read_records
from bpe_beam.corpus.reading.window import BOM
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.errors import UsageError

_NO_LINES = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[{\"\]]|\n|$)|\{[ \t\r]*\n)")
"""The first bytes of an array of objects or texts, or of an object over several lines."""

_KEY = re.compile(rb"\s*(?:\[\s*)?\{\s*\"(?:[^\"\\\n]|\\.)*\"\s*:")
"""The first bytes of an object, or of an array of objects."""

_LONG_LINE = 1 << 10


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    """Yield the documents that begin in a slice of a JSON Lines file; see `read_split`."""
    paths = request.settings.paths
    return read_records(
        request,
        b"\n",
        lambda data, where, prefix, base: _native.jsonl_records(data, *where, *paths, OTHER_SOURCE),
    )


def _recognises(head: bytes) -> bool:
    """Return whether most of the first lines are objects, or an array of objects begins here.

    Of one line that does not end within the first bytes, the first key is enough.
    """
    head = head.removeprefix(BOM)
    if not _KEY.match(head):
        return False
    if head.lstrip().startswith(b"["):
        return True
    *lines, rest = head.split(b"\n")
    lines = [line for line in lines if line.strip()]
    if not lines:
        return len(rest) > _LONG_LINE or _is_object(rest)
    return 2 * sum(map(_is_object, lines)) > len(lines)


def _is_object(line: bytes) -> bool:
    try:
        value = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"), strict=False)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value)


def _check_head(head: bytes) -> None:
    if _NO_LINES.match(head):
        raise UsageError(
            "is an array, or an object over several lines, not JSON Lines, which has an object on "
            "each line: convert it with jq -c '.[]' FILE > FILE.jsonl, or jq -c . for objects"
        )


FORMAT = InputFormat(
    name="jsonl",
    read=_read,
    endings=(".jsonl", ".ndjson", ".json"),
    splittable_units=True,
    recognises=_recognises,
    check_head=_check_head,
)
