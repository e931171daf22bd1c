"""Compressed files cut anywhere: each record once, or a failed proof and a reading as one."""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from bpe_beam.corpus.boundaries import files_with_gaps, speculative_part, without_units
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.corpus.streams.stored import Stored
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()
RANDOM = random.Random(11)


@pytest.fixture(autouse=True)
def the_same_in_any_order() -> None:
    RANDOM.seed(11)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(data)


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # the time of day may hold a newline


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gz, "zst": zstd}


def lines(count: int, longest: int) -> bytes:
    made = [
        bytes(RANDOM.choices(b"abc \r", k=RANDOM.randrange(longest))) + b"\n" for _ in range(count)
    ]
    return b"".join(made)


def packed(data: bytes, kind: str, member: int) -> bytes:
    """The data in members of about so many bytes, cut wherever that is."""
    pieces, at = [], 0
    while at < len(data):
        size = RANDOM.randrange(1, 2 * member)
        pieces.append(data[at : at + size])
        at += size
    return b"".join(map(PACKERS[kind], pieces))


def read(
    plan: Plan, splits: Iterable[Split], **options: Any
) -> tuple[list[str], list[Reject], list[Boundaries]]:
    texts: list[str] = []
    rejects: list[Reject] = []
    seen: list[Boundaries] = []
    settings = ReadSettings(**options)
    for split in splits:
        for batch in read_split(
            STORAGE, plan, split, settings, rejects.append, seen.append, batch_bytes=500
        ):
            batch.validate(full=True)
            texts += batch.column("text").to_pylist()
    return texts, rejects, seen


def cut(plan: Plan, places: Sequence[int]) -> Plan:
    """The plan's one file cut at these places."""
    bounds = [0, *sorted(places), plan.size]
    pieces = [Slice(0, *each) for each in itertools.pairwise(bounds) if each[0] < each[1]]
    splits = tuple(Split(i, (piece,)) for i, piece in enumerate(pieces))
    return Plan(plan.root, plan.files, splits, range_bytes=1)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("member", [3, 40, 2000])
@pytest.mark.parametrize("end", [b"", b"no newline"])
def test_any_cut_gives_the_same_records(tmp_path: Path, kind: str, member: int, end: bytes) -> None:
    data = lines(150, 60) + end
    path = tmp_path / f"a.txt.{kind}"
    path.write_bytes(packed(data, kind, member))
    plan = make_plan(STORAGE, [str(path)])
    whole, _, none = read(plan, plan.splits)
    assert whole == [
        line.removesuffix(b"\r").decode() for line in data.removesuffix(b"\n").split(b"\n")
    ]
    assert none == []
    for count in (1, 2, 7, 40):
        places = RANDOM.sample(range(1, plan.size), min(count, plan.size - 1))
        pieces = cut(plan, places)
        texts, rejects, seen = read(pieces, pieces.splits)
        assert not files_with_gaps(pieces, seen)
        assert (texts, rejects) == (whole, [])
        assert len(seen) == len(pieces.splits)


@pytest.mark.parametrize("kind", PACKERS)
def test_every_place_of_a_small_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.jsonl.{kind}"
    rows = [b'{"text": "%d", "id": "i%d"}\n' % (i, i) for i in range(12)]
    path.write_bytes(b"".join(PACKERS[kind](row) for row in rows))
    plan = make_plan(STORAGE, [str(path)])
    for place in range(1, plan.size):
        pieces = cut(plan, [place])
        texts, rejects, seen = read(pieces, pieces.splits)
        assert texts == [str(i) for i in range(12)]
        assert (rejects, files_with_gaps(pieces, seen)) == ([], frozenset())


def test_ids_and_places_behind_a_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    first = gzip.compress(b"one\ntwo\n", mtime=0)
    path.write_bytes(first + gzip.compress(b"three\nfour\nfive\n", mtime=0))
    plan = cut(make_plan(STORAGE, [str(path)]), [5])
    batches: list[pa.RecordBatch] = []
    rejects: list[Reject] = []
    for split in plan.splits:
        batches += read_split(STORAGE, plan, split, ReadSettings(), rejects.append)
    table = pa.Table.from_batches(batches)
    # The record at the very beginning of a member is read by the slice before.
    assert table["id"].to_pylist() == [
        "a.txt.gz:0",
        "a.txt.gz:4",
        "a.txt.gz:8",
        f"a.txt.gz:{len(first)}+6",
        f"a.txt.gz:{len(first)}+11",
    ]
    assert table["place"].to_pylist() == [0, 4, 8, None, None]


def test_a_reject_after_a_cut_tells_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    first = gzip.compress(b"one\n", mtime=0)
    path.write_bytes(first + gzip.compress(b"two\n\xff\n", mtime=0))
    plan = cut(make_plan(STORAGE, [str(path)]), [5])
    _, (reject,), seen = read(plan, plan.splits)
    assert not files_with_gaps(plan, seen)
    assert (reject.offset, reject.unit, reject.line) == (4, len(first), None)
    assert reject.position == f"byte 4 of the content from stored byte {len(first):,} on"
    assert reject.to_json()["unit"] == len(first)


def as_the_job_reads(plan: Plan) -> tuple[list[str], frozenset[int]]:
    """Cut first, then again as one where the slices do not meet."""
    texts, _, seen = read(plan, plan.splits)
    wrong = files_with_gaps(plan, seen)
    if wrong:
        again = plan.reading_as_one(wrong)
        assert len(again.splits) == len(plan.splits)
        texts, _, seen = read(again, again.splits)
        assert not files_with_gaps(again, seen)
    return texts, wrong


@pytest.mark.parametrize("kind", PACKERS)
def test_what_only_looks_like_a_member_is_found_out(tmp_path: Path, kind: str) -> None:
    # Stored without compression, the inner file's first bytes are there unchanged.
    inner = next(
        packed for i in range(1000) if b"\n" not in (packed := PACKERS[kind](b"inner %d" % i))
    )
    raw = b"before\n" + 2 * inner + b"\nafter\n"
    if kind == "gz":
        packer = zlib.compressobj(0, wbits=31)
        data = packer.compress(raw) + packer.flush()
    else:
        data = _uncompressed_zstd_frame(raw)
    path = tmp_path / f"a.txt.{kind}"
    path.write_bytes(data + PACKERS[kind](b"last\n"))
    plan = make_plan(STORAGE, [str(path)], input_format="text")
    whole = read(plan, plan.splits)[0]
    assert whole[0] == "before"
    assert whole[-2:] == ["after", "last"]
    found = 0
    for place in range(1, 60):
        texts, wrong = as_the_job_reads(cut(plan, [place]))
        assert texts == whole
        found += len(wrong)
    assert found  # some cut did find the inner one


def _uncompressed_zstd_frame(data: bytes) -> bytes:
    """A frame whose one block is raw."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0b10100000]) + len(data).to_bytes(4, "little")
    return header + (1 | len(data) << 3).to_bytes(3, "little") + data


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("harm", ["flip", "cut off", "garbage behind", "garbage between"])
def test_a_broken_file_is_read_as_one(tmp_path: Path, kind: str, harm: str) -> None:
    members = [PACKERS[kind](lines(60, 50)) for _ in range(8)]
    if harm == "flip":
        members[4] = members[4][:40] + bytes([members[4][40] ^ 0x55]) + members[4][41:]
    elif harm == "cut off":
        members[7] = members[7][:-20]
    elif harm == "garbage behind":
        members.append(b"garbage that is no member")
    else:
        members.insert(4, b"garbage that is no member")
    path = tmp_path / f"a.txt.{kind}"
    path.write_bytes(b"".join(members))
    plan = make_plan(STORAGE, [str(path)])
    whole, rejects, _ = read(plan, plan.splits)
    assert [reject.reason for reject in rejects] == ["broken compressed stream"]
    for count in (1, 3, 10):
        pieces = cut(plan, RANDOM.sample(range(1, plan.size), count))
        texts, wrong = as_the_job_reads(pieces)
        assert texts == whole
        assert wrong == {0}


def test_files_of_one_member_are_named(tmp_path: Path) -> None:
    one, many = tmp_path / "one.txt.gz", tmp_path / "many.txt.gz"
    one.write_bytes(gzip.compress(lines(300, 60)))
    many.write_bytes(packed(lines(300, 60), "gz", 900))
    plan = make_plan(STORAGE, [str(one), str(many)], range_bytes=1000)
    _, _, seen = read(plan, plan.splits)
    assert not files_with_gaps(plan, seen)
    assert without_units(plan, seen) == ["one.txt.gz"]


def test_what_cannot_be_cut_is_not(tmp_path: Path) -> None:
    data = lines(300, 60)
    for name, content in (
        ("a.txt.bz2", bz2.compress(data)),
        ("a.txt.xz", lzma.compress(data)),
        ("a.tar", data),
        ("a.csv.gz", gzip.compress(data)),
    ):
        (tmp_path / name).write_bytes(content)
        plan = make_plan(STORAGE, [str(tmp_path / name)], range_bytes=100)
        assert [split.slices for split in plan.splits] == [(Slice(0, 0, plan.size),)], name
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data))
    for options in ({"document_separator": "\n\n"}, {"cut_compressed": False}):
        plan = make_plan(STORAGE, [str(tmp_path / "a.txt.gz")], range_bytes=100, **options)
        assert len(plan.splits) == 1


def test_the_proof_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(packed(lines(100, 60), "gz", 200))
    (tmp_path / "b.txt").write_bytes(lines(100, 60))
    plan = make_plan(STORAGE, [str(tmp_path / "*")], range_bytes=600)
    _, _, seen = read(plan, plan.splits)
    assert {edge.file for edge in seen} == {0}
    assert not files_with_gaps(plan, seen)
    assert not files_with_gaps(plan, reversed(seen))
    middle = next(i for i, edge in enumerate(seen) if i and edge.begins and edge.ends)
    for wrong in (
        None,
        seen[middle]._replace(broken=True),
        seen[middle]._replace(begins=None),
        seen[middle]._replace(ends=None),
        seen[middle]._replace(begins=seen[middle].begins._replace(offset=0)),
    ):
        others = [edge for edge in seen if edge is not seen[middle]]
        assert files_with_gaps(plan, [*others, *([wrong] if wrong else [])]) == {0}
    split = next(
        split.index for split in plan.splits if split.slices[0].start == seen[middle].start
    )
    assert not files_with_gaps(
        plan, [edge for edge in seen if edge is not seen[middle]], proven=[split]
    )
    part = speculative_part(plan)
    assert [piece for split in part.splits for piece in split.slices] == [
        Slice(edge.file, edge.start, edge.end) for edge in seen
    ]
    assert not files_with_gaps(part, seen)


@pytest.mark.parametrize("kind", ["gz", "gz, endless name", "zst"])
def test_data_full_of_beginnings_is_given_up(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes a file so is not worth the time: work is bounded, and it is read as one."""
    empty = zstd(b"")
    skipped = b"\x50\x2a\x4d\x18\xff\xff\xff\xff"
    unit = {"gz": b"\x1f\x8b\x08\x00\xff", "zst": empty + skipped}.get(kind)
    unit = unit or b"\x1f\x8b\x08\x08aaaa\xff\xff"
    path = tmp_path / f"a.txt.{kind[:3].strip(',')}"
    path.write_bytes(PACKERS[kind[:3].strip(",")](b"one\n") + unit * 60_000)
    plan = make_plan(STORAGE, [str(path)])
    read_bytes = 0
    real = Stored.read

    def counting(self: Stored, count: int) -> bytes:
        nonlocal read_bytes
        read_bytes += len(data := real(self, count))
        return data

    monkeypatch.setattr(Stored, "read", counting)
    texts, wrong = as_the_job_reads(cut(plan, [plan.size // 2]))
    assert texts == ["one"]
    assert wrong == {0}
    assert path.stat().st_size < read_bytes < 200 * 600_000


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_streams_one_after_another(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    parts = [lines(300, 60) for _ in range(3)]
    padding = b"\0" * 8 if pack is lzma.compress else b""
    whole = padding.join(map(pack, parts)) + padding
    path = tmp_path / "a.txt"
    path.write_bytes(whole)
    plan = make_plan(STORAGE, [str(path)])
    texts, rejects, _ = read(plan, plan.splits)
    assert rejects == []
    assert len(texts) == 900
    for broken, reason in (
        (whole[:-30], "ends too soon"),
        (whole + b"garbage that is long enough", "is corrupt"),
        (whole[:200] + b"\x55" * 20 + whole[220:], "is corrupt"),
    ):
        path.write_bytes(broken)
        plan = make_plan(STORAGE, [str(path)])
        found, (reject,), _ = read(plan, plan.splits)
        assert reject.reason == "broken compressed stream"
        assert reason in reject.detail
        if b"\x55" * 20 not in broken:  # of a damaged block what comes may be wrong
            assert found == texts[: len(found)]
