"""Run the rounds of distributed training on one thread, each step in turn.

Word batches come in any order, as a runner may return them: the result must not depend on it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from bpe_beam.counts.manifest import CountsManifest, part_name
from bpe_beam.counts.part_files import write_part
from bpe_beam.counts.word_table import PARTITIONS, WORD_SCHEMA, WordTable
from bpe_beam.engines.run import LocalEngine
from bpe_beam.engines.steps import Steps
from bpe_beam.jobs.train import rounds as merge_rounds
from bpe_beam.jobs.train.commits import RoundsFolder
from bpe_beam.jobs.train.plan import PlannedCounts
from bpe_beam.jobs.train.rounds import RoundsJob
from bpe_beam.progress import Progress
from bpe_beam.settings.common import RunSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.workers.rounds import merge_steps, piece_steps
from bpe_beam.workers.rounds import task as round_task
from bpe_beam.workers.rounds.task import PartSlice
from bpe_beam.workers.task_results import MetricSums

STORAGE = Storage()
MOST = 2**63 - 1
QUIET = Progress("none")


def counts_folder(folder: Path, words: Mapping[str, int], pretokenizer: str = "gpt2") -> Path:
    """Write a counts folder of these words, as the count job does."""
    table = WordTable()
    table.add_block(
        pa.RecordBatch.from_pydict({"word": [*words], "count": [*words.values()]}, WORD_SCHEMA)
    )
    blocks: dict[int, list[Any]] = defaultdict(list)
    for partition, block in table.blocks(PARTITIONS):
        blocks[partition].append(block)
    folder.mkdir(parents=True, exist_ok=True)
    parts = tuple(
        write_part(STORAGE, str(folder), part_name(i, PARTITIONS), {None: blocks[i]}, False)
        for i in range(PARTITIONS)
    )
    manifest = CountsManifest(
        normalizer="none",
        pretokenizer=pretokenizer,
        special_tokens=(),
        with_places=False,
        documents=1,
        text_bytes=min(sum(len(word) * n for word, n in words.items()), MOST),
        words=min(sum(words.values()), MOST),
        unique_words=len(words),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects={},
        inputs=(),
        parts=parts,
    )
    (folder / "__manifest").write_bytes(manifest.to_bytes())
    return folder


class MixedEngine(LocalEngine):
    """Runs each step at once, in this thread, with elements and values in random order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def run(
        self, label: str, function: Any, elements: list[Any], output_type: Any, *whole: list[Any]
    ) -> list[Any]:
        """Run a task for each element."""
        results = [function(*whole, element) for element in self._mixed(elements)]
        return [output for result in results for output in result.outputs]

    def gather(
        self, label: str, pairs: list[Any], known: Iterable[tuple[int, Any]] = ()
    ) -> list[Any]:
        """Return each key with all of its values."""
        gathered = super().gather(label, pairs, known)
        return self._mixed((key, self._mixed(values)) for key, values in gathered)

    def _mixed(self, items: Iterable[Any]) -> list[Any]:
        items = list(items)
        self._random.shuffle(items)
        return items


def job_of(
    folder: Path,
    counts: Path,
    recipe: BpeRecipe | WordPieceRecipe,
    memory: int,
    base_tokenizer: Tokenizer | None = None,
) -> RoundsJob:
    """Return a training in rounds over a counts folder, its rounds in `folder`."""
    manifest = CountsManifest.from_bytes((counts / "__manifest").read_bytes(), "__manifest")
    return RoundsJob(
        run=RunSettings(),
        folder=RoundsFolder(STORAGE, str(folder), {"test": repr(recipe)}),
        counts=PlannedCounts(str(counts), manifest, "", None),
        recipe=recipe,
        base_tokenizer=base_tokenizer,
        memory=memory,
        measured=MetricSums(),
    )


def learn_by_hand(
    job: RoundsJob,
    *,
    word_batches: int = 3,
    seed: int = 0,
    small: bool = False,
    progress: Progress = QUIET,
    watched: bool = False,
) -> tuple[TrainingResult, list[dict[str, Any]]]:
    """Train without Beam; return the result and the summary of the rounds.

    Args:
        job: The job.
        word_batches: The number of word batches.
        seed: The order of word batches and blocks.
        small: Tables are written out, and lists broken off, after a few words and pairs.
        progress: Where it is shown.
        watched: As on a runner elsewhere, whose pipelines are looked at.
    """

    with by_hand(word_batches=word_batches, seed=seed, small=small, watched=watched):
        learned, commit = job.learn(progress)
    return learned, commit.history  # type: ignore[return-value]


@contextmanager
def by_hand(
    *, word_batches: int = 3, seed: int = 0, small: bool = False, watched: bool = False
) -> Iterator[None]:
    """Have rounds and passes run in this thread; see `learn_by_hand`."""

    def first_slices(manifest: CountsManifest) -> list[tuple[PartSlice, ...]]:
        parts = range(len(manifest.parts))
        slices = [PartSlice(part, i, 2) for part in parts for i in range(2)]
        return [tuple(slices[word_batch::word_batches]) for word_batch in range(word_batches)]

    def run_steps(run: Any, label: str, steps: Steps, *others: Any, **more: Any) -> None:
        steps(MixedEngine(seed))
        if watched:
            others[-1]()

    limits: dict[tuple[Any, str], Any] = {
        (merge_rounds, "run_steps"): run_steps,
        (merge_rounds, "first_slices"): first_slices,
    }
    if watched:
        limits |= {(merge_steps, "progress"): mock.Mock()}
    if small:
        limits |= {
            (merge_steps, "TABLE_BYTES"): 1,
            (merge_steps, "BATCH_WORDS"): 3,
            (merge_steps, "CANDIDATES"): 2,
            (round_task, "CANDIDATES"): 2,
            (merge_steps, "FREQUENT_PAIRS"): 8,
            (piece_steps, "BATCH_WORDS"): 3,
        }
    with ExitStack() as stack:
        for (module, name), value in limits.items():
            stack.enter_context(mock.patch.object(module, name, value))
        yield
