"""`--dry-run`: what a job would read, how long, and how much memory and storage it would take.

A sample of the corpus is read and processed by the same code as in the job, on as many threads, for
a few seconds. Everything else follows from its speeds and amounts. Nothing is written but temporary
files, which are removed.

The number of unique words grows with a power of the corpus's size. The power is that between each
half of the sample and the whole sample.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from msgspec import UNSET, Struct, UnsetType

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.readers import read_split
from bpe_beam.counts.artifact import write_part
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import PARTITIONS, WordTable, encode_block
from bpe_beam.engines.local import scattered
from bpe_beam.engines.run import workers_of
from bpe_beam.jobs import corpus_input
from bpe_beam.jobs.corpus_summary import inputs_summary
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import needs_seen
from bpe_beam.training.learn import learn
from bpe_beam.training.learning_work import LearningWork
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe
from bpe_beam.training.words import gather_words, memory_needed
from bpe_beam.workers.count_split import TABLE_BYTES
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.source_tables import SourceTables
from bpe_beam.workers.split_task import text_bytes_of
from bpe_beam.workers.tokenize_split import origin_of

SAMPLE_SECONDS = 3.0
"""How long a sample is read."""

_SPLIT_BYTES = 8 << 20
"""The most stored bytes that are read of one split: samples are from everywhere."""

_LEAST_ROWS = 1000
"""The least words of a file whose bytes tell those of a part of the counts."""

_WORD_CACHE_BYTES = 64 << 20
"""The word cache of an encoding thread, which a short sample does not fill."""

_BYTES_PER_WORD = 150
"""The memory of a unique word in a table, about."""

Process = Callable[[pa.RecordBatch], None]


class Estimate(Struct, frozen=True, kw_only=True):
    """The summary of `--dry-run`; all but `files`, `bytes` and `splits` are estimates.

    Attributes:
        sampled_bytes: The stored bytes of the sample.
        seconds: How long the job would take on this machine; None: not known, since merges would be
            learned in rounds.
        memory_bytes: The most memory that this process would take; of training an upper bound.
        storage_bytes: The size of the output.
        temporary_bytes: The most that the job has in its output folder besides, until it ends.
    """

    job: str
    dry_run: bool = True
    files: int | UnsetType = UNSET
    files_excluded: int | None = None
    duplicate_inputs: list[str] | None = None
    bytes: int | UnsetType = UNSET
    splits: int | UnsetType = UNSET
    sampled_bytes: int | UnsetType = UNSET
    documents: int | UnsetType = UNSET
    text_bytes: int | UnsetType = UNSET
    words: int | UnsetType = UNSET
    unique_words: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    rejects: int | UnsetType = UNSET
    merge_rounds: str | UnsetType = UNSET
    workers: int
    seconds: float | None
    memory_bytes: int
    storage_bytes: int
    temporary_bytes: int | UnsetType = UNSET
    next: Sequence[str] = ("the same without --dry-run",)


@dataclass
class _Sample:
    """What was read of a corpus: stored bytes, documents, text, rejects, and the seconds it took.

    Attributes:
        share: The share of the corpus that was read.
        rate: Stored bytes a second, of all workers of the job together.
    """

    plan: Plan
    seconds: float = 0.0
    stored: int = 0
    documents: int = 0
    text_bytes: int = 0
    rejects: int = 0
    speedup: float = 1.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def share(self) -> float:
        return max(self.stored, 1) / max(self.plan.size, self.stored, 1)

    @property
    def rate(self) -> float:
        return max(self.stored, 1) * self.speedup / max(self.seconds, 1e-9)

    def whole(self, amount: float) -> int:
        """Return an amount of the whole corpus, from that of the sample."""
        return round(amount / self.share)

    def summary(self) -> dict[str, Any]:
        """Return the rows of the summary about the input."""
        rows = inputs_summary(self.plan, ())
        del rows["files_read_by_one_worker"]
        return {
            **rows,
            "bytes": self.plan.size,
            "splits": len(self.plan.splits),
            "sampled_bytes": self.stored,
            "documents": self.whole(self.documents),
            "text_bytes": self.whole(self.text_bytes),
            "rejects": self.whole(self.rejects),
        }


def _read_sample(
    storage: Storage,
    plan: Plan,
    input_settings: InputSettings,
    processes: Sequence[Process],
    *,
    only_text: bool,
    seconds: float,
) -> _Sample:
    """Read parts of splits from all over the corpus until the time is over.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        input_settings: The input settings.
        processes: What each thread does to each batch.
        only_text: See `read_split`.
        seconds: The time.
    """
    sample, settings = _Sample(plan), corpus_input.read_settings(input_settings)
    left = iter([plan.splits[number] for number in scattered(len(plan.splits))])
    started = time.monotonic()

    def read(process: Process) -> None:
        while time.monotonic() - started < seconds:
            with sample._lock:
                split = next(left, None)
            if split is None:
                return
            stored = rejects = 0

            def on_read(count: int) -> None:
                nonlocal stored
                stored += count

            def on_reject(_: object) -> None:
                nonlocal rejects
                rejects += 1

            documents = text_bytes = 0
            for batch in read_split(
                storage, plan, split, settings, on_reject, only_text=only_text, on_read=on_read
            ):
                process(batch)
                documents += batch.num_rows
                text_bytes += text_bytes_of(batch)
                if stored >= _SPLIT_BYTES or time.monotonic() - started >= seconds:
                    break
            with sample._lock:
                sample.stored += stored
                sample.documents += documents
                sample.text_bytes += text_bytes
                sample.rejects += rejects

    with ThreadPoolExecutor(len(processes)) as pool:
        for _ in pool.map(read, processes):
            pass
    sample.seconds = time.monotonic() - started
    return sample


def _memory_now() -> int:
    """Return the most memory that this process has had, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


# ---- words ----


@dataclass
class _Words:
    """The words of a sample, and what follows for the whole corpus.

    Attributes:
        table: The unique words of the sample, with their counts.
        power: How the number of unique words grows with the size of the corpus.
    """

    sample: _Sample
    table: pa.Table
    words: int
    power: float
    stored_row_bytes: float
    block_row_bytes: float
    row_seconds: float

    def unique(self, share: float) -> int:
        """Return the number of unique words of a share of the corpus."""
        growth = math.pow(share / self.sample.share, self.power)
        return round(int(self.table.num_rows) * growth)

    @property
    def word_bytes(self) -> int:
        """The bytes of all unique words of the corpus."""
        mean: float = self.table["word"].nbytes / max(1, self.table.num_rows)
        return round(mean * self.unique(1.0))


def _count_sample(
    storage: Storage, plan: Plan, input_settings: InputSettings, run: RunSettings, rules: WordRules
) -> _Words:
    """Count a sample, and merge its words as the job does."""
    workers = workers_of(run, len(plan.splits))
    threads = 1 if rules.hold_gil else workers
    counted = [0] * threads
    halves = [[_tables(rules) for _ in range(2)] for _ in range(threads)]

    def process(number: int) -> Process:
        turn = 0

        def count(batch: pa.RecordBatch) -> None:
            nonlocal turn
            counted[number] += halves[number][turn % 2].add(batch)
            turn += 1

        return count

    sample = _read_sample(
        storage,
        plan,
        input_settings,
        [process(number) for number in range(threads)],
        only_text=True,
        seconds=SAMPLE_SECONDS,
    )
    sample.speedup = workers / threads
    blocks = [[list(_blocks(own[half])) for own in halves] for half in range(2)]
    sizes = [_merged(own, rules).num_rows for own in blocks]
    started = time.monotonic()
    table = _merged([rows for own in blocks for rows in own], rules)
    rows = sum(block.num_rows for own in blocks for part in own for block in part)
    _written(table, rules)
    seconds = time.monotonic() - started
    few = table
    if table.num_rows >= _LEAST_ROWS * PARTITIONS:  # words of one partition are less alike
        few = table.take(pa.array(range(0, table.num_rows, PARTITIONS)))
    encoded = sum(len(encode_block(b)) for own in blocks for part_ in own for b in part_)
    mean = sum(sizes) / 2
    grown = math.log2(table.num_rows / mean) if mean else 1.0
    return _Words(
        sample,
        table,
        sum(counted),
        min(1.0, max(0.0, grown)),
        _written(few, rules) / max(1, few.num_rows),
        encoded / max(1, rows),
        seconds / max(1, rows),
    )


def _written(words: pa.Table, rules: WordRules) -> int:
    """Return the size of a file of words, which is written and removed."""
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str | None, Any] = {None: words.to_batches()}
        return write_part(Storage(), folder, "part.parquet", rows, rules.with_places).bytes


def _tables(rules: WordRules) -> SourceTables:
    return SourceTables(rules, False, max_bytes=TABLE_BYTES, on_full=lambda words: None)


def _blocks(tables: SourceTables) -> Iterator[pa.RecordBatch]:
    for rows in tables.take().values():
        for _, block in rows:
            yield block


def _merged(blocks: Sequence[Sequence[pa.RecordBatch]], rules: WordRules) -> pa.Table:
    merged = WordTable(with_places=rules.with_places)
    for own in blocks:
        for block in own:
            merged.add_block(block)
    found = list(merged.drain())
    return pa.Table.from_batches(found) if found else pa.table({"word": [], "count": []})


def _counting(words: _Words, run: RunSettings) -> dict[str, Any]:
    """Return the rows of the summary about counting a corpus."""
    sample, plan = words.sample, words.sample.plan
    workers = workers_of(run, len(plan.splits))
    in_splits = sum(words.unique(split.size / max(1, plan.size)) for split in plan.splits)
    unique = words.unique(1.0)
    tables = min(TABLE_BYTES, _BYTES_PER_WORD * in_splits // max(1, len(plan.splits)))
    part = _BYTES_PER_WORD * unique // PARTITIONS
    merging = words.row_seconds * in_splits / min(workers, PARTITIONS)
    return {
        **sample.summary(),
        "words": sample.whole(words.words),
        "unique_words": unique,
        "workers": workers,
        "seconds": round(plan.size / sample.rate + merging, 1),
        "memory_bytes": _memory_now() + workers * max(tables, part),
        "storage_bytes": round(words.stored_row_bytes * unique),
        "temporary_bytes": round(words.block_row_bytes * in_splits),
    }


def estimate_counting(
    storage: Storage, plan: Plan, input_settings: InputSettings, run: RunSettings, rules: WordRules
) -> Estimate:
    """Return what counting a corpus would take.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        input_settings: The input settings.
        run: How the job would run.
        rules: How texts are split into words.
    """
    return Estimate(
        job="count", **_counting(_count_sample(storage, plan, input_settings, run, rules), run)
    )


# ---- training ----


def estimate_training(
    storage: Storage,
    plan: Plan,
    input_settings: InputSettings,
    run: RunSettings,
    rules: WordRules,
    recipe: Recipe,
    driver_memory: int,
) -> Estimate:
    """Return what counting a corpus and training from its words would take.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        input_settings: The input settings.
        run: How the job would run.
        rules: How texts are split into words.
        recipe: What is trained.
        driver_memory: The memory for training, in bytes.
    """
    words = _count_sample(storage, plan, input_settings, run, rules)
    rows = _counting(words, run)
    unique = words.unique(1.0)
    training = _training(words.table, recipe, unique, words.word_bytes, driver_memory)
    return Estimate(job="train", **_joined(rows, training))


def estimate_training_from_words(
    job_words: pa.Table, unique_words: int, word_bytes: int, recipe: Recipe, driver_memory: int
) -> Estimate:
    """Return what training from counts would take.

    Args:
        job_words: Some of the words of the counts.
        unique_words: The number of all of them.
        word_bytes: Their bytes.
        recipe: What is trained.
        driver_memory: The memory for training, in bytes.
    """
    rows = {"unique_words": unique_words, "workers": 1, "seconds": 0.0, "storage_bytes": 0}
    rows["memory_bytes"] = _memory_now()
    training = _training(job_words, recipe, unique_words, word_bytes, driver_memory)
    return Estimate(job="train", **_joined(rows, training))


def _training(
    words: pa.Table, recipe: Recipe, unique: int, word_bytes: int, driver_memory: int
) -> dict[str, Any]:
    """Return seconds, memory and storage of training, from those of training on some words."""
    needed = memory_needed(word_bytes, unique, recipe.vocab_size)
    started = time.monotonic()
    found = learn(gather_words([words], "first_document" in words.schema.names), recipe)
    seconds = time.monotonic() - started
    seconds *= _more_work(recipe, word_bytes, words.num_rows / max(1, unique))
    in_rounds = needed > driver_memory
    tokens = sum(len(token) for token in found.vocab)
    return {
        "merge_rounds": "distributed" if in_rounds else "local",
        "seconds": None if in_rounds else seconds,
        "memory_bytes": min(needed, driver_memory),
        # tokenizer.json has each token three times, merges included; the others as often
        "storage_bytes": 6 * tokens + 30 * recipe.vocab_size,
    }


def _more_work(recipe: Recipe, word_bytes: int, share: float) -> float:
    """Return by how much training on all words takes longer than on a share of them."""
    if isinstance(recipe, WordLevelRecipe) or not 0 < share < 1:
        return 1 / share if share else 1.0

    def seconds(symbols: float) -> float:
        learning = LearningWork(
            round(symbols),
            recipe.vocab_size,
            in_characters=needs_seen(recipe),
            by_likelihood=not isinstance(recipe, BpeRecipe),
        )
        return learning.seconds_left()

    return seconds(word_bytes) / seconds(word_bytes * share)


def _joined(counting: dict[str, Any], training: dict[str, Any]) -> dict[str, Any]:
    seconds = training["seconds"]
    return {
        **counting,
        "merge_rounds": training["merge_rounds"],
        "seconds": None if seconds is None else round(counting["seconds"] + seconds, 1),
        "memory_bytes": max(counting["memory_bytes"], _memory_now() + training["memory_bytes"]),
        "storage_bytes": counting["storage_bytes"] + training["storage_bytes"],
    }


# ---- tokens ----


def estimate_tokenizing(
    storage: Storage,
    plan: Plan,
    input_settings: InputSettings,
    run: RunSettings,
    tokenizer: Tokenizer,
    encoding: Encoding,
    formats: Sequence[str],
    columns: tuple[str, ...] = (),
) -> Estimate:
    """Return what tokenizing a corpus would take; shards of the sample are written and measured.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        input_settings: The input settings.
        run: How the job would run.
        tokenizer: The tokenizer.
        encoding: How documents become ids.
        formats: The formats of the shards.
        columns: The columns for trainers that they get.
    """
    workers = workers_of(run, len(plan.splits))
    threads = 1 if tokenizer.holds_gil else workers
    kinds = [shard_format(name) for name in formats]
    limit = min(kind.max_document_tokens for kind in kinds)
    writers: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for number in range(threads):
            own = []
            for kind, name in zip(kinds, formats, strict=True):
                shard = shard_name(number, threads)
                Storage().make_folder(f"{folder}/{name}")
                target = Storage(), f"{folder}/{name}", shard, tokenizer.max_id + 1
                labelled = kind.labelled_writer
                made = (
                    kind.writer(*target)
                    if labelled is None
                    else labelled(*target, origin_of(encoding, columns))
                )
                own.append(stack.enter_context(made))
            writers.append(own)

        def process(own: list[Any]) -> Process:
            def write(texts: pa.RecordBatch) -> None:
                batch, ids, _ = encode_documents(encoding, texts, plan, lambda _: None, limit)
                for writer in own:
                    writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy(), batch)

            return write

        sample = _read_sample(
            storage,
            plan,
            input_settings,
            [process(own) for own in writers],
            only_text=all(kind.labelled_writer is None for kind in kinds),
            seconds=SAMPLE_SECONDS,
        )
    shards = [[writer.result() for writer in own] for own in writers]
    sample.speedup = workers / threads
    size = sum(file.bytes for own in shards for shard in own for file in shard.files)
    return Estimate(
        job="tokenize",
        **sample.summary(),
        tokens=sample.whole(sum(own[0].tokens for own in shards)),
        workers=workers,
        seconds=round(plan.size / sample.rate, 1),
        memory_bytes=_memory_now() + workers * _WORD_CACHE_BYTES,
        storage_bytes=sample.whole(size),
    )
