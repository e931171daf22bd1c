"""The steps from the shards of tokenized documents to new shards: measure, plan, write, finish."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import structs

from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.folders.artifact_names import PARTS, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import WORK
from bpe_beam.jobs.arranged_shards import ArrangedShards, added_texts, unsynced
from bpe_beam.jobs.tokenize.documents import TokenizeInputs
from bpe_beam.progress import Progress
from bpe_beam.shards import shard_rows
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.token_counts import read_token_counts, write_token_counts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.measure import measure_shard, part_task, texts_name
from bpe_beam.workers.arrange.scatter import scatter_shard
from bpe_beam.workers.arrange.task import (
    RANKS,
    ArrangeTask,
    DocumentsShard,
    PartPlan,
    PartSums,
)
from bpe_beam.workers.document_hashes import overlap_of
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import origin_of


class ArrangeSteps(ArrangedShards):
    """Runs the steps, on the engine of the settings.

    `documents` is the folder of the tokenized documents, and `tokenized` its manifest.
    """

    def __init__(
        self,
        inputs: TokenizeInputs,
        arrangement: shard_rows.Arrangement,
        pad_id: int | None,
        folder: OutputFolder,
        documents: str,
        tokenized: Manifest,
        progress: Progress,
    ) -> None:
        self._inputs = inputs
        self._arrangement = arrangement
        self._tokenized = tokenized
        self._storage = storage = inputs.storage
        task = ArrangeTask(
            folder=folder.for_workers(),
            documents=documents,
            documents_format=tokenized.format,
            made_of=planning.made_of([tokenized.to_bytes()]),
            shards=len(tokenized.shards),
            count=tokenized.totals.documents,
            arrangement=arrangement,
            pad=pad_id,
            shard_format=inputs.settings.format,
            vocab_size=tokenized.tokenizer.vocab_size,
            origin=structs.replace(
                origin_of(inputs.encoding, inputs.settings.columns),
                sequence_length=arrangement.sequence_length,
            ),
            ranks=folder.path(f"{WORK}/{RANKS}"),
            encoding=inputs.encoding.kept_at(
                storage, storage.join(documents, SHARDS_TOKENIZER_FILE)
            ),
            by_source=tokenized.sources is not None,
        )
        run, tokenizer = inputs.settings.run, inputs.tokenizer
        super().__init__(run, folder, task, tokenized, tokenizer, progress)

    # ---- measure and plan ----

    def measure(self) -> list[int]:
        """Measure the documents; return the number of documents, or of sequences, of each part."""
        folder, arrangement = self._folder, self._arrangement
        tasks = self._tasks("measure")
        parts = arrangement.parts if arrangement.validation_share is not None else ()
        folder.expect([f"{WORK}/{name}.bin" for name in tasks])
        folder.expect(f"{WORK}/{texts_name(name)}" for name in tasks)
        folder.expect(token_counts_name(part_task(n, part)) for n in tasks for part in parts)
        shards = self._tokenized.shards
        elements = [
            planning.to_element(DocumentsShard(index, shards[index].name))
            for index in self.remaining(tasks)
        ]

        def steps(task: ArrangeTask) -> Steps:
            return lambda engine: engine.run(
                "MeasureShard",
                partial(measure_shard, unsynced(task)),
                engine.tasks("Documents", elements),
                str,
            )

        if elements:
            self.run(steps, len(elements))
        receipts = folder.all_receipts(tasks)
        self._measured = planning.Measured(self._task, [receipts[name] for name in tasks])
        return self._measured.rows(folder)

    def plans(self, rows: Sequence[int]) -> tuple[PartPlan, ...]:
        """Return the plan of each part, whose new shards have about `shard_tokens` tokens each."""
        return self._measured.plans(rows)

    def _read(self, file: FileInfo) -> bytes:
        return read_hashed(self._storage, self._folder.path(file.name), file.sha256)

    # ---- write ----

    def write(self, plans: tuple[PartPlan, ...]) -> int:
        """Write the new shards; return how many an earlier run had written."""
        folder, scatter_tasks = self._folder, self._tasks("scatter")
        suffixes = shard_format(self._task.shard_format).suffixes
        new = planning.new_shards(plans)
        folder.expect(f"{WORK}/{name}.bin" for name in scatter_tasks)
        folder.expect(f"{WORK}/{name}{suffix}" for name, _ in new for suffix in suffixes)
        self.plan_new_shards(plans)
        remaining = self.remaining([name for name, _ in new])
        if not remaining:
            return len(new)
        to_scatter = self.remaining(scatter_tasks, self._task.blocks_made_of)
        elements = self._shards_to_scatter(to_scatter)
        to_write = [planning.to_element(new[index][1]) for index in remaining]
        new_shards = self.new_shards_steps(scatter_tasks, to_write)

        def steps(task: ArrangeTask) -> Steps:
            def described(engine: Engine) -> Collection:
                scattered = engine.run(
                    "ScatterShard",
                    partial(scatter_shard, unsynced(task)),
                    engine.tasks("Documents", elements),
                    str,
                )
                return new_shards(task, engine, scattered)

            return described

        self.run(steps, max(len(elements), len(remaining)), self._tokens_read())
        folder.all_receipts([name for name, _ in new])
        return len(new) - len(remaining)

    def _shards_to_scatter(self, chosen: Sequence[int]) -> list[str]:
        """Return the elements of shards by number, each with the sums of the shards before it."""
        shards = self._measured.shards(shard.name for shard in self._tokenized.shards)
        return [planning.to_element(shards[index]) for index in chosen]

    def _tokens_read(self) -> dict[str, int]:
        """Return the tokens that each task reads, about; each step reads each token."""
        tokens = {
            task: sum(part.tokens for part in stats.parts)
            for task, stats in zip(self._tasks("scatter"), self._measured.stats, strict=True)
        }
        return tokens | self.tokens_of_new_shards()

    # ---- both ----

    def _tasks(self, kind: str) -> list[str]:
        """Return the names of the tasks of all shards of documents."""
        return planning.shard_tasks(kind, len(self._tokenized.shards))

    # ---- finish ----

    def described_part(self, number: int, padding: int = 0) -> shard_rows.ArrangedPart:
        """See `ArrangedShards.described_part`."""
        documents, stats = self._tokenized, self._measured.stats
        name, total = self._arrangement.parts[number], self._measured.totals[number]
        divided = self._arrangement.validation_share is not None
        overlap = None
        if self._task.counts_overlap and name == PARTS[1]:
            # The files of a receipt end with the hashes, then the token counts of each part.
            at = -1 - len(self._arrangement.parts)
            hashes = b"".join(self._read(receipt.files[at]) for receipt in self._measured.receipts)
            overlap = overlap_of(np.frombuffer(hashes, "<u8").astype(np.uint64), self._task.count)
        corpus = shard_rows.ArrangedCorpus(
            documents.totals.text_bytes,
            documents.rejects.by_reason,
            documents.rejects.lost,
            documents.sources,
            None if documents.changes == shard_rows.NO_CHANGES else documents.changes,
        )
        return shard_rows.ArrangedPart(
            settings=self._arrangement,
            corpus=corpus,
            documents=total.documents,
            tokens=total.tokens,
            padding=padding,
            part=name,
            texts=added_texts([each.texts[number] for each in stats]) if divided else None,
            overlap=overlap,
        )

    def total(self, number: int) -> PartSums:
        """See `ArrangedShards.total`."""
        return self._measured.totals[number]

    def write_counts(self, number: int, manifest: Manifest) -> FileInfo:
        """See `ArrangedShards.write_counts`."""
        tokenizer, tokens = self._inputs.tokenizer, manifest.tokens_by_source
        fingerprint = tokenizer.fingerprint
        if self._arrangement.validation_share is not None:
            sources = None if None in tokens else [name for name in tokens if name is not None]
            at = number - len(self._arrangement.parts)
            files = [receipt.files[at] for receipt in self._measured.receipts]
            counts = added_up(self._folder, files, id_columns(tokenizer), sources)
        else:
            file = self._tokenized.token_counts
            assert file is not None  # of `tokenize`
            documents = self._task.documents
            counts = read_token_counts(self._storage, documents, fingerprint, tokens, file)
        return write_token_counts(self._storage, self.folder_of(number), fingerprint, counts)
