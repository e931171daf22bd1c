"""The trainer of a train job: learns in this process, or in rounds over words on storage."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import pyarrow as pa

from bpe_beam.counts.artifact import iter_words
from bpe_beam.errors import UsageError
from bpe_beam.jobs.train.plan import TrainingPlan, identity_of, least_entries
from bpe_beam.jobs.train.weights import refuse_overflow, weighted_recipe
from bpe_beam.progress import Progress
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.train import TrainSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute
from bpe_beam.training.initial_vocabulary import check_distributed
from bpe_beam.training.learn import learn
from bpe_beam.training.native_trainer import TrainingResult
from bpe_beam.training.recipe import WordLevelRecipe
from bpe_beam.training.special_token_conflicts import ambiguous_tokens, refuse_spelled
from bpe_beam.training.trainer_limits import DRIVER_SHARE, too_many
from bpe_beam.training.words import gather_words, memory_needed

ROUNDS = "rounds"
"""The folder in the output that has the words between rounds."""


class Trainer:
    """Learns a vocabulary from a counts folder.

    Args:
        plan: The job's plan, with counts.

    Attributes:
        plan: The job's plan.
        summary: What the job's summary says of the training.
        measured: The rows of the summary about the runner and the metrics of rounds; empty without
            rounds.

    Raises:
        UsageError: The recipe cannot be trained in rounds, or not in so little memory.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        assert plan.counts is not None
        self.plan = plan
        self._settings = plan.settings
        self._storage = plan.storage
        self._counts = plan.counts
        self._recipe = weighted_recipe(plan.recipe, plan.counts.weights)
        self._base_tokenizer = plan.base_tokenizer
        self.summary: dict[str, Any] = {}
        self.measured: dict[str, Any] = {}
        self._distributed = self._decide()

    def train(self, progress: Progress) -> TrainingResult:
        """Learn the vocabulary, and show the progress.

        Raises:
            UsageError: The words do not fit the recipe.
            DataError: Storage or the runner fails, or counts are beyond 64 bits.
        """
        with refuse_overflow(self._counts.weights):
            return self._in_rounds(progress) if self._distributed else self._here(progress)

    def _decide(self) -> bool:
        """Return whether words stay on storage, and put the reason into the summary."""
        settings, manifest = self._settings, self._counts.manifest
        wanted = settings.merge_rounds
        entries = self._recipe.vocab_size
        needed = memory_needed(manifest.word_bytes, manifest.unique_words, entries)
        takes = f"{manifest.unique_words:,} unique words take about {_size(needed)}"
        within = needed <= settings.driver_memory
        relation = "within" if within else "more than"
        where = f"{takes}, {relation} driver_memory {_size(settings.driver_memory)}"
        size = (manifest.word_bytes, manifest.unique_words)
        beyond = too_many(self._recipe, *size, continued=self._base_tokenizer is not None)
        if within and beyond is not None:
            have = "have" if beyond[1] else "may have"
            where = (
                f"{manifest.unique_words:,} unique words of {manifest.word_bytes:,} bytes {have} "
                f"more than the {beyond[0]:,} symbols and words that one learner holds"
            )
        refusal = self._refusal()
        impossible = not within or (beyond is not None and beyond[1])
        fits = within and beyond is None
        # Where rounds are refused, words that may fit are tried; the learner counts them first.
        distributed = wanted == "distributed" or (
            wanted == "auto" and not fits and (impossible or refusal is None)
        )
        if distributed:
            if refusal is not None:
                problem = refusal.problem if fits else f"{refusal.problem} ({where})"
                raise UsageError(problem, refusal.parameters, refusal.remedy)
        elif impossible:
            ways = [] if within else [f"{{driver_memory}} {-(-needed // 10**6)}MB"]
            ways += [] if refusal else ["{merge_rounds} distributed"]
            raise UsageError(where, remedy=f"give {', or '.join(ways or ['fewer words'])}")
        self.summary["merge_rounds"] = "distributed" if distributed else "local"
        self.summary["merge_rounds_because"] = "merge_rounds says so" if wanted != "auto" else where
        return distributed

    def _refusal(self) -> UsageError | None:
        """Return why the recipe cannot be trained in rounds; None if it can."""
        runner, output = self._settings.run.runner, self._settings.output
        try:
            check_distributed(self._recipe)
            require_reachable(runner, counts=(self._counts.url,), output=(output,))
        except UsageError as error:
            return error
        return None

    def _here(self, progress: Progress) -> TrainingResult:
        settings, recipe = self._settings, self._recipe
        in_order = settings.tie_break == "first_seen"
        counts = self._counts
        tables = iter_words(self._storage, counts.url, counts.manifest, counts.factors)
        words = gather_words(tables, in_order)
        _release_unused_memory()
        refuse_spelled(words, ambiguous_tokens(recipe, self._base_tokenizer))
        most = max(0, recipe.vocab_size - least_entries(recipe, self._base_tokenizer))
        with progress.stage("learn", most, "merges") as stage:
            learned = learn(words, recipe, stage.advance, base_tokenizer=self._base_tokenizer)
            if len(learned.vocab) >= recipe.vocab_size:
                # The alphabet, which only the words tell, took the rest of the entries.
                stage.total = stage.snapshot().done
            return learned

    def _in_rounds(self, progress: Progress) -> TrainingResult:
        from bpe_beam.engines.run import run_summary
        from bpe_beam.jobs.train.rounds import RoundsJob
        from bpe_beam.workers.measured import Measured

        assert not isinstance(self._recipe, WordLevelRecipe)
        measured = Measured()
        if self._settings.run.overwrite:
            clear_rounds(self._settings, self._storage)
        folder = self._folder()
        job = RoundsJob(
            storage=self._storage,
            run=self._settings.run,
            folder=folder,
            counts=self._counts.url,
            manifest=self._counts.manifest,
            factors=self._counts.factors,
            recipe=self._recipe,
            base_tokenizer=self._base_tokenizer,
            memory=self._settings.driver_memory // DRIVER_SHARE,
            measured=measured,
        )
        learned, commit = job.learn(progress)
        self.summary |= {"rounds": list(commit.history), "jobs": job.jobs}
        self.measured = {
            **run_summary(self._settings.run, len(commit.word_batches)),
            **measured.to_json(),
        }
        return learned

    def _folder(self) -> Any:
        from bpe_beam.jobs.train.commits import RoundsFolder

        identity = {
            **identity_of(self._settings, self._recipe),
            **self.plan.weight_rules.identity,
            "continued": None if self._base_tokenizer is None else self._base_tokenizer.fingerprint,
            "counts_manifest": self._counts.sha256,
        }
        url = self._storage.join(absolute(self._settings.output), ROUNDS)
        return RoundsFolder(self._storage, url, identity)


def clear_rounds(settings: TrainSettings, storage: Storage) -> None:
    """Remove the folder of rounds, if there is one: everything is learned, or given up.

    Args:
        settings: The job's settings.
        storage: The storage client.
    """
    url = storage.join(settings.output, ROUNDS)
    if storage.exists(url):
        from bpe_beam.jobs.train.commits import remove_rounds

        remove_rounds(storage, url)


def has_merges(settings: TrainSettings, storage: Storage) -> bool:
    """Return whether rounds left merges on storage, from which another run would go on.

    Args:
        settings: The job's settings.
        storage: The storage client.
    """
    url = storage.join(settings.output, ROUNDS)
    if not storage.exists(url):
        return False
    from bpe_beam.jobs.train.commits import holds_merges

    return holds_merges(storage, url)


def _release_unused_memory() -> None:
    """Return to the system what counting and reading have freed, since training needs the most."""
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _size(size: int) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 10**9 else f"{size / 1e6:,.1f} MB"
