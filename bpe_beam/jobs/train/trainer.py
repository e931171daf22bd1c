"""The trainer of a train job: learns in this process, or in rounds over words on storage."""

from __future__ import annotations

from msgspec.structs import replace

from bpe_beam.errors import DataError, UsageError
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.train.local_or_distributed import learns_in_rounds
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.progress import Progress
from bpe_beam.storage.names import absolute
from bpe_beam.training.learn import learn, share_of_time, weighted_recipe
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.symbols import ambiguous_tokens, refuse_spelled
from bpe_beam.training.merges.words import DRIVER_SHARE, gather_words
from bpe_beam.training.recipe import PieceRecipe, UnigramRecipe, WordLevelRecipe
from bpe_beam.workers.unused_memory import release_unused_memory


class Trainer:
    """Learns a vocabulary from a counts folder; `plan` has the recipe for weighted counts."""

    def __init__(self, plan: TrainingPlan) -> None:
        assert plan.counts is not None
        self.plan = replace(plan, recipe=weighted_recipe(plan.recipe, plan.counts.weights))
        self._counts = plan.counts
        self.summary: Rows = {}  # of the job, about the training
        self.measured: Rows = {}  # about the runner and the metrics of rounds, if there are any
        self._distributed, why = learns_in_rounds(self.plan)
        self.summary["merge_rounds"] = "distributed" if self._distributed else "local"
        self.summary["merge_rounds_because"] = why

    def train(self, progress: Progress) -> TrainingResult:
        """Learn the vocabulary, and show the progress."""
        try:
            return self._in_rounds(progress) if self._distributed else self._here(progress)
        except OverflowError as error:
            if self._counts.weights is None:
                raise DataError(f"the counts are too large to train from: {error}") from error
            raise UsageError(
                f"the weighted counts are too large to train from: {error}; give smaller weights, "
                "or weights with fewer binary digits, such as 0.5 and 0.25"
            ) from error

    def _here(self, progress: Progress) -> TrainingResult:
        recipe, counts, base = self.plan.recipe, self._counts, self.plan.base_tokenizer
        in_order = self.plan.settings.tie_break == "first_seen"
        words = gather_words(counts.words(self.plan.storage), in_order)
        # Memory that counting and reading have freed: training needs more than any other step.
        release_unused_memory()
        refuse_spelled(words, ambiguous_tokens(recipe, base))
        maximum = max(0, recipe.vocab_size - self.plan.minimum_entries)
        if isinstance(recipe, UnigramRecipe):
            with progress.stage("learn", None, "passes") as stage:
                return learn(words, recipe, stage.advance, threads=self._threads)
        with progress.stage("learn", maximum, "merges") as stage:
            stage.share_of_time = lambda now: share_of_time(recipe, now.done / max(1, maximum))
            learned = learn(
                words, recipe, stage.advance, base_tokenizer=base, threads=self._threads
            )
            if len(learned.vocab) >= recipe.vocab_size:
                # The alphabet, which depends on the words, took the rest of the entries.
                stage.total = stage.snapshot().done
            return learned

    @property
    def _threads(self) -> int:
        from bpe_beam.engines.run import default_workers

        return self.plan.settings.run.workers or default_workers()

    def _in_rounds(self, progress: Progress) -> TrainingResult:
        from bpe_beam.engines.run import run_summary
        from bpe_beam.jobs.train.commits import RoundsFolder, remove_rounds
        from bpe_beam.jobs.train.passes import COUNT_CHARACTERS, PassesJob
        from bpe_beam.jobs.train.rounds import RoundsJob
        from bpe_beam.workers.task_results import MetricSums

        settings, base, recipe = self.plan.settings, self.plan.base_tokenizer, self.plan.recipe
        assert not isinstance(recipe, WordLevelRecipe)  # see `learns_in_rounds`
        pieces = recipe if isinstance(recipe, PieceRecipe) else None
        if settings.run.overwrite:
            remove_rounds(self.plan.storage, self.plan.rounds)
        identity = {
            **self.plan.identity,
            "continued": None if base is None else base.fingerprint,
            "counts_manifest": self._counts.sha256,
        }
        measured = MetricSums()
        job = RoundsJob(
            run=settings.run,
            folder=RoundsFolder(self.plan.storage, absolute(self.plan.rounds), identity),
            counts=self._counts,
            recipe=COUNT_CHARACTERS if isinstance(recipe, PieceRecipe) else recipe,
            base_tokenizer=base,
            memory=settings.driver_memory // DRIVER_SHARE,
            measured=measured,
        )
        if pieces is not None:
            passes = PassesJob(job, pieces, self._threads)
            learned, history = passes.learn(progress), passes.history
        else:
            learned, commit = job.learn(progress)
            history = list(commit.history)
        if history:
            self.summary["rounds"] = history
        self.summary["jobs"] = job.jobs
        tasks = len(job.first_word_batches())
        self.measured = {**run_summary(settings.run, tasks), **measured.to_json()}
        return learned
