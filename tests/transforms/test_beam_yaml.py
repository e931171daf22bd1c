"""The transforms for Beam YAML, on rows; tests/runners runs them from a YAML file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.typehints.row_type import RowTypeConstraint
from made_text import write

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.transforms import beam_yaml
from bpe_beam.transforms.shuffles import CreateElements
from bpe_beam.workers import document_encoding

Run = Callable[..., tuple[list[Any], dict[str, int]]]


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    path = tmp_path / "tokenizer.json"
    Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")]).save(str(path))
    return str(path)


def rows(*values: dict[str, Any], fields: dict[str, Any] | None = None) -> beam.PTransform:
    """Rows as Beam YAML's Create makes them."""
    kind = RowTypeConstraint.from_fields(list((fields or {"n": int, "text": str}).items()))
    return CreateElements([beam.Row(**value) for value in values], kind)


def test_read_documents(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["one", "two"])
    found, _ = run(lambda p: p | beam_yaml.ReadDocuments(str(path)))
    assert sorted(row.text for row in found) == ["one", "two"]
    assert {tuple(row.as_dict()) for row in found} == {("id", "source", "text")}


def test_fields_of_some_files(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", ["one"])
    (tmp_path / "code.jsonl").write_text('{"content": "two", "key": "k"}\n')
    fields = ({"code": "content", "*": "text"}, {"code": "key"})
    found, _ = run(lambda p: p | beam_yaml.ReadDocuments(f"{tmp_path}/*", "auto", *fields))
    assert sorted((row.text, row.id) for row in found) == [("one", "0"), ("two", "k")]


def test_count_words(run: Run) -> None:
    source = rows({"n": 1, "text": "a b a"}, {"n": 2, "text": "a"})
    found, _ = run(lambda p: p | source | beam_yaml.CountWords(pretokenizer="whitespace_split"))
    assert sorted((row.word, row.count) for row in found) == [("a", 3), ("b", 1)]


def test_tokenize_adds_a_field(run: Run, tokenizer: str) -> None:
    source = rows({"n": 1, "text": "abab"}, {"n": 2, "text": ""}, {"n": 3, "text": "ba"})
    found, sums = run(lambda p: p | source | beam_yaml.Tokenize(tokenizer, into="ids", append="b"))
    assert sorted((row.n, row.text, list(row.ids)) for row in found) == [
        (1, "abab", [2, 2, 1]),
        (2, "", [1]),
        (3, "ba", [1, 0, 1]),
    ]
    assert sums["documents_tokenized"] == 3
    assert sums["tokens_made"] == 7


def test_write_tokens(run: Run, tokenizer: str, tmp_path: Path) -> None:
    out = tmp_path / "tokens"
    source = rows({"n": 1, "text": "abab"}, {"n": 2, "text": "ba"})
    found, _ = run(
        lambda p: (
            p
            | source
            | beam_yaml.Tokenize(tokenizer)
            | beam_yaml.WriteTokens(str(out), tokenizer, shards=2)
        )
    )
    assert found == [beam.Row(manifest=f"{out}/__manifest")]
    assert (out / "shard-00001-of-00002.idx").exists()


def test_write_tokens_keeps_ids_and_sources(run: Run, tokenizer: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", ["ab", "ba"])
    for _ in range(2):
        steps = (
            beam_yaml.ReadDocuments(str(path)),
            beam_yaml.Tokenize(tokenizer, into="ids"),
            beam_yaml.WriteTokens(
                str(tmp_path / "out"), tokenizer, "ids", format="parquet", overwrite=True
            ),
        )
        run(lambda p, s=steps: p | s[0] | s[1] | s[2])
    table = pq.read_table(tmp_path / "out" / "shard-00000-of-00001.parquet")
    found = zip(*(table[name].to_pylist() for name in ("id", "source", "input_ids")), strict=True)
    assert sorted(found) == [("0", "a.jsonl", [2]), ("1", "a.jsonl", [1, 0])]
    with pytest.raises(UsageError, match=r"must be empty or new, got .*overwrite=True"):
        beam_yaml.WriteTokens(str(tmp_path / "out"), tokenizer)


def test_what_cannot_be(tokenizer: str, tmp_path: Path) -> None:
    def build(step: beam.PTransform, source: beam.PTransform | None = None) -> None:
        beam.Pipeline(runner=FnApiRunner()) | (source or rows()) | step

    with pytest.raises(UsageError, match="field must be one of n, text, got body"):
        build(beam_yaml.Tokenize(tokenizer, field="body"))
    with pytest.raises(UsageError, match=r"field must be one of .*, got body"):
        build(beam_yaml.CountWords(field="body"))
    with pytest.raises(UsageError, match="into must be a new field, got n"):
        build(beam_yaml.Tokenize(tokenizer, into="n"))
    with pytest.raises(UsageError, match="field text: the elements must be rows"):
        build(beam_yaml.Tokenize(tokenizer), CreateElements(["a"], str))
    with pytest.raises(UsageError, match=r"error_handling must be .* got {'to': 'errors'}"):
        build(beam_yaml.CountWords(error_handling={"to": "errors"}))
    for step in (beam_yaml.CountWords, partial(beam_yaml.Tokenize, tokenizer)):
        with pytest.raises(UsageError, match="error_handling must name another output"):
            build(step(error_handling={"output": "good"}))
    with pytest.raises(UsageError, match="append must be a token of the tokenizer, got 'z'"):
        beam_yaml.Tokenize(tokenizer, append="z")


@pytest.mark.parametrize("name", ["Tokenize", "CountWords"])
def test_rows_that_cannot_be_used_have_an_output(run: Run, tokenizer: str, name: str) -> None:
    """In the form in which Beam YAML has errors."""
    handling = {"output": "unusable"}
    transform, good = (
        (beam_yaml.Tokenize(tokenizer, error_handling=handling), ["ab", [2]])
        if name == "Tokenize"
        else (beam_yaml.CountWords(error_handling=handling), ["ab", 1])
    )

    def build(p: beam.Pipeline) -> beam.PCollection:
        source = rows({"text": "ab"}, {"text": None}, fields={"text": str | None})
        outputs = p | source | transform
        words = outputs["good"] | "Good" >> beam.Map(lambda row: [*row])
        errors = outputs["unusable"] | "E" >> beam.Map(lambda row: (row.element.text, row.msg))
        return (words, errors) | beam.Flatten()

    found, _ = run(build)
    ((text, why),) = (each for each in found if isinstance(each, tuple))
    assert [each for each in found if not isinstance(each, tuple)] == [good]
    assert (text, "null" in why) == (None, True)


def test_a_tokenizer_that_has_changed_is_no_fault_of_a_row(
    run: Run, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(p: beam.Pipeline) -> beam.PCollection:
        tokenize = beam_yaml.Tokenize(tokenizer, error_handling={"output": "errors"})
        outputs = p | rows({"n": 1, "text": "ab"}) | tokenize
        Tokenizer.from_learned(["a", "b", "ba"], [("b", "a")]).save(tokenizer)
        monkeypatch.setattr(document_encoding, "_cached", {})
        return outputs["good"]

    with pytest.raises(Exception, match="the tokenizer has changed since the job began"):
        run(build)


def test_null_is_named(run: Run, tokenizer: str) -> None:
    source = rows({"text": None}, fields={"text": str | None})
    with pytest.raises(Exception, match="a row has null as its text"):
        run(lambda p: p | source | beam_yaml.Tokenize(tokenizer))
