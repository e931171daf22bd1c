"""A thousand random corruptions of a shard of each format: `verify` names the file of each."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
import pytest
from token_folders import finish_folder

from bpe_beam.errors import DataError
from bpe_beam.shards.dataset import open_dataset
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest, Rejects, TokenizerInfo
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, Totals
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import VERSION

STORAGE = Storage()
NAME = shard_name(0, 1)
CORRUPTIONS = 1_000
# Files of these two make those of nanogpt.
FORMATS = ("datatrove", "dolma", "flat", "llmc", "parquet", "arrow")
OF_RECORDS = ("mds", "litdata", "tfrecord", "arrayrecord")


def make(folder: Path, format_name: str) -> list[Path]:
    """Write a finished folder of one shard, of about 2 kB; return the shard's files."""
    rng = np.random.default_rng(13)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(0, 20, 50)))).astype(np.int64)
    ids = rng.integers(0, 300, offsets[-1], dtype=np.uint32)
    with shard_format(format_name).writer(STORAGE, str(folder), NAME, 300) as writer:
        writer.write_documents(ids, offsets)
    done = writer.result()
    shards = (Shard(NAME, 0, (), done.documents, 0, done.tokens, 0, done.files),)
    manifest = Manifest(
        format=format_name,
        version=VERSION,
        tokenizer=TokenizerInfo(hashlib.sha256(b"{}").hexdigest(), 300),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        plan={"fingerprint": "0" * 64, "files": [], "splits": [0]},
        shards=shards,
        totals=Totals.of(shards),
        rejects=Rejects({}, ()),
        tokenless=(),
    )
    finish_folder(STORAGE, str(folder), manifest)
    return [folder / file.name for file in done.files]


def corrupted(data: bytes, made: random.Random) -> bytes:
    """Return other bytes: of the same length, of another, or in another order."""
    at, end = sorted(made.sample(range(len(data) + 1), 2))
    return made.choice(
        (
            data[:at] + bytes([data[at] ^ 1 << made.randrange(8)]) + data[at + 1 :],
            data[:at] + made.randbytes(end - at) + data[end:],
            data[:at] + bytes(end - at) + data[end:],
            data[:at] + data[end:],
            data[:at] + made.randbytes(made.randint(1, 16)) + data[at:],
            data[:at] + data[at:end][::-1] + data[end:],
            data[end:] + data[:end],
            data[:at],
        )
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("format_name", "corruptions"),
    [
        *((name, CORRUPTIONS // 4) for name in FORMATS),
        *((name, CORRUPTIONS // 10) for name in OF_RECORDS),
        *(
            pytest.param(name, CORRUPTIONS, marks=pytest.mark.scheduled)
            for name in FORMATS + OF_RECORDS
        ),
    ],
)
def test_each_corruption_is_named(format_name: str, corruptions: int, tmp_path: Path) -> None:
    paths = make(tmp_path, format_name)
    whole = {path: path.read_bytes() for path in paths}
    assert verify(STORAGE, str(tmp_path)).ok
    made = random.Random(format_name)
    seen = 0
    while seen < corruptions:
        path = made.choice(paths)
        data = corrupted(whole[path], made)
        if data == whole[path]:
            continue
        seen += 1
        path.write_bytes(data)
        report = verify(STORAGE, str(tmp_path))
        assert any(path.name in problem for problem in report.problems), data
        read_or_refuse(format_name, tmp_path)
        if len(data) == len(whole[path]) and not seen % 4:
            read_in_any_order(tmp_path, 50)
        path.write_bytes(whole[path])
    assert verify(STORAGE, str(tmp_path)).ok


def read_or_refuse(format_name: str, folder: Path) -> None:
    """A shard that is accepted without hashes is read whole, and no other error is raised."""
    try:
        with shard_format(format_name).reader(STORAGE, str(folder), NAME) as reader:
            lengths = reader.lengths(0, len(reader))
            assert int(lengths.sum()) == reader.token_count
            assert reader.tokens(0, reader.token_count).size == reader.token_count
    except DataError as error:
        assert NAME in str(error)


def read_in_any_order(folder: Path, documents: int) -> None:
    """A data set gives each document or refuses it; it never fails otherwise."""
    try:
        data = open_dataset(STORAGE, str(folder))
        assert sum(ids.size for ids in data) <= data.token_count
        assert data[[*range(documents - 1, -1, -1)]]
    except DataError as error:
        assert NAME in str(error)
