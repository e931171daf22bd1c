"""Training of pieces on workers: the pieces of a training in this process, in any division."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from piece_checks import random_settings, random_words, recipe_of, words_of
from rounds_by_hand import QUIET, STORAGE, by_hand, counts_folder, job_of

from bpe_beam import _native
from bpe_beam.errors import DataError
from bpe_beam.jobs.train import passes
from bpe_beam.jobs.train.commits import PassCommit, PassesFolder, remove_rounds
from bpe_beam.jobs.train.passes import COUNT_CHARACTERS, PassesJob
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import MinGramRecipe, PieceRecipe, UnigramRecipe
from bpe_beam.training.unigram.segments import SegmentRules
from bpe_beam.workers.rounds.piece_steps import sum_pieces
from bpe_beam.workers.task_results import TaskResult

WORDS = {"▁hug": 10, "▁pug": 5, "▁pun": 12, "▁bun": 4, "▁hugs": 5, "▁it's": 3, "語": 1}
RECIPES = (
    UnigramRecipe(16, character_coverage="1"),
    MinGramRecipe(17, character_coverage="0.99", overshoot_factor="2"),
)


def passes_of(folder: Path, counts: Path, recipe: PieceRecipe) -> PassesJob:
    return PassesJob(job_of(folder, counts, COUNT_CHARACTERS, 10**12), recipe, threads=1)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("model", ["unigram", "mingram"])
@pytest.mark.parametrize("seed", range(14))
def test_random_words_in_any_division(seed: int, model: str, tmp_path: Path) -> None:
    rng = random.Random(seed)
    words = random_words(rng)
    recipe = recipe_of(model, random_settings(rng, words))
    expected = learn(words_of(words), recipe)
    counts = counts_folder(tmp_path / "counts", words, "metaspace")
    for number, small in ((1, False), (2, True), (5, True)):
        with by_hand(word_batches=number, seed=seed, small=small):
            learned = passes_of(tmp_path / f"rounds-{number}", counts, recipe).learn(QUIET)
        assert (learned.vocab, learned.scores) == (expected.vocab, expected.scores)
        assert (learned.totals, learned.sizes) == (expected.totals, expected.sizes)


class Killed(BaseException):
    """Ends a job as a signal does."""


@pytest.mark.parametrize("recipe", RECIPES)
def test_killed_at_every_commit(
    recipe: PieceRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pass runs once, and the next run begins with the one after it."""
    counts = counts_folder(tmp_path / "counts", WORDS, "metaspace")
    expected = learn(words_of(WORDS), recipe)
    commit = PassesFolder.commit
    passed = []

    def kill(folder: PassesFolder, one: PassCommit) -> None:
        commit(folder, one)
        passed.append(one.number)
        raise Killed

    monkeypatch.setattr(PassesFolder, "commit", kill)
    for number in range(1, len(expected.sizes) + 1):
        with by_hand(seed=number), pytest.raises(Killed):
            passes_of(tmp_path / "rounds", counts, recipe).learn(QUIET)
        assert passed == [*range(1, number + 1)]
    with by_hand():
        learned = passes_of(tmp_path / "rounds", counts, recipe).learn(QUIET)
    assert (learned.vocab, learned.scores) == (expected.vocab, expected.scores)
    assert (learned.totals, learned.sizes) == (expected.totals, expected.sizes)
    remove_rounds(STORAGE, str(tmp_path / "rounds"))
    assert not (tmp_path / "rounds").exists()


@pytest.mark.parametrize("recipe", RECIPES)
def test_killed_in_a_pass_after_some_tasks(
    recipe: PieceRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums of a pass that was not committed are not added in the next run."""
    counts = counts_folder(tmp_path / "counts", WORDS, "metaspace")
    expected = learn(words_of(WORDS), recipe)
    tasks = [0]

    def kill(task: Any, element: str) -> Any:
        tasks[0] += 1
        if tasks[0] in (2, 6):
            raise Killed
        # A task that is repeated writes the same again.
        sum_pieces(task, element)
        return sum_pieces(task, element)

    monkeypatch.setattr(passes, "sum_pieces", kill)
    for _ in range(2):
        with by_hand(), pytest.raises(Killed):
            passes_of(tmp_path / "rounds", counts, recipe).learn(QUIET)
    with by_hand():
        learned = passes_of(tmp_path / "rounds", counts, recipe).learn(QUIET)
    assert (learned.vocab, learned.scores) == (expected.vocab, expected.scores)


def test_a_lost_task_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counts_folder(tmp_path / "counts", WORDS, "metaspace")
    monkeypatch.setattr(passes, "sum_pieces", lambda _, element: TaskResult([element]))
    with by_hand(), pytest.raises(DataError, match="no receipt of sums-00000-of-00003"):
        passes_of(tmp_path / "rounds", counts, RECIPES[0]).learn(QUIET)


@pytest.mark.parametrize("damaged", ["pieces", "segments"])
def test_a_damaged_file_is_not_used(damaged: str, tmp_path: Path) -> None:
    counts = counts_folder(tmp_path / "counts", WORDS, "metaspace")
    with by_hand():
        job = passes_of(tmp_path / "rounds", counts, RECIPES[0])
        expected = job.learn(QUIET)
    folder = PassesFolder(job.rounds.folder)
    commit = folder.latest()
    assert commit is not None
    assert len(commit.segments) == 3
    for file in (tmp_path / "rounds" / "passes" / "work").glob(f"run-*/state/{damaged}-*"):
        file.write_bytes(file.read_bytes()[:-1])
    kept = folder.latest()
    if damaged == "segments":  # they can be made again
        assert kept == replace(commit, first_run="", segments=())
    else:
        assert kept is None
    with by_hand():
        again = passes_of(tmp_path / "rounds", counts, RECIPES[0]).learn(QUIET)
    assert (again.vocab, again.scores) == (expected.vocab, expected.scores)


def test_words_are_cut_in_the_first_pass_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counts_folder(tmp_path / "counts", WORDS, "metaspace")
    cut = SegmentRules.segments
    words = []

    def segments(rules: SegmentRules, one: Words) -> _native.Segments:
        words.append(one)
        return cut(rules, one)

    monkeypatch.setattr(SegmentRules, "segments", segments)
    with by_hand(word_batches=2):
        passes_of(tmp_path / "rounds", counts, RECIPES[0]).learn(QUIET)
    assert 2 <= len(words) <= 3, "once in the driver, and once for each word batch with words"


def test_counts_beyond_63_bits_are_refused(tmp_path: Path) -> None:
    counts = counts_folder(tmp_path / "counts", {"ab": 2**62}, "metaspace")
    for recipe in RECIPES:
        with by_hand(), pytest.raises(OverflowError, match="2\\^63"):
            passes_of(tmp_path / "rounds", counts, recipe).learn(QUIET)
