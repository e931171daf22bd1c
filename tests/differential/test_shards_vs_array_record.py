"""Our ArrayRecord shards in the hands of packages array_record and grain, both installed."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_text import documents as made_texts
from tokenizers import Tokenizer as TheirTokenizer

import bpe_beam
from bpe_beam.cli.main import main
from bpe_beam.shards.formats.arrayrecord import FORMAT
from bpe_beam.storage import Storage

pytestmark = pytest.mark.trainers

NAME = "shard-00000-of-00001"
DOCUMENTS = [[], [1, 300, 70_000], [], [2**31 - 1], list(range(200)), []]
OPTIONS = "group_size:1,uncompressed"


def module() -> Any:
    return importlib.import_module("array_record.python.array_record_module")


def source(paths: Sequence[Path]) -> Any:
    """Return the data source of package grain."""
    return importlib.import_module("grain").sources.ArrayRecordDataSource([*map(str, paths)])


def ids_of(record: bytes) -> list[int]:
    example = importlib.import_module("tfrecord.example_pb2").Example()
    example.ParseFromString(record)
    return list(example.features.feature["input_ids"].int64_list.value)


def write(folder: Path, documents: Sequence[Sequence[int]]) -> Path:
    with FORMAT.writer(Storage(), str(folder), NAME, 2**31) as writer:
        ids = np.array([token for document in documents for token in document], np.uint32)
        writer.write_documents(ids, np.cumsum([0, *map(len, documents)]))
    return folder / f"{NAME}.array_record"


def theirs(path: Path, records: Sequence[bytes]) -> bytes:
    """Return the file that the package writes."""
    writer = module().ArrayRecordWriter(str(path), OPTIONS)
    for record in records:
        writer.write(record)
    writer.close()
    return path.read_bytes()


def records_of(path: Path) -> list[bytes]:
    reader = module().ArrayRecordReader(str(path))
    records = reader.read_all()
    assert reader.ok()
    assert reader.writer_options_string().startswith("group_size:1,")
    reader.close()
    return records


def test_the_package_reads_every_document(tmp_path: Path) -> None:
    assert [ids_of(record) for record in records_of(write(tmp_path, DOCUMENTS))] == DOCUMENTS


@pytest.mark.parametrize("seed", range(6))
def test_the_package_writes_the_same_bytes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    sizes = (0, 1, 20, 700, 30_000, 200_000)
    lengths = [draw.choice(sizes[: 2 + seed]) for _ in range(draw.choice((3, 30, 300)))]
    documents = [[1], *([draw.randrange(70_000)] * length for length in lengths)]
    path = write(tmp_path, documents)
    records = records_of(path)
    assert [ids_of(record) for record in records] == documents
    assert theirs(tmp_path / "theirs", records) == path.read_bytes()


def test_the_package_writes_the_same_bytes_at_ends_of_blocks(tmp_path: Path) -> None:
    for length in range(65_195, 65_400):
        path = write(tmp_path, [[1] * length])
        assert theirs(tmp_path / "theirs", records_of(path)) == path.read_bytes()


def test_the_package_writes_the_same_long_index(tmp_path: Path) -> None:
    path = write(tmp_path, [[7]] * 150_000)
    assert theirs(tmp_path / "theirs", records_of(path)) == path.read_bytes()


def test_a_document_of_ten_million_tokens(tmp_path: Path) -> None:
    document = [65_535, 65_536] * (5 * 10**6)
    path = write(tmp_path, [[1], document, []])
    records = records_of(path)
    assert ids_of(records[1]) == document
    assert theirs(tmp_path / "theirs", records) == path.read_bytes()


def test_grain_reads_every_document_of_a_corpus(tmp_path: Path) -> None:
    """English, Chinese, empty texts; ids and boundaries as tokenizers gives them."""
    chinese = ["他们在说什么?", "", "你好。世界。" * 50, "一"]
    texts = [*made_texts(300, seed=4), "", *chinese, "The end. " * 2_000, ""]
    lines = [json.dumps({"text": text}) + "\n" for text in texts]
    (tmp_path / "a.jsonl").write_text("".join(lines[:100]))
    (tmp_path / "b.jsonl").write_text("".join(lines[100:]))
    trained = bpe_beam.train(texts, vocab_size=600, special_tokens=("<|endoftext|>",))
    trained.save(str(tmp_path / "tokenizer.json"))
    arguments = ["tokenize", "--tokenizer", str(tmp_path / "tokenizer.json"), "--quiet"]
    arguments += ["--input", str(tmp_path / "*.jsonl"), "--output", str(tmp_path / "tokens")]
    arguments += ["--append", "<|endoftext|>", "--format", "arrayrecord", "--range-bytes", "10000"]
    assert main(arguments) == 0
    paths = sorted((tmp_path / "tokens").glob("shard-*.array_record"))
    assert len(paths) > 2
    encoder = TheirTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    expected = [[*each.ids, 0] for each in encoder.encode_batch(texts)]
    data = source(paths)
    assert len(data) == len(expected)
    assert [ids_of(data[i]) for i in range(len(data))] == expected
    order = random.Random(1).sample(range(len(data)), 50)
    assert [ids_of(record) for record in data.__getitems__(order)] == [expected[i] for i in order]
