"""`LearnMerges` as the train job: tokens of any length; what cannot be held is refused first."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest

from bpe_beam import Tokenizer
from bpe_beam.counts.word_table import WORD_SCHEMA
from bpe_beam.errors import UsageError
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.transforms import LearnMerges

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
