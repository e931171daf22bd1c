"""`ReadAllDocuments`: files of a collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io import fileio

from bpe_beam.corpus.read_split import read_split
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, StoredFile
from bpe_beam.transforms import ReadAllDocuments, ReadDocuments, ReadSettings, read_all_documents
from bpe_beam.workers.split_task import SplitTask

TEXTS = {"a.jsonl": ["one", "two"], "b.jsonl": ["three", "", "five"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, texts in TEXTS.items():
        rows = [json.dumps({"id": f"{name}{n}", "text": text}) for n, text in enumerate(texts)]
        (folder / name).write_text("\n".join(rows) + "\n")
    return folder


def _rows(batches: list[Any], *but: str) -> list[Any]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(({k: v for k, v in row.items() if k not in but} for row in rows), key=str)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["names", "paths", "matches", "readable", "slices"])
def test_files_of_a_collection_are_read_as_named_ones(run, folder: Path, kind: str) -> None:
    names = [str(folder / name) for name in TEXTS]

    def files(p: beam.Pipeline) -> beam.PCollection:
        if kind in ("matches", "readable"):
            matches = p | fileio.MatchFiles(f"{folder}/*.jsonl")
            return matches if kind == "matches" else matches | fileio.ReadMatches()
        given = [*map(Path, names)] if kind == "paths" else names
        return (
            p | "Names" >> beam.FlatMap(lambda _, g=given: g)
            if kind == "paths"
            else (p | beam.Create(names))
        )

    size = 20 if kind == "slices" else None
    read = ReadAllDocuments(range_bytes=size)

    def build(p: beam.Pipeline) -> beam.PCollection:
        begin = p | "One" >> beam.Create([0]) if kind == "paths" else p
        return files(begin) | read

    found, counters = run(build)
    named, _ = run(lambda p: p | ReadDocuments(names))
    assert _rows(found, "place") == _rows(named, "place")
    assert {row["place"] for batch in found for row in batch.to_pylist()} == {None}
    assert counters["text_bytes_read"] == sum(
        len(text) for texts in TEXTS.values() for text in texts
    )


def test_settings_and_fields(run, folder: Path) -> None:
    settings = ReadSettings(input_format="text")
    found, _ = run(
        lambda p: p | beam.Create([str(folder / "a.jsonl")]) | ReadAllDocuments(settings)
    )
    assert [row["text"] for row in _rows(found)] == (folder / "a.jsonl").read_text().splitlines()
    with pytest.raises(UsageError, match="settings must be ReadSettings, got 'text'"):
        ReadAllDocuments("text")
    for size in (0, "5"):
        with pytest.raises(UsageError, match="range_bytes must be at least 1"):
            ReadAllDocuments(range_bytes=size)


@pytest.mark.parametrize("query", ["X-Amz-Signature=abc.txt", "cred=a/b"])
def test_web_queries_stay_out_of_names(tmp_path: Path, query: str) -> None:
    """A file's name says its format, and is in errors and dead letters."""
    contents = b'{"text": "one"}\n{"text": 5}\n'

    class Web(Storage, frozen=True):
        def stat(self, url: str) -> StoredFile:
            return StoredFile(url, len(contents), "")

        def read_head(self, url: str, count: int, size: int | None = None) -> bytes:
            assert url.endswith(f"?{query}")
            return contents[:count]

    url = f"http://host/in/x.jsonl?{query}"
    (task,) = read_all_documents._PlanFile(ReadAllDocuments(storage=Web())).process(url)
    plan = SplitTask.from_json(task).plan
    assert (plan.files[0].name, plan.files[0].format) == ("x.jsonl", "jsonl")
    assert plan.url(0) == url


def test_a_file_that_cannot_be_read_midway(run, folder: Path, monkeypatch) -> None:
    """Its other documents are in the output; each letter says what is not."""

    def broken(storage: Any, plan: Any, part: Any, *rest: Any) -> Any:
        if part.slices[0].start:
            raise DataError("no access")
        return read_split(storage, plan, part, *rest)

    monkeypatch.setattr(read_all_documents, "read_split", broken)
    path = folder / "a.jsonl"
    size = path.stat().st_size
    read = ReadAllDocuments(range_bytes=size // 2).with_dead_letters()

    def build(p: beam.Pipeline) -> beam.PCollection:
        documents, dead = p | beam.Create([str(path)]) | read
        return (
            documents | beam.Map(lambda batch: batch["text"].to_pylist()),
            dead,
        ) | beam.Flatten()

    found, _ = run(build)
    texts = [each for each in found if isinstance(each, list)]
    dead = [each for each in found if isinstance(each, tuple)]
    assert texts == [["one"]]
    assert dead == [(str(path), f"stored bytes {size // 2} to {size}: no access")]


def test_what_cannot_be_read_is_named(run, folder: Path) -> None:
    """The file or the record, with the reason; the others are read."""
    bad = folder / "a.jsonl"
    bad.write_text('{"text": "one"}\n{"text": 5}\n{"text": "two"}\nno json\n')
    elements = [str(bad), str(folder / "none.jsonl"), str(folder / "b.jsonl"), 7]

    def build(p: beam.Pipeline) -> beam.PCollection:
        files = p | beam.Create([0]) | "Files" >> beam.FlatMap(lambda _: elements)
        outputs = files | ReadAllDocuments().with_exception_handling()
        texts = outputs.good | "Texts" >> beam.FlatMap(lambda b: b["text"].to_pylist())
        errors = outputs.bad | "Why" >> beam.MapTuple(lambda element, why: (element, why[1]))
        return (texts, errors) | beam.Flatten()

    kept, counters = run(build)
    texts = [each for each in kept if isinstance(each, str)]
    errors = dict(each for each in kept if not isinstance(each, str))
    assert sorted(texts) == sorted(["one", "two", *TEXTS["b.jsonl"]])
    assert counters["records_rejected"] == 2
    assert counters["dead_letters"] == len(errors) == 4
    assert "must be a path, a URL" in errors["7"]
    assert "No such file" in errors[str(folder / "none.jsonl")]
    records = sorted(why for element, why in errors.items() if element.startswith("{"))
    assert ["a.jsonl, byte 16" in records[0], "a.jsonl, byte 44" in records[1]] == [True, True]
    for wrong, said in ((str(bad), "byte 16"), (str(folder / "none.jsonl"), "No such file")):
        with pytest.raises(Exception, match=said):
            run(lambda p, w=wrong: p | beam.Create([w]) | ReadAllDocuments())
