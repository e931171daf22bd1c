"""What is promised of every transform's pipeline: labels, coders, types, the size of what is
shuffled."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pipeline_checks
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from made_text import write
from pipeline_checks import MeasuredGroupByKey

from bpe_beam import Tokenizer
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.counts.manifest import read_manifest
from bpe_beam.storage import Storage
from bpe_beam.transforms import (
    BpeRecipe,
    CountPairs,
    CountWords,
    LearnMerges,
    ReadAllDocuments,
    ReadCounts,
    ReadDocuments,
    ReadSettings,
    Tokenize,
    WriteCounts,
    WriteTokens,
)
from bpe_beam.transforms.shuffles import CreateElements, SpreadTasks
from bpe_beam.workers.split_task import SplitTask, split_tasks

STRICT = ("--type_check_strictness=ALL_REQUIRED", "--runtime_type_check")
MEGABYTE = 1_000_000

Build = Callable[[beam.Pipeline], Any]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Compressed, and so divided into speculative slices."""
    return write(tmp_path / "a.jsonl.gz", ["ab ba", "abab", "b"] * 200)


def described(build: Build) -> Any:
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(STRICT))
    build(pipeline)
    return pipeline.to_runner_api()


def run(build: Build) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner(), options=PipelineOptions(STRICT))
    build(pipeline)
    pipeline.run().wait_until_finish()


@pytest.fixture
def builds(tokenizer: Tokenizer, corpus: Path, tmp_path: Path) -> dict[str, Build]:
    """Pipelines that together have all public transforms, on elements of each kind."""

    def train(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | "Read" >> ReadDocuments([str(corpus)], range_bytes=100)
            | "Count" >> CountWords()
            | "Learn" >> LearnMerges(BpeRecipe(vocab_size=300))
        )

    def pairs(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | "Read" >> ReadDocuments([str(corpus)], range_bytes=100)
            | "Count" >> CountWords()
            | "Pairs" >> CountPairs()
        )

    def counts(pipeline: beam.Pipeline) -> None:
        settings = ReadSettings(sources=(("a", "a*"),))
        (
            pipeline
            | "Read" >> ReadDocuments([str(corpus)], settings, range_bytes=100)
            | "Count" >> CountWords(by_source=True)
            | "Write" >> WriteCounts(str(tmp_path / f"counts{next(numbers)}"))
        )

    def folder(pipeline: beam.Pipeline) -> None:
        if not read:
            run(counts)
            read.append(max(tmp_path.glob("counts*")))
        learn = LearnMerges(BpeRecipe(vocab_size=300), weights={"a": 2})
        _ = pipeline | "Read" >> ReadCounts(read[0]) | "Learn" >> learn

    def unusable(pipeline: beam.Pipeline) -> None:
        documents = pipeline | "Read" >> ReadDocuments([str(corpus)], range_bytes=100)
        _ = documents | "Count" >> CountWords().with_dead_letters()
        _ = documents | "Tokenize" >> Tokenize(tokenizer).with_dead_letters()

    numbers = itertools.count(10)
    read: list[Path] = []

    def shards_of(name: str, elements: list[Any], kind: Any) -> Build:
        return lambda pipeline: (
            pipeline
            | "Texts" >> CreateElements(elements, kind)
            | "Tokenize" >> Tokenize(tokenizer)
            | "Write" >> WriteTokens(str(tmp_path / name), tokenizer, shards=2)
        )

    batch = pa.RecordBatch.from_pydict({"text": ["ab", "ba"]})
    return {
        "train": train,
        "pairs": pairs,
        "counts": counts,
        "folder": folder,
        "unusable": unusable,
        "texts": shards_of("texts", ["ab", "ba"], str),
        "utf8": shards_of("utf8", [b"ab", b"ba"], bytes),
        "batches": shards_of("batches", [batch], pa.RecordBatch),
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["train", "pairs", "counts", "folder", "unusable", "texts", "utf8", "batches"]
)
def test_labels_coders_and_types(builds: dict[str, Build], name: str) -> None:
    proto = described(builds[name])
    pipeline_checks.check(proto)
    assert pipeline_checks.labels(proto) == pipeline_checks.labels(described(builds[name]))
    run(builds[name])


def test_types_of_all_documents(corpus: Path) -> None:
    """Beam's `Reshuffle` has coders of its own."""
    names = CreateElements([str(corpus)], str)
    read = ReadAllDocuments(range_bytes=100).with_dead_letters()
    run(lambda pipeline: pipeline | "Names" >> names | "Read" >> read)


@pytest.mark.parametrize("name", ["train", "counts", "folder", "texts"])
def test_a_pipeline_has_one_environment(builds: dict[str, Build], name: str) -> None:
    """Resource hints of our own would make another one, and its steps would not be fused."""
    assert len(described(builds[name]).components.environments) == 1


@pytest.mark.slow
def test_counted_words_and_totals_are_shuffled_in_pieces(sizes: list[int], tmp_path: Path) -> None:
    """Names of sources that take megabytes themselves, and a word of megabytes."""
    names = ["\N{MUSICAL SYMBOL G CLEF}" * 990 + str(number) for number in range(280)]
    words = " ".join(f"w{i}" for i in range(40_000))
    documents = [*((name, "a b") for name in names), (names[0], "x" * 2_000_000), (names[1], words)]
    out = tmp_path / "out"
    run(
        lambda pipeline: (
            pipeline
            | "Texts" >> CreateElements(documents, tuple[str, str])
            | "Count" >> CountWords(by_source=True, partitions=1)
            | "Write" >> WriteCounts(out)
        )
    )
    assert MEGABYTE // 2 < max(sizes) <= MEGABYTE
    assert set(read_manifest(Storage(), str(out)).sources or ()) == set(names)


def test_the_checks_find_what_they_are_for() -> None:
    def by_lambda(pipeline: beam.Pipeline) -> None:
        pipeline | "Texts" >> CreateElements(["a"], str) | beam.Map(lambda text: text)

    def pickled(pipeline: beam.Pipeline) -> None:
        pairs = pipeline | "Pairs" >> CreateElements([(1, object())], tuple[int, object])
        pairs | "Group" >> beam.GroupByKey()

    for build in (by_lambda, pickled):
        pipeline = beam.Pipeline(runner=FnApiRunner())
        build(pipeline)
        with pytest.raises(AssertionError):
            pipeline_checks.check(pipeline.to_runner_api())
    with pytest.raises(Exception, match="no output type-hint"):
        described(lambda pipeline: pipeline | beam.Create([1]))


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each element that enters a shuffle."""
    monkeypatch.setattr(beam, "GroupByKey", MeasuredGroupByKey)
    MeasuredGroupByKey.sizes.clear()
    return MeasuredGroupByKey.sizes


@pytest.mark.slow
def test_a_split_of_many_small_files_is_shuffled_in_pieces(
    sizes: list[int], tmp_path: Path
) -> None:
    files = tuple(InputFile(f"{'ä' * 200}{i}", 1, "text", "none") for i in range(10_000))
    split = Split(0, tuple(Slice(i, 0, 1) for i in range(10_000)))
    (work,) = split_tasks(Plan("/root", files, (split,)))
    assert len(work.encode()) > 4 * MEGABYTE
    kept = tmp_path / "kept"
    run(
        lambda pipeline: (
            pipeline
            | "Works" >> SpreadTasks([work, "small"])
            | "Keep" >> beam.ParDo(_Keep(str(kept))).with_output_types(str)
        )
    )
    assert MEGABYTE // 4 < max(sizes) <= MEGABYTE
    assert kept.read_text() == work
    assert SplitTask.from_json(kept.read_text()).split == split


class _Keep(beam.DoFn):
    def __init__(self, path: str) -> None:
        self.path = path

    def process(self, element: str) -> None:
        if element != "small":
            Path(self.path).write_text(element)


def test_long_words_and_many_words_are_shuffled_in_pieces(sizes: list[int], tmp_path: Path) -> None:
    texts = ["x" * 3_000_000, "x" * 3_000_000, " ".join(f"w{i}" for i in range(200_000))]
    tokenizer = tmp_path / "tokenizer.json"
    run(
        lambda pipeline: (
            pipeline
            | "Texts" >> CreateElements(texts, str)
            | "Count" >> CountWords(pretokenizer="whitespace_split", partitions=1)
            | "Learn" >> LearnMerges(BpeRecipe(vocab_size=300), pretokenizer="whitespace_split")
            | "Keep" >> beam.ParDo(_Keep(str(tokenizer))).with_output_types(str)
        )
    )
    assert len(sizes) > 10
    assert MEGABYTE // 2 < max(sizes) <= MEGABYTE
    # "xx" comes 6 million times, more than anything else.
    assert Tokenizer.from_json(tokenizer.read_text()).merges[0] == ("x", "x")


def test_counted_words_in_a_large_batch_are_shuffled_in_pieces(sizes: list[int]) -> None:
    words = [f"word{i}" for i in range(200_000)]
    batch = pa.RecordBatch.from_pydict(
        {"word": words, "count": [1] * len(words)},
        pa.schema([("word", pa.large_string()), ("count", pa.int64())]),
    )
    run(
        lambda pipeline: (
            pipeline
            | "Words" >> CreateElements([batch], pa.RecordBatch)
            | "Learn" >> LearnMerges(BpeRecipe(vocab_size=260))
        )
    )
    assert len(sizes) > 2
    assert max(sizes) <= MEGABYTE


def test_pairs_are_shuffled_in_blocks(sizes: list[int]) -> None:
    words = [chr(0x4E00 + i // 300) + chr(0x4E00 + i % 300) for i in range(90_000)]
    batch = pa.RecordBatch.from_pydict({"word": words, "count": [1] * len(words)})
    run(
        lambda pipeline: (
            pipeline
            | "Words" >> CreateElements([batch], pa.RecordBatch)
            | "Pairs" >> CountPairs(symbols="characters", shards=1)
        )
    )
    assert len(sizes) == 2
    assert MEGABYTE * 0.99 < max(sizes) <= MEGABYTE


def test_a_long_document_is_shuffled_in_pieces(
    sizes: list[int], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    run(
        lambda pipeline: (
            pipeline
            | "Texts" >> CreateElements(["ab" * 600_000, "b"], str)
            | "Tokenize" >> Tokenize(tokenizer)
            | "Write" >> WriteTokens(str(tmp_path / "tokens"), tokenizer)
        )
    )
    assert MEGABYTE // 2 < max(sizes) <= MEGABYTE
