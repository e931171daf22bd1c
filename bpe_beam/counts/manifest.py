"""The manifest of a counts folder: what was counted, how, and in which files the words stand.

A folder with a manifest is finished. Version 3 is written; versions 1 and 2 have no checksum, and
version 1 has neither sources nor filters.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.folders.kinds import COUNTS, refuse_other
from bpe_beam.storage import Storage
from bpe_beam.storage.json_fields import check_type
from bpe_beam.storage.json_file import check_checksum, with_checksum

VERSIONS = (1, 2, 3)

MAX_SOURCES = 1000
"""Sources in one counts folder: each has a table of its own where words are counted."""

MAX_SOURCE_NAME = 1000
"""Characters of a source's name: it stands in every row and at every block."""

_NEW = ("sources", "filtered")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class CountsPart:
    """One Parquet file of a counts folder.

    Attributes:
        name: File name.
        unique_words: Its words, each once.
        word_bytes: Bytes of its words, each once.
        bytes: Size of the file.
        sha256: Of the file, in hex.
        sources: Its words by source, in the order of their names; None without sources.
    """

    name: str
    unique_words: int
    word_bytes: int
    bytes: int
    sha256: str
    sources: Mapping[str, int] | None = None

    @property
    def rows(self) -> int:
        """Rows of the file: a word has one in each source that has it."""
        return self.unique_words if self.sources is None else sum(self.sources.values())

    def facts(self) -> dict[str, Any]:
        """As the manifest and receipts have it."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class SourceTotals:
    """What one source has.

    Attributes:
        documents: Documents read.
        text_bytes: UTF-8 bytes of their texts.
        words: Words counted, each occurrence.
        unique_words: Words counted, each once.
    """

    documents: int
    text_bytes: int
    words: int
    unique_words: int


@dataclass(frozen=True)
class Filtered:
    """What a folder was made from a larger one by; documents and bytes are still all that was read.

    Attributes:
        min_count: Words that occurred less often were left out.
        sources: Those that were kept; None: all.
        unique_words: Words that are no longer there, each once.
        words: Occurrences that are no longer there, those of words that stayed in other sources
            included.
    """

    min_count: int
    sources: tuple[str, ...] | None
    unique_words: int
    words: int


@dataclass(frozen=True)
class CountsManifest:
    """What a counts folder holds.

    Attributes:
        normalizer: By name, as on the command line.
        pretokenizer: By name, as on the command line.
        special_tokens: Cut out before counting.
        with_places: Whether the parts tell where each word occurred first.
        documents: Documents read.
        text_bytes: UTF-8 bytes of their texts.
        words: Words counted, each occurrence.
        unique_words: Words counted, each once.
        word_bytes: Bytes of the unique words.
        rejects: Records that could not be used, by reason.
        inputs: (name, stored bytes) of each file read.
        parts: The Parquet files.
        sources: What each source has, in the order of their names; None: sources were not told
            apart.
        filtered: By what some words were left out, one after another.
        lost: What was lost of damaged files, one row a file: `file`, `bytes` as stored,
            `positions`, and `records` where they are known.
    """

    normalizer: str
    pretokenizer: str
    special_tokens: tuple[str, ...]
    with_places: bool
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    word_bytes: int
    rejects: dict[str, int]
    inputs: tuple[tuple[str, int], ...]
    parts: tuple[CountsPart, ...]
    sources: Mapping[str, SourceTotals] | None = None
    filtered: tuple[Filtered, ...] = ()
    lost: tuple[Mapping[str, Any], ...] = ()

    @property
    def fingerprint(self) -> str:
        """What counts must share to be added, in hex: normalizer, pre-tokenizer, special tokens."""
        settings = [self.normalizer, self.pretokenizer, list(self.special_tokens)]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()

    def to_json(self) -> bytes:
        """The manifest's file."""
        document = {"version": VERSIONS[-1], "fingerprint": self.fingerprint, **asdict(self)}
        document["parts"] = [part.facts() for part in self.parts]
        if not self.lost:
            del document["lost"]
        return with_checksum(document)

    @staticmethod
    def from_bytes(data: bytes, place: str) -> CountsManifest:
        """Reads a manifest's file.

        Args:
            data: Its content.
            place: What to call it in errors.

        Raises:
            UsageError: A manifest of another version.
            DataError: No manifest of word counts, or one that was changed.
        """
        try:
            document = json.loads(data)
            version = document["version"]
            if type(version) is not int or version not in VERSIONS:
                raise UsageError(
                    f"{place}: version {version!r}; this bpe-beam reads "
                    f"{', '.join(map(str, VERSIONS))}"
                )
            manifest = _manifest(document, version)
            fingerprint = manifest.fingerprint
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{place} is no manifest of word counts: {error!r}") from error
        if document.get("fingerprint") != fingerprint:
            raise DataError(f"{place}: its fingerprint does not fit its settings; it was changed")
        check_checksum(data, document, place, required=version == VERSIONS[-1])
        manifest.check_parts(place)
        return manifest

    def check_parts(self, place: str) -> None:
        """Check that each part is there once, and that the parts add up to the totals.

        Args:
            place: What to call the manifest in errors.

        Raises:
            DataError: Names the first part that is missing or there twice, or the wrong sum.
        """
        count = len(self.parts)
        for number, part in enumerate(self.parts):
            if part.name != part_name(number, count):
                raise DataError(
                    f"{place}: part {number} of {count} is {part.name}, not "
                    f"{part_name(number, count)}: a part is missing, or there twice"
                )
        for name in ("unique_words", "word_bytes"):
            total = sum(getattr(part, name) for part in self.parts)
            if total != getattr(self, name):
                raise DataError(
                    f"{place}: {name} is {getattr(self, name):,}; the parts add up to {total:,}"
                )
        for source, totals in (self.sources or {}).items():
            rows = sum((part.sources or {}).get(source, 0) for part in self.parts)
            if rows != totals.unique_words:
                raise DataError(
                    f"{place}: source {source!r} has {totals.unique_words:,} unique words; the "
                    f"parts add up to {rows:,}"
                )


def part_name(partition: int, partitions: int) -> str:
    """Return the file name of a partition's part."""
    return f"part-{partition:05}-of-{partitions:05}.parquet"


def read_manifest(storage: Storage, folder: str) -> CountsManifest:
    """Return the manifest of a counts folder.

    Args:
        storage: The storage client.
        folder: The counts folder.

    Raises:
        UsageError: The folder is no counts folder, or it is not finished.
        DataError: The manifest is damaged.
    """
    return read_hashed_manifest(storage, folder)[0]


def read_hashed_manifest(storage: Storage, folder: str) -> tuple[CountsManifest, str]:
    """Return the manifest of a counts folder, and the SHA-256 of its file in hex.

    The manifest names the hashes of all parts, so its own hash identifies the counts.

    Args:
        storage: The storage client.
        folder: The counts folder.

    Raises:
        UsageError: The folder is no counts folder, or it is not finished.
        DataError: The manifest is damaged.
    """
    url = storage.join(folder, MANIFEST_FILE)
    if not storage.exists(url):
        refuse_other(storage, folder, COUNTS)
        if storage.exists(storage.join(folder, JOB_FILE)):
            raise UsageError(f"{folder} is not finished: run its job again, which resumes it")
        raise UsageError(f"{folder} is no counts folder: it has no {MANIFEST_FILE}")
    try:
        data = storage.read_bytes(url)
        return CountsManifest.from_bytes(data, url), hashlib.sha256(data).hexdigest()
    except DataError:
        refuse_other(storage, folder, COUNTS)
        raise


def source_totals(
    pieces: Iterable[Mapping[str, Mapping[str, int]]], parts: Iterable[CountsPart]
) -> dict[str, SourceTotals]:
    """Adds up what each source has, in the order of their names.

    Args:
        pieces: `documents`, `text_bytes` and `words` by source, of each piece of the corpus.
        parts: All parts, which know the unique words.

    Raises:
        DataError: There are too many sources.
    """
    sums: dict[str, list[int]] = {}
    for piece in pieces:
        for name, facts in piece.items():
            row = sums.setdefault(name, [0, 0, 0, 0])
            for column, key in enumerate(("documents", "text_bytes", "words")):
                row[column] += facts[key]
    for part in parts:
        for name, unique_words in (part.sources or {}).items():
            sums[name][3] += unique_words
    check_sources(sums)
    return {name: SourceTotals(*sums[name]) for name in sorted(sums)}


def check_sources(names: Iterable[str]) -> None:
    """Raises DataError if there are more sources than one counts folder can have, or long names."""
    found = set(names)
    longest = max(found, key=len, default="")
    if len(longest) > MAX_SOURCE_NAME:
        raise DataError(
            f"the name of a source has {len(longest):,} characters, {longest[:50]!r}...; at most "
            f"{MAX_SOURCE_NAME:,}: does --source-field name the right field?"
        )
    count = len(found)
    if count > MAX_SOURCES:
        raise DataError(
            f"the corpus has more than {MAX_SOURCES:,} sources, {count:,} so far: --source-field "
            "must name a field of few values; or name sources by patterns, with --source NAME=GLOB"
        )


def _manifest(document: Mapping[str, Any], version: int) -> CountsManifest:
    known = [field.name for field in fields(CountsManifest) if field.name != "lost"]
    values = {name: document[name] for name in known if version > 1 or name not in _NEW}
    for name in ("documents", "text_bytes", "words", "unique_words", "word_bytes"):
        check_type(values[name], int, name)
    check_type(values["with_places"], bool, "with_places")
    values["special_tokens"] = _texts("special_tokens", values["special_tokens"])
    values["rejects"] = {
        reason: check_type(count, int, "rejects") for reason, count in values["rejects"].items()
    }
    values["inputs"] = tuple((name, check_type(size, int, name)) for name, size in values["inputs"])
    _texts("inputs", [name for name, _ in values["inputs"]])
    values["parts"] = tuple(_part(part) for part in values["parts"])
    values["lost"] = tuple(_lost(row) for row in document.get("lost", ()))
    if version > 1:
        if values["sources"] is not None:
            values["sources"] = {
                name: _numbers(SourceTotals(**totals)) for name, totals in values["sources"].items()
            }
        values["filtered"] = tuple(_filtered(row) for row in values["filtered"])
    manifest = CountsManifest(**values)
    _texts("normalizer, pretokenizer", [manifest.normalizer, manifest.pretokenizer])
    names = [part.sources for part in manifest.parts]
    if manifest.sources is None:
        if any(name is not None for name in names):
            raise ValueError("a part has sources that the folder has not")
    elif any(name is None or not name.keys() <= manifest.sources.keys() for name in names):
        raise ValueError("a part has not the sources that the folder has")
    return manifest


def _part(row: Mapping[str, Any]) -> CountsPart:
    part = CountsPart(**row)
    # Only these names are opened by whoever follows the manifest; none leads elsewhere.
    if not isinstance(part.name, str) or _NAME.fullmatch(part.name) is None:
        raise ValueError(f"a part's name is {part.name!r}")
    for name in ("unique_words", "word_bytes", "bytes"):
        check_type(getattr(part, name), int, name)
    _texts("sha256", [part.sha256])
    for name, rows in ({} if part.sources is None else part.sources).items():
        check_type(rows, int, name)
    return part


def _lost(row: Mapping[str, Any]) -> dict[str, Any]:
    if (
        not {"file", "bytes", "positions"}
        <= row.keys()
        <= {"file", "bytes", "positions", "records"}
    ):
        raise ValueError("a row of lost must have file, bytes, positions and perhaps records")
    _texts("lost", [row["file"]])
    for name in row.keys() - {"file"}:
        check_type(row[name], int, name)
    return dict(row)


def _filtered(row: Mapping[str, Any]) -> Filtered:
    filtered = Filtered(**row)
    for name in ("min_count", "unique_words", "words"):
        check_type(getattr(filtered, name), int, name)
    if filtered.sources is None:
        return filtered
    return Filtered(**{**row, "sources": _texts("sources", filtered.sources)})


def _numbers(totals: SourceTotals) -> SourceTotals:
    for name, value in asdict(totals).items():
        check_type(value, int, name)
    return totals


def _texts(name: str, values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(check_type(value, str, name) for value in values)
