"""The manifest of a tokens folder: its shards, the files that they were made from, the tokenizer.

It is the last file that a run writes: a folder with a `__manifest` is finished. It has no time,
host or absolute path, so equal work gives equal bytes. It is read strictly: an unknown or missing
key, or a value of another type, is refused, and the error names its position in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from bpe_beam.corpus.rejects import FileLoss
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import (
    INDEX_FILE,
    JOB_FILE,
    MANIFEST_FILE,
    PARTS,
    REJECTS,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
    WINDOW_FILE,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_kind import SHARDS, refuse_other
from bpe_beam.messages import shortened
from bpe_beam.shards import shard_rows
from bpe_beam.shards.formats import SHARD_FORMATS, TRAINER_COLUMNS, shard_format
from bpe_beam.shards.mixture import Mixture
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage, json_file, redact
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

NO_PLAN = {"fingerprint": hashlib.sha256(b"{}").hexdigest()}
"""The plan of a folder whose shards do not belong to the splits of a plan."""

FRAMING = ("append", "prepend", "allowed_special")
"""The settings of encoding that each manifest has."""

AROUND = ("append", "prepend", "add_special_tokens")
"""The settings of encoding that say which tokens are around each document."""

_LISTED = (SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, WINDOW_FILE, INDEX_FILE)
"""The names of files that a manifest lists in addition to shards and rejects."""

ENCODING = (
    *FRAMING,
    "add_special_tokens",
    "empty_documents",
    "max_document_tokens",
    "long_documents",
)
"""All settings of encoding; a manifest lacks those that have their defaults."""


class TokenizerInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """The tokenizer that made the shards: the SHA-256 of the bytes of the folder's
    `tokenizer.json`, and one more than the greatest id.
    """

    fingerprint: json_file.Sha256
    vocab_size: Annotated[int, Meta(ge=1, le=MAX_VOCAB_SIZE)]


class Rejects(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The records that could not be used."""

    by_reason: dict[str, json_file.Count]
    files: tuple[FileInfo, ...]  # the files of rejected records, `__rejects/...`, sorted by name
    lost: tuple[FileLoss, ...] = ()  # the losses of damaged files, sorted by file


class _Framing(Struct):
    append: str | None
    prepend: str | None
    allowed_special: Literal["none", "all"] | tuple[str, ...]


class _PlanFingerprint(Struct):
    fingerprint: json_file.Sha256


class _KnownSettings(Struct):
    """The keys that `settings` and `plan` must have; other keys are allowed."""

    settings: _Framing
    plan: _PlanFingerprint


class Manifest(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"tokenless": "splits_without_tokens"},
):
    """The content of `__manifest` but for its checksum, in the order of the file."""

    format: str  # the shards' format, one of SHARD_FORMATS
    version: int
    tokenizer: TokenizerInfo
    # `append` and `prepend` (a token or None), `allowed_special` ("none", "all" or a list of
    # tokens), other settings of encoding, and any of reading, as JSON values.
    settings: json_file.JsonObject
    totals: shard_rows.Totals  # the sums, `Totals.of(shards, tokenless)`
    rejects: Rejects
    # The plan's `fingerprint`, a SHA-256, and the plan as its own `to_json()` returns it.
    # `WriteTokens` has no plan.
    plan: json_file.JsonObject
    # The shards of the splits with tokens, in the order of the plan. A split has several if
    # the format can count no more in one: then the first one has its slices, rejects and
    # changes, and the others have none.
    shards: tuple[shard_rows.Shard, ...]
    tokenless: tuple[
        shard_rows.TokenlessSplit, ...
    ]  # the splits without tokens, in the order of the plan
    # How the documents were arranged, if they are not in the order of the corpus.
    arranged: shard_rows.ArrangedPart | UnsetType = UNSET
    # The mixture that the documents are.
    mixture: Mixture | UnsetType = UNSET
    # The columns for trainers that the shards have, of TRAINER_COLUMNS.
    columns: tuple[str, ...] | UnsetType = UNSET
    files: tuple[FileInfo, ...] = ()  # the other files of the folder but `__job`, sorted by name
    # The fingerprint of the job in `__job`, of a folder that has one.
    job_fingerprint: json_file.Sha256 | UnsetType = UNSET

    @property
    def has_plan(self) -> bool:
        """True if a job with a plan wrote it, not `WriteTokens`."""
        return len(self.plan) > 1

    @property
    def token_counts(self) -> FileInfo | None:
        """The file of token counts; None if the folder has none."""
        return next((file for file in self.files if file.name == TOKEN_COUNTS_FILE), None)

    @property
    def shards_bytes(self) -> int:
        """The size of the files of all shards."""
        return sum(file.bytes for shard in self.shards for file in shard.files)

    @property
    def row_kind(self) -> str:
        """The kind of the rows in words; see `Arrangement.rows`."""
        return (self.arranged.settings if self.arranged else shard_rows.Arrangement()).rows

    @property
    def sequences(self) -> int | None:
        """The number of sequences; None if the shards have documents."""
        packed = self.arranged and self.arranged.settings.sequence_length is not None
        return self.totals.documents if packed else None

    @property
    def documents(self) -> int:
        """The number of documents that the shards are made of."""
        return self.arranged.documents if self.arranged else self.totals.documents

    @property
    def can_be_arranged_again(self) -> bool:
        """True if it has the facts of an arranged corpus, and the settings of reading."""
        return bool(self.arranged and self.arranged.corpus is not None and self.reading)

    @property
    def encoding(self) -> json_file.JsonObject:
        """The settings of encoding."""
        return {key: value for key, value in self.settings.items() if key in ENCODING}

    @property
    def reading(self) -> json_file.JsonObject:
        """The settings of reading."""
        return {key: value for key, value in self.settings.items() if key not in ENCODING}

    @property
    def changes(self) -> shard_rows.DocumentChanges:
        """The documents that rules changed, and the doubled tokens."""
        return sum(
            (row.changes or shard_rows.NO_CHANGES for row in self.rows), shard_rows.NO_CHANGES
        )

    @property
    def rows(self) -> list[shard_rows.Shard | shard_rows.TokenlessSplit]:
        """The rows of all splits, in the order of the plan: a split has one, or several shards."""
        rows: list[shard_rows.Shard | shard_rows.TokenlessSplit] = [*self.shards, *self.tokenless]
        return sorted(rows, key=lambda row: row.split)

    @property
    def by_split(self) -> list[list[shard_rows.Shard | shard_rows.TokenlessSplit]]:
        """The rows of each split, in the order of the plan."""
        return [list(rows) for _, rows in groupby(self.rows, key=lambda row: row.split)]

    @property
    def sources(self) -> dict[str, shard_rows.SourceTotals] | None:
        """The totals of each source, sorted by name; None without sources."""
        return shard_rows.added_sources(row.sources for row in self.rows)

    def content_fingerprint(self) -> str:
        """Return a SHA-256 of what decides on the documents and their order, not on the format.

        It is the same in folders that `convert` made of this one with the same shards.
        """
        decides = (
            self.tokenizer,
            sorted(self.encoding.items()),
            self.plan["fingerprint"],
            None if self.arranged is UNSET else self.arranged,
            [(shard.documents, shard.tokens) for shard in self.shards],
        )
        return hashlib.sha256(msgspec.json.encode(decides)).hexdigest()

    @property
    def texts_by_source(self) -> dict[str | None, shard_rows.SourceTotals]:
        """The documents of each source, sorted by name; without sources, of None.

        These are the documents of the corpus that the shards are made of, without padding.
        """
        sources, totals = self.sources, self.totals
        row = shard_rows.SourceTotals(totals.documents, totals.text_bytes, totals.tokens)
        if self.arranged is not UNSET:
            texts = self.arranged.own_texts
            row = shard_rows.SourceTotals(
                self.arranged.documents, texts.text_bytes, self.arranged.tokens
            )
            sources = texts.sources
        return {None: row} if sources is None else dict(sources.items())

    @property
    def sources_of_texts(self) -> dict[str, shard_rows.SourceTotals] | None:
        """The same of the sources that have names; None without sources."""
        sources = {name: each for name, each in self.texts_by_source.items() if name is not None}
        return sources or None

    @property
    def tokens_by_source(self) -> dict[str | None, int]:
        """The number of tokens of each source, see `texts_by_source`."""
        return {name: totals.tokens for name, totals in self.texts_by_source.items()}

    def to_bytes(self) -> bytes:
        """Return the bytes of `__manifest`, from which `from_bytes` reads an equal manifest."""
        reasons = dict(sorted(self.rejects.by_reason.items()))
        settings = {key: self.settings[key] for key in (*FRAMING, *self.settings)}
        return json_file.with_checksum(
            replace(self, settings=settings, rejects=replace(self.rejects, by_reason=reasons))
        )

    @staticmethod
    def from_bytes(data: bytes, source: str = MANIFEST_FILE) -> Manifest:
        """Return the manifest in the bytes of a `__manifest`; `verify` checks its sums."""
        values = json_file.read_signed(data, source)
        json_file.to_struct(values, _KnownSettings, source)
        manifest = json_file.to_struct(values, Manifest, source)
        try:
            _check_names(manifest)
            _check_splits(manifest)
            _check_sources(manifest)
        except ValueError as error:
            raise DataError(f"{source}: {error}") from error
        return manifest


def kind_of_tokens(manifest: Manifest, settings: Sequence[str] = AROUND) -> dict[str, object]:
    """Return the properties that joined shards must share: tokenizer and settings of encoding."""
    return {
        "tokenizer": manifest.tokenizer.fingerprint,
        "vocab_size": f"{manifest.tokenizer.vocab_size:,}",
        **{name: manifest.encoding.get(name, "the default") for name in settings},
    }


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Return the manifest of a finished tokens folder."""
    url = storage.join(folder, MANIFEST_FILE)
    try:
        return Manifest.from_bytes(storage.read_bytes(url), redact(url))
    except DataError:
        if storage.exists(url):
            refuse_other(storage, folder, SHARDS)
        else:
            refuse_no_shards(storage, folder)
        raise


def index_names(format_name: str) -> tuple[str, ...]:
    """Return the names of the files of a whole folder that a format's readers need."""
    return () if shard_format(format_name).index is None else (INDEX_FILE,)


def small_files(manifest: Manifest, tokenizer: bytes) -> dict[str, bytes]:
    """Return the content of the tokenizer's file, and of the index if readers need one, by name."""
    index = shard_format(manifest.format).index
    files = {SHARDS_TOKENIZER_FILE: tokenizer}
    return files if index is None else {**files, INDEX_FILE: index(manifest.shards)}


def with_files(
    manifest: Manifest, tokenizer: bytes, *others: FileInfo | None, job: str | UnsetType = UNSET
) -> Manifest:
    """Return a manifest that lists the files of its folder which are no shards."""
    small = (FileInfo.of(*each) for each in small_files(manifest, tokenizer).items())
    files = sorted([*small, *filter(None, others)], key=lambda file: file.name)
    return replace(manifest, files=tuple(files), job_fingerprint=job)


def tokens_folders(storage: Storage, folder: str) -> list[str]:
    """Return the tokens folders that a folder has: itself, or folders of formats and parts below
    it.

    A folder that should have tokens and does not is returned too: reading it names the reason.
    """
    names = storage.list_names(folder)
    if MANIFEST_FILE in names:
        return [folder]
    parts = [storage.join(folder, name) for name in PARTS]
    of_jobs = (MANIFEST_FILE, JOB_FILE)
    if any(storage.exists(storage.join(part, name)) for part in parts for name in of_jobs):
        return parts  # the job writes both, or neither
    marks = [*of_jobs, *(f"{part}/{name}" for part in PARTS for name in of_jobs)]
    written = [
        below
        for below in (storage.join(folder, name) for name in SHARD_FORMATS if name in names)
        if any(storage.exists(storage.join(below, *mark.split("/"))) for mark in marks)
    ]
    return [inside for each in written for inside in tokens_folders(storage, each)] or [folder]


def refuse_no_shards(storage: Storage, folder: str) -> None:
    """Refuse a folder without a manifest of shards, if it is another thing."""

    inside = tokens_folders(storage, folder)
    if inside != [folder]:
        names = [name[len(folder) :].strip("/") for name in inside]
        raise UsageError(
            f"{redact(folder)} holds folders of shards, {' and '.join(names)}: give one of them"
        )
    refuse_other(storage, folder, SHARDS)


def _check_names(manifest: Manifest) -> None:
    """Check the names of the format, columns, shards and all files: none is outside the folder."""
    if manifest.format not in SHARD_FORMATS:
        raise ValueError(
            f"format must be one of {', '.join(SHARD_FORMATS)}, got {shortened(manifest.format)}"
        )
    for name in manifest.columns or ():
        if name not in TRAINER_COLUMNS:
            raise ValueError(
                f"columns must be of {', '.join(TRAINER_COLUMNS)}, got {shortened(name)}"
            )
    for file in manifest.files:
        if file.name not in _LISTED:
            raise ValueError(f"files must be of {', '.join(_LISTED)}, got {shortened(file.name)}")
    suffixes = shard_format(manifest.format).suffixes
    for index, shard in enumerate(manifest.shards):
        name = shard_name(index, len(manifest.shards))
        expected = [name, *(f"{name}{suffix}" for suffix in suffixes)]
        names = [shard.name, *(file.name for file in shard.files)]
        if names != expected:
            raise ValueError(
                f"shards[{index}] must have the name and the files {', '.join(expected)}, got "
                f"{', '.join(map(shortened, names))}"
            )
    last = ""
    for index, file in enumerate(manifest.rejects.files):
        folder, _, name = file.name.partition("/")
        if folder != REJECTS or name in ("", ".", "..") or "/" in name or file.name <= last:
            raise ValueError(
                f"rejects.files[{index}].name must be __rejects/NAME, and greater than the name "
                f"before it, got {shortened(file.name)}"
            )
        last = file.name


def _check_splits(manifest: Manifest) -> None:
    """Check that each split of the plan has its rows, in the order of the plan."""
    for what, numbers in (
        ("shards", [shard.split for shard in manifest.shards]),
        ("splits_without_tokens", [row.split for row in manifest.tokenless]),
    ):
        if numbers != sorted(numbers):
            raise ValueError(f"{what} must be in the order of their splits")
    splits_seen = 0
    for row in manifest.rows:
        if row.split > splits_seen:
            raise ValueError(f"split {splits_seen} of the plan has no shard")
        if row.split == splits_seen:
            splits_seen += 1
        elif not manifest.has_plan or row.slices or isinstance(row, shard_rows.TokenlessSplit):
            raise ValueError(f"split {row.split} of the plan appears twice")
    splits = manifest.plan.get("splits")
    if isinstance(splits, list) and len(splits) != splits_seen:
        raise ValueError(f"the plan has {len(splits)} splits, and the manifest has {splits_seen}")


def _check_sources(manifest: Manifest) -> None:
    """Check that all rows have sources, or none has."""
    rows = manifest.rows
    by_source = any(row.sources is not None for row in rows)
    for row in rows:
        if (row.sources is not None) != by_source:
            raise ValueError(f"{row.name} has no sources, and other rows have them")
