"""`LearnMerges` as the train job: tokens of any length; what cannot be held is refused first."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
import reference_bpe
import regex
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from apache_beam.transforms.window import FixedWindows
from sentences import TEXT, sentences

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.counts.word_table import WORD_SCHEMA
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.training.recipe import BpeRecipe, MinGramRecipe, Recipe, UnigramRecipe
from bpe_beam.transforms import (
    CountWords,
    LearnMerges,
    ReadDocuments,
)

LONG = "a" * 9_000
WORDS = pa.RecordBatch.from_pydict({"word": ["hat", " the", LONG], "count": [2, 5, 3]}, WORD_SCHEMA)


def test_a_run_of_one_letter(run: Any) -> None:
    (learned,), _ = run(lambda p: p | beam.Create([WORDS]) | LearnMerges(BpeRecipe(300)))
    tokenizer = Tokenizer.from_json(learned)
    assert len(tokenizer.encode(LONG)) == 1
    assert tokenizer.decode(tokenizer.encode(LONG)) == LONG


def test_a_special_token_that_words_spell_in_bytes(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_beam._native.BpeLearner", lambda *_, **__: 1 / 0)
    recipe = BpeRecipe(300, special_tokens=("Ġthe",))
    with pytest.raises(Exception, match="is also how the bytes b' the' are written"):
        run(lambda p: p | beam.Create([WORDS]) | LearnMerges(recipe))


def test_text_steps_are_refused_when_it_is_made() -> None:
    recipe = BpeRecipe(300, symbols="characters", end_of_word_symbol="_")
    with pytest.raises(UsageError, match="needs the pre-tokenizer whitespace_split"):
        LearnMerges(recipe)


def test_documents_to_a_tokenizer(run, corpus) -> None:
    """The pipeline learns what the reference learns from the same words."""
    recipe = BpeRecipe(vocab_size=300, special_tokens=("<|end|>",))
    kept, _ = run(
        lambda p: p | ReadDocuments([corpus], range_bytes=1000) | CountWords() | LearnMerges(recipe)
    )
    (text,) = kept
    counts: dict[str, int] = {}
    for document in sentences(200):
        for word in regex.findall(GPT2_PATTERN, document):
            chars = byte_level.to_chars(word.encode())
            counts[chars] = counts.get(chars, 0) + 1
    vocab, merges = reference_bpe.learn_bpe(
        list(counts.items()), vocab_size=300, special_tokens=["<|end|>"]
    )
    learned = Tokenizer.from_json(text)
    assert list(learned.vocab) == vocab
    assert learned.merges == merges


def test_first_seen_needs_places(run, corpus) -> None:
    recipe = BpeRecipe(vocab_size=270, tie_break="first_seen")
    kept, _ = run(
        lambda p: p | ReadDocuments([corpus]) | CountWords(with_places=True) | LearnMerges(recipe)
    )
    assert len(kept) == 1
    with pytest.raises(Exception, match="lack the columns first_document, first_word"):
        run(lambda p: p | ReadDocuments([corpus]) | CountWords() | LearnMerges(recipe), 1)


def test_learning_is_bounded(run) -> None:
    texts = [" ".join(f"word{i}" for i in range(40_000))]
    learn = LearnMerges(BpeRecipe(vocab_size=300), memory_bytes=2_000_000)
    with pytest.raises(Exception, match=r"takes more than memory_bytes \(2,000,000\)"):
        run(lambda p: p | beam.Create(texts) | CountWords() | learn, 1)


def test_learning_wants_all_words_at_once() -> None:
    early = AfterWatermark(early=AfterCount(1))
    for more in ({"trigger": early}, {"allowed_lateness": 10}):
        windows = beam.WindowInto(
            FixedWindows(10), accumulation_mode=AccumulationMode.DISCARDING, **more
        )
        words = beam.Pipeline() | beam.Create(["a"]) | windows | CountWords()
        with pytest.raises(UsageError, match="fire more than once"):
            _ = words | LearnMerges(BpeRecipe(vocab_size=300))


def test_words_that_were_counted_otherwise_are_refused(run) -> None:
    recipe = BpeRecipe(vocab_size=260)

    def build(counted: str, learned: str):
        words = CountWords(pretokenizer=counted)
        return lambda p: p | beam.Create([TEXT]) | words | LearnMerges(recipe, pretokenizer=learned)

    with pytest.raises(Exception, match="counted with pretokenizer='qwen2', but LearnMerges has"):
        run(build("qwen2", "gpt2"))
    assert len(run(build("llama3", "cl100k"))[0]) == 1  # two names of one


def test_words_with_two_columns_of_one_name_are_refused(run) -> None:
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1])]
    batch = pa.record_batch(columns, ["word", "word", "count"])
    batches = beam.Create([batch]).with_output_types(pa.RecordBatch)
    with pytest.raises(Exception, match="a batch has 2 columns 'word': rename or drop all but one"):
        run(lambda p: p | batches | LearnMerges(BpeRecipe(vocab_size=260)))


@pytest.mark.parametrize(
    ("model", "recipe"), [("unigram", UnigramRecipe(43)), ("mingram", MinGramRecipe(43))]
)
def test_pieces_are_those_of_train(run: Any, corpus: str, model: str, recipe: Recipe) -> None:
    parts = {"normalizer": "dummy_prefix", "pretokenizer": "metaspace"}
    (learned,), _ = run(
        lambda p: (
            p
            | ReadDocuments([corpus], range_bytes=1000)
            | CountWords(**parts)
            | LearnMerges(recipe, **parts)
        )
    )
    assert learned == bpe_beam.train(str(corpus), model=model, vocab_size=43).to_json()
