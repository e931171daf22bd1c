"""The manifest of a counts folder: the settings of counting, the totals, and the files of words.

A folder with a manifest is finished.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from bpe_beam.corpus.rejects import FileLoss
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_kind import COUNTS, refuse_other
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import (
    VERSION,
    Count,
    OtherVersionError,
    Sha256,
    read_signed,
    to_struct,
    with_checksum,
)

MAX_SOURCES = 1000
"""The maximum number of sources of a counts folder: workers have a table for each source."""

MAX_SOURCE_NAME = 1000
"""The maximum characters of a source's name: it is in every row and before every block."""

_AMOUNTS = ("documents", "text_bytes", "words")
"""What is added up over documents, in total and for each source."""


class CountsPart(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One Parquet file of a counts folder.

    Attributes:
        name: The name of the file, without a folder: readers of the manifest open it.
        sources: The number of its words by source, sorted by name; None without sources.
    """

    name: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._-]+\Z")]
    unique_words: Count
    word_bytes: Count
    bytes: Count
    sha256: Sha256
    sources: dict[str, Count] | None = None

    @property
    def rows(self) -> int:
        """Rows of the file: a word has one in each source that has it."""
        return self.unique_words if self.sources is None else sum(self.sources.values())

    @property
    def file(self) -> FileInfo:
        """The file as receipts have it."""
        return FileInfo(self.name, self.bytes, self.sha256)


class SourceTotals(Struct, frozen=True, forbid_unknown_fields=True):
    """The amounts of one source; see `CountsManifest`."""

    documents: Count
    text_bytes: Count
    words: Count
    unique_words: Count


class Filtered(Struct, frozen=True, forbid_unknown_fields=True):
    """One run of `counts filter`; documents and bytes of the folder are still all that was read.

    Attributes:
        sources: The sources that were kept; None: all.
        unique_words: The number of words that were dropped.
        words: The number of their occurrences, also of words that stayed in other sources.
    """

    min_count: Count
    sources: tuple[str, ...] | None
    unique_words: Count
    words: Count


class CountsManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a counts folder, in the order of the file.

    Attributes:
        normalizer: The normalizer as on the command line; `pretokenizer` too.
        special_tokens: Tokens that were extracted before counting.
        with_places: Whether the parts have the position where each word occurs first.
        text_bytes: UTF-8 bytes of the texts of all documents that were read.
        words: The number of words, each occurrence counted.
        unique_words: The number of words, each counted once.
        word_bytes: Bytes of the words, each counted once.
        rejects: The number of rejected records by reason.
        inputs: (name, stored bytes) of each file that was read.
        sources: The totals of each source, sorted by name; None without sources.
        filtered: The filters that were applied, one after another.
        lost: What is lost of damaged files, sorted by file.
        files: The other files of the folder but `__job`.
        job_fingerprint: The fingerprint of the job in `__job`; None if no job wrote the folder.
    """

    normalizer: str
    pretokenizer: str
    special_tokens: tuple[str, ...]
    with_places: bool
    documents: Count
    text_bytes: Count
    words: Count
    unique_words: Count
    word_bytes: Count
    rejects: dict[str, Count]
    inputs: tuple[tuple[str, Count], ...]
    parts: tuple[CountsPart, ...]
    sources: dict[str, SourceTotals] | None = None
    filtered: tuple[Filtered, ...] = ()
    lost: tuple[FileLoss, ...] = ()
    files: tuple[FileInfo, ...] = ()
    job_fingerprint: Sha256 | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the settings that must be equal for counts to be added."""
        settings = [self.normalizer, self.pretokenizer, list(self.special_tokens)]
        return hashlib.sha256(json.dumps(settings).encode()).hexdigest()

    def to_bytes(self) -> bytes:
        """Return the bytes of the manifest's file."""
        values = msgspec.to_builtins(self)
        for name in ("lost", "files", "job_fingerprint"):
            if not values[name]:
                del values[name]
        return with_checksum({"version": VERSION, "fingerprint": self.fingerprint, **values})

    @staticmethod
    def from_bytes(data: bytes, source: str) -> CountsManifest:
        """Return the manifest in the bytes of its file."""
        try:
            values = read_signed(data, source)
        except OtherVersionError as error:
            raise UsageError(str(error)) from error
        for key in ("version", "sources", "filtered"):
            if key not in values:
                raise DataError(f"{source}: the key {key!r} is missing")
        del values["version"]
        fingerprint = values.pop("fingerprint", None)
        manifest = to_struct(values, CountsManifest, source)
        if fingerprint != manifest.fingerprint:
            raise DataError(
                f"{source}: the fingerprint does not match the settings: the file was changed"
            )
        try:
            manifest._check_parts()
        except ValueError as error:
            raise DataError(f"{source}: {error}") from error
        return manifest

    def _check_parts(self) -> None:
        """Check that each part exists once, and that the parts add up; raise ValueError."""
        count = len(self.parts)
        known = set(self.sources or ())
        for number, part in enumerate(self.parts):
            if part.name != part_name(number, count):
                raise ValueError(
                    f"parts[{number}].name must be {part_name(number, count)!r}, got "
                    f"{part.name!r}: a part is missing or repeated"
                )
            by_source = part.sources is not None
            if by_source != (self.sources is not None) or not known.issuperset(part.sources or ()):
                raise ValueError(f"{part.name}: its sources must be sources of the folder")
        for name in ("unique_words", "word_bytes"):
            total = sum(getattr(part, name) for part in self.parts)
            if total != getattr(self, name):
                raise ValueError(
                    f"{name} must be {total:,}, the sum of the parts, got {getattr(self, name):,}"
                )
        for source, totals in (self.sources or {}).items():
            rows = sum((part.sources or {}).get(source, 0) for part in self.parts)
            if rows != totals.unique_words:
                raise ValueError(
                    f"unique_words of source {source!r} must be {rows:,}, the sum of the parts, "
                    f"got {totals.unique_words:,}"
                )


def part_name(partition: int, partitions: int) -> str:
    """Return the file name of a part."""
    return f"part-{partition:05}-of-{partitions:05}.parquet"


def read_manifest(storage: Storage, folder: str) -> CountsManifest:
    """See `read_hashed_manifest`; returns the manifest alone."""
    return read_hashed_manifest(storage, folder)[0]


def read_hashed_manifest(storage: Storage, folder: str) -> tuple[CountsManifest, str]:
    """Return the manifest of a counts folder, and a SHA-256 in hex that identifies the counts."""
    url = storage.join(folder, MANIFEST_FILE)
    if not storage.exists(url):
        refuse_other(storage, folder, COUNTS)
        if storage.exists(storage.join(folder, JOB_FILE)):
            raise UsageError(
                f"{redact(folder)} is not finished, it has no {MANIFEST_FILE}: run its job again; "
                "it resumes where it was"
            )
        raise UsageError(f"{redact(folder)} is no counts folder: it has no {MANIFEST_FILE}")
    try:
        manifest = CountsManifest.from_bytes(storage.read_bytes(url), redact(url))
        # Equal counts may have been made in another way.
        counts = replace(manifest, files=(), job_fingerprint=None)
        return manifest, hashlib.sha256(counts.to_bytes()).hexdigest()
    except DataError:
        refuse_other(storage, folder, COUNTS)
        raise


def added_up(
    manifests: Sequence[CountsManifest], parts: Iterable[CountsPart] = ()
) -> CountsManifest:
    """Return the manifest of counts that are added, without parts, files and job.

    Args:
        manifests: One or more, with the same rules; either all or none have sources.
        parts: The added parts, which have the unique words of each source.

    Raises:
        DataError: A total is beyond 64 bits, or the sources are too many.
    """
    first, sources = manifests[0], None
    totals = {name: sum(getattr(each, name) for each in manifests) for name in _AMOUNTS}
    for name, total in totals.items():
        if total >= 2**63:
            raise DataError(f"{name} of these counts come to {total:,} together, beyond 64 bits")
    if first.sources is not None:
        rows = (
            {name: asdict(totals) for name, totals in (each.sources or {}).items()}
            for each in manifests
        )
        sources = source_totals(rows, parts)
    rejects: Counter[str] = Counter()
    for each in manifests:
        rejects.update(each.rejects)
    return replace(
        first,
        **totals,
        unique_words=0,
        word_bytes=0,
        rejects=dict(sorted(rejects.items())),
        inputs=tuple(row for each in manifests for row in each.inputs),
        parts=(),
        sources=sources,
        filtered=tuple(row for each in manifests for row in each.filtered),
        lost=tuple(row for each in manifests for row in each.lost),
        files=(),
        job_fingerprint=None,
    )


def source_totals(
    rows: Iterable[Mapping[str, Mapping[str, int]]], parts: Iterable[CountsPart]
) -> dict[str, SourceTotals]:
    """Return the totals of each source, sorted by name."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for name, amounts in row.items():
            sums[name].update({key: amounts[key] for key in _AMOUNTS})
    for part in parts:
        for name, unique_words in (part.sources or {}).items():
            sums[name]["unique_words"] += unique_words
    check_sources(sums)
    fields = SourceTotals.__struct_fields__
    return {name: SourceTotals(*map(sums[name].__getitem__, fields)) for name in sorted(sums)}


def check_sources(names: Iterable[str]) -> None:
    """Refuse too many sources, and too long names of sources."""
    unique = set(names)
    longest = max(unique, key=len, default="")
    if len(longest) > MAX_SOURCE_NAME:
        raise DataError(
            f"the name of a source has {len(longest):,} characters, {longest[:50]!r}...; at most "
            f"{MAX_SOURCE_NAME:,}",
            remedy="does {source_field} name the right field?",
        )
    count = len(unique)
    if count > MAX_SOURCES:
        raise DataError(
            f"the corpus has more than {MAX_SOURCES:,} sources, {count:,} so far",
            remedy="{source_field} must name a field of few values; or name sources by patterns, "
            "with {sources} NAME=GLOB",
        )
