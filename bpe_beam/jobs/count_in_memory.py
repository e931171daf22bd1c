"""`count` without a counts folder: the words of a corpus in the memory of this process.

The job has a folder all the same, for receipts and rejects. If the words take more memory than
allowed, the corpus is to be counted into a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar

import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.counts.word_table import WordTable
from bpe_beam.engines.run import workers_of
from bpe_beam.engines.steps import Steps
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_job import Receipts, SplitsLeft
from bpe_beam.jobs.count import CountJob, rules_of
from bpe_beam.progress import Progress, Work
from bpe_beam.settings.count import CountSettings
from bpe_beam.storage import Storage
from bpe_beam.workers.count_in_memory import NotInMemoryError, WordsInMemory, count_in_memory

MOST_STORED_BYTES = 1 << 29
"""The most stored bytes of a corpus that is counted in memory, so that little is read twice if its
words take too much."""

TABLE_BYTES = 400_000_000
"""The most memory of the words."""


def words_in_memory(
    settings: CountSettings, others: Sequence[WordRules], storage: Storage, progress: Progress
) -> list[WordCounts] | None:
    """Return the words of a corpus, or None if they should be counted into a folder."""
    rules = [rules_of(settings), *others]
    if not settings.run.is_local or any(one.hold_gil for one in rules):
        return None
    plan = corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    if plan.size > MOST_STORED_BYTES:
        return None
    words = WordsInMemory(rules, TABLE_BYTES)
    job = _CountInMemoryJob(settings, storage, plan)
    job.words = words
    try:
        job.run(progress)
    except NotInMemoryError:
        return None
    data = storage.read_bytes(storage.join(settings.output, MANIFEST_FILE))
    manifest = job.read_manifest(data)
    with ThreadPoolExecutor(workers_of(settings.run)) as pool:
        numbers = range(len(rules))
        return [*pool.map(lambda one: _counts(manifest, rules[one], words.take(one)), numbers)]


def _counts(manifest: CountsManifest, rules: WordRules, tables: dict[str, WordTable]) -> WordCounts:
    """Return the counts by one of the rules; empties the tables."""
    unique = WordTable()
    for table in tables.values() if len(tables) > 1 else ():
        unique.add(table)
    found: dict[str | None, pa.Table] = {}
    sizes = {source: len(table) for source, table in tables.items()}
    for source in sorted(tables):
        table = tables.pop(source)
        name = None if manifest.sources is None else source
        found[name] = pa.Table.from_batches([table.unsorted()])
    totals = None
    if manifest.sources is not None:
        totals = {
            name: replace(row, unique_words=sizes.get(name, 0))
            for name, row in manifest.sources.items()
        }
    number = len(unique) or max(sizes.values(), default=0)
    own = replace(manifest, **rules.of_counts, unique_words=number, sources=totals)
    return WordCounts(own, found)


class _CountInMemoryJob(CountJob):
    """Counts each split into tables in memory.

    Attributes:
        words: Gets the words.
    """

    merged: ClassVar[Sequence[str]] = ()
    words: WordsInMemory

    def steps(self, left: SplitsLeft) -> Steps | None:
        if not left.tasks:
            return None
        count = partial(count_in_memory, self.task(left), self.words)
        return lambda engine: engine.run(
            "CountSplit", count, engine.tasks("Splits", left.tasks), str
        )

    def work(self, left: SplitsLeft) -> Work | None:
        return None

    def stale(self, receipts: Receipts) -> list[str]:
        return []
