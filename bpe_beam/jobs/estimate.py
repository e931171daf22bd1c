"""`--dry-run`: what a job would read, how long, and how much memory and storage it would take.

Two things are measured, and the rest follows:

- The job itself runs in a process of its own on a few documents, see `trial.py`: what every run
  takes, whatever the corpus.
- A sample of the corpus is read and processed by the same code as in the job, on as many threads,
  for a few seconds, see `corpus_sample.py`. A training runs in a process of its own on the sample's
  words, or on as many parts of counts as it learns in a few seconds.

The number of unique words grows with a power of the corpus's size. The power is that between halves
of the sample and the whole sample. Nothing is written but temporary files, which are removed.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from msgspec import UNSET, Struct, UnsetType

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.manifest import CountsManifest, CountsPart, source_totals
from bpe_beam.counts.word_counter import WordRules
from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.engines.run import workers_of
from bpe_beam.folders.artifact_names import MANIFEST_FILE, TOKEN_COUNTS_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.jobs.corpus_sample import Sample, most_open, read_sample
from bpe_beam.jobs.trial import Trial, peak_memory, try_job, write_documents
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.token_counts import write_token_counts
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.initial_vocabulary import needs_seen
from bpe_beam.training.learning_work import LearningWork
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe
from bpe_beam.training.words import memory_needed
from bpe_beam.workers.count_split import (
    TABLE_BYTES,
    CountTask,
    PartStats,
    RangeReference,
    WordsFile,
    range_references,
    write_partition,
)
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.encode_documents import encode_documents
from bpe_beam.workers.source_tables import SourceTables
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.token_counter import TABLE_BYTES as COUNTER_BYTES
from bpe_beam.workers.token_counter import TokenCounter, added_up, id_columns
from bpe_beam.workers.tokenize_split import ENCODED_BYTES, origin_of

SAMPLE_SECONDS = 3.0
"""How long a sample is read."""

_LEARNING_SECONDS = 3.0
"""How long a training on some of the words takes at most, about."""

_WORD_CACHE_BYTES = 64 << 20
"""The most memory of the word cache of an encoding thread, which a short sample does not fill."""

_HALVED_PARTITIONS, _HALVINGS = 2, 3
"""The partitions of words that tell how their number grows, and the ways to halve the sample."""

_USUAL_POWER = 0.6
"""The power with which unique words grow, where the sample is a part of one split."""

_NANOSECOND = 1e-9


class Estimate(Struct, frozen=True, kw_only=True):
    """The summary of `--dry-run`; all but `files`, `bytes` and `splits` are estimates.

    Attributes:
        sampled_bytes: The stored bytes of the sample.
        seconds: How long the command would take on this machine, the start of the process included;
            None: not known, since merges would be learned in rounds.
        memory_bytes: The peak of the process's resident memory; of merge rounds an upper bound.
        storage_bytes: The size of all files of the output.
        temporary_bytes: The most that the job has in its output folder besides, until it ends.
    """

    job: str
    dry_run: bool = True
    files: int | UnsetType = UNSET
    files_excluded: int | None = None
    duplicate_inputs: list[str] | None = None
    links_not_followed: list[str] | None = None
    files_passed_over: list[str] | None = None
    by_format: dict[str, str] | UnsetType = UNSET
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


def _try_on_documents(
    run: Callable[..., Any], settings: CountSettings | TokenizeSettings, sample: Sample, folder: str
) -> Trial:
    """Run a job on a few documents of a sample."""
    documents = f"{folder}/documents.jsonl"
    write_documents(sample.first, documents)
    read = InputSettings(
        inputs=(documents,),
        max_rejects="100%",
        source_field="source" if settings.input.by_source else None,
    )
    output = f"{folder}/output"
    return try_job(
        run, replace(settings, input=read, output=output, run=_here(settings.run)), output=output
    )


def _here(run: RunSettings) -> RunSettings:
    """Return how a job runs in this process and says nothing."""
    workers = run.workers if run.in_process else None
    return RunSettings(workers=workers, quiet=True, storage_options=run.storage_options)


# ---- words ----


@dataclass
class _SplitWords:
    """The words of a split that was read in part.

    Attributes:
        size: The size of the whole split.
        stored: The bytes of it that were read.
        rows: The words that were written, each once in each source.
        memory: The memory of the tables.
    """

    size: int
    stored: int
    rows: int
    bytes: int
    memory: int
    words: int
    sources: dict[str, Counter[str]]
    ranges: list[tuple[int, RangeReference]]


class _Counting:
    """Counts the splits of a sample into files of words in a temporary folder.

    Args:
        folder: The folder.
        settings: The settings of the job.
    """

    def __init__(self, folder: str, settings: CountSettings, rules: WordRules) -> None:
        self.splits: list[_SplitWords] = []
        self.settings = settings
        self.rules = rules
        self.by_source = settings.input.by_source
        self.folder = TaskFolder(Storage().unsynced, folder, "")
        self.folder.storage.make_folder(self.folder.path(WORK))

    def begin(self, split: Split) -> _CountedSplit:
        """Return the counter of a split."""
        return _CountedSplit(self, split)


class _CountedSplit:
    """Counts a split into a file of words. A `SplitProcess`."""

    def __init__(self, counting: _Counting, split: Split) -> None:
        self._counting = counting
        self._split = split
        self._url = counting.folder.path(f"{split.index}.words")
        self._stack = ExitStack()
        create = counting.folder.storage.create
        self._file = WordsFile(self._stack.enter_context(create(self._url)))
        self._tables = SourceTables(
            counting.rules,
            counting.by_source,
            max_bytes=TABLE_BYTES,
            on_full=self._file.write,
        )
        self._words = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count documents."""
        self._words += self._tables.add(batch)

    def end(self, stored: int) -> None:
        """Write the words."""
        memory = self._tables.memory_bytes
        self._file.write(self._tables.take())
        self._stack.close()
        info = FileInfo.written("", self._file.file)
        self._counting.splits.append(
            _SplitWords(
                size=self._split.size,
                stored=stored,
                rows=self._file.words,
                bytes=info.bytes,
                memory=memory,
                words=self._words,
                sources=self._tables.totals,
                ranges=[*range_references(self._url, info.sha256, self._file.ranges)],
            )
        )


@dataclass
class _Words:
    """The words of a sample, and what follows for the whole corpus.

    Attributes:
        manifest: The manifest of the counts folder that the sample makes.
        splits: The splits of the sample.
        merging_seconds: How long the words of all splits took to merge.
        power: How the number of unique words grows with the size of the corpus.
        row_power: The same of words that each source has once.
        trial: The job on a few documents.
    """

    sample: Sample
    settings: CountSettings
    manifest: CountsManifest
    splits: list[_SplitWords]
    merging_seconds: float
    power: float
    row_power: float
    trial: Trial

    @property
    def growth(self) -> float:
        """How many times more unique words the corpus has than the sample."""
        return math.pow(1 / self.sample.share, self.power)

    def row_growth(self, share: float) -> float:
        """Return how many times more words a thing has than a share of it."""
        return math.pow(1 / share, self.row_power)

    @property
    def in_splits(self) -> float:
        """How many times more words all splits have than those of the sample."""
        read = sum(split.rows for split in self.splits)
        whole = sum(self._whole(split.rows, split) for split in self.splits)
        sizes = sum(split.size for split in self.splits)
        return whole / max(1, read) * self.sample.plan.size / max(1, sizes)

    def _whole(self, amount: float, split: _SplitWords) -> float:
        return amount * self.row_growth(max(1, split.stored) / max(1, split.stored, split.size))

    @property
    def seconds(self) -> float:
        """The seconds of counting."""
        workers = workers_of(self.settings.run, len(self.sample.plan.splits))
        reading = self.sample.seconds_of_all(workers)
        return self.trial.seconds + reading + self.merging_seconds * self.in_splits

    @property
    def memory(self) -> int:
        """The peak of memory while words are counted."""
        workers = workers_of(self.settings.run, len(self.sample.plan.splits))
        # The words are taken out of the tables, encoded and written while the tables are there.
        tables = max(
            (self._whole(split.memory + split.bytes, split) for split in self.splits), default=0
        )
        return self.trial.memory + round(workers * min(tables, 2 * TABLE_BYTES))

    @property
    def storage_bytes(self) -> int:
        """The bytes of all files of the counts folder."""
        least = self.trial.bytes_of(".parquet")
        parts = sum(part.bytes for part in self.manifest.parts)
        words = max(0, parts - least) * self.row_growth(self.sample.share)
        others = sum(self.trial.files.values()) - self.trial.bytes_of(MANIFEST_FILE)
        return round(others + len(self.manifest.to_bytes()) + words)

    def rows(self) -> dict[str, Any]:
        """Return the rows of the summary."""
        plan = self.sample.plan
        return {
            **self.sample.summary(),
            "words": self.sample.whole(self.manifest.words),
            "unique_words": round(self.manifest.unique_words * self.growth),
            "workers": workers_of(self.settings.run, len(plan.splits)),
            "seconds": round(self.seconds, 1),
            "memory_bytes": self.memory,
            "storage_bytes": self.storage_bytes,
            "temporary_bytes": round(sum(split.bytes for split in self.splits) * self.in_splits),
        }


def _count_sample(storage: Storage, plan: Plan, settings: CountSettings, folder: str) -> _Words:
    """Count a sample into a counts folder, as the job does.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        settings: The settings of the job.
        folder: The folder, which is temporary.
    """
    from bpe_beam.jobs import count

    rules = count.rules_of(settings)
    workers = workers_of(settings.run, len(plan.splits))
    counting = _Counting(folder, settings, rules)
    sample = read_sample(
        storage,
        plan,
        settings.input,
        counting.begin,
        threads=1 if rules.hold_gil else workers,
        seconds=SAMPLE_SECONDS,
        only_text=True,
    )
    with tempfile.TemporaryDirectory() as tried:
        trial = _try_on_documents(count.run, replace(settings, dry_run=False), sample, tried)
    splits = counting.splits
    started = time.monotonic()
    _merge(counting, [], workers, range(PARTITIONS))
    without = time.monotonic() - started
    parts = _merge(counting, splits, workers, range(PARTITIONS))
    seconds = max(0.0, time.monotonic() - started - 2 * without)
    power, row_power = _powers(counting, workers, parts)
    manifest = _manifest(counting, sample, parts)
    storage.write_bytes(storage.join(folder, MANIFEST_FILE), manifest.to_bytes())
    return _Words(sample, settings, manifest, splits, seconds, power, row_power, trial)


def _merge(
    counting: _Counting, splits: Sequence[_SplitWords], workers: int, partitions: Sequence[int]
) -> list[CountsPart]:
    """Write partitions of the words of splits as parts of the counts folder."""
    task = CountTask(
        counting.folder, ReadSettings(), counting.rules, len(splits), counting.by_source
    )
    ranges: list[list[RangeReference]] = [[] for _ in range(PARTITIONS)]
    for split in splits:
        for partition, reference in split.ranges:
            ranges[partition].append(reference)

    def write(partition: int) -> CountsPart:
        write_partition(task, (partition, ranges[partition]))
        receipt = counting.folder.read_receipt(task_name("part", partition, PARTITIONS))
        assert receipt is not None
        return receipt.read_stats(PartStats).part

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(write, partitions))


def _powers(counting: _Counting, workers: int, parts: Sequence[CountsPart]) -> tuple[float, float]:
    """Return how unique words grow, and words that each source has once.

    The mean of several ways to halve the sample differs less by chance than one.
    """
    splits = sorted(counting.splits, key=lambda split: split.stored)
    whole = parts[:_HALVED_PARTITIONS]
    unique, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        divided = _Counting(folder, counting.settings, counting.rules)
        for bit in range(_HALVINGS):
            halves: list[list[_SplitWords]] = [[], []]
            for number, split in enumerate(splits):
                halves[number >> bit & 1].append(split)
            for half in halves if all(halves) else ():
                own = _merge(divided, half, workers, range(len(whole)))
                unique.append(sum(part.unique_words for part in own))
                rows.append(sum(part.rows for part in own))
    return (
        _power(unique, sum(part.unique_words for part in whole)),
        _power(rows, sum(part.rows for part in whole)),
    )


def _power(halves: Sequence[int], whole: int) -> float:
    """Return the power with which an amount grows from a half to the whole, from 0 to 1."""
    if not sum(halves):
        return _USUAL_POWER
    return min(1.0, max(0.0, math.log2(whole * len(halves) / sum(halves))))


def _manifest(counting: _Counting, sample: Sample, parts: Sequence[CountsPart]) -> CountsManifest:
    """Return the manifest of the sample's counts."""
    sources = None
    if counting.by_source:
        sources = source_totals((split.sources for split in counting.splits), parts)
    return CountsManifest(
        **counting.rules.of_counts,
        documents=sample.documents,
        text_bytes=sample.text_bytes,
        words=sum(split.words for split in counting.splits),
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects={},
        inputs=tuple((file.name, file.size) for file in sample.plan.files),
        parts=tuple(parts),
        sources=sources,
    )


def estimate_counting(storage: Storage, plan: Plan, settings: CountSettings) -> Estimate:
    """Return what counting a corpus would take.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        settings: The settings of the job.
    """
    with tempfile.TemporaryDirectory() as folder:
        return Estimate(job="count", **_count_sample(storage, plan, settings, folder).rows())


# ---- training ----


def estimate_training(
    storage: Storage,
    plan: Plan,
    counting: CountSettings,
    settings: TrainSettings,
    recipe: Recipe,
) -> Estimate:
    """Return what counting a corpus and training from its words would take.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        counting: The settings of counting it.
        settings: The settings of the job.
        recipe: What is trained.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = _count_sample(storage, plan, counting, folder)
        rows = words.rows()
        unique = rows["unique_words"]
        training = _training(
            replace(settings, input=None, counts=folder),
            recipe,
            words.manifest,
            unique,
            round(words.manifest.word_bytes * words.growth),
        )
    seconds = training.pop("seconds")
    return Estimate(
        job="train",
        **{
            **rows,
            "merge_rounds": training["merge_rounds"],
            "seconds": None
            if seconds is None
            else round(words.seconds + seconds - training["start"], 1),
            "memory_bytes": max(rows["memory_bytes"], training["memory_bytes"]),
            "storage_bytes": rows["storage_bytes"] + training["storage_bytes"],
        },
    )


def estimate_training_from_counts(
    settings: TrainSettings, recipe: Recipe, manifest: CountsManifest
) -> Estimate:
    """Return what training from counts would take.

    Args:
        settings: The settings of the job.
        recipe: What is trained.
        manifest: The manifest of the counts.
    """
    training = _training(settings, recipe, manifest, manifest.unique_words, manifest.word_bytes)
    seconds = training.pop("seconds")
    del training["start"]
    return Estimate(
        job="train",
        unique_words=manifest.unique_words,
        workers=1,
        seconds=None if seconds is None else round(seconds, 1),
        **training,
    )


def _training(
    settings: TrainSettings, recipe: Recipe, manifest: CountsManifest, unique: int, word_bytes: int
) -> dict[str, Any]:
    """Return what training takes, from a training on all or some parts of counts.

    Args:
        settings: The settings; their counts are those that are trained from.
        recipe: What is trained.
        manifest: The manifest of the counts.
        unique: The number of unique words of the job.
        word_bytes: Their bytes.

    Returns:
        Rows of the summary, and `start`, the seconds of the process before and after the job.
    """
    from bpe_beam.jobs import train

    sizes = [part.word_bytes for part in manifest.parts]
    parts = len(sizes)
    while parts > 1 and _work(recipe, sum(sizes[:parts])) > _LEARNING_SECONDS:
        parts -= 1
    share = min(1.0, max(1, sum(sizes[:parts])) / max(1, word_bytes))
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/output"
        alone = replace(
            settings,
            output=output,
            run=_here(settings.run),
            merge_rounds="local",
            driver_memory=1 << 60,
            dry_run=False,
        )
        trial = try_job(train.train_from_parts, alone, parts, output=output)
    learning = trial.stages.get("learn", 0.0)
    needed = memory_needed(word_bytes, unique, recipe.vocab_size)
    in_rounds = settings.merge_rounds == "distributed" or (
        settings.merge_rounds != "local" and needed > settings.driver_memory
    )
    grown = trial.memory - trial.memory_before
    grown = max(grown, min(round(grown / share), needed))
    entries = trial.summary.get("vocab_size", recipe.vocab_size)
    storage = sum(trial.files.values()) * (recipe.vocab_size / entries if share < 1 else 1.0)
    return {
        "merge_rounds": "distributed" if in_rounds else "local",
        "seconds": None
        if in_rounds
        else trial.seconds + learning * (_more_work(recipe, word_bytes, share) - 1),
        "start": trial.start,
        "memory_bytes": trial.memory_before
        + (min(needed, settings.driver_memory) if in_rounds else grown),
        "storage_bytes": round(storage),
    }


def _work(recipe: Recipe, word_bytes: float) -> float:
    """Return the time of training on words of so many bytes, in seconds of some machine."""
    if isinstance(recipe, WordLevelRecipe):
        return word_bytes * _NANOSECOND
    learning = LearningWork(
        round(word_bytes),
        recipe.vocab_size,
        in_characters=needs_seen(recipe),
        by_likelihood=not isinstance(recipe, BpeRecipe),
    )
    return learning.seconds_left()


def _more_work(recipe: Recipe, word_bytes: int, share: float) -> float:
    """Return by how much training on all words takes longer than on a share of them."""
    return _work(recipe, word_bytes) / max(_NANOSECOND, _work(recipe, word_bytes * share))


# ---- tokens ----


class _Tokenizing:
    """Tokenizes the splits of a sample to shards in a temporary folder.

    Args:
        folder: The folder.
        plan: The plan of the corpus.
        settings: The settings of the job.
        encoding: How documents become ids.
        at_once: The splits that are open at once: their token counts share the memory of one.

    Attributes:
        tokens: The number of tokens of each split.
        bytes: The bytes of the shards of each.
        counts: The files with the token counts of each.
        sources: The sources of the documents.
    """

    def __init__(
        self,
        folder: str,
        plan: Plan,
        settings: TokenizeSettings,
        encoding: Encoding,
        *,
        at_once: int,
    ) -> None:
        self.plan = plan
        self.encoding = encoding
        self.counter_bytes = COUNTER_BYTES // at_once
        self.kinds = {name: shard_format(name) for name in settings.formats}
        self.by_source = settings.input.by_source
        self.columns = settings.columns
        self.folder = TaskFolder(Storage().unsynced, folder, "")
        self.tokens: list[int] = []
        self.bytes: list[int] = []
        self.counts: list[FileInfo] = []
        self.sources: set[str] = set()
        for name in (*self.kinds, WORK):
            self.folder.storage.make_folder(self.folder.path(name))

    def begin(self, split: Split) -> _TokenizedSplit:
        """Return the writer of a split's shards."""
        return _TokenizedSplit(self, split)


class _TokenizedSplit:
    """Encodes a split and writes its shards. A `SplitProcess`."""

    def __init__(self, tokenizing: _Tokenizing, split: Split) -> None:
        self._of = tokenizing
        self._name = shard_name(split.index, len(tokenizing.plan.splits))
        self._stack = ExitStack()
        encoding, kinds = tokenizing.encoding, tokenizing.kinds
        self._limit = min(kind.max_document_tokens for kind in kinds.values())
        tokenizer = encoding.tokenizer()
        self._counter = TokenCounter(
            id_columns(tokenizer), tokenizing.by_source, table_bytes=tokenizing.counter_bytes
        )
        self._writers = []
        for name, kind in kinds.items():
            folder = tokenizing.folder
            target = folder.storage, folder.path(name), self._name, tokenizer.max_id + 1
            origin = origin_of(encoding, tokenizing.columns)
            writer = kind.open_writer(*target, origin)
            self._writers.append(self._stack.enter_context(writer))

    def add(self, batch: pa.RecordBatch) -> None:
        """Encode documents, and write them."""
        of = self._of
        rows, ids, _ = encode_documents(of.encoding, batch, of.plan, lambda _: None, self._limit)
        for writer in self._writers:
            writer.write_documents(ids.values.to_numpy(), ids.offsets.to_numpy(), rows)
        self._counter.add(rows, ids)
        if of.by_source:
            of.sources.update(rows.column("source").unique().to_pylist())

    def end(self, stored: int) -> None:
        """Finish the shards."""
        self._stack.close()
        of = self._of
        shards = [writer.result() for writer in self._writers]
        of.counts.append(self._counter.write(of.folder, self._name))
        of.tokens.append(shards[0].tokens)
        of.bytes.append(sum(file.bytes for shard in shards for file in shard.files))


def estimate_tokenizing(
    storage: Storage,
    plan: Plan,
    settings: TokenizeSettings,
    tokenizer: Tokenizer,
    encoding: Encoding,
) -> Estimate:
    """Return what tokenizing a corpus would take; shards of the sample are written and measured.

    Args:
        storage: The storage client.
        plan: The plan of the corpus.
        settings: The settings of the job.
        tokenizer: The tokenizer.
        encoding: How documents become ids.
    """
    from bpe_beam.jobs import tokenize

    workers = workers_of(settings.run, len(plan.splits))
    kinds = [shard_format(name) for name in settings.formats]
    with tempfile.TemporaryDirectory() as folder:
        threads = 1 if tokenizer.holds_gil else workers
        made = _Tokenizing(folder, plan, settings, encoding, at_once=most_open(threads))
        memory = peak_memory()
        sample = read_sample(
            storage,
            plan,
            settings.input,
            made.begin,
            threads=threads,
            seconds=SAMPLE_SECONDS,
            only_text=all(kind.labelled_writer is None for kind in kinds),
            batch_bytes=ENCODED_BYTES,
        )
        grown = (peak_memory() - memory) / sample.share
        started = time.monotonic()
        counts = added_up(
            made.folder,
            made.counts,
            id_columns(tokenizer),
            sorted(made.sources) if made.by_source else None,
        )
        write_token_counts(made.folder.storage, folder, tokenizer.fingerprint, counts)
        ending = time.monotonic() - started
        counts_bytes = storage.size(storage.join(folder, TOKEN_COUNTS_FILE))
        undivided = replace(settings, arranging=replace(settings.arranging, dry_run=False))
        with tempfile.TemporaryDirectory() as tried:
            trial = _try_on_documents(tokenize.run, undivided, sample, tried)
    folders = sum(name.endswith(TOKEN_COUNTS_FILE) for name in trial.files)
    others = sum(
        size
        for name, size in trial.files.items()
        if "shard-" not in name and not name.endswith(TOKEN_COUNTS_FILE)
    )
    return Estimate(
        job="tokenize",
        **sample.summary(),
        tokens=sample.whole(sum(made.tokens)),
        workers=workers,
        seconds=round(trial.seconds + sample.seconds_of_all(workers) + ending, 1),
        memory_bytes=trial.memory + round(min(grown, workers * _WORD_CACHE_BYTES)),
        storage_bytes=sample.whole(sum(made.bytes)) + others + folders * counts_bytes,
    )
