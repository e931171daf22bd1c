"""Every format is read in the same memory however long a file is."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_memory import measure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the peak"),
]

__all__ = ["pytestmark"]

TEXT = "a text that is rather long, and\nlonger still, for it has two lines; " * 10
BLOCK = 1000
TAR_MEMBER = 20
"""Texts in a member: reading one takes a tenth of a millisecond."""


def tables(blocks: int) -> Iterator[pa.Table]:
    for number in range(blocks):
        yield pa.table(
            {
                "id": [f"{number}.{i}" for i in range(BLOCK)],
                "text": [f"{number} {i} {TEXT}" for i in range(BLOCK)],
                "other": ["not to be read " * 50] * BLOCK,
            }
        )


def write(path: Path, blocks: int) -> None:
    kind = path.suffix
    if kind == ".parquet":
        schema = next(tables(1)).schema
        with pq.ParquetWriter(path, schema) as writer:
            for each in tables(blocks):
                writer.write_table(each)
        return
    if kind == ".arrow":
        with pa.ipc.new_file(path, next(tables(1)).schema) as ipc_writer:
            for each in tables(blocks):
                ipc_writer.write_table(each)
        return
    if kind == ".tar":
        text = (TEXT * TAR_MEMBER).encode()
        info = tarfile.TarInfo("a member")
        info.size = len(text)
        member = info.tobuf() + text.ljust(-(-len(text) // 512) * 512, b"\0")
        with path.open("wb") as stream:
            for _ in range(blocks):
                stream.write(member * (BLOCK // TAR_MEMBER))
            stream.write(bytes(1024))
        return
    row = {
        ".csv": b'1,"' + TEXT.encode() + b'"\n',
        ".warc": b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
        % (len(TEXT), TEXT.encode()),
    }[kind]
    with path.open("wb") as stream:
        stream.write(b"id,text\n" if kind == ".csv" else b"")
        for _ in range(blocks):
            stream.write(row * BLOCK)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "warc", "tar"])
def test_a_long_file(tmp_path: Path, kind: str) -> None:
    small, large = tmp_path / f"small.{kind}", tmp_path / f"large.{kind}"
    write(small, 1)
    write(large, 150)
    documents, growth = measure(small, large, "\n")
    assert documents == 150 * BLOCK // (TAR_MEMBER if kind == "tar" else 1)
    assert growth < 80
