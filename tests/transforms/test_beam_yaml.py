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
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from apache_beam.typehints.row_type import RowTypeConstraint
from command_line import run_whole
from counted_sources import manifest, parts
from made_text import documents, write

from bpe_beam import Tokenizer, shards
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


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """A counts folder of two sources."""
    for seed in range(2):
        write(tmp_path / "in" / f"s{seed}" / "a.jsonl", documents(40, seed=seed))
    named = [f"--source=s{seed}=s{seed}/*" for seed in range(2)]
    run_whole("count", "--input", f"{tmp_path}/in/**", *named, "--output", tmp_path / "counts")
    return tmp_path / "counts"


def read_sources(counts: Path) -> beam_yaml.ReadDocuments:
    return beam_yaml.ReadDocuments(
        f"{counts.parent}/in/**", sources={"s0": "s0/*", "s1": ["x/*", "s1/*"]}
    )


def test_counts_by_source_are_the_folder_of_the_command(run: Run, counts: Path) -> None:
    out = counts.parent / "out"
    count, write_counts = beam_yaml.CountWords(by_source=True), beam_yaml.WriteCounts(str(out))
    changed = "Same" >> beam.Map(lambda row: row).with_output_types(
        RowTypeConstraint.from_fields([("source", str), ("word", str), ("count", int)])
    )
    found, _ = run(lambda p: p | read_sources(counts) | count | changed | write_counts)
    assert found == [beam.Row(manifest=f"{out}/__manifest")]
    assert parts(out) == parts(counts)
    assert manifest(out) == {**manifest(counts), "inputs": []}
    again = beam_yaml.WriteCounts(str(out), overwrite=True)
    run(lambda p: p | beam_yaml.ReadCounts(str(counts)) | again)
    assert manifest(out) == manifest(counts)


def test_counts_with_places_are_rows_with_places(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", documents(40))
    first_seen = ("--tie-break", "first_seen")
    run_whole("count", "--input", path, *first_seen, "--output", tmp_path / "counts")
    folder, out = str(tmp_path / "counts"), tmp_path / "out"
    learn = beam_yaml.LearnMerges({"vocab_size": 300, "tie_break": "first_seen"})
    found, _ = run(lambda p: p | beam_yaml.ReadCounts(folder) | learn)
    size = ("--vocab-size", "300", "--output", tmp_path / "tok")
    run_whole("train", "--counts", tmp_path / "counts", *first_seen, *size)
    assert found == [beam.Row(tokenizer=(tmp_path / "tok" / "tokenizer.json").read_text("utf-8"))]
    run(lambda p: p | beam_yaml.ReadCounts(folder) | beam_yaml.WriteCounts(str(out)))
    assert parts(out) == parts(tmp_path / "counts")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"recipe": {"vocab_size": 350}, "weights": {"s0": 0.3}}, ("--weights=s0=0.3",)),
        ({"recipe": {"vocab_size": 350}, "temperature": 0.4}, ("--temperature=0.4",)),
        (
            {"recipe": {"vocab_size": 40, "special_tokens": ["<e>"]}, "model": "word_level"},
            ("--model=word_level", "--special-token=<e>"),
        ),
    ],
)
def test_tokenizers_of_the_command(
    run: Run, counts: Path, settings: dict[str, Any], flags: tuple[str, ...]
) -> None:
    size = f"--vocab-size={settings['recipe']['vocab_size']}"
    run_whole("train", "--counts", counts, size, *flags, "--output", counts.parent / "tok")
    expected = beam.Row(tokenizer=(counts.parent / "tok" / "tokenizer.json").read_text("utf-8"))
    learn, count = beam_yaml.LearnMerges(**settings), beam_yaml.CountWords(by_source=True)
    for made in (
        lambda p: p | beam_yaml.ReadCounts(str(counts)) | learn,
        lambda p: p | read_sources(counts) | count | learn,
    ):
        assert run(made)[0] == [expected]


def test_tokenizer_of_rows_of_others(run: Run) -> None:
    kinds: dict[str, Any] = {"word": str, "count": int}
    source = rows({"word": "ab", "count": 9}, {"word": "b", "count": 3}, fields=kinds)
    found, _ = run(lambda p: p | source | beam_yaml.LearnMerges({"vocab_size": 257}))
    assert Tokenizer.from_json(found[0].tokenizer).merges == [("a", "b")]
    source = rows({"word": None, "count": 9}, fields={"word": str | None, "count": int})
    with pytest.raises(Exception, match="a word, a count or a place is null"):
        run(lambda p: p | source | beam_yaml.LearnMerges({"vocab_size": 257}))


def test_a_tokenizer_for_each_window(run: Run) -> None:
    fields = {"source": str, "text": str}
    source = rows(*({"source": "s", "text": text} for text in ("ab ab", "cd cd")), fields=fields)
    by_text = beam.Map(lambda row: TimestampedValue(row, 60 * (row.text > "c")))
    steps = (
        by_text.with_output_types(RowTypeConstraint.from_fields([*fields.items()])),
        beam.WindowInto(FixedWindows(60)),
        beam_yaml.CountWords(by_source=True, pretokenizer="whitespace_split"),
        beam_yaml.LearnMerges(
            {"vocab_size": 257}, pretokenizer="whitespace_split", temperature=0.5
        ),
    )
    found, _ = run(lambda p: p | source | steps[0] | steps[1] | steps[2] | steps[3])
    merges = sorted(Tokenizer.from_json(row.tokenizer).merges for row in found)
    assert merges == [[("a", "b")], [("c", "d")]]


def test_words_that_a_step_dropped_are_missed(run: Run, counts: Path) -> None:
    read, write_counts = (
        beam_yaml.ReadCounts(str(counts)),
        beam_yaml.WriteCounts(str(counts.parent / "out")),
    )
    frequent = beam.Filter(lambda row: row.count > 2)
    with pytest.raises(
        Exception, match=r"words of the source 's[01]' arrived, but .* were counted"
    ):
        run(lambda p: p | read | frequent | write_counts)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe": 300}, "recipe must be a mapping with keys among vocab_size, min_frequency"),
        ({"recipe": {"vocab_sise": 300}}, "recipe must be .*, got {'vocab_sise': 300}"),
        ({"recipe": {"vocab_size": "300"}}, r"recipe: Expected `int`, got `str` - at `\$.vocab_s"),
        ({"recipe": {"vocab_size": 0}}, "recipe: vocab_size must be at least 1, got 0"),
        ({"recipe": {}}, "recipe: Object missing required field `vocab_size`"),
        ({"recipe": {"vocab_size": 300}, "model": "pieces"}, "model must be one of bpe, wordp"),
        ({"recipe": {"vocab_size": 300}, "weights": {"a": "x"}}, "weights must be decimal numbers"),
        ({"recipe": {"vocab_size": 300}, "temperature": 2}, "temperature must be a decimal"),
    ],
)
def test_settings_of_a_tokenizer_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        beam_yaml.LearnMerges(**settings)


def test_rows_that_do_not_suit_counts(tmp_path: Path) -> None:
    kinds = {"source": str, "word": str, "count": int}

    def refused(step: beam.PTransform, message: str, *before: beam.PTransform) -> None:
        pipeline = beam.Pipeline(runner=FnApiRunner())
        collection = pipeline | (rows(fields=kinds) if not before else rows())
        for each in before:
            collection |= each
        with pytest.raises(UsageError, match=message):
            collection | step

    recipe = {"vocab_size": 300}
    windows = beam.WindowInto(FixedWindows(60))
    same = beam.Filter(lambda row: True)
    refused(beam_yaml.WriteCounts(str(tmp_path / "o")), "WriteCounts needs the totals of the docum")
    refused(beam_yaml.LearnMerges(recipe, temperature=1), "temperature needs the totals of the doc")
    for options in ({"weights": {"a": 2}}, {"temperature": 0}):
        message = f"{next(iter(options))} needs rows with a field source, got word, count: set"
        refused(beam_yaml.LearnMerges(recipe, **options), message, beam_yaml.CountWords())
    learn = beam_yaml.LearnMerges(recipe)
    refused(learn, "have the windows in which they were", beam_yaml.CountWords(), windows)
    message = "LearnMerges: the rows must have the fields word, count, got n, text"
    refused(learn, message, same)
    refused(beam_yaml.CountWords(by_source=True), "by_source needs rows with a field source", same)
    with pytest.raises(UsageError, match="sources must be a mapping of sources to globs, got"):
        beam_yaml.ReadDocuments("*", sources=["a"])


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


def test_write_tokens_makes_sequences(run: Run, tokenizer: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = {"sequence_length": 4, "packing": "best_fit", "shuffle_seed": 1, "shard_tokens": 9}
    source = rows({"n": 1, "text": "abab"}, {"n": 2, "text": "babababa"})
    tokenize = beam_yaml.Tokenize(tokenizer)
    write_tokens = beam_yaml.WriteTokens(str(out), tokenizer, **options)
    run(lambda p: p | source | tokenize | write_tokens)
    dataset = shards.open(out)
    lengths = [dataset[at].size for at in range(len(dataset))]
    one = Tokenizer.from_file(tokenizer)
    assert sum(lengths) == len(one.encode("abab")) + len(one.encode("babababa"))
    assert max(lengths) <= 4
    with pytest.raises(UsageError, match="pad_token must be a token"):
        beam_yaml.WriteTokens(str(tmp_path / "b"), tokenizer, sequence_length=4, pad_token="?")


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
