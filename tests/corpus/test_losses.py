"""Losses: what is lost of a damaged file, in stored bytes, whatever its format."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compressors import COMPRESSORS, LINES
from corpus_reading import Found, read_file

from bpe_beam.corpus.rejects import (
    KEPT_BYTES,
    FileLoss,
    Reject,
    RejectReason,
    RejectWriter,
    add_losses,
    lost_records,
)
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


def lost(found: Found) -> list[tuple[int, int | None]]:
    """The stored bytes and the records of each loss."""
    return [
        (reject.lost_bytes, reject.lost_records)
        for reject in found.rejects
        if reject.lost_bytes is not None
    ]


# LZ4 has no checksums here.
@pytest.mark.parametrize("ending", sorted(COMPRESSORS.keys() - {"lz4"}))
def test_a_damaged_stream_is_lost_from_where_nothing_can_be_relied_on(
    tmp_path: Path, ending: str
) -> None:
    data = bytearray(COMPRESSORS[ending](LINES))
    path = tmp_path / f"a.jsonl.{ending}"
    for at in (len(data) // 4, len(data) - len(data) // 8):
        path.write_bytes(data[:at] + bytes(60) + data[at + 60 :])
        found = read_file(path)
        ((size, records),) = lost(found)
        assert size >= (len(data) - at) * 0.9
        assert size <= len(data)
        assert records is None


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_a_stream_that_ends_too_soon_is_a_loss(tmp_path: Path, ending: str) -> None:
    data = COMPRESSORS[ending](LINES)
    path = tmp_path / f"a.jsonl.{ending}"
    for size in (len(data) - 1, len(data) // 2, 20):
        path.write_bytes(data[:size])
        ((lost_bytes, _),) = lost(read_file(path))
        assert 1 <= lost_bytes <= size


def test_a_wrong_checksum_loses_all_that_it_is_of(tmp_path: Path) -> None:
    member = gzip.compress(LINES)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(member + member[:-8] + bytes(8))
    assert lost(read_file(path)) == [(len(member), None)]


def test_row_groups_are_lost_with_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"text {i} {i * i * 7919}" for i in range(1000)]})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="zstd")
    group = pq.read_metadata(path).row_group(3).column(0)
    data = bytearray(path.read_bytes())
    for at in range(group.data_page_offset, group.data_page_offset + group.total_compressed_size):
        data[at] = 0xFF
    path.write_bytes(data)
    found = read_file(path)
    assert lost(found) == [(len(data) // 10, 100)]
    assert len(found.documents) == 900
    path.write_bytes(data[:-1])
    assert lost(read_file(path)) == [(len(data) - 1, None)]


@pytest.mark.parametrize("kind", ["arrow", "arrows"])
def test_record_batches_are_lost(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    batch = pa.record_batch({"text": ["some text"] * 100})
    make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with make(path, batch.schema) as writer:
        for _ in range(10):
            writer.write_batch(batch)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10])
    found = read_file(path, input_format="arrow")
    size = path.stat().st_size
    ((lost_bytes, _),) = lost(found)
    if kind == "arrow":  # without a footer nothing can be found
        assert lost_bytes == size
    else:
        assert 0 < lost_bytes < size // 5
        assert len(found.documents) == 500


@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_the_rest_of_an_archive_is_lost(tmp_path: Path, ending: str) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for i in range(20):
            member = tarfile.TarInfo(f"{i}.txt")
            member.size = 5000
            tar.addfile(member, io.BytesIO(b"%05d" % (i * 7919) * 1000))
    data = archive.getvalue()
    data = data[:56_320] + b"\1" * 512 + data[56_832:]  # the eleventh header
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    found = read_file(path)
    assert len(found.documents) == 10
    ((lost_bytes, _),) = lost(found)
    share = lost_bytes / path.stat().st_size
    assert 0.3 < share < 0.6


def test_a_web_archive_that_breaks_off_is_a_loss(tmp_path: Path) -> None:
    block = b"some text\n" * 100
    record = b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 1000\r\n\r\n%s\r\n\r\n" % block
    path = tmp_path / "a.warc"
    path.write_bytes(record * 3 + record[:500])
    found = read_file(path)
    assert len(found.documents) == 3
    assert lost(found) == [(500, None)]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record * 3 + record[:500]))
    ((lost_bytes, _),) = lost(read_file(path))
    assert 1 <= lost_bytes < path.stat().st_size // 2


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.warc"])
def test_a_file_of_which_nothing_can_be_read_is_a_loss(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    head = b"text,id\n" if name == "a.csv" else b""
    path.write_bytes(head + bytes(200_000))
    assert lost(read_file(path)) == [(200_000 + len(head) * (name == "a.csv"), None)]


@pytest.mark.parametrize("footer", [0, 1, 40, 1 << 31])
def test_a_footer_of_parquet_with_a_wrong_length_is_a_loss(tmp_path: Path, footer: int) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + b"x" * 40 + footer.to_bytes(4, "little") + b"PAR1")
    assert lost(read_file(path)) == [(52, None)]


def test_records_that_can_be_told_are_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"body": "%s"}\n' % (b"x" * 100_000))
    (reject,) = read_file(path).rejects
    assert (reject.reason, reject.lost_bytes) == ("field missing", None)
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff" + b"x" * 100_000)
    (reject,) = read_file(path, document_separator="file").rejects
    assert (reject.reason, reject.lost_bytes) == ("invalid UTF-8", None)


def test_losses_are_added_up_by_file() -> None:
    rows = [FileLoss("b", 5, 1, None), FileLoss("a", 1, 1, 7), FileLoss("a", 2, 1, 3)]
    added = add_losses([*rows, FileLoss("b", 1, 1, 4)])
    assert added == (FileLoss("a", 3, 2, 10), FileLoss("b", 6, 2, None))
    assert (lost_records(added), lost_records(added[:1])) == (None, 10)
    assert msgspec.convert(msgspec.to_builtins(added), tuple[FileLoss, ...]) == added


def test_rejects_do_not_copy_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "rejects.jsonl"
    record = b"x" * 1000
    with RejectWriter(Storage(), str(path)) as writer:
        for i in range(5000):
            writer.add(Reject.of("a", RejectReason.BROKEN_JSON, "", record, offset=i))
        writer.add(Reject.of("a", RejectReason.BROKEN_STREAM, "", offset=9, lost_bytes=3))
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(rows) == writer.total == 5001
    assert sum(bool(row["bytes"]) for row in rows) == KEPT_BYTES // 1000
    assert {row["bytes_total"] for row in rows[:5000]} == {1000}
    assert rows[-1]["lost_bytes"] == 3
    assert writer.losses == (FileLoss("a", 3, 1, None),)
