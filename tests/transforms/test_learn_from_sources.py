"""`LearnMerges` on counts by source: a word is one, in however many; weights are the command's."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.transforms.display import DisplayData
from command_line import run_whole
from made_text import documents, write

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.transforms import (
    BpeRecipe,
    CountWords,
    LearnMerges,
    ReadCounts,
    ReadDocuments,
    ReadSettings,
    WordLevelRecipe,
    WordPieceRecipe,
)


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sources that share most of their words."""
    root = tmp_path_factory.mktemp("counts")
    for seed in range(3):
        write(root / "in" / f"s{seed}.txt", documents(60, seed=seed))
    named = [f"--source=s{seed}=s{seed}*" for seed in range(3)]
    arguments = ("--input", f"{root}/in/*", "--tie-break", "first_seen", *named)
    run_whole("count", *arguments, "--output", root / "counts")
    return root / "counts"


@pytest.mark.parametrize(
    ("recipe", "flags"),
    [
        (WordLevelRecipe(vocab_size=40), ("--model", "word_level", "--vocab-size", "40")),
        (BpeRecipe(vocab_size=400), ("--vocab-size", "400")),
        (
            BpeRecipe(vocab_size=400, tie_break="first_seen"),
            ("--vocab-size", "400", "--tie-break", "first_seen"),
        ),
    ],
    ids=["word_level", "bpe", "first_seen"],
)
def test_as_the_train_job(
    counts: Path, tmp_path: Path, run: Any, recipe: Any, flags: tuple[str, ...]
) -> None:
    batches = [b for path in counts.glob("*.parquet") for b in pq.read_table(path).to_batches()]
    assert all("source" in batch.schema.names for batch in batches)
    (learned,), _ = run(lambda p: p | beam.Create(batches) | LearnMerges(recipe))
    run_whole("train", "--counts", counts, *flags, "--output", tmp_path / "tok")
    expected = tmp_path / "tok" / "tokenizer.json"
    assert Tokenizer.from_json(learned).to_json() == expected.read_text("utf-8")


WEIGHTS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "weights": (BpeRecipe(350), {"weights": {"s0": 0.3, "s2": "2"}}, ("--weights=s0=0.3,s2=2",)),
    "none of one": (BpeRecipe(350), {"weights": {"s1": 0}}, ("--weights=s1=0",)),
    "minimum": (
        BpeRecipe(1000, min_frequency=9, tie_break="first_seen"),
        {"weights": {"s0": 1.7, "s1": 0.25}},
        ("--weights=s0=1.7,s1=0.25", "--min-frequency=9", "--tie-break=first_seen"),
    ),
    "temperature": (BpeRecipe(350), {"temperature": 0.4}, ("--temperature=0.4",)),
    "equal": (
        WordPieceRecipe(220, special_tokens=("[UNK]",)),
        {"temperature": "0"},
        ("--temperature=0", "--model=wordpiece", "--special-token=[UNK]"),
    ),
    "words": (
        WordLevelRecipe(40),
        {"weights": {"s0": Decimal("0.5")}},
        ("--weights=s0=0.5", "--model=word_level"),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_as_the_train_job(counts: Path, tmp_path: Path, run: Any, kind: str) -> None:
    recipe, options, flags = WEIGHTS[kind]
    learn = LearnMerges(recipe, **options)
    from_folder, _ = run(lambda p: p | ReadCounts(counts) | learn)
    settings = ReadSettings(sources=tuple((f"s{n}", f"s{n}*") for n in range(3)))
    count = CountWords(by_source=True, with_places=True)
    read = ReadDocuments([f"{counts.parent}/in/*"], settings, range_bytes=2000)
    from_documents, _ = run(lambda p: p | read | count | learn)
    size = ("--vocab-size", str(recipe.vocab_size))
    run_whole("train", "--counts", counts, *size, *flags, "--output", tmp_path / "tok")
    expected = (tmp_path / "tok" / "tokenizer.json").read_text("utf-8")
    assert from_folder == from_documents == [expected]


def test_weights_change_the_tokenizer(counts: Path, run: Any) -> None:
    learned = []
    for options in ({}, {"weights": {"s0": 50}}, {"weights": {"s0": 1}}, {"temperature": 1}):
        learn = LearnMerges(BpeRecipe(350), **options)
        learned += run(lambda p, learn=learn: p | ReadCounts(counts) | learn)[0]
    assert learned[0] == learned[2] == learned[3]
    assert learned[0] != learned[1]


def test_special_tokens_of_the_words_come_first(tmp_path: Path, run: Any) -> None:
    """As in `train --counts --special-token`; a recipe that has all of them is as it is."""
    (tmp_path / "a.txt").write_text("a<x>b <y> a b\n" * 9)
    extracted = ("--special-token", "<x>", "--special-token", "<y>")
    run_whole("count", "--input", tmp_path / "a.txt", *extracted, "--output", tmp_path / "counts")
    for given, expected in (
        (("<z>",), ["<x>", "<y>", "<z>"]),
        (("<x>", "<y>", "<z>"), ["<x>", "<y>", "<z>"]),
        (("<y>", "<x>"), ["<y>", "<x>"]),
    ):
        learn = LearnMerges(BpeRecipe(300, special_tokens=given))
        (learned,), _ = run(lambda p, learn=learn: p | ReadCounts(tmp_path / "counts") | learn)
        assert list(Tokenizer.from_json(learned).vocab)[: len(expected)] == expected
        if "<z>" in given:
            out = tmp_path / f"tok{len(given)}"
            flags = [flag for token in given for flag in ("--special-token", token)]
            size = ("--vocab-size", "300", "--output", out)
            run_whole("train", "--counts", tmp_path / "counts", *flags, *size)
            assert learned == (out / "tokenizer.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"s0", "s1"}}, "weights must be a mapping of sources to numbers, got {"),
        ({"weights": [("s0", 1)]}, "weights must be a mapping"),
        ({"weights": {"s0": -1}}, "weights must be decimal numbers such as 0.3"),
        ({"weights": {"s0": float("nan")}}, "got 'NaN' for s0"),
        ({"weights": {"s0": True}}, "weights must be numbers, got True"),
        ({"weights": {"s0": None}}, "weights must be numbers, got None"),
        ({"weights": {None: 1}}, "weights must name sources, got None"),
        ({"weights": {"s0": 1e-30}}, "the weight of s0 must be 0 or at least"),
        ({"temperature": 2}, "temperature must be a decimal number from 0"),
        ({"temperature": "warm"}, "temperature must be a decimal number from 0"),
        ({"temperature": [1]}, "temperature must be a number, got"),
        ({"weights": {"s0": 1}, "temperature": 0}, "weights and temperature exclude each other"),
        ({"memory_bytes": "8GB"}, "memory_bytes must be at least 1,000,000, got '8GB'"),
        ({"normalizer": None}, "normalizer must be a name, got None"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LearnMerges(BpeRecipe(300), **options)


@pytest.mark.parametrize("recipe", ["bpe", None, BpeRecipe, {"vocab_size": 300}])
def test_a_recipe_is_one(recipe: Any) -> None:
    with pytest.raises(UsageError, match="recipe must be a recipe, such as a BpeRecipe, got"):
        LearnMerges(recipe)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("by_source", "options", "message"),
    [
        (True, {"weights": {"x": 1}}, "weights name 'x', but the sources are '7', 'k'"),
        (True, {"weights": {7: 0, "k": 0}}, "the weights leave no words to train on"),
        (True, {"weights": {7: 10**17}}, "weighted counts must be at most"),
        (False, {"weights": {"k": 1}}, "weights and temperature need counts by source"),
    ],
)
def test_weights_that_do_not_suit(
    run: Any, by_source: bool, options: dict[str, Any], message: str
) -> None:
    texts = [("k", "a b"), (7, "a c " * 50)]
    documents = beam.Create(texts).with_output_types(Any)
    with pytest.raises(Exception, match=message):
        run(
            lambda p: (
                p
                | documents
                | CountWords(by_source=by_source)
                | LearnMerges(BpeRecipe(300), **options)
            )
        )


def test_a_temperature_needs_the_sizes_of_sources(counts: Path, run: Any) -> None:
    """Weights do not: the rows name the sources."""
    batches = [b for path in counts.glob("*.parquet") for b in pq.read_table(path).to_batches()]
    learned = [
        run(lambda p, rows=rows: p | rows | LearnMerges(BpeRecipe(350), weights={"s0": 3}))[0]
        for rows in (beam.Create(batches), ReadCounts(counts))
    ]
    assert learned[0] == learned[1]
    learn = LearnMerges(BpeRecipe(350), temperature=0.5)
    with pytest.raises(Exception, match="temperature needs the bytes of text of each source"):
        run(lambda p: p | beam.Create(batches) | learn)


def test_display_data() -> None:
    learn = LearnMerges(BpeRecipe(350, special_tokens=("<a>",)), weights={"s0": 0.3, 7: 2})
    shown = {item.key: item.value for item in DisplayData.create_from(learn).items}
    assert shown["recipe"] == "BpeRecipe"
    assert shown["vocab_size"] == 350
    assert shown["weights"] == "s0=0.3 7=2"
    learn = LearnMerges(BpeRecipe(350), temperature=0.70)
    assert ("temperature", "0.7") in {
        (item.key, item.value) for item in DisplayData.create_from(learn).items
    }
