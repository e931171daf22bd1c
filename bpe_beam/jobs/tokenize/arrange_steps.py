"""The steps from the shards of tokenized documents to new shards: measure, plan, write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.engines.run import run_steps
from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import PARTS, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import WORK, Receipt
from bpe_beam.jobs.tokenize.inputs import TokenizeInputs
from bpe_beam.progress import Progress
from bpe_beam.shards.arrangement import Arrangement
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.packing import plan_best_fit
from bpe_beam.shards.shard_rows import (
    NO_CHANGES,
    ArrangedCorpus,
    ArrangedPart,
    PartTexts,
    added_sources,
)
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.workers.arrange.measure import measure_shard, part_task, texts_name, write_ranks
from bpe_beam.workers.arrange.new_shard import write_new_shard
from bpe_beam.workers.arrange.scatter import scatter_shard
from bpe_beam.workers.arrange.task import (
    RANKS,
    STAGE,
    ArrangeTask,
    BlockFile,
    BlockFileStats,
    DocumentsShard,
    MeasureStats,
    NewShard,
    PartPlan,
    PartSums,
)
from bpe_beam.workers.document_hashes import overlap_of
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.task_results import MetricSums
from bpe_beam.workers.token_counter import token_counts_name
from bpe_beam.workers.tokenize_split import origin_of


@dataclass(frozen=True)
class Arranging:
    """Documents that are being arranged.

    Attributes:
        inputs: The inputs of the tokenization.
        arrangement: The order, the sequences and the validation share.
        folder: The output folder.
        documents: The folder of the tokenized documents.
        tokenized: The manifest of that folder.
        progress: Shows the progress.
    """

    inputs: TokenizeInputs
    arrangement: Arrangement
    folder: OutputFolder
    documents: str
    tokenized: Manifest
    progress: Progress

    @cached_property
    def made_of(self) -> str:
        """The SHA-256 of the documents' manifest, which receipts name."""
        return sha256(self.tokenized.to_bytes()).hexdigest()


@dataclass(frozen=True)
class Sums:
    """The measured documents.

    Attributes:
        by_shard: The sums of each part, of every shard of documents.
        texts: The texts of each part; empty if documents are not divided.
        token_counts: The files of token counts of each part; empty if documents are not divided.
        overlap: The number of texts that are in both parts; None: not measured.
        histograms: The files of lengths, for best-fit packing.
    """

    by_shard: Sequence[tuple[PartSums, ...]]
    texts: Sequence[PartTexts] = ()
    token_counts: Sequence[tuple[FileInfo, ...]] = ()
    overlap: int | None = None
    histograms: Sequence[FileInfo] = ()

    @cached_property
    def totals(self) -> list[PartSums]:
        """The sums of each part, of all shards."""
        return [
            PartSums(sum(each.documents for each in part), sum(each.tokens for each in part))
            for part in zip(*self.by_shard, strict=True)
        ]


def described_part(arranging: Arranging, sums: Sums, number: int, padding: int) -> ArrangedPart:
    """Return the description of the shards of a part, for its manifest."""
    documents, arrangement = arranging.tokenized, arranging.arrangement
    name, total = arrangement.parts[number], sums.totals[number]
    corpus = ArrangedCorpus(
        documents.totals.text_bytes,
        documents.rejects.by_reason,
        documents.rejects.lost,
        documents.sources,
        None if documents.changes == NO_CHANGES else documents.changes,
    )
    return ArrangedPart(
        settings=arrangement,
        corpus=corpus,
        documents=total.documents,
        tokens=total.tokens,
        padding=padding,
        part=name,
        texts=sums.texts[number] if sums.texts else None,
        overlap=sums.overlap if name == PARTS[1] else None,
    )


class ArrangeSteps:
    """Runs the steps, on the engine of the settings."""

    def __init__(self, arranging: Arranging, pad_id: int | None) -> None:
        self._arranging = arranging
        self._arrangement = arranging.arrangement
        self._folder = arranging.folder
        self._storage = arranging.inputs.storage
        self._shards = [
            DocumentsShard(index, shard.name)
            for index, shard in enumerate(arranging.tokenized.shards)
        ]
        self._task = self._describe_task(pad_id)

    def _describe_task(self, pad_id: int | None) -> ArrangeTask:
        arranging, inputs = self._arranging, self._arranging.inputs
        settings, encoding, documents = inputs.settings, inputs.encoding, arranging.documents
        return ArrangeTask(
            folder=self._folder.for_workers(),
            documents=documents,
            documents_format=arranging.tokenized.format,
            made_of=arranging.made_of,
            shards=len(self._shards),
            count=arranging.tokenized.totals.documents,
            arrangement=self._arrangement,
            pad=pad_id,
            shard_format=settings.format,
            vocab_size=arranging.tokenized.tokenizer.vocab_size,
            origin=msgspec.structs.replace(
                origin_of(encoding, settings.columns),
                sequence_length=self._arrangement.sequence_length,
            ),
            ranks=self._folder.path(f"{WORK}/{RANKS}"),
            encoding=encoding.kept_at(
                self._storage, self._storage.join(documents, SHARDS_TOKENIZER_FILE)
            ),
            by_source=arranging.tokenized.sources is not None,
        )

    # ---- measure ----

    def measure(self) -> Sums:
        """Return the sums of the documents; refuse a part without a token."""
        count = len(self._shards)
        tasks = [task_name("measure", index, count) for index in range(count)]
        divided = self._arrangement.validation_share is not None
        parts = self._arrangement.parts if divided else ()
        self._folder.expect([f"{WORK}/{name}.bin" for name in tasks])
        self._folder.expect(f"{WORK}/{texts_name(name)}" for name in tasks)
        self._folder.expect(token_counts_name(part_task(n, part)) for n in tasks for part in parts)
        remaining = self._remaining(tasks)
        elements = [_json(self._shards[index]) for index in remaining]

        def steps(task: ArrangeTask) -> Steps:
            return lambda engine: engine.run(
                "MeasureShard",
                partial(measure_shard, _unsynced(task)),
                engine.tasks("Documents", elements),
                str,
            )

        if remaining:
            self._run(steps, len(remaining), 0)
        receipts = self._folder.all_receipts(tasks)
        sums = self._sums([receipts[name] for name in tasks], len(parts))
        self._refuse_empty(sums.totals)
        return sums

    def _sums(self, receipts: Sequence[Receipt], parts: int) -> Sums:
        """Return the sums in receipts; `parts` is 0 if documents are not divided."""
        stats = [receipt.read_stats(MeasureStats) for receipt in receipts]
        sums = Sums([each.parts for each in stats])
        if self._arrangement.is_best_fit:
            sums = replace(sums, histograms=[receipt.files[0] for receipt in receipts])
        if not parts:
            return sums
        overlap = None
        if self._task.counts_overlap:
            hashes = [self._hashes_of(receipt.files[-1 - parts]) for receipt in receipts]
            overlap = overlap_of(np.concatenate(hashes), self._task.count)
        return replace(
            sums,
            texts=[_added_texts(part) for part in zip(*(s.texts for s in stats), strict=True)],
            # They are the last files of a receipt, in the order of the parts.
            token_counts=[*zip(*(receipt.files[-parts:] for receipt in receipts), strict=True)],
            overlap=overlap,
        )

    def _hashes_of(self, file: FileInfo) -> NDArray[np.uint64]:
        """Return the hashes of texts in a file, see `sampled_texts`."""
        data = read_hashed(self._storage, self._folder.path(file.name), file.sha256)
        return np.frombuffer(data, "<u8").astype(np.uint64)

    def _refuse_empty(self, totals: Sequence[PartSums]) -> None:
        for name, total in zip(self._arrangement.parts, totals, strict=True):
            if not total.tokens:
                raise DataError(
                    f"no token of {sum(each.documents for each in totals):,} documents is for "
                    f"{name}, with a validation share of {self._arrangement.validation_share}",
                    remedy="give another {validation_share}",
                )

    # ---- plan ----

    def rows(self, sums: Sums) -> list[int]:
        """Return the number of documents, or of sequences, of each part."""
        arrangement, totals = self._arrangement, sums.totals
        length = arrangement.sequence_length
        if length is None:
            return [total.documents for total in totals]
        if not arrangement.is_best_fit:
            return [-(-total.tokens // length) for total in totals]
        with self._storage.create(self._task.ranks) as file:
            total = write_ranks(file, self._read(sums.histograms), len(totals) * (length + 1))
        limit = arrangement.max_documents_per_sequence
        return [plan_best_fit(each, limit).sequences for each in np.split(total, len(totals))]

    def _read(self, files: Sequence[FileInfo]) -> Iterator[bytes]:
        for file in files:
            yield read_hashed(self._storage, self._folder.path(file.name), file.sha256)

    def plans(self, sums: Sums, rows: Sequence[int]) -> tuple[PartPlan, ...]:
        """Return the plan of each part, whose new shards have about `shard_tokens` tokens each."""
        return tuple(
            self._plan(number, count, [each[number] for each in sums.by_shard])
            for number, count in enumerate(rows)
        )

    def _plan(self, part: int, rows: int, measured: Sequence[PartSums]) -> PartPlan:
        arrangement = self._arrangement
        name = arrangement.parts[part]
        tokens = sum(each.tokens for each in measured)
        shards = max(1, min(rows, -(-tokens // arrangement.shard_tokens)))
        if arrangement.sequence_length is None and arrangement.shuffle_seed is None:
            # Long documents may follow each other.
            return PartPlan.by_tokens(name, measured, shards)
        return PartPlan.even(name, rows, shards)

    # ---- write ----

    def write(self, sums: Sums, plans: tuple[PartPlan, ...]) -> int:
        """Write the new shards; return how many an earlier run had written."""
        folder, count = self._folder, len(self._shards)
        suffixes = shard_format(self._task.shard_format).suffixes
        scatter_tasks = [task_name("scatter", index, count) for index in range(count)]
        new = [
            (plan.task(shard), NewShard(number, shard))
            for number, plan in enumerate(plans)
            for shard in range(plan.shards)
        ]
        folder.expect(f"{WORK}/{name}.bin" for name in scatter_tasks)
        folder.expect(f"{WORK}/{name}{suffix}" for name, _ in new for suffix in suffixes)
        remaining = self._remaining([name for name, _ in new])
        if not remaining:
            return len(new)
        elements = self._shards_to_scatter(sums, self._remaining(scatter_tasks))
        known = [
            self._block_file(receipt)
            for name in scatter_tasks
            if (receipt := folder.receipt(name)) is not None
        ]

        def steps(task: ArrangeTask) -> Steps:
            task = replace(task, parts=plans)

            def described(engine: Engine) -> Collection:
                scattered = engine.run(
                    "ScatterShard",
                    partial(scatter_shard, _unsynced(task)),
                    engine.tasks("Documents", elements),
                    str,
                )
                return engine.run(
                    "WriteNewShard",
                    partial(write_new_shard, task, known),
                    engine.tasks("NewShards", [_json(new[index][1]) for index in remaining]),
                    str,
                    scattered,
                )

            return described

        tokens_read = 2 * self._arranging.tokenized.totals.tokens  # both steps read each token
        self._run(steps, max(len(elements), len(remaining)), tokens_read)
        folder.all_receipts([name for name, _ in new])
        return len(new) - len(remaining)

    def _shards_to_scatter(self, sums: Sums, chosen: Sequence[int]) -> list[str]:
        """Return the elements of shards by number, each with the sums of the shards before it."""
        elements = []
        before = [PartSums(0, 0) for _ in self._arrangement.parts]
        for index, parts in enumerate(sums.by_shard):
            if index in chosen:
                elements.append(
                    _json(msgspec.structs.replace(self._shards[index], before=tuple(before)))
                )
            before = [
                PartSums(old.documents + add.documents, old.tokens + add.tokens)
                for old, add in zip(before, parts, strict=True)
            ]
        return elements

    def _block_file(self, receipt: Receipt) -> str:
        stats = receipt.read_stats(BlockFileStats)
        url = self._folder.path(receipt.files[0].name)
        return _json(BlockFile(url, stats.table_at))

    # ---- every step ----

    def _remaining(self, tasks: Sequence[str]) -> list[int]:
        """Return the numbers of the tasks to run; forget receipts of other documents."""
        remaining, unfit = [], []
        for index, name in enumerate(tasks):
            receipt = self._folder.receipt(name)
            if receipt is None or receipt.stats.get("made_of") != self._arranging.made_of:
                remaining.append(index)
                unfit += [receipt] if receipt is not None else []
        self._folder.forget(unfit)
        return remaining

    def _run(self, steps: Callable[[ArrangeTask], Steps], tasks: int, tokens: int) -> None:
        """Run steps in a new folder of a run; `tokens` is what they report, or 0."""
        folder, progress = self._folder, self._arranging.progress
        run = folder.new_run()
        task = replace(self._task, folder=run.for_workers())
        with progress.stage(STAGE, tokens, "tokens read") if tokens else nullcontext():
            run_steps(
                self._arranging.inputs.settings.run,
                "Arrange",
                steps(task),
                tasks,
                MetricSums(),
                lambda: None,
                min_ram="1GB",
            )
        folder.require_ours()
        folder.take(run, all_files=False)


def _added_texts(parts: Sequence[PartTexts]) -> PartTexts:
    """Return the sums over the shards of documents."""
    sources = added_sources(each.sources for each in parts)
    return PartTexts(sum(each.text_bytes for each in parts), sources)


def _unsynced(task: ArrangeTask) -> ArrangeTask:
    """Return the same task for steps whose files are temporary."""
    folder = task.folder
    return replace(task, folder=replace(folder, storage=folder.storage.unsynced))


def _json(value: Struct) -> str:
    return msgspec.json.encode(value).decode()
