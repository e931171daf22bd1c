"""The manifest of a tokens folder: what a run wrote, from what, and with which tokenizer.

It is the last file that a run writes: a folder with a `manifest.json` is finished. It holds no
time, host or absolute path, so equal work gives equal bytes. Reading it is strict: a key that is
unknown, missing or of another type is refused by its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.kinds import SHARDS, refuse_other
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.messages import shortened
from bpe_beam.shards.formats import SHARD_FORMATS, shard_format
from bpe_beam.shards.shard_rows import (
    Shard,
    SourceTotals,
    TokenlessSplit,
    Totals,
    read_file,
    read_shard,
    read_tokenless,
)
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_fields import (
    check_sha256,
    check_type,
    parse_json,
    read_object,
)
from bpe_beam.storage.json_file import CHECKSUM, check_checksum, with_checksum

VERSIONS = (1, 2, 3)
"""Version 3 is written. Versions 1 (without sources) and 2 (with them) have a shard of every split,
also of those without tokens, and no checksum."""


@dataclass(frozen=True)
class Manifest:
    """The content of a tokens folder.

    Attributes:
        format: the shards' format, one of SHARD_FORMATS.
        tokenizer: the SHA-256 of the bytes of the folder's `tokenizer.json`.
        vocab_size: one more than the tokenizer's greatest id; 1 to `MAX_VOCAB_SIZE`.
        settings: `append` and `prepend` (a token or None), `allowed_special` ("none", "all" or a
            list of tokens), and any settings of reading, as JSON values.
        plan: the plan as its own `to_json()` gives it; opaque here.
        plan_fingerprint: the plan's fingerprint, 64 hex digits.
        shards: one of each split with tokens, in the order of the plan.
        totals: the sums, `Totals.of(shards, tokenless)`.
        reject_reasons: how many records were rejected, by reason.
        reject_files: the files that hold them, `rejects/...`, sorted by name.
        tokenless: the splits without tokens, in the order of the plan.
        lost: what was lost of damaged files, one row a file, sorted: `file`, `bytes` as stored,
            `positions`, and `records` where they are known.
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
    reject_files: tuple[FileInfo, ...]
    tokenless: tuple[TokenlessSplit, ...] = ()
    lost: tuple[Mapping[str, Any], ...] = ()

    @property
    def splits(self) -> list[Shard | TokenlessSplit]:
        """What is known of each split of the plan, in the order of the plan."""
        rows: list[Shard | TokenlessSplit] = [*self.shards, *self.tokenless]
        return sorted(rows, key=lambda row: row.split)

    @property
    def sources(self) -> dict[str, SourceTotals] | None:
        """What the run has of each source, in the order of their names; None without sources."""
        if all(row.sources is None for row in self.splits):
            return None
        rows: dict[str, list[SourceTotals]] = {}
        for row in self.splits:
            for name, facts in (row.sources or {}).items():
                rows.setdefault(name, []).append(facts)
        return {name: _added_up(rows[name]) for name in sorted(rows)}

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON values without its checksum, in the order of the file."""
        first = ("append", "prepend", "allowed_special")
        return {
            "format": self.format,
            "version": VERSIONS[-1],
            "tokenizer": {"fingerprint": self.tokenizer, "vocab_size": self.vocab_size},
            "settings": {key: self.settings[key] for key in (*first, *self.settings)},
            "totals": asdict(self.totals),
            "rejects": {
                "by_reason": dict(sorted(self.reject_reasons.items())),
                "files": [asdict(file) for file in self.reject_files],
                **({"lost": [dict(row) for row in self.lost]} if self.lost else {}),
            },
            "plan": {"fingerprint": self.plan_fingerprint, **self.plan},
            "shards": [shard.to_json() for shard in self.shards],
            "splits_without_tokens": [split.to_json() for split in self.tokenless],
        }

    def to_bytes(self) -> bytes:
        """Returns the bytes of `manifest.json`; `Manifest.from_bytes` gives an equal manifest."""
        return with_checksum(self.to_json())

    @staticmethod
    def from_bytes(data: bytes, place: str = MANIFEST_FILE) -> Manifest:
        """Reads the bytes of a `manifest.json`.

        Args:
            data: the file's content.
            place: what to call it in errors.

        Raises:
            DataError: if it is not JSON, not a manifest of these versions, or was changed after it
                was written.
        """
        try:
            value = parse_json(data)
        except ValueError as error:
            raise DataError(f"{place}: cannot be read as JSON: {error}") from error
        signed = check_checksum(data, value, place)
        if signed:
            del value[CHECKSUM]
        manifest = Manifest.from_json(value, place)
        if value["version"] == VERSIONS[-1] and not signed:
            raise DataError(f"{place}: the top level: the key {CHECKSUM!r} is missing")
        return manifest

    @staticmethod
    def from_json(value: object, place: str = MANIFEST_FILE) -> Manifest:
        """Reads a manifest from JSON values; the inverse of `to_json`.

        Every split of the plan must have a shard, or be one without tokens. Sums are not compared
        here: `verify` does, beside everything else.

        Raises:
            DataError: if a key is unknown, missing, or of a type or value that it cannot have.
        """
        try:
            return _manifest(value)
        except ValueError as error:
            raise DataError(f"{place}: {error}") from error


def _added_up(rows: Iterable[SourceTotals]) -> SourceTotals:
    return SourceTotals(*map(sum, zip(*(vars(row).values() for row in rows), strict=True)))


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Reads the manifest of a finished tokens folder.

    Raises:
        UsageError: if the folder holds something else than shards.
        DataError: if it is missing or malformed.
    """
    url = storage.join(folder, MANIFEST_FILE)
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
    "splits_without_tokens": list,
}
_TOKENIZER = {"fingerprint": str, "vocab_size": int}
_REJECTS = {"by_reason": dict, "files": list}
_TOTALS = {"shards": int, "documents": int, "text_bytes": int, "tokens": int, "rejects": int}
_LOST = {"file": str, "bytes": int, "positions": int}


def _manifest(value: object) -> Manifest:
    # The version first: another version may have other keys.
    version = value.get("version", 1) if isinstance(value, dict) else 1
    if type(version) is not int or version not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise ValueError(f"version is {shortened(version)}; this bpe-beam reads {known}")
    top = read_object(_in_new_form(value) if version < VERSIONS[-1] else value, "", _TOP)
    if top["format"] not in SHARD_FORMATS:
        raise ValueError(
            f"format is {shortened(top['format'])}; allowed: {', '.join(SHARD_FORMATS)}"
        )
    suffixes = shard_format(top["format"]).suffixes
    tokenizer = read_object(top["tokenizer"], "tokenizer", _TOKENIZER)
    if not 1 <= tokenizer["vocab_size"] <= MAX_VOCAB_SIZE:
        raise ValueError(
            f"tokenizer.vocab_size is {tokenizer['vocab_size']}; allowed: 1 to {MAX_VOCAB_SIZE}"
        )
    plan = dict(top["plan"])
    rejects = read_object(top["rejects"], "rejects", _REJECTS, {"lost": list})
    rows = [*top["shards"], *top["splits_without_tokens"]]
    sources = any(isinstance(row, dict) and "sources" in row for row in rows) or version == 2
    if sources and version == 1:
        raise ValueError("a shard has 'sources', which version 1 does not know")
    count = len(top["shards"])
    manifest = Manifest(
        format=top["format"],
        tokenizer=check_sha256(tokenizer["fingerprint"], "tokenizer.fingerprint"),
        vocab_size=tokenizer["vocab_size"],
        settings=_settings(top["settings"]),
        plan_fingerprint=check_sha256(plan.pop("fingerprint", None), "plan.fingerprint"),
        plan=plan,
        shards=tuple(
            read_shard(row, index, count, suffixes, sources)
            for index, row in enumerate(top["shards"])
        ),
        totals=Totals(**read_object(top["totals"], "totals", _TOTALS)),
        reject_reasons={
            reason: check_type(number, int, f"rejects.by_reason[{reason!r}]")
            for reason, number in rejects["by_reason"].items()
        },
        reject_files=_reject_files(rejects["files"]),
        tokenless=tuple(
            read_tokenless(row, index, sources)
            for index, row in enumerate(top["splits_without_tokens"])
        ),
        lost=tuple(_lost(row, i) for i, row in enumerate(rejects.get("lost", ()))),
    )
    _check_splits(manifest)
    return manifest


def _in_new_form(value: object) -> dict[str, Any]:
    """Return a manifest of version 1 or 2 with what version 3 adds."""
    top = dict(check_type(value, dict, ""))
    rows = top.get("shards")
    if isinstance(rows, list):
        top["shards"] = [
            {**row, "split": index} if isinstance(row, dict) else row
            for index, row in enumerate(rows)
        ]
    return {**top, "splits_without_tokens": []}


def _check_splits(manifest: Manifest) -> None:
    """Check that each split of the plan is there once, in the order of the plan.

    Raises:
        ValueError: Names the first split that is missing, or is there twice.
    """
    for what, numbers in (
        ("shards", [shard.split for shard in manifest.shards]),
        ("splits_without_tokens", [row.split for row in manifest.tokenless]),
    ):
        if numbers != sorted(numbers):
            raise ValueError(f"{what} must be in the order of their splits")
    found = [row.split for row in manifest.splits]
    splits = manifest.plan.get("splits")
    count = len(splits) if isinstance(splits, list) else len(found)
    for number, split in enumerate(found):
        if split > number:
            raise ValueError(f"split {number} of the plan has no shard")
        if split < number:
            raise ValueError(f"split {split} of the plan has two shards")
    if len(found) != count:
        raise ValueError(f"the plan has {count} splits; shards are there of {len(found)}")


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    for key in ("append", "prepend", "allowed_special"):
        if key not in settings:
            raise ValueError(f"settings: the key {key!r} is missing")
    for key in ("append", "prepend"):
        if settings[key] is not None:
            check_type(settings[key], str, f"settings.{key}")
    allowed = settings["allowed_special"]
    listed = isinstance(allowed, list) and all(isinstance(token, str) for token in allowed)
    if not listed and allowed not in ("none", "all"):
        raise ValueError(
            f"settings.allowed_special is {shortened(allowed)}; expected 'none', 'all' or a "
            "list of strings"
        )
    return settings


def _lost(value: object, index: int) -> dict[str, Any]:
    return read_object(value, f"rejects.lost[{index}]", _LOST, {"records": int})


def _reject_files(rows: list[Any]) -> tuple[FileInfo, ...]:
    files: list[FileInfo] = []
    for index, row in enumerate(rows):
        place = f"rejects.files[{index}]"
        file = read_file(row, place)
        folder, _, name = file.name.partition("/")
        if folder != "rejects" or name in ("", ".", "..") or "/" in name:
            raise ValueError(f"{place}.name is {shortened(file.name)}; expected rejects/NAME")
        if files and file.name <= files[-1].name:
            raise ValueError(
                f"{place}.name is {shortened(file.name)}; expected names in rising order, each once"
            )
        files.append(file)
    return tuple(files)
