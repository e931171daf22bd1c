"""`ReadAllDocuments`: files of a collection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io import fileio

from bpe_beam.errors import UsageError
from bpe_beam.transforms import ReadAllDocuments, ReadDocuments, ReadSettings

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
