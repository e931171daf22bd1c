"""The manifest of a tokens folder: what a run wrote, from what, and with which tokenizer.

It is the last file that a run writes: a folder with a `manifest.json` is finished. It holds no
time, host or absolute path, so equal work gives equal bytes. Reading it is strict: a key that is
unknown, missing or of another type is refused by its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.folders import SHARDS, refuse_other
from bpe_beam.shards.formats import MAX_VOCAB_SIZE, FileFacts, shard_name
from bpe_beam.storage import Storage, redact

MANIFEST = "manifest.json"
VERSIONS = (1, 2)
"""Without sources, and with them."""

SUFFIXES: Mapping[str, tuple[str, ...]] = {"megatron": (".bin", ".idx")}
"""The files of a shard, by format."""

_SHA256 = re.compile("[0-9a-f]{64}")
_MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class SourceSlice:
    """A part of an input file.

    Attributes:
        file: its name, relative to the input's root.
        start: the first byte, in the stored file.
        end: the byte after the last.
    """

    file: str
    start: int
    end: int


@dataclass(frozen=True)
class SourceFacts:
    """What a shard, or a run, has of one source; as in `Shard`."""

    documents: int
    text_bytes: int
    tokens: int


@dataclass(frozen=True)
class Shard:
    """One shard: the tokens of one split of the plan.

    Attributes:
        name: `shard-00003-of-00012`.
        slices: what was read, in order.
        documents: how many documents it holds.
        text_bytes: their text before tokenization, in bytes of UTF-8.
        tokens: how many ids it holds, appended and prepended ones included.
        rejects: how many records of its slices could not be used.
        files: what was written.
        sources: what it has of each source, in the order of their names; None where sources were
            not told apart.
    """

    name: str
    slices: tuple[SourceSlice, ...]
    documents: int
    text_bytes: int
    tokens: int
    rejects: int
    files: tuple[FileFacts, ...]
    sources: Mapping[str, SourceFacts] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the shard as JSON values, keys in the order of the file."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {**values, "slices": list(values["slices"]), "files": list(values["files"])}


@dataclass(frozen=True)
class Totals:
    """The sums over all shards."""

    shards: int
    documents: int
    text_bytes: int
    tokens: int
    rejects: int

    @staticmethod
    def of(shards: Iterable[Shard]) -> Totals:
        """Adds shards up."""
        rows = [(1, s.documents, s.text_bytes, s.tokens, s.rejects) for s in shards]
        return Totals(*map(sum, zip(*rows, strict=True))) if rows else Totals(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Manifest:
    """What stands in a tokens folder.

    Attributes:
        format: the shards' format, a key of `SUFFIXES`.
        tokenizer: the SHA-256 of the bytes of the folder's `tokenizer.json`.
        vocab_size: one more than the tokenizer's greatest id; 1 to `MAX_VOCAB_SIZE`.
        settings: `append` and `prepend` (a token or None), `allowed_special` ("none", "all" or a
            list of tokens), and any settings of reading, as JSON values.
        plan: the plan as its own `to_json()` gives it; opaque here.
        plan_fingerprint: the plan's fingerprint, 64 hex digits.
        shards: one a split, in the order of the plan.
        totals: the sums, `Totals.of(shards)`.
        reject_reasons: how many records were rejected, by reason.
        reject_files: the files that hold them, `rejects/...`, sorted by name.
    """

    format: str
    tokenizer: str
    vocab_size: int
    settings: Mapping[str, Any]
    plan: Mapping[str, Any]
    plan_fingerprint: str
    shards: tuple[Shard, ...]
    totals: Totals
    reject_reasons: Mapping[str, int]
    reject_files: tuple[FileFacts, ...]

    @property
    def version(self) -> int:
        """The least version that knows all that is in it."""
        return 1 if all(shard.sources is None for shard in self.shards) else 2

    @property
    def sources(self) -> dict[str, SourceFacts] | None:
        """What the run has of each source, in the order of their names; None without sources."""
        if self.version == 1:
            return None
        rows: dict[str, list[SourceFacts]] = {}
        for shard in self.shards:
            for name, facts in (shard.sources or {}).items():
                rows.setdefault(name, []).append(facts)
        return {name: _added_up(rows[name]) for name in sorted(rows)}

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON values, keys in the order of the file."""
        first = ("append", "prepend", "allowed_special")
        return {
            "format": self.format,
            "version": self.version,
            "tokenizer": {"fingerprint": self.tokenizer, "vocab_size": self.vocab_size},
            "settings": {key: self.settings[key] for key in (*first, *self.settings)},
            "totals": asdict(self.totals),
            "rejects": {
                "by_reason": dict(sorted(self.reject_reasons.items())),
                "files": [asdict(file) for file in self.reject_files],
            },
            "plan": {"fingerprint": self.plan_fingerprint, **self.plan},
            "shards": [shard.to_json() for shard in self.shards],
        }

    def to_bytes(self) -> bytes:
        """Returns the bytes of `manifest.json`; `Manifest.from_bytes` gives an equal manifest."""
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
        # A file name that is not UTF-8 holds lone surrogates; backslashreplace writes each as the
        # JSON escape that it is.
        return f"{text}\n".encode("utf-8", "backslashreplace")

    @staticmethod
    def from_bytes(data: bytes, place: str = MANIFEST) -> Manifest:
        """Reads the bytes of a `manifest.json`.

        Args:
            data: the file's content.
            place: what to call it in errors.

        Raises:
            DataError: if it is not JSON, or not a manifest of this version.
        """
        try:
            value = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{place}: cannot be read as JSON: {error}") from error
        return Manifest.from_json(value, place)

    @staticmethod
    def from_json(value: object, place: str = MANIFEST) -> Manifest:
        """Reads a manifest from JSON values; the inverse of `to_json`.

        Sums are not compared here: `verify` does, beside everything else.

        Raises:
            DataError: if a key is unknown, missing, or of a type or value that it cannot have.
        """
        try:
            return _manifest(value)
        except ValueError as error:
            raise DataError(f"{place}: {error}") from error


def _added_up(rows: Iterable[SourceFacts]) -> SourceFacts:
    return SourceFacts(*map(sum, zip(*(vars(row).values() for row in rows), strict=True)))


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Reads the manifest of a finished tokens folder.

    Raises:
        UsageError: if the folder holds something else than shards.
        DataError: if it is missing or malformed.
    """
    url = storage.join(folder, MANIFEST)
    try:
        return Manifest.from_bytes(storage.read_bytes(url), redact(url))
    except DataError:
        refuse_other(storage, folder, SHARDS)
        raise


_TOP = {
    "format": str,
    "version": int,
    "tokenizer": dict,
    "settings": dict,
    "totals": dict,
    "rejects": dict,
    "plan": dict,
    "shards": list,
}
_TOKENIZER = {"fingerprint": str, "vocab_size": int}
_REJECTS = {"by_reason": dict, "files": list}
_TOTALS = {"shards": int, "documents": int, "text_bytes": int, "tokens": int, "rejects": int}
_SHARD = {
    "name": str,
    "slices": list,
    "documents": int,
    "text_bytes": int,
    "tokens": int,
    "rejects": int,
    "files": list,
}
_SOURCE = {"documents": int, "text_bytes": int, "tokens": int}
_SLICE = {"file": str, "start": int, "end": int}
_FILE = {"name": str, "bytes": int, "sha256": str}
_EXPECTED = {
    str: "a string",
    int: f"an integer from 0 to {_MAX_INTEGER}",
    dict: "an object",
    list: "a list",
}


def _manifest(value: object) -> Manifest:
    # The version first: another version may have other keys.
    version = value.get("version", 1) if isinstance(value, dict) else 1
    if type(version) is not int or version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise ValueError(f"version is {_shown(version)}; this bpe-beam reads {known}")
    top = _fields(value, "", _TOP)
    if top["format"] not in SUFFIXES:
        raise ValueError(f"format is {_shown(top['format'])}; allowed: {', '.join(SUFFIXES)}")
    tokenizer = _fields(top["tokenizer"], "tokenizer", _TOKENIZER)
    if not 1 <= tokenizer["vocab_size"] <= MAX_VOCAB_SIZE:
        raise ValueError(
            f"tokenizer.vocab_size is {tokenizer['vocab_size']}; allowed: 1 to {MAX_VOCAB_SIZE}"
        )
    plan = dict(top["plan"])
    rejects = _fields(top["rejects"], "rejects", _REJECTS)
    count = len(top["shards"])
    return Manifest(
        format=top["format"],
        tokenizer=_sha256(tokenizer["fingerprint"], "tokenizer.fingerprint"),
        vocab_size=tokenizer["vocab_size"],
        settings=_settings(top["settings"]),
        plan_fingerprint=_sha256(plan.pop("fingerprint", None), "plan.fingerprint"),
        plan=plan,
        shards=tuple(
            _shard(row, index, count, SUFFIXES[top["format"]], version)
            for index, row in enumerate(top["shards"])
        ),
        totals=Totals(**_fields(top["totals"], "totals", _TOTALS)),
        reject_reasons={
            reason: _typed(number, int, f"rejects.by_reason[{reason!r}]")
            for reason, number in rejects["by_reason"].items()
        },
        reject_files=_reject_files(rejects["files"]),
    )


def _fields(value: object, place: str, types: Mapping[str, type]) -> dict[str, Any]:
    """Returns an object whose keys are exactly those of `types`, each of its type."""
    fields: dict[str, Any] = _typed(value, dict, place)
    where = place or "the top level"
    for key in fields:
        if key not in types:
            raise ValueError(f"{where}: unknown key {_shown(key)}; allowed: {', '.join(types)}")
    for key, wanted in types.items():
        if key not in fields:
            raise ValueError(f"{where}: the key {key!r} is missing")
        _typed(fields[key], wanted, f"{place}.{key}" if place else key)
    return fields


def _typed(value: object, wanted: type, place: str) -> Any:
    # The exact type: True is an int to isinstance.
    if type(value) is not wanted or (type(value) is int and not 0 <= value <= _MAX_INTEGER):
        raise ValueError(
            f"{place or 'the top level'} is {_shown(value)}; expected {_EXPECTED[wanted]}"
        )
    return value


def _shown(value: object) -> str:
    """A value for a message, short whatever it is."""
    if isinstance(value, (dict, list)):
        return _EXPECTED[type(value)]
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _sha256(value: object, place: str) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(
            f"{place} is {_shown(value)}; expected a SHA-256, 64 lower-case hex digits"
        )
    return value


def _file(value: object, place: str) -> FileFacts:
    fields = _fields(value, place, _FILE)
    _sha256(fields["sha256"], f"{place}.sha256")
    return FileFacts(**fields)


def _shard(value: object, index: int, count: int, suffixes: tuple[str, ...], version: int) -> Shard:
    place = f"shards[{index}]"
    fields = _fields(value, place, _SHARD if version == 1 else {**_SHARD, "sources": dict})
    if version > 1:
        fields["sources"] = {
            source: SourceFacts(**_fields(facts, f"{place}.sources[{source!r}]", _SOURCE))
            for source, facts in fields["sources"].items()
        }
    name = shard_name(index, count)
    if fields["name"] != name:
        raise ValueError(f"{place}.name is {_shown(fields['name'])}; expected {name!r}")
    slices = []
    for number, row in enumerate(fields["slices"]):
        piece = SourceSlice(**_fields(row, f"{place}.slices[{number}]", _SLICE))
        if piece.end < piece.start:
            raise ValueError(
                f"{place}.slices[{number}].end is {piece.end}; expected {piece.start} or more"
            )
        slices.append(piece)
    files = []
    for number, row in enumerate(fields["files"]):
        file = _file(row, f"{place}.files[{number}]")
        # Only these names are opened by whoever follows the manifest; none can lead elsewhere.
        if number >= len(suffixes) or file.name != f"{name}{suffixes[number]}":
            raise ValueError(
                f"{place}.files[{number}].name is {_shown(file.name)}; expected "
                f"{' and '.join(name + suffix for suffix in suffixes)}, in this order"
            )
        files.append(file)
    if len(files) != len(suffixes):
        raise ValueError(f"{place}.files has {len(files)} files; expected {len(suffixes)}")
    return Shard(**{**fields, "slices": tuple(slices), "files": tuple(files)})


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    for key in ("append", "prepend", "allowed_special"):
        if key not in settings:
            raise ValueError(f"settings: the key {key!r} is missing")
    for key in ("append", "prepend"):
        if settings[key] is not None:
            _typed(settings[key], str, f"settings.{key}")
    allowed = settings["allowed_special"]
    listed = isinstance(allowed, list) and all(isinstance(token, str) for token in allowed)
    if not listed and allowed not in ("none", "all"):
        raise ValueError(
            f"settings.allowed_special is {_shown(allowed)}; expected 'none', 'all' or a list of "
            "strings"
        )
    return settings


def _reject_files(rows: list[Any]) -> tuple[FileFacts, ...]:
    files: list[FileFacts] = []
    for index, row in enumerate(rows):
        place = f"rejects.files[{index}]"
        file = _file(row, place)
        folder, _, name = file.name.partition("/")
        if folder != "rejects" or name in ("", ".", "..") or "/" in name:
            raise ValueError(f"{place}.name is {_shown(file.name)}; expected rejects/NAME")
        if files and file.name <= files[-1].name:
            raise ValueError(
                f"{place}.name is {_shown(file.name)}; expected names in rising order, each once"
            )
        files.append(file)
    return tuple(files)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the key {_shown(key)} stands twice in an object")
        fields[key] = value
    return fields


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
