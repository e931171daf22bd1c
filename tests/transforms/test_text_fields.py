"""Texts in fields of records, named by paths as in `ReadSettings`."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

from bpe_beam.errors import UsageError
from bpe_beam.transforms import CountWords, Tokenize

ROWS = [
    {"id": 1, "meta": {"body": "the cat", "lang": "en", "in": {"text": "a dog"}}, "a.b": "the"},
    {"id": 2, "meta": {"body": "a", "lang": "de", "in": {"text": ""}}, "a.b": "cat"},
]
PATHS = {
    "meta.body": lambda row: row["meta"]["body"],
    "meta.in.text": lambda row: row["meta"]["in"]["text"],
    r"a\.b": lambda row: row["a.b"],
}


def _without(row: dict[str, Any], path: str) -> dict[str, Any]:
    if path == r"a\.b":
        return {key: value for key, value in row.items() if key != "a.b"}
    meta = dict(row["meta"])
    if path == "meta.body":
        del meta["body"]
    else:
        meta["in"] = {}
    return {**row, "meta": meta}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["dict", "row", "batch", "table", "slice"])
def test_texts_of_records(run, tokenizer, kind: str, path: str) -> None:
    def rows_of(value: Any) -> Any:
        if isinstance(value, pa.RecordBatch | pa.Table):
            return value.to_pylist()
        if isinstance(value, dict):
            return [value]
        fields = {
            k: v._asdict() if isinstance(v, beam.Row) else v for k, v in value._asdict().items()
        }
        return [fields]

    table = pa.Table.from_pylist(ROWS)
    elements: list[Any] = {
        "dict": ROWS,
        "row": [beam.Row(**row) for row in ROWS],
        "batch": table.to_batches(),
        "table": [pa.concat_tables([table[:1], table[1:]])],
        "slice": [table.to_batches()[0].slice(number, 1) for number in range(2)],
    }[kind]
    create = beam.FlatMap(lambda _: elements)
    found, _ = run(lambda p: p | beam.Create([0]) | create | Tokenize(tokenizer, text_field=path))
    rows = sorted((row for value in found for row in rows_of(value)), key=lambda row: row["id"])
    expected = [
        {**_without(row, path), "tokens": tokenizer.encode(PATHS[path](row))} for row in ROWS
    ]
    assert rows == expected
    count = CountWords(text_field=path)
    counted, _ = run(lambda p: p | beam.Create([0]) | create | count)
    plain, _ = run(lambda p: p | beam.Create([PATHS[path](row) for row in ROWS]) | CountWords())
    words = [[row for b in batches for row in b.to_pylist()] for batches in (counted, plain)]
    assert sorted(words[0], key=str) == sorted(words[1], key=str)


def test_records_that_are_null_or_lack_the_text(run, tokenizer) -> None:
    """They are dead letters, and the other rows of a batch stay."""
    table = pa.Table.from_pylist([*ROWS, {"id": 3, "meta": None, "a.b": "x"}])
    elements = [table, {"meta": "no record"}, {"meta": {"other": 1}}, {"meta": None}]

    def build(p: beam.Pipeline) -> beam.PCollection:
        tokenize = Tokenize(tokenizer, text_field="meta.body").with_dead_letters()
        create = beam.FlatMap(lambda _: elements)
        good, dead = p | beam.Create([0]) | create | tokenize
        ids = good | "Ids" >> beam.FlatMap(lambda batch: batch["id"].to_pylist())
        return (ids, dead | beam.MapTuple(lambda _, why: why)) | beam.Flatten()

    kept, _ = run(build)
    assert sorted(each for each in kept if isinstance(each, int)) == [1, 2]
    whys = [each for each in kept if isinstance(each, str)]
    assert len(whys) == 4
    assert sum("no field 'meta.body'" in why for why in whys) == 2
    assert sum("'meta.body' of a document must be text, got null" in why for why in whys) == 1
    assert sum("has invalid texts: 1 nulls" in why for why in whys) == 1


def test_paths_that_no_row_has(tokenizer) -> None:
    rows = beam.Pipeline() | beam.Create([beam.Row(id=1, meta="x")])
    with pytest.raises(UsageError, match=r"a row has no field 'body.text', only id, meta"):
        rows | Tokenize(tokenizer, text_field="body.text")
    with pytest.raises(UsageError, match="must have no empty name between dots"):
        rows | "Dots" >> Tokenize(tokenizer, text_field="a..b")
