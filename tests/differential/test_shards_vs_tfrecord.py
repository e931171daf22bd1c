"""Our TFRecord shards in the hands of package tfrecord, which must be installed."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from bpe_beam.shards.formats.tfrecord import FORMAT
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

NAME = "shard-00000-of-00001"
DOCUMENTS = [[], [1, 300, 70_000], [], [2**31 - 1], list(range(200)), []]


def write(folder: Path) -> Path:
    with FORMAT.writer(Storage(), str(folder), NAME, 2**31) as writer:
        ids = np.array([token for document in DOCUMENTS for token in document], np.uint32)
        writer.write_documents(ids, np.cumsum([0, *map(len, DOCUMENTS)]))
    return folder / f"{NAME}.tfrecord"


def test_tfrecord_reads_every_document(tmp_path: Path) -> None:
    modules = [importlib.import_module(f"tfrecord.{name}") for name in ("example_pb2", "reader")]
    example_pb2, reader = modules

    records = reader.tfrecord_iterator(str(write(tmp_path)))
    found = []
    for record in records:
        example = example_pb2.Example()
        example.ParseFromString(bytes(record))
        found.append(list(example.features.feature["input_ids"].int64_list.value))
    assert found == DOCUMENTS


def test_tfrecord_writes_the_same_bytes(tmp_path: Path) -> None:
    theirs = importlib.import_module("tfrecord.writer").TFRecordWriter(str(tmp_path / "theirs"))
    for document in DOCUMENTS:
        theirs.write({"input_ids": (document, "int")})
    theirs.close()
    assert (tmp_path / "theirs").read_bytes() == write(tmp_path).read_bytes()
