"""Reads a folder of token shards again, and compares it with its own manifest."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from threading import Lock
from typing import cast

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, REJECTS, TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.document_batches import check_range, ranges_between
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import LabelledReader, ShardReader
from bpe_beam.shards.manifest import Manifest, read_manifest, refuse_no_shards
from bpe_beam.shards.shard_rows import Shard, SourceTotals, Totals
from bpe_beam.shards.stored_shard import RangeFile
from bpe_beam.shards.token_counts import read_token_counts
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import attempted_name

MAX_PROBLEMS = 100  # the maximum problems that are reported in full; the others are counted

_BLOCK = 4 << 20
_TOKENS = 1 << 20


class VerifyReport(Struct, frozen=True):
    """The result of `verify`.

    Attributes:
        problems: The first `MAX_PROBLEMS` of `problem_count`, in the order of the shards.
        documents, tokens: Their numbers in the shards that could be read.
        bytes: Bytes read of shards, rejects and the tokenizer.
        shards: The number of shards of the manifest that have no problem.
    """

    problems: tuple[str, ...]
    problem_count: int
    documents: int
    tokens: int
    bytes: int
    shards: int

    @property
    def ok(self) -> bool:
        """True without problems."""
        return not self.problem_count


def verify(
    storage: Storage,
    folder: str,
    *,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> VerifyReport:
    """Read every byte of a tokens folder and compare it with the folder's manifest.

    Of a shard: its files with their sizes and hashes, the structure of the index, the width of an
    id, every id below the vocabulary's size, documents and tokens. Of the folder: the totals, the
    rejects, the tokenizer's fingerprint, the token counts by source, and that it has no other
    shard.
    """
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}")
    names = storage.list_names(folder)
    if not names:
        raise UsageError(
            f"{redact(folder)}: is missing or empty; expected a folder of token shards"
        )
    try:
        manifest = _finished_manifest(storage, folder, names)
    except DataError as error:
        return VerifyReport((str(error),), 1, 0, 0, 0, 0)
    check = _FolderCheck(storage, folder, names, manifest, on_progress)
    problems = [
        *_check_sums(manifest),
        *check.foreign(),
        *check.files(),
        *check.rejects(),
    ]
    documents = tokens = whole = 0
    pool = ThreadPoolExecutor(workers)
    try:
        for of_shard, its_documents, its_tokens in pool.map(check.shard, manifest.shards):
            problems += of_shard
            documents += its_documents
            tokens += its_tokens
            whole += not of_shard
    finally:
        pool.shutdown(cancel_futures=True)
    shown = tuple(problems[:MAX_PROBLEMS])
    return VerifyReport(shown, len(problems), documents, tokens, check.bytes_read, whole)


def compare_split(
    reader: ShardReader | JoinedReader,
    expected_batches: Iterable[tuple[NDArray[np.uint32], NDArray[np.int64]]],
    *,
    unit: str = "documents",
) -> str | None:
    """Return the first difference between a shard and the documents that it should have, or None.

    Batches are ids, uint32[tokens], and offsets, int64[documents + 1], from 0 to `len(ids)`. Both
    sides are streamed, up to the first difference. Documents and tokens in it count from 0.
    """
    one = unit.removesuffix("s")
    document = token = 0
    for ids, offsets in expected_batches:
        expected = np.diff(offsets)
        actual = reader.lengths(document, min(document + expected.size, len(reader)))
        differs = np.flatnonzero(expected[: actual.size] != actual)
        same = int(differs[0]) if differs.size else actual.size
        # Up to the first document of another length, and as far as both have tokens of it.
        stop = int(offsets[same])
        if same < actual.size:
            stop += int(min(expected[same], actual[same]))
        for start in range(0, stop, _TOKENS):
            part = ids[start : min(start + _TOKENS, stop)]
            differs = np.flatnonzero(
                reader.tokens(token + start, token + start + part.size) != part
            )
            if differs.size:
                at = start + int(differs[0])
                inner = int(np.searchsorted(offsets, at, side="right")) - 1
                actual_id = int(reader.tokens(token + at, token + at + 1)[0])
                return (
                    f"{one} {document + inner}, token {at - int(offsets[inner])}: the id is "
                    f"{actual_id}; expected {int(ids[at])}"
                )
        if same < actual.size:
            return (
                f"{one} {document + same} has {int(actual[same])} tokens; expected "
                f"{int(expected[same])} (the first {int(min(expected[same], actual[same]))} are "
                "the same)"
            )
        document += actual.size
        token += stop
        if actual.size < expected.size:
            return f"{one} {document} is missing: the shard ends after {document} {unit}"
    if document < len(reader):
        return (
            f"unexpected extra {one} {document}: the shard has {len(reader)}; expected {document}"
        )
    return None


class JoinedReader:
    """The documents of several `ShardReader`s, one after the other."""

    def __init__(self, readers: Sequence[ShardReader]) -> None:
        self._readers = readers
        self._documents = [0, *accumulate(map(len, readers))]
        self._tokens = [0, *accumulate(reader.token_count for reader in readers)]
        self.token_count = self._tokens[-1]

    def __len__(self) -> int:
        return self._documents[-1]

    def lengths(self, start: int, stop: int) -> NDArray[np.int32]:
        check_range("documents", start, stop, len(self))
        ranges = ranges_between(self._documents, start, stop)
        parts = [self._readers[number].lengths(low, high) for number, low, high in ranges]
        return np.concatenate([np.empty(0, np.int32), *parts])

    def tokens(self, start: int, stop: int) -> NDArray[np.uint32]:
        check_range("tokens", start, stop, self.token_count)
        ranges = ranges_between(self._tokens, start, stop)
        parts = [self._readers[number].tokens(low, high) for number, low, high in ranges]
        return np.concatenate([np.empty(0, np.uint32), *parts])


def _finished_manifest(storage: Storage, folder: str, names: list[str]) -> Manifest:
    if MANIFEST_FILE in names:
        return read_manifest(storage, folder)
    refuse_no_shards(storage, folder)
    if JOB_FILE in names:
        raise DataError(
            f"{redact(folder)}: not finished, it has no {MANIFEST_FILE}: the job failed, was "
            "interrupted or is running, or the file is lost; run the job again"
        )
    if not any(name.startswith("shard-") for name in names):
        raise UsageError(
            f"{redact(folder)} has no shards: give a folder that tokenize or convert wrote"
        )
    raise DataError(
        f"{redact(folder)}: has neither {MANIFEST_FILE} nor {JOB_FILE}: not the output of a "
        "tokenize job"
    )


def _check_sums(manifest: Manifest) -> Iterator[str]:
    """Yield a problem for each number of the manifest that its rows do not add up to."""
    expected = asdict(Totals.of(manifest.shards, manifest.tokenless))
    for name, value in asdict(manifest.totals).items():
        if value != expected[name]:
            yield (
                f"{MANIFEST_FILE}: totals.{name} is {value}; the shards add up to {expected[name]}"
            )
    for row in manifest.rows:
        for name in SourceTotals.__struct_fields__ if row.sources is not None else ():
            total = sum(getattr(source, name) for source in (row.sources or {}).values())
            if total != getattr(row, name):
                yield (
                    f"{MANIFEST_FILE}: {row.name} has {getattr(row, name)} {name}; its sources add "
                    f"up to {total}"
                )
    if (part := manifest.arranged) and part.tokens + part.padding != manifest.totals.tokens:
        yield (
            f"{MANIFEST_FILE}: totals.tokens is {manifest.totals.tokens}; arranged has "
            f"{part.tokens} tokens of documents and {part.padding} of padding"
        )
    by_reason = sum(manifest.rejects.by_reason.values())
    if by_reason != expected["rejects"]:
        yield (
            f"{MANIFEST_FILE}: rejects.by_reason adds up to {by_reason}; the shards add up to "
            f"{expected['rejects']}"
        )


class _FolderCheck:
    """Checks of the files of a folder, with the bytes that all threads have read so far."""

    def __init__(
        self,
        storage: Storage,
        url: str,
        names: list[str],
        manifest: Manifest,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self._storage = storage
        self._url = url
        self._manifest = manifest
        self._format = shard_format(manifest.format)
        rejects = storage.list_names(storage.join(url, REJECTS)) if REJECTS in names else ()
        self._names = {*names, *(f"{REJECTS}/{name}" for name in rejects)}
        self._files = [file for shard in manifest.shards for file in shard.files]
        self._files += [*manifest.rejects.files, *manifest.files]
        self._total = sum(file.bytes for file in self._files)
        self._on_progress = on_progress
        self._lock = Lock()
        self.bytes_read = 0

    def foreign(self) -> Iterator[str]:
        """Yield a problem for each file that a reader would take for a shard of the manifest."""
        for name in sorted(self._names - {file.name for file in self._files}):
            ours = name.startswith(("shard-", f"{REJECTS}/", TOKEN_COUNTS_FILE)) or name.endswith(
                self._format.suffixes
            )
            if ours and attempted_name(name) is None:
                yield f"{name}: is in the folder and not in the manifest"

    def files(self) -> list[str]:
        """Return the problems of the files that are neither shards nor rejects."""
        manifest, problems = self._manifest, list[str]()
        for file in manifest.files:
            deque(self._checked_blocks(file, problems), maxlen=0)
        counted = manifest.token_counts
        if not problems and counted is not None:
            tokens, fingerprint = manifest.tokens_by_source, manifest.tokenizer.fingerprint
            try:
                counts = read_token_counts(self._storage, self._url, fingerprint, tokens, counted)
                deque(counts, maxlen=0)
            except DataError as error:
                problems.append(str(error))
        return problems

    def rejects(self) -> list[str]:
        """Return the problems of the files of rejects."""
        problems: list[str] = []
        lines = 0
        for file in self._manifest.rejects.files:
            lines += sum(block.count(b"\n") for block in self._checked_blocks(file, problems))
        expected = self._manifest.totals.rejects
        if not problems and lines != expected:
            problems.append(
                f"{REJECTS}: the files have {lines} records; {MANIFEST_FILE} has {expected}"
            )
        return problems

    def shard(self, shard: Shard) -> tuple[list[str], int, int]:
        """Read a shard, and return its problems, documents and tokens."""
        check = self._format.check(shard.name, self._manifest.tokenizer.vocab_size)
        problems: list[str] = []
        documents = tokens = 0
        for file, suffix in zip(shard.files, self._format.suffixes, strict=True):
            for block in self._checked_blocks(file, problems):
                check.add(suffix, block)
        if not shard.tokens:
            problems.append(
                f"{shard.name}: has no token, which trainers cannot read; tokenize again into "
                "another folder, which leaves such shards out"
            )
        try:
            with self._format.reader(self._storage, self._url, shard.name) as reader:
                documents, tokens = len(reader), reader.token_count
                for what, value, expected in (
                    ("documents", documents, shard.documents),
                    ("tokens", tokens, shard.tokens),
                ):
                    if value != expected:
                        problems.append(f"{shard.name}: has {value} {what}; expected {expected}")
                problems += check.problems(reader)
                expected_columns = self._manifest.columns or ()
                if self._format.labelled:
                    columns = cast(LabelledReader, reader).columns
                    if columns != expected_columns:
                        problems.append(
                            f"{shard.name}: the columns for trainers are "
                            f"{', '.join(columns) or 'none'}; {MANIFEST_FILE} has "
                            f"{', '.join(expected_columns) or 'none'}"
                        )
        except DataError as error:
            # A missing file is reported already.
            if not any(problem.endswith(": is missing") for problem in problems):
                problems.append(str(error))
            problems += check.problems(None)
        return problems, documents, tokens

    def _checked_blocks(self, file: FileInfo, problems: list[str]) -> Iterator[bytes]:
        """Yield the blocks of a file; add to the problems if size or hash differ, or it fails."""
        if file.name not in self._names:
            problems.append(f"{file.name}: is missing")
            return
        digest, size = hashlib.sha256(), 0
        url = self._storage.join(self._url, *file.name.split("/"))
        try:
            with RangeFile(self._storage, url) as stored:
                while block := stored.read(size, min(_BLOCK, stored.size - size)):
                    self._report(len(block))
                    digest.update(block)
                    size += len(block)
                    yield block
        except DataError as error:
            problems.append(str(error))
            return
        sha256 = digest.hexdigest()
        if size != file.bytes:
            problems.append(f"{file.name}: has {size} bytes; expected {file.bytes}")
        elif sha256 != file.sha256:
            problems.append(f"{file.name}: the SHA-256 is {sha256}; expected {file.sha256}")

    def _report(self, count: int) -> None:
        """Count bytes that were read, and report them."""
        with self._lock:
            self.bytes_read += count
            if self._on_progress is not None:
                # A file may have grown; never report more than the total.
                self._on_progress(min(self.bytes_read, self._total), self._total)
