"""`DivideDocuments`: the documents for validation are those of `tokenize --validation-share`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from command_line import run_whole
from made_text import documents

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.transforms import DivideDocuments, ReadDocuments, ReadSettings, Tokenize, WriteTokens

SHARE = "20%"


def shard_bytes(folder: Path) -> dict[str, bytes]:
    names = (path for path in folder.iterdir() if path.name[0] != "_")
    return {each.name: each.read_bytes() for each in names if each.name != "token_counts.parquet"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["by text", "by id", "lines by id"])
def test_parts_have_the_shards_of_tokenize(
    run, tokenizer: Tokenizer, tmp_path: Path, kind: str
) -> None:
    """Also where equal texts repeat, ids are null, and lines of text have positions as ids."""
    texts = [*documents(80, seed=6), *documents(30, seed=6)]
    tokenizer.save(tmp_path / "tok.json")
    by = "text" if kind == "by text" else "id"
    if kind.startswith("lines"):
        corpus = tmp_path / "a.txt"
        corpus.write_text("\n".join(text.replace("\n", " ") for text in texts))
        settings, flags = ReadSettings(), []
    else:
        corpus = tmp_path / "a.jsonl"
        rows = (
            json.dumps({"id": f"d{n}" if n % 3 else None, "text": text})
            for n, text in enumerate(texts)
        )
        corpus.write_text("\n".join(rows))
        settings, flags = ReadSettings(id_field="id"), ["--id-field", "id"]
    options: dict[str, Any] = {"shard_tokens": 700}
    if by == "text":
        options["shuffle_seed"] = 4
    arranged = [each for name, value in options.items() for each in (_flag(name), value)]
    run_whole(
        *("tokenize", "--input", corpus, *flags, "--tokenizer", tmp_path / "tok.json"),
        *("--range-bytes", "3KB", "--append", "<|end|>", "--output", tmp_path / "expected"),
        *("--validation-share", SHARE, "--validation-by", by, *arranged),
    )

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        read = pipeline | ReadDocuments([corpus], settings, range_bytes=3_000)
        parts = read | DivideDocuments(SHARE, validation_by=by)
        ids = Tokenize(tokenizer, append="<|end|>")
        return [
            parts[part]
            | f"Encode {part}" >> ids
            | f"Write {part}" >> WriteTokens(tmp_path / "out" / part, tokenizer, **options)
            for part in ("train", "validation")
        ] | beam.Flatten()

    run(build)
    for part in ("train", "validation"):
        assert shard_bytes(tmp_path / "out" / part) == shard_bytes(tmp_path / "expected" / part)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def test_every_kind_of_element_is_divided_alike(run) -> None:
    texts = documents(50, seed=2)
    rows = [{"id": f"d{n % 20}", "text": text} for n, text in enumerate(texts)]
    kinds = {
        "dict": rows,
        "row": [beam.Row(**row) for row in rows],
        "key": [("k", row) for row in rows],
        "batch": [pa.RecordBatch.from_pylist(rows)],
        "table": [pa.Table.from_pylist(rows[:20]), pa.Table.from_pylist(rows[20:])],
    }
    for by in ("text", "id"):
        found = []
        for elements in kinds.values():
            divide = DivideDocuments(SHARE, validation_by=by)
            create = beam.Create(elements)
            parts, _ = run(
                lambda p, c=create, d=divide: (p | c | d).validation | beam.FlatMap(_texts_of)
            )
            found.append(sorted(parts))
        assert found[0]
        assert all(each == found[0] for each in found)


def _texts_of(element: Any) -> list[str]:
    if isinstance(element, pa.RecordBatch | pa.Table):
        return element.column("text").to_pylist()
    element = element[1] if type(element) is tuple else element
    return [element["text"] if isinstance(element, dict) else element.text]


def test_documents_without_a_text_are_in_train(run) -> None:
    rows = [{"text": None}, {"no": 1}]
    kept, _ = run(lambda p: (p | beam.Create(rows) | DivideDocuments("99%")).train)
    assert sorted(kept, key=str) == sorted(rows, key=str)


def test_ids_that_do_not_decide_may_be_anything(run) -> None:
    rows = [{"id": ["a"], "text": "one"}, {"id": b"\xff", "text": "two"}]
    kept, _ = run(lambda p: (p | beam.Create(rows) | DivideDocuments("50%")).validation)
    assert [row["text"] for row in kept] == ["one"]
    batch = pa.RecordBatch.from_pylist([{"id": {"a": 1}, "text": "one"}])
    kept, _ = run(lambda p: (p | beam.Create([batch]) | DivideDocuments("50%")).validation)
    assert kept == [batch]


@pytest.mark.parametrize("share", ["0%", "0.5", "x%", 5])
def test_a_share_is_above_nothing(share: Any) -> None:
    with pytest.raises(UsageError, match="validation_share"):
        DivideDocuments(share)
