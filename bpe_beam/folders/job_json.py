"""`job.json`: the job of an output folder, and the files that it may write there.

It names the settings that the result depends on and nothing else: no time, host or absolute path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.compact_names import PackedNames, pack_names, unpack_names
from bpe_beam.messages import first_few
from bpe_beam.storage.json_file import (
    OtherVersionError,
    Sha256,
    parse_json,
    read_signed,
    to_struct,
    with_checksum,
)

VERSION = 2
"""The version of `job.json`. Version 1, which may have no checksum, is read, too."""

_SETTINGS_VERSION = 1
"""The version of the settings: another number changes the fingerprint of every job, so that no
folder made before is resumed."""

_SHOWN_DIFFERENCES = 12


class _JobFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `job.json` but for its checksum, in the order of the file."""

    job: str
    version: int
    fingerprint: Sha256
    settings: dict[str, Any]
    final: str
    files: PackedNames


class JobRecord(Struct, frozen=True):
    """What `job.json` says.

    Attributes:
        job: The job's name.
        settings: Every setting that the result depends on, as JSON reads it back.
        final: The file whose presence says that the job has finished.
        names: The exact names of the other files that the job may write, relative to the folder.
    """

    job: str
    settings: dict[str, Any]
    final: str
    names: frozenset[str]

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the job and its settings."""
        text = json.dumps(
            {"job": self.job, "version": _SETTINGS_VERSION, "settings": self.settings},
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
        )
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def all_names(self) -> frozenset[str]:
        """All that the job may write, `job.json` and the final file included."""
        return self.names | {self.final, JOB_FILE}

    def to_bytes(self) -> bytes:
        """Return the content of `job.json`; a function of the record alone."""
        names = pack_names(self.names)
        file = _JobFile(self.job, VERSION, self.fingerprint, self.settings, self.final, names)
        return with_checksum(file)

    @staticmethod
    def from_bytes(data: bytes) -> JobRecord | None:
        """Return the record in a `job.json`; None if no job of this package wrote these bytes.

        Raises:
            UsageError: A later version of the package wrote it.
        """
        try:
            file = to_struct(read_signed(data, JOB_FILE, VERSION), _JobFile, JOB_FILE)
            record = JobRecord(file.job, file.settings, file.final, unpack_names(file.files))
        except OtherVersionError as error:
            if {"fingerprint", "files"} <= parse_json(data, JOB_FILE).keys():
                raise UsageError(str(error), remedy="give another {output}") from error
            return None
        except DataError:
            return None
        return record if record.fingerprint == file.fingerprint else None


def differences(old: JobRecord, new: JobRecord) -> list[str]:
    """Return lines with the dotted name of a setting that differs, and both its values.

    Args:
        old: The record in the folder.
        new: The record of this job.
    """
    before = dict(_flatten("", {"job": old.job, **old.settings}))
    after = dict(_flatten("", {"job": new.job, **new.settings}))
    names = [name for name in {**after, **before} if before.get(name) != after.get(name)]
    lines = [f"{n}: {before.get(n, 'nothing')} there, {after.get(n, 'nothing')} now" for n in names]
    if not lines:
        lines = ["no setting differs: another version of bpe-beam wrote it"]
    return [f"  {line}" for line in first_few(lines, _SHOWN_DIFFERENCES)]


def _flatten(name: str, value: Any) -> Iterable[tuple[str, str]]:
    """Yield the dotted name and the short JSON of each leaf of nested settings."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flatten(f"{name}.{key}" if name else key, each)
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for index, each in enumerate(value):
            yield from _flatten(f"{name}[{index}]", each)
    else:
        text = json.dumps(value, ensure_ascii=False)
        yield name, text if len(text) <= 200 else f"{text[:200]}…"
