"""`decode`: some ids to the bytes of their text, on stdout."""

from __future__ import annotations

import sys
from typing import Any

from bpe_beam.errors import DataError, UsageError
from bpe_beam.jobs.typed_input import tell_who_types
from bpe_beam.progress import Progress
from bpe_beam.settings.parsing import parse_ids
from bpe_beam.settings.tools import DecodeSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer


def run(settings: DecodeSettings, progress: Progress) -> dict[str, Any]:
    """Writes the bytes as they are; on a terminal a newline after them.

    Args:
        settings: What to do.
        progress: Not used: nothing here is long.

    Returns:
        The summary.

    Raises:
        UsageError: If an argument is no id, or there is no such tokenizer.
        DataError: If the tokenizer does not have an id, or standard input holds something else.
    """
    ids = None if settings.ids is None else parse_ids("ids", " ".join(settings.ids))
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    if ids is None:
        ids = _ids_of_stdin()
    data = tokenizer.decode_bytes(ids)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    if sys.stdout.isatty():
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    return {"job": "decode", "tokens": len(ids), "text_bytes": len(data)}


def _ids_of_stdin() -> list[int]:
    tell_who_types("the ids")
    try:
        text = sys.stdin.buffer.read().decode("ascii", "backslashreplace")
        return parse_ids("standard input", text)
    except UsageError as error:
        raise DataError(str(error)) from None
