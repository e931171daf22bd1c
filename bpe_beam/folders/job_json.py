"""`__job`: the job of an output folder, and the files that it may write there.

It names the settings that the result depends on and nothing else: no time, host or absolute path.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from msgspec import Struct

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.compact_names import PackedNames, pack_names, unpack_names
from bpe_beam.storage.json_file import (
    VERSION,
    JsonObject,
    OtherVersionError,
    Sha256,
    parse_json,
    read_signed,
    to_struct,
    with_checksum,
)

_SHOWN_DIFFERENCES = 12


class _JobFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `__job` but for its checksum, in the order of the file."""

    job: str
    version: int
    fingerprint: Sha256
    settings: JsonObject
    final: str
    files: PackedNames


class JobRecord(Struct, frozen=True):
    """The content of `__job`.

    Attributes:
        job: The job's name.
        settings: Every setting that the result depends on, as JSON reads it back.
        final: The file that exists when the job has finished.
        names: The exact names of the other files that the job may write, relative to the folder.
    """

    job: str
    settings: JsonObject
    final: str
    names: frozenset[str]

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the job and its settings."""
        text = json.dumps(
            {"job": self.job, "settings": self.settings},
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def all_names(self) -> frozenset[str]:
        """All that the job may write, `__job` and the final file included."""
        return self.names | {self.final, JOB_FILE}

    def to_bytes(self) -> bytes:
        """Return the content of `__job`; a function of the record alone."""
        names = pack_names(self.names)
        file = _JobFile(self.job, VERSION, self.fingerprint, self.settings, self.final, names)
        return with_checksum(file)

    @staticmethod
    def from_bytes(data: bytes) -> JobRecord | None:
        """Return the record in a `__job`; None if no job of this package wrote these bytes."""
        try:
            file = to_struct(read_signed(data, JOB_FILE), _JobFile, JOB_FILE)
            record = JobRecord(file.job, file.settings, file.final, unpack_names(file.files))
        except OtherVersionError as error:
            if {"fingerprint", "files"} <= parse_json(data, JOB_FILE).keys():
                raise UsageError(str(error), remedy="give another {output}") from error
            return None
        except DataError:
            return None
        return record if record.fingerprint == file.fingerprint else None


def differences(old: JobRecord, new: JobRecord) -> list[tuple[str, str]]:
    """Return each option that differs, by the name of its setting, with both its values."""
    if old.job != new.job:
        return [("job", f"{old.job} there, {new.job} now")]
    before, after = _values(old), _values(new)
    lines = [
        (name, f"{before.get(name, _NONE)} there, {after.get(name, _NONE)} now")
        for name in {**after, **before}
        if before.get(name, _NONE) != after.get(name, _NONE)
    ]
    if not lines and old.settings.get("plan") != new.settings.get("plan"):
        lines = [("inputs", "files of other names or formats there")]
    lines = [(_OPTIONS.get((new.job, name)) or _OPTIONS.get(name, name), s) for name, s in lines]
    hidden = lines[_SHOWN_DIFFERENCES:]
    more = [("and more", ", ".join(dict.fromkeys(name for name, _ in hidden)))] if hidden else []
    return [*lines[:_SHOWN_DIFFERENCES], *more]


_NONE = "none"

_OPTIONS: dict[str | tuple[str, str], str] = {
    ("tokenize", "format"): "formats",
    ("stream-tokenize", "format"): "formats",
    "splits": "range_bytes",
    "manifests": "folders",
    "counts_manifest": "counts",
    "counts_manifests": "folders",
    "continued": "continue_from",
    "all_bytes": "alphabet",
}
"""The settings of keys with other names, for all jobs or for one."""

_GROUPS = ("arrangement", "reading", "recipe")
"""Keys of `__job` whose objects have settings of the job."""


def _values(record: JobRecord) -> dict[str, str]:
    """Return the values of a job's settings, in words; see `_value`."""
    settings = dict(record.settings)
    plan = settings.pop("plan", None)
    for group in _GROUPS:
        inside = settings.pop(group, None)
        settings |= inside if isinstance(inside, dict) else {}
    values = {name: _value(name, value) for name, value in settings.items()}
    if isinstance(plan, dict):
        values["inputs"] = f"{_count(plan.get('files'), 'file')} of {plan.get('bytes')} bytes"
        values["splits"] = _count(plan.get("splits"), "split")
    return values


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _value(name: str, value: Any) -> str:
    """Return a value of a setting in words, of at most some 200 characters."""
    if value in (None, [], {}):
        return _NONE
    if name == "weights" and isinstance(value, int):
        return f"{value / (1 << 20):.6g}"  # a numerator, see `counts/weights.py`
    if name == "sources":
        text = ", ".join(map("=".join, value))
    elif isinstance(value, list):
        text = ", ".join(_value(name, each) for each in value)
    elif isinstance(value, dict):
        text = ", ".join(f"{key}={_value(name, each)}" for key, each in value.items())
    elif isinstance(value, str):
        is_hash = len(value) == 64 and not value.strip("0123456789abcdef")
        text = f"another file ({value[:8]})" if is_hash else json.dumps(value, ensure_ascii=False)
    else:
        text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
