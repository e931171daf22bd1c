"""JSON Lines: an object a line, of which a field is the text.

The last of equal keys is used. A number as id is its JSON text. Blank lines are no records.

The parser is our own (`native/read/jsonl.hpp`): pyarrow's takes twice the time and fails a whole
block for one bad line; orjson and json hold the GIL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from bpe_beam import _native
from bpe_beam.corpus.formats.interface import InputFormat
from bpe_beam.corpus.read_settings import OTHER_SOURCE
from bpe_beam.corpus.reading.records import read_records
from bpe_beam.corpus.reading.slice_reader import BOM
from bpe_beam.corpus.slices import SliceRequest
from bpe_beam.errors import UsageError

_NO_LINES = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*(?:[{\"\]]|\n|$)|\{[ \t\r]*\n)")
"""The first bytes of an array of objects or texts, or of an object over several lines."""

_KEY = re.compile(rb"\s*(?:\[\s*)?\{(\s*)\"(?:[^\"\\\n]|\\.)*\"\s*:")
"""The first bytes of an object, or of an array of objects."""

_TEXTS = re.compile(rb"\s*\[(?:\s*\n\s*|[^\S\n]*(?=[^\n]*\Z))\"")
"""The first bytes of an array of texts, each on its line, or all on one long line."""

_LONG_LINE = 1 << 10

_JSON = json.JSONDecoder(strict=False)


def _read(request: SliceRequest) -> Iterator[pa.RecordBatch]:
    paths = request.settings.paths
    return read_records(
        request,
        b"\n",
        lambda data, where, prefix, base: _native.jsonl_records(data, *where, *paths, OTHER_SOURCE),
    )


def _recognises(head: bytes) -> bool:
    """Return whether most of the first lines are objects, or other JSON with texts begins here.

    Other JSON is an array of objects or texts, an object over several lines, or several objects on
    one line. Of a line that does not end within the first bytes, the first key is enough.
    """
    head = head.removeprefix(BOM)
    key = _KEY.match(head)
    if key is None or head.lstrip().startswith(b"["):
        return key is not None or _is_array_of_texts(head)
    *lines, rest = head.split(b"\n")
    if not any(map(bytes.strip, lines)):
        return len(rest) > _LONG_LINE or _is_object(rest) or _ends_within_a_line(head)
    return mostly_objects(lines) or _ends_within_a_line(head)


def mostly_objects(lines: list[bytes]) -> bool:
    """Return whether most of the lines that are not blank are objects with keys."""
    lines = [line for line in lines if line.strip()]
    return 2 * sum(map(_is_object, lines)) > len(lines)


def _ends_within_a_line(head: bytes) -> bool:
    """Return whether the first object is on several lines, or another one is on its last line."""
    value, text, rest = _first_value(head)
    if value is None:
        return b"\n" in head.lstrip().partition(b'"')[0]
    return "\n" in text or rest.lstrip(" \t\r").startswith(("{", ","))


def _is_array_of_texts(head: bytes) -> bool:
    value, _, _ = _first_value(head)
    if value is None:
        return _TEXTS.match(head) is not None and (len(head) > _LONG_LINE or b"\n" in head)
    return isinstance(value, list) and any(isinstance(each, str) for each in value)


def _first_value(head: bytes) -> tuple[Any, str, str]:
    """Return the first JSON value, its text, and the text after it; None if it is not whole."""
    text = head.decode("utf-8", "replace").lstrip()
    try:
        value, end = _JSON.raw_decode(text)
    except (ValueError, RecursionError):
        return None, "", text
    return value, text[:end], text[end:]


def _is_object(line: bytes) -> bool:
    try:
        value = _JSON.decode(line.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value)


def _check_head(head: bytes) -> None:
    if _NO_LINES.match(head):
        raise UsageError(
            "is an array, or an object over several lines, not JSON Lines, which has an object on "
            "each line",
            remedy="convert it with jq -c '.[]' FILE > FILE.jsonl (jq -c . for objects), or give "
            "its format with {input_format}",
        )


FORMAT = InputFormat(
    name="jsonl",
    read=_read,
    endings=(".jsonl", ".ndjson", ".json"),
    splittable_units=True,
    recognises=_recognises,
    check_head=_check_head,
)
