"""The share of a split that is read is reported while it is read, and adds up to the split."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

TEXTS = [f"document {number} " + "some words of text " * 50 for number in range(6000)]
LINES = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
TABLE = pa.table({"text": TEXTS, "unread": TEXTS})


def write_arrow(path: Path) -> None:
    with pa.ipc.new_file(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE, 500)


WRITE: dict[str, Callable[[Path], object]] = {
    "a.txt": lambda path: path.write_text("\n".join(TEXTS)),
    "a.jsonl": lambda path: path.write_bytes(LINES),
    "a.jsonl.gz": lambda path: path.write_bytes(gzip.compress(LINES, 1)),
    "a.parquet": lambda path: pq.write_table(TABLE, path, compression="none", row_group_size=500),
    "a.arrow": write_arrow,
}


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize("range_bytes", [None, 1_000_000])
def test_reads_add_up_to_each_split(name: str, range_bytes: int | None, tmp_path: Path) -> None:
    WRITE[name](tmp_path / name)
    storage = Storage()
    plan = make_plan(storage, [str(tmp_path / name)], range_bytes=range_bytes)
    for split in plan.splits:
        reads: list[int] = []
        at_batches = [
            sum(reads)
            for _ in read_split(storage, plan, split, ReadSettings(), print, on_read=reads.append)
        ]
        assert sum(reads) == split.size
        assert min(reads) > 0
        # With several batches to come, the first reports neither nothing nor all.
        if len(at_batches) > 2 and name != "a.jsonl.gz":
            assert 0 < at_batches[0] < split.size
