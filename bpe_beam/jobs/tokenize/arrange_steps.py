"""The steps from the shards of tokenized documents to new shards: measure, plan, write, finish."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from hashlib import sha256
from types import MappingProxyType

import numpy as np
from msgspec import UNSET, structs

from bpe_beam.engines.run import run_steps
from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.folders.artifact_names import MANIFEST_FILE, PARTS, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import WORK, Publication, TaskFolder
from bpe_beam.jobs.shard_folder_files import copy_rejects, inside, write_small_files
from bpe_beam.jobs.tokenize.documents import TokenizeInputs
from bpe_beam.progress import Progress
from bpe_beam.shards import shard_rows
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import NO_PLAN, Manifest, Rejects, with_files
from bpe_beam.shards.token_counts import read_token_counts, write_token_counts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.measure import measure_shard, part_task, texts_name
from bpe_beam.workers.arrange.new_shard import write_new_shard
from bpe_beam.workers.arrange.scatter import scatter_shard
from bpe_beam.workers.arrange.task import (
    RANKS,
    STAGE,
    ArrangeTask,
    DocumentsShard,
    PartPlan,
)
from bpe_beam.workers.document_hashes import overlap_of
from bpe_beam.workers.task_results import MetricSums
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import origin_of


class ArrangeSteps:
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
        self._folder = folder
        self._tokenized = tokenized
        self._progress = progress
        self._storage = storage = inputs.storage
        self._task = ArrangeTask(
            folder=folder.for_workers(),
            documents=documents,
            documents_format=tokenized.format,
            made_of=sha256(tokenized.to_bytes()).hexdigest(),
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
            for index in self._remaining(tasks)
        ]

        def steps(task: ArrangeTask) -> Steps:
            return lambda engine: engine.run(
                "MeasureShard",
                partial(measure_shard, _unsynced(task)),
                engine.tasks("Documents", elements),
                str,
            )

        if elements:
            self._run(steps, len(elements))
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
        remaining = self._remaining([name for name, _ in new])
        if not remaining:
            return len(new)
        elements = self._shards_to_scatter(self._remaining(scatter_tasks))
        known = [
            folder.path(receipt.files[0].name)
            for receipt in filter(None, map(folder.receipt, scatter_tasks))
        ]

        to_write = [planning.to_element(new[index][1]) for index in remaining]

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
                    engine.tasks("NewShards", to_write),
                    str,
                    scattered,
                )

            return described

        self._run(steps, max(len(elements), len(remaining)), self._tokens_read(plans))
        folder.all_receipts([name for name, _ in new])
        return len(new) - len(remaining)

    def _shards_to_scatter(self, chosen: Sequence[int]) -> list[str]:
        """Return the elements of shards by number, each with the sums of the shards before it."""
        shards = self._measured.shards(shard.name for shard in self._tokenized.shards)
        return [planning.to_element(shards[index]) for index in chosen]

    def _tokens_read(self, plans: Sequence[PartPlan]) -> dict[str, int]:
        """Return the tokens that each task reads, about; both steps read each token."""
        tokens = {
            task: sum(part.tokens for part in stats.parts)
            for task, stats in zip(self._tasks("scatter"), self._measured.stats, strict=True)
        }
        for plan, total in zip(plans, self._measured.totals, strict=True):
            for shard in range(plan.shards):
                end, start = ((shard + n) * total.tokens // plan.shards for n in (1, 0))
                tokens[plan.task(shard)] = end - start
        return tokens

    # ---- both ----

    def _tasks(self, kind: str) -> list[str]:
        """Return the names of the tasks of all shards of documents."""
        return planning.shard_tasks(kind, len(self._tokenized.shards))

    def _remaining(self, tasks: Sequence[str]) -> list[int]:
        """Return the numbers of the tasks to run; forget receipts of other documents."""
        remaining, unfit = [], []
        for index, receipt in enumerate(map(self._folder.receipt, tasks)):
            if receipt is None or receipt.stats.get("made_of") != self._task.made_of:
                remaining.append(index)
                unfit += [receipt] if receipt is not None else []
        self._folder.forget(unfit)
        return remaining

    def _run(
        self,
        steps: Callable[[ArrangeTask], Steps],
        tasks: int,
        tokens: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Run steps in a new folder of a run; `tokens` has what tasks read, if they report it."""
        folder = self._folder
        run = folder.new_run()
        task = replace(self._task, folder=run.for_workers())
        total = sum(tokens.values())
        with (
            self._progress.stage(STAGE, total, "tokens read") if tokens else nullcontext() as stage
        ):

            def watch() -> None:
                if stage is not None:  # workers on other machines report to none
                    stage.at_least(sum(tokens.get(name, 0) for name in run.finished_tasks()))

            run_steps(
                self._inputs.settings.run,
                "Arrange",
                steps(task),
                tasks,
                MetricSums(),
                watch,
                min_ram="1GB",
            )
        folder.require_ours()
        folder.take(run, all_files=False)

    # ---- finish ----

    def described_part(self, number: int, padding: int = 0) -> shard_rows.ArrangedPart:
        """Return the description of the shards of a part, for its manifest."""
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
            texts=_added_texts([each.texts[number] for each in stats]) if divided else None,
            overlap=overlap,
        )

    def finish(self, plans: Sequence[PartPlan]) -> list[Manifest]:
        """Give the new shards their final names, and write the manifest of each part."""
        folder, storage = self._folder, self._storage
        publications: list[Publication] = []
        manifests: list[Manifest] = []
        for number, plan in enumerate(plans):
            numbered, manifest = self._numbered(number, plan)
            publications += [_moved_into(plan.name, each) for each in numbered]
            manifests.append(manifest)
            storage.make_folder(folder.path(plan.name) if plan.name else folder.url)
        folder.publish(publications)
        rejects = manifests[0].rejects.files
        copy_rejects(folder, self._task.documents, rejects, plans[0].name)
        tokenizer = self._inputs.tokenizer.json_bytes
        counts = [self._write_token_counts(*each) for each in enumerate(manifests)]
        for number, plan in enumerate(plans):
            write_small_files(folder, manifests[number], tokenizer, plan.name)
            manifests[number] = with_files(
                manifests[number], tokenizer, counts[number], job=folder.fingerprint
            )
        for plan, manifest in zip(plans[1:], manifests[1:], strict=True):
            url = folder.path(inside(plan.name, MANIFEST_FILE))
            storage.write_bytes(url, manifest.to_bytes())
        folder.finish(inside(plans[0].name, MANIFEST_FILE), manifests[0].to_bytes())
        return manifests

    def _numbered(self, number: int, plan: PartPlan) -> tuple[list[Publication], Manifest]:
        """Return the new shards of a part with their final names there, and their manifest."""
        folder, documents = self._folder, self._tokenized
        names = [plan.task(shard) for shard in range(plan.shards)]
        receipts = [*map(folder.all_receipts(names).__getitem__, names)]
        total = self._measured.totals[number]
        numbered = planning.numbered_shards(receipts, total)
        if isinstance(numbered, int):
            folder.forget(receipts)
            raise planning.other_tokens(folder.url, numbered, total)
        rows = numbered.rows
        rejects = Rejects({}, ())
        if number == 0 and documents.rejects.files:
            # They belong to the whole corpus: no shard has them.
            rejects = documents.rejects
            rows.append(
                shard_rows.shard_row((), 0, len(names), rejects=sum(rejects.by_reason.values()))
            )
        settings = self._inputs.settings
        manifest = structs.replace(
            documents,
            **shard_rows.manifest_rows(rows),
            format=settings.format,
            plan=NO_PLAN,
            rejects=rejects,
            arranged=self.described_part(number, numbered.padding),
            columns=settings.columns or UNSET,
        )
        return numbered.publications, manifest

    def _write_token_counts(self, number: int, manifest: Manifest) -> FileInfo:
        """Write how often each id occurs in the documents of a part."""
        tokenizer, tokens = self._inputs.tokenizer, manifest.tokens_by_source
        part, fingerprint = self._arrangement.parts[number], tokenizer.fingerprint
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
        folder = self._folder.path(part) if part else self._folder.url
        return write_token_counts(self._storage, folder, fingerprint, counts)


def files_inside(part: str, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    """Return files under their names below the output."""
    return tuple(structs.replace(file, name=inside(part, file.name)) for file in files)


def _moved_into(part: str, publication: Publication) -> Publication:
    """Return a publication whose final names are in the folder of a part."""
    moves = tuple((name, inside(part, final)) for name, final in publication.moves)
    files = files_inside(part, publication.receipt.files)
    return Publication(structs.replace(publication.receipt, files=files), moves)


def _added_texts(parts: Sequence[shard_rows.PartTexts]) -> shard_rows.PartTexts:
    """Return the sums over the shards of documents."""
    sources = shard_rows.added_sources(each.sources for each in parts)
    return shard_rows.PartTexts(sum(each.text_bytes for each in parts), sources)


def _unsynced(task: ArrangeTask) -> ArrangeTask:
    """Return the same task for steps whose files are temporary."""
    folder = task.folder
    unsynced = TaskFolder(folder.storage.unsynced, folder.url, folder.fingerprint)
    return replace(task, folder=unsynced)
