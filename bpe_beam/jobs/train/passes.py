"""Training of pieces on workers: passes over the words of the counts, a job and a commit each.

The driver has the pieces; see `workers/rounds/piece_steps.py` for what workers do, and
`training/unigram/passes.py` for what the driver decides. The first pieces of `unigram` are
substrings of the words, which it finds in this process; `mingram` takes them from merge rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from msgspec.structs import astuple, replace

from bpe_beam.engines.steps import Collection, Engine
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.jobs.train.commits import PassCommit, PassesFolder
from bpe_beam.jobs.train.round_learning import task_names
from bpe_beam.jobs.train.rounds import RoundsJob
from bpe_beam.progress import Progress, Stage
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.training.learn import piece_training
from bpe_beam.training.merges.native_trainer import TrainingResult, WordTotals
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import BpeRecipe, MinGramRecipe, PieceRecipe
from bpe_beam.training.unigram.expectation import UnigramTraining
from bpe_beam.training.unigram.fewest_tokens import MinGramTraining, merging_recipe
from bpe_beam.training.unigram.passes import PieceState, PieceTraining, add_stored
from bpe_beam.training.unigram.segments import chosen_characters, rules_of
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE
from bpe_beam.workers.rounds.piece_steps import PassTask, count_tokens, sum_pieces
from bpe_beam.workers.rounds.task import WordBatchTask
from bpe_beam.workers.task_results import TaskResult

COUNT_CHARACTERS = BpeRecipe(1, symbols="characters", limit_alphabet=MAX_VOCAB_SIZE)
"""A recipe whose symbols are the characters of the words, with their counts."""

Files = Sequence[FileInfo]

_PIECES = "state/pieces-00000-of-00001.arrow"


@dataclass
class PassesJob:
    """A training of pieces on workers; its merge rounds have the recipe `COUNT_CHARACTERS`."""

    rounds: RoundsJob
    recipe: PieceRecipe
    threads: int  # of this process
    history: list[JsonObject] = field(default_factory=list, init=False)  # of the merge rounds

    @cached_property
    def _folder(self) -> PassesFolder:
        return PassesFolder(self.rounds.folder)

    @property
    def _training(self) -> PieceTraining:
        return piece_training(self.recipe, self.threads)

    def learn(self, progress: Progress) -> TrainingResult:
        """Train from the last commit to the last pass."""
        commit = self._folder.latest()
        if commit is None:
            state = self._seeds(progress)
            commit = self._commit(self._folder.new_run(), state)
        else:
            url, sha256 = self._pieces_of(commit)
            data = read_hashed(self._folder.storage, url, sha256)
            state = PieceState.from_bytes(data, tuple(commit.sizes), url)
            self.history = list(commit.history)
        with progress.stage("learn", None, "passes") as stage:
            stage.advance(state.passes)
            while self._training.next_pass(state) is not None:
                commit, state = self._pass(commit, state, stage)
                stage.advance(1)
            totals = self._totals(commit, state, stage)
        return replace(self._training.result(state), totals=totals)

    def _commit(
        self, run: RunFolder, state: PieceState, first_run: str = "", segments: Files = ()
    ) -> PassCommit:
        """Commit the pieces that the next pass begins with."""
        data = state.to_bytes()
        self._folder.storage.write_bytes(run.path(_PIECES), data)
        pieces = FileInfo.of(_PIECES, data)
        commit = PassCommit(
            number=state.passes + 1, run=run.name, pieces=pieces, sizes=state.sizes,
            first_run=first_run, segments=segments, history=self.history,
        )  # fmt: skip
        self._folder.commit(commit)
        return commit

    def _pieces_of(self, commit: PassCommit) -> tuple[str, str]:
        """Return the URL and the SHA-256 of the file of committed pieces."""
        run = self._folder.run(commit.run)
        return run.path(commit.pieces.name), commit.pieces.sha256

    # ---- before the first pass ----

    def _seeds(self, progress: Progress) -> PieceState:
        if isinstance(self.recipe, MinGramRecipe):
            return self._merged(self.recipe, progress)
        words = gather_words(self.rounds.counts.words(self._folder.storage), False)
        return UnigramTraining(self.recipe, self.threads).seeds(words)[0]

    def _merged(self, recipe: MinGramRecipe, progress: Progress) -> PieceState:
        """Return the pieces that merge rounds over the segments of the words learn."""
        rounds = self.rounds
        with progress.stage("learn", None, "rounds") as stage:
            seen = rounds.find_symbols(stage)
        alphabet = chosen_characters(seen.counts or {}, recipe)
        rounds.recipe = merging_recipe(alphabet, recipe)
        rounds.segments = rules_of(alphabet.characters, recipe)
        learned, commit = rounds.learn(progress)
        self.history = list(commit.history)
        return MinGramTraining(recipe).seeds(alphabet, learned)

    # ---- a pass ----

    def _pass(
        self, last: PassCommit, state: PieceState, stage: Stage
    ) -> tuple[PassCommit, PieceState]:
        """Run a pass, and return its commit and the state after it."""
        run = self._folder.new_run()
        if not last.segments:
            batches = self.rounds.first_word_batches()
        else:
            first = self._folder.run(last.first_run)
            batches = [
                WordBatchTask(number, file=(first.path(file.name), file.sha256))
                for number, file in enumerate(last.segments)
            ]
        sums = np.zeros((len(state.pieces), 2), np.uint64)
        written = []
        for receipt in self._run(run, sum_pieces, "sums", last, state, stage, batches):
            file, *of_segments = receipt.files
            url = run.path(file.name)
            add_stored(sums, read_hashed(run.storage, url, file.sha256), url)
            written += of_segments
        state = self._training.after(state, sums)
        if last.segments:
            return self._commit(run, state, last.first_run, last.segments), state
        return self._commit(run, state, run.name, written), state

    def _totals(self, last: PassCommit, state: PieceState, stage: Stage) -> WordTotals:
        """Return the number of tokens that all words become."""
        run = self._folder.new_run()
        words = self.rounds.first_word_batches()
        receipts = self._run(run, count_tokens, "tokens", last, state, stage, words)
        run.remove_run()
        rows = [astuple(receipt.read_stats(WordTotals)) for receipt in receipts]
        return WordTotals(*map(sum, zip(*rows, strict=True)))

    def _run(
        self,
        run: RunFolder,
        function: Callable[[PassTask, str], TaskResult],
        kind: str,
        last: PassCommit,
        state: PieceState,
        stage: Stage,
        batches: Sequence[WordBatchTask],
    ) -> Iterable[Receipt]:
        """Run a task for each word batch, and return their receipts."""
        task = PassTask(
            **self.rounds.of_words(run, len(batches)),
            recipe=self.recipe,
            segments=rules_of(state.characters, self.recipe),
            pieces=self._pieces_of(last),
            sizes=state.sizes,
        )

        def steps(engine: Engine) -> Collection:
            texts = engine.tasks("WordBatches", [batch.to_json() for batch in batches])
            return engine.run("Pass", partial(function, task), texts, str)

        names = task_names(kind, len(batches))
        return self.rounds.run_steps("Pass", steps, len(batches), run, stage, names).values()
