"""What the folder of a job holds, for whoever was given the wrong one.

Looked at only when a folder turned out not to be what was wanted: to say what it is helps more than
to say what it lacks.
"""

from __future__ import annotations

import json
from typing import Any

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.storage import Storage, redact

COUNTS = "word counts"
SHARDS = "shards"
A_TOKENIZER = "a tokenizer"
WINDOWS = "windows of shards"

_MOST_BYTES = 256 << 20
"""Of a manifest that is looked at; of a longer one nothing is told."""

_OF_JOBS = {
    "count": COUNTS,
    "counts merge": COUNTS,
    "counts filter": COUNTS,
    "train": A_TOKENIZER,
    "tokenize": SHARDS,
    "stream-tokenize": WINDOWS,
}


def kind_of(storage: Storage, folder: str) -> str | None:
    """What a folder holds, finished or not.

    Returns:
        `COUNTS`, `SHARDS`, `A_TOKENIZER` or `WINDOWS`; None if that cannot be told.
    """
    names = storage.list_names(folder)
    if JOB_FILE in names:
        job = _object(storage, storage.join(folder, JOB_FILE)).get("job")
        return _OF_JOBS.get(job) if isinstance(job, str) else None
    # Of a pipeline of the user's own, or with only what was needed copied.
    if MANIFEST_FILE in names:
        manifest = _object(storage, storage.join(folder, MANIFEST_FILE))
        return SHARDS if "shards" in manifest else COUNTS if "parts" in manifest else None
    return A_TOKENIZER if TOKENIZER_FILE in names else None


def refuse_other(storage: Storage, folder: str, wanted: str) -> None:
    """Refuses a folder that holds something else than what is wanted.

    Args:
        storage: The door to storage.
        folder: What was given.
        wanted: As `kind_of` has it.

    Raises:
        UsageError: It does; says what, and what to give if that is in it.
    """
    kind = kind_of(storage, folder)
    if kind is None or kind == wanted:
        return
    give = ""
    if (kind, wanted) == (A_TOKENIZER, COUNTS):
        inside = storage.join(folder, "counts")
        give = f": give {redact(inside)}" if storage.exists(inside) else ""
    elif (kind, wanted) == (WINDOWS, SHARDS):
        give = ": give one of its folders window-*"
    raise UsageError(f"{redact(folder)} holds {kind}, not {wanted}{give}")


def _object(storage: Storage, url: str) -> dict[str, Any]:
    """A JSON object that anyone may have written; empty if it is none."""
    try:
        value = json.loads(storage.read_head(url, _MOST_BYTES))
    except (ValueError, RecursionError, DataError):
        return {}
    return value if isinstance(value, dict) else {}
