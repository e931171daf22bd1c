"""Compressed files that are broken: what was whole comes, and the loss is said."""

from __future__ import annotations

import gzip
import io
import os
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bpe_beam.corpus.file_types import compression_of
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.corpus.streams import BrokenStream, Source, decompress
from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()
RANDOM = random.Random(7)
LINES = [b"line %d %s" % (i, bytes(RANDOM.choices(b"abcdefghij", k=30))) for i in range(20_000)]
CONTENT = b"\n".join(LINES) + b"\n"
OFFSETS = [0]
for _line in LINES:
    OFFSETS.append(OFFSETS[-1] + len(_line) + 1)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS = {"gz": gzip.compress, "zst": zstd}


def opened(data: bytes) -> Source:
    stored = Stored(STORAGE, "memory://streams-test", len(data))
    source = decompress(stored, compression_of(data[:16]), len(data))
    assert source is not None
    return source


def drain(data: bytes, view_size: int = 100_000, path: Path | None = None) -> tuple[bytes, str]:
    """All that comes out, and why nothing more does."""
    STORAGE.write_bytes("memory://streams-test", data)
    source = opened(data)
    out = io.BytesIO()
    view = memoryview(bytearray(view_size))
    try:
        while count := source.readinto(view):
            out.write(view[:count])
    except BrokenStream as error:
        return out.getvalue(), str(error)
    finally:
        source.close()
    return out.getvalue(), ""


def read(path: Path, **options: Any) -> tuple[list[str], list[Reject]]:
    rejects: list[Reject] = []
    plan = make_plan(STORAGE, [str(path)])
    texts: list[str] = []
    for batch in read_split(STORAGE, plan, plan.splits[0], ReadSettings(**options), rejects.append):
        texts += batch.column("text").to_pylist()
    return texts, rejects


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("view_size", [1, 1000, 1 << 20])
def test_whole_streams(kind: str, view_size: int) -> None:
    content = CONTENT[: 20_000 if view_size == 1 else None]
    pack = PACKERS[kind]
    for data in (pack(content), pack(b""), pack(content[:10]) + pack(b"") + pack(content[10:])):
        out, why = drain(data, view_size)
        assert why == ""
        assert out in (content, b"")


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9, 0.99999])
def test_a_truncated_file(tmp_path: Path, kind: str, share: float) -> None:
    whole = PACKERS[kind](CONTENT)
    data = whole[: max(4, int(len(whole) * share))]
    out, why = drain(data)
    assert CONTENT.startswith(out)
    assert why.endswith(f" {len(data)} of {len(data)} stored bytes read")
    path = tmp_path / f"x.{kind}"
    path.write_bytes(data)
    texts, (reject,) = read(path)
    # all whole records, then one reject of the unfinished one
    count = out.count(b"\n")
    assert texts == [line.decode() for line in LINES[:count]]
    assert reject.reason == "broken compressed stream"
    assert reject.detail == why
    assert reject.offset == OFFSETS[count]
    assert reject.line == count + 1
    assert reject.data == out[OFFSETS[count] :]
    if kind == "gz":  # what the bytes before the end give, to the byte
        assert len(out) >= share * len(CONTENT) * 0.95 - 1000
    assert read(path, document_separator="file")[0] == []
    assert read(path, document_separator="file")[1][0].offset == 0


@pytest.mark.parametrize("kind", PACKERS)
def test_every_truncation_of_a_small_file(kind: str) -> None:
    whole = PACKERS[kind](b"one\ntwo\n") + PACKERS[kind](b"three\n")
    first = len(PACKERS[kind](b"one\ntwo\n"))
    for size in range(4, len(whole)):
        out, why = drain(whole[:size])
        assert b"one\ntwo\nthree\n".startswith(out)
        assert (why == "") == (size == first), size
        if size >= first:
            assert out.startswith(b"one\ntwo\n")


@pytest.mark.parametrize("kind", PACKERS)
def test_garbage_behind(kind: str) -> None:
    whole = PACKERS[kind](CONTENT)
    for garbage in (
        b"x",
        b"garbage that is longer than a header\n" * 1000,
        b"\x1f\x8b",
        b"\x28\xb5",
    ):
        out, why = drain(whole + garbage)
        assert out == CONTENT
        assert "stored bytes read" in why
    out, why = drain(whole + bytes(100_000))
    assert out == CONTENT
    assert (why == "") == (kind == "gz")  # zeros behind gzip are padding


@pytest.mark.parametrize("kind", PACKERS)
def test_a_wrong_checksum_comes_after_all_data(tmp_path: Path, kind: str) -> None:
    data = bytearray(PACKERS[kind](CONTENT))
    data[-5 if kind == "gz" else -1] ^= 1
    out, why = drain(bytes(data))
    assert out == CONTENT
    assert "corrupt" in why
    (tmp_path / "x").write_bytes(data)
    texts, (reject,) = read(tmp_path / "x")
    assert len(texts) == len(LINES)
    assert (reject.offset, reject.data, reject.bytes_total) == (len(CONTENT), b"", 0)


@pytest.mark.parametrize("kind", PACKERS)
def test_corruption_anywhere_is_never_silent(kind: str) -> None:
    content = CONTENT[:300_000]
    whole = PACKERS[kind](content)
    for seed in range(100):
        chance = random.Random(seed)
        data = bytearray(whole)
        at = chance.randrange(4, len(data))
        data[at] ^= 1 << chance.randrange(8)
        out, why = drain(bytes(data))
        if not why:
            # a flag or a name in the header that changes nothing
            assert out == content
            assert at < 32
        # the same, however it is asked for
        assert drain(bytes(data), 1 << 20) == (out, why)


def test_memory_is_bounded_for_bombs(tmp_path: Path) -> None:
    import tracemalloc

    zeros = bytes(50_000_000)

    def peak(data: bytes) -> int:
        tracemalloc.start()
        try:
            source = opened(data)
            view = memoryview(bytearray(100_000))
            total = 0
            while count := source.readinto(view):
                total += count
            assert total == len(zeros)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    for kind, pack in PACKERS.items():
        data = pack(zeros)
        STORAGE.write_bytes("memory://streams-test", data)
        # Other threads of the process are counted, too: they add to one look, not to each.
        assert any(peak(data) < 2_000_000 for _ in range(3)), kind


def test_a_window_beyond_reason_is_refused() -> None:
    block = b"\x29\x00\x00hello"  # raw, the last
    for log, read in ((31, b"hello"), (32, b"")):
        out, why = drain(b"\x28\xb5\x2f\xfd\x00" + bytes(((log - 10) << 3,)) + block)
        assert out == read
        assert bool(why) is (log == 32)
    assert "a window of over 2 GiB" in why


def test_skippable_frames_that_end_too_soon() -> None:
    data = b"\x50\x2a\x4d\x18" + (1000).to_bytes(4, "little") + b"x" * 10
    assert drain(data) == (b"", "the zstd stream ends too soon, 18 of 18 stored bytes read")


def test_a_file_that_changed_since_it_was_planned(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for change, said in (
        (b"one\ntwo\nthree\n", "had 8 bytes when the job was planned, and has 14 now"),
        (b"two\none\n", "its content has changed since"),
    ):
        path.write_bytes(b"one\ntwo\n")
        os.utime(path, ns=(1, 1))
        plan = make_plan(STORAGE, [str(path)])
        path.write_bytes(change)
        with pytest.raises(DataError, match=said):
            list(read_split(STORAGE, plan, plan.splits[0], ReadSettings(), print))
