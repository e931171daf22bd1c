"""Reads a folder of token shards again, and compares it with its own manifest.

`verify` needs nothing but the folder. A job that encodes the corpus again compares each split with
`compare_split`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_kind import SHARDS, refuse_other
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardFormat, ShardReader
from bpe_beam.shards.formats.range_file import RangeFile
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.shards.shard_rows import Shard, SourceTotals, Totals
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import attempted_name

MAX_PROBLEMS = 100
"""The most problems that are reported in full; the others are counted."""

_REJECTS = "rejects"
_BLOCK = 4 << 20
_TOKENS = 1 << 20


class VerifyReport(Struct, frozen=True):
    """What `verify` read and found.

    Attributes:
        problems: The first `MAX_PROBLEMS`, in the order of the shards; empty if all is well.
        problem_count: The number of all problems.
        documents: The number of documents in the shards that could be read.
        tokens: The number of their tokens.
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
        """Whether there is no problem."""
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
    rejects, the tokenizer's fingerprint, and that it has no other shard.

    Args:
        storage: The storage client.
        folder: Path or URL of the folder.
        workers: The number of threads, at least 1; each reads a shard, with some MB of memory.
        on_progress: Gets the bytes read so far and the total of bytes; never by two threads at
            once.

    Returns:
        The problems and totals; problems do not raise.

    Raises:
        UsageError: The folder is missing or empty, or of another kind.
    """
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}")
    names = storage.list_names(folder)
    if not names:
        raise UsageError(
            f"{redact(folder)}: is missing or empty; expected a folder of token shards"
        )
    problems = _Problems()
    try:
        manifest = _finished_manifest(storage, folder, names)
    except DataError as error:
        problems.add(str(error))
        return VerifyReport(tuple(problems.first), problems.count, 0, 0, 0, 0)

    progress = _Progress(_all_files(manifest), on_progress)
    problems.extend(_check_sums(manifest))
    if _REJECTS in names:
        inside = storage.list_names(storage.join(folder, _REJECTS))
        names = names + [f"{_REJECTS}/{name}" for name in inside]
    there = frozenset(names)
    problems.extend(_check_foreign(manifest, there))
    problems.extend(_check_tokenizer(storage, folder, manifest, progress))
    problems.extend(_check_rejects(storage, folder, manifest, there, progress))
    documents = tokens = whole = 0
    format_ = shard_format(manifest.format)

    def check(shard: Shard) -> _ShardFindings:
        return _check_shard(storage, folder, format_, shard, manifest.vocab_size, there, progress)

    pool = ThreadPoolExecutor(workers)
    try:
        for findings in pool.map(check, manifest.shards):
            problems.extend(findings.problems)
            documents += findings.documents
            tokens += findings.tokens
            whole += not findings.problems
    finally:
        pool.shutdown(cancel_futures=True)
    return VerifyReport(
        tuple(problems.first), problems.count, documents, tokens, progress.done, whole
    )


def compare_split(
    reader: ShardReader,
    expected_batches: Iterable[tuple[NDArray[np.uint32], NDArray[np.int64]]],
) -> str | None:
    """Compare a shard with the documents that it should have; both sides are streamed.

    Args:
        reader: The open shard.
        expected_batches: Its documents in order, in batches of any size: ids, uint32[tokens], and
            offsets, int64[documents + 1], from 0 to `len(ids)`. Read up to the first difference.

    Returns:
        The first difference, by document and token in it, both from 0; None if there is none.

    Raises:
        DataError: The shard cannot be read.
    """
    document = token = 0
    for ids, offsets in expected_batches:
        expected = np.diff(offsets)
        found = reader.lengths(document, min(document + expected.size, len(reader)))
        differs = np.flatnonzero(expected[: found.size] != found)
        same = int(differs[0]) if differs.size else found.size
        # Up to the first document of another length, and as far as both have tokens of it.
        stop = int(offsets[same])
        if same < found.size:
            stop += int(min(expected[same], found[same]))
        for start in range(0, stop, _TOKENS):
            part = ids[start : min(start + _TOKENS, stop)]
            differs = np.flatnonzero(
                reader.tokens(token + start, token + start + part.size) != part
            )
            if differs.size:
                at = start + int(differs[0])
                inner = int(np.searchsorted(offsets, at, side="right")) - 1
                id_found = int(reader.tokens(token + at, token + at + 1)[0])
                return (
                    f"document {document + inner}, token {at - int(offsets[inner])}: the id is "
                    f"{id_found}; expected {int(ids[at])}"
                )
        if same < found.size:
            return (
                f"document {document + same} has {int(found[same])} tokens; expected "
                f"{int(expected[same])} (the first {int(min(expected[same], found[same]))} are "
                "the same)"
            )
        document += found.size
        token += stop
        if found.size < expected.size:
            return f"document {document} is missing: the shard ends after {document} documents"
    if document < len(reader):
        return (
            f"unexpected extra document {document}: the shard has {len(reader)}; expected "
            f"{document}"
        )
    return None


class _Problems:
    """The first problems in full, and the number of all."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, problem: str) -> None:
        self.count += 1
        if len(self.first) < MAX_PROBLEMS:
            self.first.append(problem)

    def extend(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.add(problem)


class _Progress:
    """Adds up bytes read, from any thread."""

    def __init__(self, files: Iterable[FileInfo], listener: Callable[[int, int], None] | None):
        self.done = 0
        self._all = sum(file.bytes for file in files)
        self._listener = listener
        self._lock = Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self.done += count
            if self._listener:
                # A file may have grown; never report more than the total.
                self._listener(min(self.done, self._all), self._all)


def _all_files(manifest: Manifest) -> Iterator[FileInfo]:
    for shard in manifest.shards:
        yield from shard.files
    yield from manifest.reject_files


def _finished_manifest(storage: Storage, folder: str, names: list[str]) -> Manifest:
    if MANIFEST_FILE in names:
        return read_manifest(storage, folder)
    refuse_other(storage, folder, SHARDS)
    if JOB_FILE in names:
        raise DataError(
            f"{redact(folder)}: not finished: the job failed, was interrupted or is running; run "
            "it again"
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
    for row in manifest.splits:
        for name in SourceTotals.__struct_fields__ if row.sources is not None else ():
            total = sum(getattr(source, name) for source in (row.sources or {}).values())
            if total != getattr(row, name):
                yield (
                    f"{MANIFEST_FILE}: {row.name} has {getattr(row, name)} {name}; its sources add "
                    f"up to {total}"
                )
    by_reason = sum(manifest.reject_reasons.values())
    if by_reason != expected["rejects"]:
        yield (
            f"{MANIFEST_FILE}: rejects.by_reason adds up to {by_reason}; the shards add up to "
            f"{expected['rejects']}"
        )


def _check_foreign(manifest: Manifest, there: Set[str]) -> Iterator[str]:
    """Yield a problem for each file that a reader would take for a shard of the manifest."""
    known = {file.name for file in _all_files(manifest)}
    suffixes = shard_format(manifest.format).suffixes
    for name in sorted(there - known):
        ours = name.startswith(("shard-", "rejects/")) or name.endswith(suffixes)
        if ours and attempted_name(name) is None:
            yield f"{name}: is in the folder and not in the manifest"


def _blocks(storage: Storage, url: str, progress: _Progress) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks of `_BLOCK` bytes; the last may have fewer."""
    with closing(RangeFile(storage, url)) as file:
        for start in range(0, file.size, _BLOCK):
            block = file.read(start, min(_BLOCK, file.size - start))
            progress.add(len(block))
            yield block


@dataclass
class _FileCheck:
    """Compares a file with its size and hash while its blocks are read.

    Attributes:
        info: The file as the manifest describes it.
        there: The names of all files in the folder.
        problems: The problems so far.
    """

    storage: Storage
    folder: str
    info: FileInfo
    there: Set[str]
    progress: _Progress
    problems: list[str] = field(default_factory=list)

    def blocks(self) -> Iterator[bytes]:
        name = self.info.name
        if name not in self.there:
            self.problems.append(f"{name}: is missing")
            return
        digest = hashlib.sha256()
        size = 0
        try:
            url = self.storage.join(self.folder, *name.split("/"))
            for block in _blocks(self.storage, url, self.progress):
                digest.update(block)
                size += len(block)
                yield block
        except DataError as error:
            self.problems.append(str(error))
            return
        if size != self.info.bytes:
            self.problems.append(f"{name}: has {size} bytes; expected {self.info.bytes}")
        elif digest.hexdigest() != self.info.sha256:
            self.problems.append(
                f"{name}: the SHA-256 is {digest.hexdigest()}; expected {self.info.sha256}"
            )


def _check_tokenizer(
    storage: Storage, folder: str, manifest: Manifest, progress: _Progress
) -> Iterator[str]:
    digest = hashlib.sha256()
    try:
        for block in _blocks(storage, storage.join(folder, TOKENIZER_FILE), progress):
            digest.update(block)
    except DataError as error:
        yield str(error)
        return
    if digest.hexdigest() != manifest.tokenizer:
        yield (
            f"{TOKENIZER_FILE}: the fingerprint is {digest.hexdigest()}; the shards were made with "
            f"{manifest.tokenizer}"
        )


def _check_rejects(
    storage: Storage, folder: str, manifest: Manifest, there: Set[str], progress: _Progress
) -> Iterator[str]:
    lines = 0
    broken = False
    for file in manifest.reject_files:
        check = _FileCheck(storage, folder, file, there, progress)
        lines += sum(block.count(b"\n") for block in check.blocks())
        broken = broken or bool(check.problems)
        yield from check.problems
    if not broken and lines != manifest.totals.rejects:
        yield (
            f"{_REJECTS}: the files have {lines} records; {MANIFEST_FILE} has "
            f"{manifest.totals.rejects}"
        )


@dataclass
class _ShardFindings:
    problems: list[str]
    documents: int = 0
    tokens: int = 0


def _check_shard(
    storage: Storage,
    folder: str,
    format_: ShardFormat,
    shard: Shard,
    vocab_size: int,
    there: Set[str],
    progress: _Progress,
) -> _ShardFindings:
    check = format_.check(shard.name, vocab_size)
    findings = _ShardFindings([])
    problems = findings.problems
    for file, suffix in zip(shard.files, format_.suffixes, strict=True):
        file_check = _FileCheck(storage, folder, file, there, progress)
        for block in file_check.blocks():
            check.add(suffix, block)
        problems += file_check.problems
    if not shard.tokens:
        problems.append(
            f"{shard.name}: has no token, which trainers cannot read; tokenize again into another "
            "folder, which leaves such shards out"
        )
    try:
        with format_.reader(storage, folder, shard.name) as reader:
            findings.documents, findings.tokens = len(reader), reader.token_count
            for what, found, expected in (
                ("documents", findings.documents, shard.documents),
                ("tokens", findings.tokens, shard.tokens),
            ):
                if found != expected:
                    problems.append(f"{shard.name}: has {found} {what}; expected {expected}")
            problems += check.problems(reader)
    except DataError as error:
        # A missing file is reported already.
        if not any(problem.endswith(": is missing") for problem in problems):
            problems.append(str(error))
        problems += check.problems(None)
    return findings
