"""`LearnMerges` on the rows of a counts folder with sources: a word is one, in however many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from command_line import run_whole
from made_text import documents, write

from bpe_beam import Tokenizer
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe
from bpe_beam.transforms import LearnMerges


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
