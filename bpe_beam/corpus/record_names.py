"""The fields of a rejected record, for messages about a field that was not found."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from bpe_beam.corpus.read_settings import field_path
from bpe_beam.corpus.rejects import RejectReason
from bpe_beam.messages import list_few

_SHOWN_NAMES = 20


def names_in(row: Mapping[str, Any], text_field: str) -> str:
    """Return which field is missing in a rejected JSON record and which ones it has, for a message.

    Args:
        row: A row of a rejects file; for another reason the text is empty.
        text_field: The missing field.
    """
    if row["reason"] != RejectReason.FIELD_MISSING.value or "row" in row:
        return ""
    sought = f": text_field {text_field!r} names no field"
    data = base64.b64decode(row["bytes"])
    try:
        record = json.loads(data)
    except ValueError:  # longer than what is kept of a record
        return sought
    above: list[str] = []
    for name in field_path(text_field)[:-1]:
        if not isinstance(record, dict) or name not in record:
            break
        record = record[name]
        above.append(name)
    within = f"its {'.'.join(above)!r}" if above else "it"
    if not isinstance(record, dict):
        return f"{sought}; {within} is no object"
    names = [repr(name) for name in record]
    has = list_few(names, _SHOWN_NAMES) if names else "no field at all"
    return f"{sought}; {within} has {has}"
