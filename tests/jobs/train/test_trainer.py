"""Where merges are learned: whoever decides knows every limit of a learner."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from rounds_by_hand import STORAGE, counts_folder, job_of, learn_by_hand

from bpe_beam import _native
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.part_files import iter_words
from bpe_beam.errors import UsageError
from bpe_beam.jobs.train.plan import PlannedCounts, TrainingPlan
from bpe_beam.jobs.train.trainer import Trainer
from bpe_beam.settings.train import TrainSettings
from bpe_beam.training.learn import learn
from bpe_beam.training.merges import words as room
from bpe_beam.training.merges.words import gather_words, memory_needed
from bpe_beam.training.recipe import BpeRecipe, MinGramRecipe, Recipe, UnigramRecipe

MANY = 5_000_000_000
BYTES = BpeRecipe(32_000)
CHARACTERS = BpeRecipe(32_000, symbols="characters")
FIRST_SEEN = BpeRecipe(32_000, symbols="characters", tie_break="first_seen")


def decided(recipe: Recipe, merge_rounds: str, word_bytes: int = MANY) -> dict[str, Any]:
    """What is decided about words that nobody could hold, with memory for all of them."""
    manifest = CountsManifest(
        "none", "gpt2", (), True, 1, 1, 1, 400_000_000, word_bytes, {}, (), ()
    )  # fmt: skip
    settings = TrainSettings(
        output="out",
        vocab_size=32_000,
        counts="counts",
        driver_memory=10**13,
        merge_rounds=merge_rounds,
    )
    counts = PlannedCounts("counts", manifest, "", None)
    plan = TrainingPlan(settings, STORAGE, recipe, None, counts)
    return Trainer(plan).summary


def test_words_beyond_one_learner_are_learned_in_rounds() -> None:
    figures = decided(BYTES, "auto")
    assert figures["merge_rounds"] == "distributed"
    assert "5,000,000,000 bytes have more than the 4,294,967,295" in figures["merge_rounds_because"]
    figures = decided(CHARACTERS, "auto")
    assert figures["merge_rounds"] == "distributed"
    assert "bytes may have more than" in figures["merge_rounds_because"]
    assert decided(BYTES, "auto", MANY // 2)["merge_rounds"] == "local"


def test_what_cannot_be_held_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"process; give merge_rounds distributed$"):
        decided(BYTES, "local")
    # Of characters there may be few enough: the learner counts them.
    assert decided(CHARACTERS, "local")["merge_rounds"] == "local"
    assert decided(FIRST_SEEN, "auto")["merge_rounds"] == "local"
    first_seen = BpeRecipe(32_000, tie_break="first_seen")
    with pytest.raises(
        UsageError,
        match=r"cannot be distributed: .*than the .*; set merge_rounds to",
    ):
        decided(first_seen, "auto")
    with pytest.raises(UsageError, match=r"process; give fewer words$"):
        decided(first_seen, "local")


def test_pieces_are_learned_here_if_the_words_fit() -> None:
    for recipe in (UnigramRecipe(32_000), MinGramRecipe(32_000)):
        assert decided(recipe, "auto", 10**9)["merge_rounds"] == "local"
        assert decided(recipe, "distributed", 10**9)["merge_rounds"] == "distributed"
    assert decided(MinGramRecipe(32_000), "auto", 10**13)["merge_rounds"] == "distributed"
    for merge_rounds in ("auto", "distributed"):
        with pytest.raises(UsageError, match="driver_memory is too small for unigram") as error:
            decided(UnigramRecipe(32_000), merge_rounds, 10**13)
        assert "use model mingram" in str(error.value)
        assert "counts filter --min-count 2" in str(error.value)


def test_many_words_of_pieces_fit_the_default_memory() -> None:
    words, recipe = 10**8, UnigramRecipe(32_000)
    default = TrainSettings(output="out", vocab_size=32_000, counts="counts").driver_memory
    assert memory_needed(12 * words, words, recipe) <= default
    assert memory_needed(24 * words, 2 * words, recipe) > default


@pytest.mark.parametrize("limit", [None, 40])
def test_no_round_learns_from_more_than_a_learner_holds(
    limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With memory for everything, and lengths that count characters: long tokens have many."""
    made = random.Random(2)
    parts = ["".join(made.choices("abcde", k=made.randint(3, 12))) for _ in range(12)]
    words = {"".join(made.choices(parts, k=4)): made.randint(1, 30) for _ in range(60)}
    counts = counts_folder(tmp_path / "counts", words)
    recipe = BpeRecipe(420, max_token_length=limit)
    manifest = CountsManifest.from_bytes((counts / "__manifest").read_bytes(), "__manifest")
    here = learn(gather_words(iter_words(STORAGE, str(counts), manifest), False), recipe)

    native, most = _native.BpeLearner, 700
    held: list[int] = []

    def limited(*args: Any, **options: Any) -> _native.BpeLearner:
        held.append(len(args[0]))
        return native(*args, **options, max_positions=most)  # type: ignore[misc]

    monkeypatch.setattr(room, "MAX_POSITIONS", most)
    monkeypatch.setattr(_native, "BpeLearner", limited)
    learned, rounds = learn_by_hand(job_of(tmp_path / "rounds", counts, recipe, 10**12))
    assert (learned.merges, learned.vocab) == (here.merges, here.vocab)
    assert len(rounds) > 1
    assert held
