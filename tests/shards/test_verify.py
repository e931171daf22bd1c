"""Whatever happens to a folder of shards, `verify` finds it and says where."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
import pytest
from msgspec import field
from msgspec.structs import replace

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards import verify as verify_module
from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.shards.manifest import Manifest, Rejects, TokenizerInfo, with_files
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import (
    ArrangedPart,
    Arrangement,
    Shard,
    SourceSlice,
    TokenlessSplit,
    Totals,
)
from bpe_beam.shards.verify import VerifyReport, compare_split, verify
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import VERSION

pytestmark = pytest.mark.quick

STORAGE = Storage()
TOKENIZER = b'{"model": {"type": "BPE"}}\n'
CORPUS = [[[1, 2, 299], [], [7]], [[5] * 30, [6, 8]], []]
FIRST = shard_name(0, 2)


def pack(documents: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([token for document in documents for token in document], dtype=np.uint32)
    return ids, np.cumsum([0, *map(len, documents)], dtype=np.int64)


def facts(folder: Path, name: str) -> FileInfo:
    data = (folder / name).read_bytes()
    return FileInfo(name, len(data), hashlib.sha256(data).hexdigest())


def make(folder: Path, vocab_size: int = 300) -> Manifest:
    """A finished tokens folder of two shards, a split without documents, and three rejects."""
    shards = []
    tokenless = []
    for index, documents in enumerate(CORPUS):
        name = shard_name(index, 2)
        with MegatronWriter(STORAGE, str(folder), name, vocab_size) as writer:
            writer.write_documents(*pack(documents))
        done = writer.result()
        rejects = (1, 2, 0)[index]
        pieces = (SourceSlice("a.txt", 10 * index, 10 * index + 10),)
        if done.tokens:
            numbers = (done.documents, 10, done.tokens, rejects)
            shards.append(Shard(name, index, pieces, *numbers, done.files))
        else:
            tokenless.append(TokenlessSplit(index, pieces, 0, 10, rejects))
    (folder / "__rejects").mkdir()
    (folder / "__rejects" / "split-00000.jsonl").write_bytes(b'{"n": 1}\n')
    (folder / "__rejects" / "split-00001.jsonl").write_bytes(b'{"n": 2}\n{"n": 3}\n')
    (folder / "__tokenizer").write_bytes(TOKENIZER)
    manifest = Manifest(
        format="megatron",
        version=VERSION,
        tokenizer=TokenizerInfo(hashlib.sha256(TOKENIZER).hexdigest(), vocab_size),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        plan={"fingerprint": "0" * 64, "files": [], "splits": [0, 1, 2]},
        shards=tuple(shards),
        totals=Totals.of(shards, tokenless),
        rejects=Rejects(
            {"empty": 1, "invalid UTF-8": 2},
            tuple(facts(folder, f"__rejects/split-0000{index}.jsonl") for index in (0, 1)),
        ),
        tokenless=tuple(tokenless),
    )
    manifest = with_files(manifest, TOKENIZER)
    save(folder, manifest)
    return manifest


def save(folder: Path, manifest: Manifest) -> None:
    (folder / "__manifest").write_bytes(manifest.to_bytes())


def bless(folder: Path, manifest: Manifest) -> None:
    """Makes the manifest's sizes and hashes those of the files, as a deceiver would."""
    save(
        folder,
        replace(
            manifest,
            shards=tuple(
                replace(shard, files=tuple(facts(folder, file.name) for file in shard.files))
                for shard in manifest.shards
            ),
        ),
    )


def problems(folder: Path) -> tuple[str, ...]:
    report = verify(STORAGE, str(folder))
    assert report.problem_count == len(report.problems)
    assert report.ok == (not report.problems)
    return report.problems


def one_problem(folder: Path) -> str:
    (problem,) = problems(folder)
    return problem


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("vocab_size", [300, 70_000])
def test_a_whole_folder(tmp_path: Path, workers: int, vocab_size: int) -> None:
    manifest = make(tmp_path, vocab_size)
    (tmp_path / "summary.json").write_bytes(b"{}")
    # Left by a writer that was killed.
    (tmp_path / f"{FIRST}.bin.attempt-0123456789ab").write_bytes(b"half")
    seen: list[tuple[int, int]] = []
    report = verify(
        STORAGE,
        str(tmp_path),
        workers=workers,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    shard_bytes = sum(file.bytes for shard in manifest.shards for file in shard.files)
    reject_bytes = sum(file.bytes for file in manifest.rejects.files)
    assert report == VerifyReport(
        problems=(),
        problem_count=0,
        documents=5,
        tokens=36,
        bytes=shard_bytes + reject_bytes + len(TOKENIZER),
        shards=2,
    )
    assert report.ok
    assert seen == sorted(seen)
    assert seen[-1] == (report.bytes,) * 2


def test_a_folder_on_a_store(tmp_path: Path) -> None:
    make(tmp_path)
    folder = f"memory://verify-{uuid4().hex}"
    for path in tmp_path.rglob("*"):
        if path.is_file():
            name = path.relative_to(tmp_path).as_posix()
            STORAGE.write_bytes(f"{folder}/{name}", path.read_bytes())
    assert verify(STORAGE, folder).ok
    STORAGE.remove(f"{folder}/{FIRST}.idx")
    assert verify(STORAGE, folder).problems == (f"{FIRST}.idx: is missing",)


class MeetingStorage(Storage, frozen=True):
    """Opens the first shards' ids only when two ask at the same time."""

    meeting: Barrier = field(default_factory=lambda: Barrier(2, timeout=120))

    def open(self, url: str) -> Any:
        if url.endswith((f"{FIRST}.bin", f"{shard_name(1, 2)}.bin")) and not self.meeting.broken:
            self.meeting.wait()
        return super().open(url)


def test_workers_work_at_the_same_time(tmp_path: Path) -> None:
    make(tmp_path)
    # Each shard's ids are opened twice: to be hashed, and by the reader of the index.
    assert verify(MeetingStorage(), str(tmp_path), workers=2).ok


# Folders that are none.


@pytest.mark.parametrize("exists", [False, True])
def test_no_folder(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "tokens"
    if exists:
        folder.mkdir()
    with pytest.raises(UsageError, match=r"tokens: is missing or empty"):
        verify(STORAGE, str(folder))


def test_workers_below_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="workers must be at least 1, got 0"):
        verify(STORAGE, str(tmp_path), workers=0)


def test_a_job_that_is_not_finished(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "__job").touch()
    (tmp_path / "__manifest").unlink()
    assert one_problem(tmp_path) == (
        f"{tmp_path}: not finished, it has no __manifest: the job failed, was interrupted or is "
        "running, or the file is lost; run the job again"
    )


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(UsageError, match="has no shards: give a folder that tokenize or convert"):
        verify(STORAGE, str(tmp_path))
    (tmp_path / "shard-00000-of-00001.bin").touch()  # of a folder that lost the other files
    assert "has neither __manifest nor __job" in one_problem(tmp_path)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("count", "tokens holds word counts, not shards"),
        ("train", "tokens holds a tokenizer, not shards"),
        ("stream-tokenize", "windows of shards, not shards: give one of its folders window-*"),
    ],
)
def test_a_folder_of_another_job(tmp_path: Path, job: str, said: str) -> None:
    folder = tmp_path / "tokens"
    folder.mkdir()
    (folder / "__job").write_text(json.dumps({"job": job}))
    with pytest.raises(UsageError, match=re.escape(said)):
        verify(STORAGE, str(folder))


@pytest.mark.parametrize("data", ["", "[]", "[" * 100_000, '{"job": ["count"]}', '{"job": "x"}'])
def test_a_job_that_is_none(tmp_path: Path, data: str) -> None:
    (tmp_path / "__job").write_text(data)
    assert "not finished" in one_problem(tmp_path)


def test_a_manifest_that_is_none(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "__manifest").write_bytes(b"{}")
    assert "__manifest: the key 'sha256' is missing" in one_problem(tmp_path)


# Files that are missing, foreign, cut, changed.


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_a_missing_shard_file(tmp_path: Path, suffix: str) -> None:
    make(tmp_path)
    (tmp_path / f"{FIRST}{suffix}").unlink()
    report = verify(STORAGE, str(tmp_path))
    assert report.problems == (f"{FIRST}{suffix}: is missing",)
    assert (report.shards, report.documents, report.tokens) == (1, 2, 32)


def test_a_missing_shard(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / f"{FIRST}.bin").unlink()
    (tmp_path / f"{FIRST}.idx").unlink()
    assert problems(tmp_path) == (f"{FIRST}.bin: is missing", f"{FIRST}.idx: is missing")


@pytest.mark.parametrize(
    "name",
    [
        "shard-00003-of-00004.bin",
        "shard-00000-of-00001.idx",
        "shard-x",
        "other.bin",
        "other.idx",
        f"{FIRST}.bin.attempt-1",
        "__rejects/split-00009.jsonl",
    ],
)
def test_a_foreign_file(tmp_path: Path, name: str) -> None:
    make(tmp_path)
    (tmp_path / name).write_bytes(b"x")
    assert one_problem(tmp_path) == f"{name}: is in the folder and not in the manifest"


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_a_truncated_file(tmp_path: Path, suffix: str) -> None:
    make(tmp_path)
    path = tmp_path / f"{FIRST}{suffix}"
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        size_problem, structure = problems(tmp_path)
        assert size_problem == f"{FIRST}{suffix}: has {size} bytes; expected {len(whole)}"
        assert f"{FIRST}{suffix}: " in structure


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_every_flipped_byte_is_found(tmp_path: Path, suffix: str) -> None:
    manifest = make(tmp_path)
    path = tmp_path / f"{FIRST}{suffix}"
    whole = path.read_bytes()
    for place in range(len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0x41
        path.write_bytes(broken)
        save(tmp_path, manifest)
        found = problems(tmp_path)
        assert f"{FIRST}{suffix}: the SHA-256 is " in found[0]
        if suffix == ".idx":
            # The structure alone gives it away too.
            bless(tmp_path, manifest)
            assert FIRST in one_problem(tmp_path)


def test_an_id_outside_the_vocabulary(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    path = tmp_path / f"{FIRST}.bin"
    path.write_bytes(struct.pack("<4H", 1, 2, 299, 300))
    bless(tmp_path, manifest)
    assert one_problem(tmp_path) == (
        f"{FIRST}.bin: document 2, token 0, byte 6: the id is 300; expected 0 to 299; 1 such ids "
        "in this shard"
    )
    path.write_bytes(struct.pack("<4H", 1, 65535, 299, 300))
    assert problems(tmp_path)[1] == (
        f"{FIRST}.bin: document 0, token 1, byte 2: the id is 65535; expected 0 to 299; 2 such "
        "ids in this shard"
    )


def test_a_negative_id(tmp_path: Path) -> None:
    manifest = make(tmp_path, vocab_size=70_000)
    (tmp_path / f"{FIRST}.bin").write_bytes(struct.pack("<4i", 1, 2, -1, 4))
    bless(tmp_path, manifest)
    assert "document 0, token 2, byte 8: the id is 4294967295" in one_problem(tmp_path)


def test_ids_of_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = make(tmp_path)
    path = tmp_path / f"{shard_name(1, 2)}.bin"
    path.write_bytes(struct.pack("<32H", *[5] * 17, 300, *[5] * 12, 301, 301))
    bless(tmp_path, manifest)
    monkeypatch.setattr(verify_module, "_BLOCK", 8)
    assert "document 0, token 17, byte 34: the id is 300; " in one_problem(tmp_path)
    assert one_problem(tmp_path).endswith("3 such ids in this shard")


def test_ids_of_the_wrong_width(tmp_path: Path) -> None:
    manifest = make(tmp_path, vocab_size=70_000)
    save(tmp_path, replace(manifest, tokenizer=replace(manifest.tokenizer, vocab_size=5)))
    # Nothing is said of ids: read at this width, they are none.
    assert problems(tmp_path) == tuple(
        f"{shard.name}.idx: byte 17: ids are stored as int32; expected uint16 for a vocabulary of 5"
        for shard in manifest.shards
    )


def test_a_bin_without_whole_ids_does_not_crash(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    (tmp_path / f"{FIRST}.bin").write_bytes(b"\1\0\2")
    bless(tmp_path, manifest)
    assert f"{FIRST}.bin: has 3 bytes" in one_problem(tmp_path)


@pytest.mark.parametrize("documents", [0, 2])
def test_a_shard_without_tokens_is_refused(tmp_path: Path, documents: int) -> None:
    """GPTDataset raises on such shards, or asks for ever more of them."""
    manifest = make(tmp_path)
    first = replace(manifest.shards[0], documents=documents, tokens=0)
    header = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, documents, documents + 1)
    numbers = struct.pack(f"<{documents + 1}q", *range(documents + 1))
    (tmp_path / f"{FIRST}.idx").write_bytes(header + bytes(12 * documents) + numbers)
    (tmp_path / f"{FIRST}.bin").write_bytes(b"")
    shards = (first, *manifest.shards[1:])
    totals = Totals.of(shards, manifest.tokenless)
    bless(tmp_path, replace(manifest, shards=shards, totals=totals))
    assert f"{FIRST}: has no token, which trainers cannot read" in one_problem(tmp_path)


# The manifest against the shards, and against itself.


@pytest.mark.parametrize("what", ["documents", "tokens"])
def test_counts_that_the_shard_does_not_have(tmp_path: Path, what: str) -> None:
    manifest = make(tmp_path)
    right = getattr(manifest.shards[0], what)
    first = replace(manifest.shards[0], **{what: right + 1})
    shards = (first, *manifest.shards[1:])
    save(tmp_path, replace(manifest, shards=shards, totals=Totals.of(shards, manifest.tokenless)))
    assert one_problem(tmp_path) == f"{FIRST}: has {right} {what}; expected {right + 1}"


@pytest.mark.parametrize("what", ["shards", "documents", "text_bytes", "tokens", "rejects"])
def test_totals_that_do_not_add_up(tmp_path: Path, what: str) -> None:
    manifest = make(tmp_path)
    right = getattr(manifest.totals, what)
    save(tmp_path, replace(manifest, totals=replace(manifest.totals, **{what: right + 1})))
    expected = f"__manifest: totals.{what} is {right + 1}; the shards add up to {right}"
    assert problems(tmp_path)[0] == expected


def test_padding_that_does_not_add_up(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    tokens = manifest.totals.tokens
    part = ArrangedPart(settings=Arrangement(), documents=3, tokens=tokens - 4, padding=4)
    save(tmp_path, replace(manifest, arranged=part))
    assert not problems(tmp_path)
    save(tmp_path, replace(manifest, arranged=replace(part, padding=5)))
    assert one_problem(tmp_path) == (
        f"__manifest: totals.tokens is {tokens}; arranged has {tokens - 4} tokens of documents "
        "and 5 of padding"
    )


def test_rejects_that_do_not_add_up(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    rejects = replace(manifest.rejects, by_reason={"empty": 4})
    save(tmp_path, replace(manifest, rejects=rejects))
    assert one_problem(tmp_path) == (
        "__manifest: rejects.by_reason adds up to 4; the shards add up to 3"
    )


# Rejects and the tokenizer.


def test_rejects_changed(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "__rejects" / "split-00000.jsonl").write_bytes(b'{"n": 9}\n')
    assert "__rejects/split-00000.jsonl: the SHA-256 is " in one_problem(tmp_path)


def test_rejects_missing(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "__rejects" / "split-00001.jsonl").unlink()
    assert one_problem(tmp_path) == "__rejects/split-00001.jsonl: is missing"


def test_rejects_too_few(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    (tmp_path / "__rejects" / "split-00001.jsonl").write_bytes(b'{"n": 2}\n')
    files = (manifest.rejects.files[0], facts(tmp_path, "__rejects/split-00001.jsonl"))
    save(tmp_path, replace(manifest, rejects=replace(manifest.rejects, files=files)))
    assert one_problem(tmp_path) == "__rejects: the files have 2 records; __manifest has 3"


def test_another_tokenizer(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    (tmp_path / "__tokenizer").write_bytes(TOKENIZER.replace(b"BPE", b"bpe"))
    assert one_problem(tmp_path).endswith(f"; expected {manifest.tokenizer.fingerprint}")


def test_no_tokenizer(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "__tokenizer").unlink()
    assert one_problem(tmp_path) == "__tokenizer: is missing"


# Many problems; stores that fail.


def test_problems_are_counted_past_the_first_hundred(tmp_path: Path) -> None:
    make(tmp_path)
    for number in range(150):
        (tmp_path / f"foreign-{number:03d}.bin").touch()
    report = verify(STORAGE, str(tmp_path))
    assert (len(report.problems), report.problem_count, report.ok) == (100, 150, False)
    assert report.problems[99].startswith("foreign-099.bin: ")


class Broken:
    """A file that gives a few bytes at a time, as sockets do, and may fail after the first."""

    def __init__(self, file: BinaryIO, fails: bool) -> None:
        self.file = file
        self.fails = fails

    def read(self, count: int) -> bytes:
        if self.fails and self.file.tell():
            raise OSError(5, "Input/output error")
        return self.file.read(min(count, 3))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class BrokenStorage(Storage, frozen=True):
    failing: str = "none"

    def open_with_stat(self, url: str) -> Any:
        stored, file = super().open_with_stat(url)
        if not url.endswith((".bin", ".idx")):
            return stored, file
        return stored, Broken(file, url.endswith(self.failing))


def test_a_store_that_fails_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    make(tmp_path)
    report = verify(BrokenStorage(failing=f"{FIRST}.bin"), str(tmp_path))
    (problem,) = report.problems
    assert f"{FIRST}.bin: cannot be read at byte 0: " in problem
    assert problem.endswith("Input/output error")
    assert report.shards == 1


def test_short_reads(tmp_path: Path) -> None:
    make(tmp_path, vocab_size=70_000)
    assert verify(BrokenStorage(), str(tmp_path)).ok


# Comparing with what should be there; more in test_megatron_properties.py.

DOCUMENTS = [[1, 2, 3], [], [4] * 10, [5]]


def difference(folder: Path, expected: list[list[int]]) -> str | None:
    with MegatronWriter(STORAGE, str(folder), FIRST, 10) as writer:
        writer.write_documents(*pack(DOCUMENTS))
    with MegatronStream.open(STORAGE, str(folder), FIRST) as reader:
        return compare_split(reader, (pack([document]) for document in expected))


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        (DOCUMENTS, None),
        ([[1, 2, 3], [], [4] * 9 + [5], [5]], "document 2, token 9: the id is 4; expected 5"),
        ([[0, 2]], "document 0, token 0: the id is 1; expected 0"),
        ([[1, 2]], "document 0 has 3 tokens; expected 2 (the first 2 are the same)"),
        ([[1, 2, 3, 4]], "document 0 has 3 tokens; expected 4 (the first 3 are the same)"),
        ([[1, 2, 3], [4]], "document 1 has 0 tokens; expected 1 (the first 0 are the same)"),
        ([*DOCUMENTS, []], "document 4 is missing: the shard ends after 4 documents"),
        (DOCUMENTS[:3], "unexpected extra document 3: the shard has 4; expected 3"),
        ([], "unexpected extra document 0: the shard has 4; expected 0"),
    ],
)
def test_the_first_difference(
    tmp_path: Path, expected: list[list[int]], message: str | None
) -> None:
    assert difference(tmp_path, expected) == message


def test_comparing_stops_at_the_first_difference(tmp_path: Path) -> None:
    def endless() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        while True:
            yield pack([[1, 2, 3]])

    difference(tmp_path, DOCUMENTS)
    with MegatronStream.open(STORAGE, str(tmp_path), FIRST) as reader:
        assert compare_split(reader, endless()) == (
            "document 1 has 0 tokens; expected 3 (the first 0 are the same)"
        )


def test_comparing_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "_TOKENS", 3)
    documents = [[1, 2], [3] * 8, [4]]
    with MegatronWriter(STORAGE, str(tmp_path), FIRST, 10) as writer:
        writer.write_documents(*pack(documents))
    with MegatronStream.open(STORAGE, str(tmp_path), FIRST) as reader:
        assert compare_split(reader, [pack(documents)]) is None
        assert compare_split(reader, [pack([[1, 2], [3] * 7 + [9], [4]])]) == (
            "document 1, token 7: the id is 3; expected 9"
        )


def test_comparing_a_shard_that_breaks(tmp_path: Path) -> None:
    with MegatronWriter(STORAGE, str(tmp_path), FIRST, 10) as writer:
        writer.write_documents(*pack([[1] * 100_000]))
    with MegatronStream.open(STORAGE, str(tmp_path), FIRST) as reader:
        (tmp_path / f"{FIRST}.bin").write_bytes(b"\1\0")
        with pytest.raises(DataError, match=r"\.bin: ends at byte 2"):
            compare_split(reader, [pack([[1] * 100_000])])
