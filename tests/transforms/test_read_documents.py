"""What `ReadDocuments` does about damaged files."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import DataError, UsageError
from bpe_beam.transforms import ReadDocuments


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Four files of gzip; two with wrong checksums, which have half of all bytes."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        member = gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(500)))
        data = member[:-8] + bytes(8) if number % 2 else member
        (folder / f"{number}.jsonl.gz").write_bytes(data)
    return folder


def read(folder: Path, rejects: Path, **options: str | int) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        batches = pipeline | ReadDocuments([f"{folder}/*"], rejects=str(rejects), **options)
        rows = batches | beam.Map(lambda batch: batch.num_rows) | beam.CombineGlobally(sum)
        assert_that(rows, equal_to([2000]))


def test_any_loss_fails_the_run(damaged: Path, tmp_path: Path) -> None:
    with pytest.raises((DataError, RuntimeError), match=r"stored bytes are lost; get a sound copy"):
        read(damaged, tmp_path / "rejects")


def test_losses_beyond_the_limit_fail_the_run(damaged: Path, tmp_path: Path) -> None:
    said = r"stored bytes are lost in 2 damaged files \(1\.jsonl\.gz, 3\.jsonl\.gz\), more than"
    with pytest.raises((DataError, RuntimeError), match=said):
        read(damaged, tmp_path / "rejects", max_lost="49%")
    read(damaged, tmp_path / "rejects", max_lost="51%")
    read(damaged, tmp_path / "rejects", max_lost=100_000)


def test_a_file_name_that_is_not_utf_8_is_refused_at_once(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")
    Path(path).write_text('{"text": "a"}\n')
    for inputs in ([path], [f"{tmp_path}/*"], [str(tmp_path)]):
        with pytest.raises(UsageError, match="a file name must be UTF-8"):
            ReadDocuments(inputs)


def test_a_limit_must_be_one(damaged: Path) -> None:
    with pytest.raises(UsageError, match="max_lost must be a whole number, or a share"):
        ReadDocuments([f"{damaged}/*"], max_lost="1MB")


def test_rejects_go_to_their_folder_or_end_the_run(run, tmp_path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "good"}\n{"text": 7}\n')
    with pytest.raises(Exception, match=r"bad.jsonl, byte 17: "):
        run(lambda p: p | ReadDocuments([str(path)]), 1)
    folder = tmp_path / "rejects"
    kept, counters = run(lambda p: p | ReadDocuments([str(path)], rejects=str(folder)))
    assert [batch.column("text").to_pylist() for batch in kept] == [["good"]]
    assert counters["records_rejected"] == 1
    (row,) = [json.loads(line) for file in folder.iterdir() for line in file.open()]
    assert (row["file"], row["offset"]) == ("bad.jsonl", 17)


def test_documents_are_read_whatever_the_settings(run, tmp_path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one||two||three")
    settings = ReadSettings(document_separator="||")
    kept, _ = run(lambda p: p | ReadDocuments([str(path)], settings, range_bytes=4))
    assert sorted(t for batch in kept for t in batch.column("text").to_pylist()) == [
        "one",
        "three",
        "two",
    ]


def test_inputs_are_a_list(corpus) -> None:
    with pytest.raises(UsageError, match=r"inputs must be a list, such as \['.*got '.*jsonl'"):
        ReadDocuments(corpus)
    with pytest.raises(UsageError, match=r"exclude must be a list, such as \['a'\]"):
        ReadDocuments([corpus], exclude="a")
