"""`__job`: the job of an output folder, and the files that it may write there.

It names the settings that the result depends on and nothing else: no time, host or absolute path.
Thousands of numbered file names are a few lines of JSON. A pattern would be shorter and would match
other people's files; a run of numbers matches only itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection
from typing import Annotated, Any

from msgspec import Meta, Struct

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.storage import json_file

MAX_NAMES = 1 << 23
"""Up to eight files of each of a million splits; a record with more names is damaged."""

_NUMBERED = re.compile(r"([^0-9]*)([0-9]{1,15})(.*)", re.DOTALL)

_SHOWN_DIFFERENCES = 12


class NumberedNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Names that differ by a number alone, padded with zeros to `digits`, which rises by one."""

    before: str
    digits: Annotated[int, Meta(ge=1, le=15)]
    after: str
    first: json_file.Count
    count: Annotated[int, Meta(ge=0, le=MAX_NAMES)]

    def names(self) -> list[str]:
        numbers = range(self.first, self.first + self.count)
        return [f"{self.before}{number:0{self.digits}d}{self.after}" for number in numbers]


class PackedNames(Struct, frozen=True, forbid_unknown_fields=True):
    """A set of names, relative to a folder and with `/` between their parts."""

    numbered: tuple[NumberedNames, ...]
    single: tuple[str, ...]


def _check_name(name: str) -> None:
    """Refuse a name that could be outside the folder that it is relative to."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise DataError(f"{name!r} is not the name of a file in an output folder")


def pack_names(names: Collection[str]) -> PackedNames:
    """Return names as runs and single names: a function of the set of names alone."""
    groups: dict[tuple[str, int, str], list[int]] = defaultdict(list)
    single = []
    for name in set(names):
        _check_name(name)
        match = _NUMBERED.fullmatch(name)
        if match is None:
            single.append(name)
        else:
            groups[match[1], len(match[2]), match[3]].append(int(match[2]))
    numbered = []
    for (before, digits, after), numbers in sorted(groups.items()):
        numbers.sort()
        if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            numbered.append(NumberedNames(before, digits, after, numbers[0], len(numbers)))
        else:
            single += [f"{before}{number:0{digits}d}{after}" for number in numbers]
    return PackedNames(tuple(numbered), tuple(sorted(single)))


def unpack_names(packed: PackedNames) -> frozenset[str]:
    """Return the names that `pack_names` packed; anyone may have written them."""
    if len(packed.single) + sum(run.count for run in packed.numbered) > MAX_NAMES:
        raise DataError(f"the record of a job's files has more than {MAX_NAMES:,} names")
    names = frozenset(packed.single).union(*(run.names() for run in packed.numbered))
    for name in names:
        _check_name(name)
    return names


class _JobFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `__job` but for its checksum, in the order of the file."""

    job: str
    version: int
    fingerprint: json_file.Sha256
    settings: json_file.JsonObject
    final: str
    files: PackedNames


class JobRecord(Struct, frozen=True):
    """The content of `__job`.

    `settings` has every setting that the result depends on, as JSON reads it back. `final` is the
    file that exists when the job has finished; `names` are the other files that it may write.
    """

    job: str
    settings: json_file.JsonObject
    final: str
    names: frozenset[str]

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the job and its settings."""
        job = {"job": self.job, "settings": self.settings}
        text = json.dumps(job, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def all_names(self) -> frozenset[str]:
        """All that the job may write, `__job` and the final file included."""
        return self.names | {self.final, JOB_FILE}

    def to_bytes(self) -> bytes:
        """Return the content of `__job`; a function of the record alone."""
        names = pack_names(self.names)
        file = _JobFile(
            self.job, json_file.VERSION, self.fingerprint, self.settings, self.final, names
        )
        return json_file.with_checksum(file)

    @staticmethod
    def from_bytes(data: bytes) -> JobRecord | None:
        """Return the record in a `__job`; None if no job of this package wrote these bytes."""
        try:
            file = json_file.to_struct(json_file.read_signed(data, JOB_FILE), _JobFile, JOB_FILE)
            record = JobRecord(file.job, file.settings, file.final, unpack_names(file.files))
        except json_file.OtherVersionError as error:
            if {"fingerprint", "files"} <= json_file.parse_json(data, JOB_FILE).keys():
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
