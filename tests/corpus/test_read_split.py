"""Reading: compression and bundling change nothing, and every bad record has a place."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pytest
import zstandard
from corpus_reading import STORAGE, Found, read, read_file
from msgspec.structs import replace

from bpe_beam.corpus import batches
from bpe_beam.corpus import read_split as reading
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, StoredFile

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["x.txt", "x.jsonl"])
def test_compression_changes_nothing(tmp_path: Path, name: str) -> None:
    lines = [f'{{"id": {i}, "text": "doc {i} é"}}'.encode() for i in range(5000)]
    lines[1234] = b"\xff\xfe"
    lines[4000] = b""
    content = b"\n".join(lines)
    half = len(content) // 2 + 3
    frames = zstandard.ZstdCompressor(write_checksum=True)
    skippable = b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"
    packed = {
        "": content,
        ".gz": gzip.compress(content),
        ".members.gz": b"".join(
            gzip.compress(part) for part in (b"", content[:half], content[half:])
        ),
        ".padded.gz": gzip.compress(content) + bytes(1000),
        ".many.gz": b"".join(gzip.compress(line + b"\n") for line in lines[:-1])
        + gzip.compress(lines[-1]),
        ".zst": zstandard.compress(content),
        ".frames.zst": skippable
        + frames.compress(content[:half])
        + skippable
        + frames.compress(b"")
        + frames.compress(content[half:])
        + skippable,
        ".many.zst": b"".join(frames.compress(line + b"\n") for line in lines[:-1])
        + frames.compress(lines[-1]),
        ".unsized.zst": b"".join(
            (lambda c: (c.compress(content), c.flush()))(zstandard.ZstdCompressor().compressobj())
        ),
    }
    results = {}
    for ending, data in packed.items():
        path = tmp_path / (name + ending)
        path.write_bytes(data)
        for batch in (1000, 1 << 20):
            found = read_file(
                path, batch=batch, input_format=name.partition(".")[2].replace("txt", "text")
            )
            results[ending, batch] = (
                found.documents,
                [(r.offset, r.line, r.reason, r.data) for r in found.rejects],
            )
    assert len(results["", 1000][0]) in (4998, 4999)
    assert len(results["", 1000][1]) == 1
    for key, result in results.items():
        assert result == results["", 1000], key


def test_many_files_make_few_batches_with_sources_and_places(tmp_path: Path) -> None:
    for i in range(300):
        (tmp_path / f"{i:03}.txt").write_bytes(b"one\ntwo\n" if i % 2 else b"")
    plan = make_plan(STORAGE, [f"{tmp_path}/*"])
    found = read(plan, plan.splits, ReadSettings(), 1 << 20)
    (batch,) = found.batches
    assert batch.column("source").to_pylist() == [
        f"{i:03}.txt" for i in range(1, 300, 2) for _ in range(2)
    ]
    assert batch.column("place").to_pylist() == [
        i << 44 | offset for i in range(1, 300, 2) for offset in (0, 4)
    ]
    assert len(read(plan, plan.splits, ReadSettings(), 1000).batches) > 5


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"\n" * 300_000)
    for batch_bytes in (1 << 20, 8 << 20):
        found = read_file(path, batch=batch_bytes)
        assert found.texts == [""] * 300_000
        assert max(len(batch) for batch in found.batches) <= 65_536
    path.write_bytes(b"some words in a line\n" * 100_000)
    assert max(batch.nbytes for batch in read_file(path, batch=100_000).batches) < 400_000


def test_a_file_that_changed_is_an_error(tmp_path: Path) -> None:
    for name, content in (
        ("x.txt", b"one\ntwo\nthree\n"),
        ("x.gz", gzip.compress(b"one\n")),
        ("x.zst", zstandard.compress(b"one\n")),
    ):
        path = tmp_path / name
        for changed in (content[:-3], content + b"x"):
            path.write_bytes(content)
            plan = make_plan(STORAGE, [str(path)])
            # as where a store tells no tag
            files = tuple(msgspec.structs.replace(file, tag="") for file in plan.files)
            untold = replace(plan, files=files)
            path.write_bytes(changed)
            said = rf"{name} had {len(content)} bytes .*"
            with pytest.raises(DataError, match=said + f"has {len(changed)} now"):
                read(plan, plan.splits, ReadSettings(), 1 << 20)
            with pytest.raises(DataError, match=said + f"has {len(changed)} now"):
                read(untold, plan.splits, ReadSettings(), 1 << 20)
        path.unlink()
        with pytest.raises(DataError, match=rf"cannot read .*{name}: No such file"):
            read(plan, plan.splits, ReadSettings(), 1 << 20)


class Stale(Storage, frozen=True, kw_only=True):
    """Storage that reports the sizes of before a change."""

    before: int

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        return StoredFile(url, self.before), super().open_with_stat(url)[1]


@pytest.mark.parametrize(
    ("content", "change"),
    [(b"one\ntwo\nthr", "reading ended at byte 11"), (b"one\ntwo\nthree\n\n", "it is longer now")],
)
def test_a_file_that_changes_after_a_look_at_its_size(
    tmp_path: Path, content: bytes, change: str
) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"one\ntwo\nthree\n")
    plan = make_plan(STORAGE, [str(path)])
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"had 14 bytes when the job was planned, and {change}"):
        list(read_split(Stale(before=14), plan, plan.splits[0], ReadSettings(), print))


def test_a_compressed_file_that_grows_after_a_look_at_its_size(tmp_path: Path) -> None:
    path = tmp_path / "x.txt.lz4"
    with pa.CompressedOutputStream(str(path), "lz4") as stream:
        stream.write(b"one\ntwo\n")
    plan = make_plan(STORAGE, [str(path)])
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(DataError, match=f"had {size} bytes .*, and it is longer now"):
        list(read_split(Stale(before=size), plan, plan.splits[0], ReadSettings(), print))


def test_files_on_another_file_system() -> None:
    STORAGE.write_bytes("memory://readers/a.txt", b"one\n\ntwo" * 1000)
    plan = make_plan(STORAGE, ["memory://readers/*"], range_bytes=500)
    assert len(plan.splits) > 10
    found = read(plan, plan.splits, ReadSettings(document_separator="\n\n"), 1 << 20)
    assert found.texts == ["one", *["twoone"] * 999, "two"]


def test_threads_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(b'{"text": "a %d"}\n{\n' % i for i in range(20_000)))
    plan = make_plan(STORAGE, [str(path)], range_bytes=50_000)
    alone = read(plan, plan.splits, ReadSettings(), 10_000)
    results: list[Found] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(read(plan, plan.splits, ReadSettings(), 10_000))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found.documents for found in results] == [alone.documents] * 3
    assert [found.bad for found in results] == [alone.bad] * 3


def test_settings_are_checked() -> None:
    for options, message in (
        ({"input_format": "xml"}, "input_format must be one of auto, text, .* got 'xml'"),
        (
            {"document_separator": ""},
            "document_separator must be a text of at least one char.*, got ''",
        ),
        ({"text_field": ""}, "text_field must be a text of at least one character"),
        ({"id_field": ""}, "id_field must be a text of at least one character"),
        ({"id_field": "\ud800"}, "id_field must be valid UTF-8"),
        ({"document_separator": "\ud800"}, "document_separator must be valid UTF-8"),
        ({"text_field": None}, "text_field must be a text"),
        ({"sources": (("a", ""),)}, "sources must be a text"),
        ({"sources": (("a", "*"),), "source_field": "x"}, "source_field and sources exclude"),
    ):
        with pytest.raises(UsageError, match=message):
            ReadSettings(**options)


def test_the_plan_knows_the_format_not_the_settings(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"text": "a"}\n')
    plan = Plan(
        str(tmp_path), (InputFile("x", 14, "jsonl", "none"),), (Split(0, (Slice(0, 0, 14),)),)
    )
    assert read(plan, plan.splits, ReadSettings(), 1000).texts == ["a"]


def test_batches_of_many_small_files_are_joined_before_they_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tmp_path / f"{number:02d}.txt").write_text(f"text {number}\n")
    plan = make_plan(STORAGE, [str(tmp_path)])
    most: list[int] = []

    def join(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        most.append(len(parts))
        return join_batches(parts)

    join_batches = batches.join
    monkeypatch.setattr(reading, "join", join)
    monkeypatch.setattr(reading, "_MAX_PENDING", 7)
    (batch,) = read_split(STORAGE, plan, plan.splits[0], ReadSettings(), print)
    assert batch.column("text").to_pylist() == [f"text {number}" for number in range(50)]
    assert max(most) == 7
