"""Learning in rounds over words on storage: the merges of a learner that holds all words."""

from __future__ import annotations

import io
import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rounds_by_hand import STORAGE, counts_folder, job_of, learn_by_hand
from some_of import in_turn

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.part_files import iter_words
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs.train.commits import remove_rounds
from bpe_beam.jobs.train.rounds import _rounds_left
from bpe_beam.progress import Progress
from bpe_beam.training.learn import learn
from bpe_beam.training.merges import native_trainer as learning
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.rounds import merge_steps
from bpe_beam.workers.rounds import task as round_tasks

EVERYTHING = 10**9
LETTERS = "abcdefghijklmnopqrstuvwxyz"
NOTHING = 0


def made_words(
    seed: int, letters: str = "abcd", count: int = 60, longest: int = 9
) -> dict[str, int]:
    """Words over few letters, so that ties are everywhere."""
    chance = random.Random(seed)
    words: dict[str, int] = {}
    for _ in range(count):
        word = "".join(chance.choices(letters, k=chance.randint(1, longest)))
        words[word] = words.get(word, 0) + chance.randint(1, 4)
    return words


def learned_here(counts: Path, recipe: BpeRecipe | WordPieceRecipe) -> TrainingResult:
    manifest = CountsManifest.from_bytes((counts / "__manifest").read_bytes(), "__manifest")
    return learn(gather_words(iter_words(STORAGE, str(counts), manifest), False), recipe)


def same(ours: TrainingResult, theirs: TrainingResult) -> None:
    assert ours.merges == theirs.merges
    assert list(ours.vocab.items()) == list(theirs.vocab.items())
    assert ours.counts.tolist() == theirs.counts.tolist()
    assert ours.totals is not None
    assert theirs.totals is not None
    if ours.totals.tokens is None:  # a last round of the best pairs that took equal symbols
        assert ours.merges[-1][0] == ours.merges[-1][1]
        assert replace(theirs.totals, tokens=None) == ours.totals
    else:
        assert ours.totals == theirs.totals


RECIPES: dict[str, dict[str, Any]] = {
    "bytes": {},
    "greatest": {"tie_break": "greatest_bytes"},
    "characters": {"symbols": "characters"},
    "seen": {"alphabet": "seen"},
    "prefix": {"symbols": "characters", "continuing_subword_prefix": "a"},
    "suffix": {"symbols": "characters", "end_of_word_suffix": "b", "tie_break": "greatest_bytes"},
    "end": {"symbols": "characters", "end_of_word_symbol": "_"},
    "limited": {"symbols": "characters", "limit_alphabet": 3},
    "short": {"max_token_length": 4},
    "frequent": {"min_frequency": 6},
    "special": {"special_tokens": ("ab", "bcd", "<s>")},
    "fallback": {"symbols": "characters", "byte_fallback": True},
}


ALL_BYTES = ("bytes", "greatest", "short", "frequent", "special", "fallback")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "cut"), in_turn(RECIPES, [(1, NOTHING), (64, EVERYTHING), (1, 6_000), (4, 3_000)])
)
def test_the_merges_are_those_of_one_learner(
    name: str, cut: tuple[int, int], tmp_path: Path
) -> None:
    word_batches, memory = cut
    recipe = BpeRecipe(310 if name in ALL_BYTES else 50, **RECIPES[name])
    counts = counts_folder(tmp_path / "counts", made_words(seed=len(name), letters="abcdé"))
    job = job_of(tmp_path / "rounds", counts, recipe, memory)
    learned, rounds = learn_by_hand(job, word_batches=word_batches, seed=word_batches)
    same(learned, learned_here(counts, recipe))
    assert sum(row["merges"] for row in rounds) == len(learned.merges)
    if memory in (NOTHING, EVERYTHING):
        how = {row["learned_from"] for row in rounds if row["merges"]}
        assert how == {"the best pairs" if memory == NOTHING else "all words"}


@pytest.mark.slow
def test_each_way_to_learn_a_round_is_taken(tmp_path: Path) -> None:
    """Else the test above would be of less than it says."""
    seen = set()
    recipe = BpeRecipe(330)
    for memory in (NOTHING, 2_000, 6_000, EVERYTHING):
        counts = counts_folder(tmp_path / "counts", made_words(seed=5, letters="abcdé"))
        job = job_of(tmp_path / f"rounds{memory}", counts, recipe, memory)
        seen |= {row["learned_from"] for row in learn_by_hand(job)[1]}
    assert seen == {"segments", "the best pairs", "all words"}


@pytest.mark.parametrize("memory", [NOTHING, 6_000])
def test_the_text_of_all_merges_is_limited(
    memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = {**made_words(seed=3), "a" * 300: 9}
    counts = counts_folder(tmp_path / "counts", words)
    recipe = BpeRecipe(500)
    whole = len(learned_here(counts, recipe).merges)
    monkeypatch.setattr(learning, "MAX_TEXT", 200)
    here = learned_here(counts, recipe)
    assert 5 < len(here.merges) < whole
    assert here.text_full
    job = job_of(tmp_path / "rounds", counts, recipe, memory)
    learned, _ = learn_by_hand(job)
    same(learned, here)
    assert learned.text_full
    # Another try goes on from the last commit.
    assert learn_by_hand(job)[0].text_full


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3))])
def test_broken_off_lists_and_full_tables_change_nothing(seed: int, tmp_path: Path) -> None:
    tie_break = ("lowest_id", "greatest_bytes")[seed % 2]
    recipe = BpeRecipe(60, symbols="characters", tie_break=tie_break)
    counts = counts_folder(tmp_path / "counts", made_words(seed))
    job = job_of(tmp_path / "rounds", counts, recipe, (NOTHING, 3_000)[seed // 2])
    same(learn_by_hand(job, seed=seed, small=True)[0], learned_here(counts, recipe))


@pytest.mark.slow
def test_without_looking_further_there_are_more_rounds(tmp_path: Path) -> None:
    recipe = BpeRecipe(400)
    counts = counts_folder(tmp_path / "counts", made_words(1, "abcdefgh", 400))
    plain = job_of(tmp_path / "plain", counts, recipe, NOTHING)
    learned, rounds = learn_by_hand(plain)
    same(learned, learned_here(counts, recipe))
    further, fewer = learn_by_hand(job_of(tmp_path / "far", counts, recipe, 40_000))
    same(further, learned)
    assert 2 * len(fewer) < len(rounds) < len(learned.merges)


class TestWordPiece:
    def recipe(self, **more: Any) -> WordPieceRecipe:
        return WordPieceRecipe(60, **more)

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("word_batches", "tie_break"), in_turn([1, 7, 64], ["lowest_id", "greatest_bytes"])
    )
    def test_rare_pairs_are_cut_and_the_rest_is_exact(
        self, tie_break: Any, word_batches: int, tmp_path: Path
    ) -> None:
        recipe = self.recipe(min_frequency=12, tie_break=tie_break)
        words = {**made_words(3, LETTERS, 300, 12), "a": 50}
        counts = counts_folder(tmp_path / "counts", words, "bert")
        learned, rounds = learn_by_hand(
            job_of(tmp_path / "rounds", counts, recipe, 100_000), word_batches=word_batches
        )
        same(learned, learned_here(counts, recipe))
        assert [row["learned_from"] for row in rounds] == ["segments"]
        assert rounds[0]["segment_symbols"] < rounds[0]["symbols"]

    def test_what_does_not_fit_is_refused_with_a_way_out(self, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(3), "bert")
        with pytest.raises(UsageError, match="a higher min_frequency; or model prefix_bpe"):
            learn_by_hand(job_of(tmp_path / "rounds", counts, self.recipe(), 5_000))

    def test_a_token_made_in_two_ways_is_refused(self, tmp_path: Path) -> None:
        words = {"##b": 30, "xb": 30, **made_words(7, LETTERS, 300, 12)}
        counts = counts_folder(tmp_path / "counts", words, "whitespace_split")
        recipe = WordPieceRecipe(400, min_frequency=12)
        with pytest.raises(UsageError, match="a token is made in two ways"):
            learn_by_hand(job_of(tmp_path / "rounds", counts, recipe, 100_000))


class TestResuming:
    RECIPE = BpeRecipe(330)

    def killed_at(self, folder: Path, counts: Path, step: int) -> bool:
        """Runs until a write on storage is the last; whether it was killed."""
        left = step

        class Killed(BaseException):
            pass

        storage_type = type(STORAGE)
        create, write = storage_type.create, storage_type.write_bytes

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed

        def counted_create(storage: Any, url: str) -> Any:
            count()
            return create(storage, url)

        def counted_write(storage: Any, url: str, data: bytes) -> None:
            count()
            write(storage, url, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(storage_type, "create", counted_create)
            patch.setattr(storage_type, "write_bytes", counted_write)
            try:
                learn_by_hand(job_of(folder, counts, self.RECIPE, 6_000))
            except Killed:
                return True
        return False

    def test_killed_at_any_write_it_goes_on_from_the_last_commit(self, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        expected = learned_here(counts, self.RECIPE)
        rounds = tmp_path / "rounds"
        commits = set()
        for step in range(20, 400, 17):
            if not self.killed_at(rounds, counts, step):
                break
            commits |= {path.name for path in rounds.glob("commit-*")}
        learned, history = learn_by_hand(job_of(rounds, counts, self.RECIPE, 6_000))
        same(learned, expected)
        assert len(commits) > 2
        assert [row["round"] for row in history] == list(range(1, len(history) + 1))

    def test_each_commit_leaves_one_state(self, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        job = job_of(rounds, counts, self.RECIPE, 6_000)
        learn_by_hand(job)
        assert len(list(rounds.glob("commit-*"))) == 1
        assert len(list((rounds / "work").iterdir())) == 1
        remove_rounds(STORAGE, str(rounds))
        assert not rounds.exists()

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("damage", ["{", "[]", '{"fingerprint": "another"}', "cut"])
    def test_a_commit_that_is_none_is_begun_anew(self, damage: str, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        assert self.killed_at(rounds, counts, 60)
        (commit,) = rounds.glob("commit-*")
        text = commit.read_text()
        commit.write_text(text[: len(text) // 2] if damage == "cut" else damage)
        learned, history = learn_by_hand(job_of(rounds, counts, self.RECIPE, 6_000))
        same(learned, learned_here(counts, self.RECIPE))
        assert history[0]["round"] == 1

    def test_the_rounds_of_other_settings_are_not_taken(self, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        assert self.killed_at(rounds, counts, 60)
        recipe = BpeRecipe(330, tie_break="greatest_bytes")
        same(learn_by_hand(job_of(rounds, counts, recipe, 6_000))[0], learned_here(counts, recipe))


def test_counts_beyond_64_bits_are_refused(tmp_path: Path) -> None:
    counts = counts_folder(tmp_path / "counts", {"abc": 2**62, "xyz": 2**62})
    with pytest.raises((OverflowError, DataError), match="64 bits"):
        learn_by_hand(job_of(tmp_path / "rounds", counts, BpeRecipe(300), NOTHING))


def test_no_words_and_no_pairs(tmp_path: Path) -> None:
    for number, words in enumerate(({}, {"a": 3, "b": 1})):
        counts = counts_folder(tmp_path / f"counts{number}", words)
        job = job_of(tmp_path / f"rounds{number}", counts, BpeRecipe(300), NOTHING)
        assert learn_by_hand(job)[0].merges == ()


@pytest.mark.parametrize(
    ("before", "now", "target", "left"), [(10, 30, 90, 1), (10, 30, 1000, 4), (0, 0, 9, 2)]
)
def test_rounds_left(before: int, now: int, target: int, left: int) -> None:
    assert _rounds_left(before, now, target) == left


def test_the_summary_tells_where_time_went(tmp_path: Path) -> None:
    counts = counts_folder(tmp_path / "counts", made_words(5))
    _, rounds = learn_by_hand(job_of(tmp_path / "rounds", counts, BpeRecipe(330), 6_000))
    assert len(rounds) > 1
    for row in rounds:
        assert row["shuffled_bytes"] > 0
        assert 0 <= row["learning_seconds"] <= row["seconds"]


@pytest.mark.parametrize("watched", [False, True])
def test_progress_tells_rounds_merges_and_tasks(watched: bool, tmp_path: Path) -> None:
    """Workers of this process report their tasks; elsewhere their receipts are counted."""
    counts = counts_folder(tmp_path / "counts", made_words(5))
    stream = io.StringIO()
    job = job_of(tmp_path / "rounds", counts, BpeRecipe(330), 6_000)
    learned, rounds = learn_by_hand(job, progress=Progress("json", stream=stream), watched=watched)
    line = json.loads(stream.getvalue().splitlines()[-1])
    assert line["stage"] == "learn"
    assert line["unit"] == "rounds"
    assert line["done"] == line["total"] == len(rounds) > 2
    assert line["merges"] == len(learned.merges)
    assert line["merges_of_last_round"] == rounds[-1]["merges"]
    # Three of them, rewritten and cut.
    assert line["tasks"] == line["tasks_in_round"] == 6


def test_two_jobs_of_one_process_on_one_folder(tmp_path: Path) -> None:
    """What a process keeps of the first must not be taken for the second's."""
    counts = counts_folder(tmp_path / "counts", made_words(5, letters="abcdé"))
    for specials in ((), ("<s>", "<pad>")):
        recipe = BpeRecipe(60, symbols="characters", special_tokens=specials)
        job = job_of(tmp_path / "rounds", counts, recipe, 3_000)
        same(learn_by_hand(job)[0], learned_here(counts, recipe))
        remove_rounds(STORAGE, str(tmp_path / "rounds"))


class TestDamage:
    """Nothing that is not what was written is learned from."""

    @pytest.mark.parametrize(
        "name", ["work/pairs-*.blocks", "work/segments-*.blocks", "pairs/hot-*", "segments/*"]
    )
    def test_within_a_round(self, name: str, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5, "abcdefgh", 200))
        damaged: list[Any] = []

        def damage(url: str) -> None:
            path = Path(url)
            if path.match(name) and path.stat().st_size and not damaged:
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 4
                path.write_bytes(data)
                damaged.append(path)

        write_receipt = TaskFolder.write_receipt

        def then_damage(folder: TaskFolder, task: str, files: Any, stats: Any) -> None:
            write_receipt(folder, task, files, stats)
            for file in files:
                damage(folder.path(file.name))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TaskFolder, "write_receipt", then_damage)
            with pytest.raises(
                DataError, match=r"not the (one|file) that was written|cannot be read"
            ):
                learn_by_hand(job_of(tmp_path / "rounds", counts, BpeRecipe(330), 60_000))
        assert damaged

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("what", ["state/words-00001*", "start.json", "commit", "row"])
    def test_between_tries_it_is_begun_anew(self, what: str, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        assert TestResuming().killed_at(rounds, counts, 60)
        pattern = {"start.json": what, "commit": "commit-*", "row": "commit-*"}
        (path,) = rounds.glob(pattern.get(what, f"work/*/{what}"))
        data = path.read_bytes()
        if what == "row":
            path.write_bytes(data.replace(b'"counts": [', b'"counts": [1', 1))
        else:
            path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
        assert path.read_bytes() != data
        recipe = TestResuming.RECIPE
        learned, history = learn_by_hand(job_of(rounds, counts, recipe, 6_000))
        same(learned, learned_here(counts, recipe))
        assert history[0]["round"] == 1
        assert len(history) == history[-1]["round"]

    def test_a_driver_that_slept_removes_nothing(self, tmp_path: Path) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        late = job_of(rounds, counts, BpeRecipe(330), 6_000)
        commit = late.folder.commit

        def asleep(mine: Any) -> None:
            if mine.number == 2:
                assert TestResuming().killed_at(rounds, counts, 200)
            commit(mine)

        late.folder.commit = asleep  # type: ignore[assignment, method-assign]
        with pytest.raises(DataError, match="another run of this job"):
            learn_by_hand(late)
        assert [path.name for path in rounds.glob("commit-*")] > ["commit-00002.json"]
        learned, _ = learn_by_hand(job_of(rounds, counts, BpeRecipe(330), 6_000))
        same(learned, learned_here(counts, BpeRecipe(330)))


def test_what_a_process_keeps_is_of_one_round() -> None:
    made = itertools.count()

    def kept(run: str) -> int:
        task: Any = SimpleNamespace(folder=SimpleNamespace(url=run))
        return round_tasks.once_a_round(task, "pairs", lambda: next(made))

    assert [kept(run) for run in ("run-a", "run-a", "run-b", "run-b", "run-a")] == [0, 0, 1, 1, 2]
    round_tasks.forget_round()
    assert kept("run-a") == 3
    round_tasks.forget_round()


class TestRunnersThatLose:
    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("step", ["sum_pairs", "add_segments"])
    @pytest.mark.parametrize("what", ["lost", "given twice"])
    def test_a_block_that_is_lost_ends_the_job(
        self, step: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counts = counts_folder(tmp_path / "counts", made_words(5))
        rounds = tmp_path / "rounds"
        add = getattr(merge_steps, step)
        left = [1]

        def disturbed(task: Any, element: tuple[int, list[Any]]) -> Any:
            shard, places = element
            if left and task.floor < 20 and left.pop():
                places = places[1:] if what == "lost" else [*places, places[0]]
            return add(task, (shard, places))

        monkeypatch.setattr(merge_steps, step, disturbed)
        with pytest.raises(DataError, match=r"the runner returned"):
            learn_by_hand(job_of(rounds, counts, BpeRecipe(330), 6_000))
        assert not left
        learned, _ = learn_by_hand(job_of(rounds, counts, BpeRecipe(330), 6_000))
        same(learned, learned_here(counts, BpeRecipe(330)))
