"""The kind of a folder by its files, for errors about a folder of the wrong kind."""

from __future__ import annotations

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, SUMMARY_FILE, TOKENIZER_FILE
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import JsonObject, parse_json

COUNTS = "word counts"
SHARDS = "shards"
A_TOKENIZER = "a tokenizer"
WINDOWS = "windows of shards"

_MAXIMUM_BYTES = 256 << 20
"""The maximum bytes of a manifest that is read; the kind of a longer one is unknown."""

_OF_JOBS = {
    "count": COUNTS,
    "counts merge": COUNTS,
    "counts filter": COUNTS,
    "train": A_TOKENIZER,
    "tokenize": SHARDS,
    "convert": SHARDS,
    "mix": SHARDS,
    "stream-tokenize": WINDOWS,
    "WriteTokens windows": WINDOWS,
}


def kind_of(storage: Storage, folder: str) -> str | None:
    """Return the kind of a folder, finished or not."""
    names = storage.list_names(folder)
    if JOB_FILE in names:
        job = _OF_JOBS.get(str(_object(storage, storage.join(folder, JOB_FILE)).get("job")))
        if job is not None:
            return job
    # Written by a user's own pipeline, copied without `__job`, or with a damaged one.
    if MANIFEST_FILE in names:
        manifest = _object(storage, storage.join(folder, MANIFEST_FILE))
        return SHARDS if "shards" in manifest else COUNTS if "parts" in manifest else None
    is_tokenizer = SUMMARY_FILE in names or (TOKENIZER_FILE in names and JOB_FILE not in names)
    return A_TOKENIZER if is_tokenizer else None


def refuse_other(storage: Storage, folder: str, wanted: str) -> None:
    """Refuse a folder of another kind than the wanted one."""
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


def _object(storage: Storage, url: str) -> JsonObject:
    """Return the JSON object in a file; empty if there is none."""
    try:
        value = parse_json(storage.read_head(url, _MAXIMUM_BYTES), url)
    except DataError:
        return {}
    return value if isinstance(value, dict) else {}
