"""New shards of arranged documents: their steps run on any engine, and their folders are finished.

The jobs that arrange documents say which steps there are and what the manifests describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from msgspec import UNSET, structs

from bpe_beam.engines.run import run_steps
from bpe_beam.engines.steps import Collection, Engine, EngineSettings, Steps
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import WORK, Publication, Receipt, TaskFolder
from bpe_beam.jobs.shard_folder_files import copy_rejects, inside, write_small_files
from bpe_beam.progress import Progress
from bpe_beam.shards import shard_rows
from bpe_beam.shards.manifest import NO_PLAN, Manifest, Rejects, with_files
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.new_shard import write_new_shard
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.arrange.task import REGROUP, STAGE, ArrangeTask, PartPlan, PartSums
from bpe_beam.workers.task_results import MetricSums


class ArrangedShards:
    """Runs the steps of a job in its folder, and finishes the folder.

    Args:
        run: Where the tasks run.
        folder: The output folder.
        task: What the tasks share.
        documents: The manifest of the documents.
        tokenizer: Their tokenizer.
        progress: Gets the reports.
    """

    def __init__(
        self,
        run: EngineSettings,
        folder: OutputFolder,
        task: ArrangeTask,
        documents: Manifest,
        tokenizer: Tokenizer,
        progress: Progress,
    ) -> None:
        self._settings = run
        self._folder = folder
        self._task = task
        self._documents = documents
        self._tokenizer = tokenizer
        self._progress = progress
        self.metrics = MetricSums()  # gets the metrics of the steps
        self._regroup_tasks: list[str] = []  # the names of the tasks that regroup blocks

    # ---- defined by the jobs ----

    def described_part(self, number: int, padding: int = 0) -> shard_rows.ArrangedPart:
        """Return the description of the shards of a part, for its manifest."""
        raise NotImplementedError

    def total(self, number: int) -> PartSums:
        """Return the documents of a part, and the tokens that its shards have of them."""
        raise NotImplementedError

    def write_counts(self, number: int, manifest: Manifest) -> FileInfo:
        """Write how often each id occurs in the documents of a part."""
        raise NotImplementedError

    # ---- the same for all ----

    def remaining(self, tasks: Sequence[str], made_of: str = "") -> list[int]:
        """Return the numbers of the tasks to run; forget receipts of what is not `made_of` this."""
        made_of = made_of or self._task.made_of
        remaining: list[int] = []
        unfit: list[Receipt] = []
        for index, receipt in enumerate(map(self._folder.receipt, tasks)):
            if receipt is None or receipt.stats.get("made_of") != made_of:
                remaining.append(index)
                unfit += [receipt] if receipt is not None else []
        self._folder.forget(unfit)
        return remaining

    def run(
        self,
        steps: Callable[[ArrangeTask], Steps],
        tasks: int,
        tokens: Mapping[str, int] = MappingProxyType({}),
        stage_name: str = STAGE,
    ) -> None:
        """Run steps in a new folder of a run; `tokens` has what tasks read, if they report it."""
        folder = self._folder
        run = folder.new_run()
        task = replace(self._task, folder=run.for_workers())
        total = sum(tokens.values())
        reports = self._progress.stage(stage_name, total, "tokens read") if tokens else None
        with nullcontext() if reports is None else reports as stage:

            def watch() -> None:
                if stage is not None:  # workers on other machines report to none
                    stage.at_least(sum(tokens.get(name, 0) for name in run.finished_tasks()))

            run_steps(
                self._settings,
                "Arrange",
                steps(task),
                tasks,
                self.metrics,
                watch,
                min_ram="1GB",
            )
        folder.require_ours()
        folder.take(run, all_files=False)

    def plan_new_shards(self, plans: tuple[PartPlan, ...]) -> None:
        """Plan the new shards of each part, and the groups of them if there are many."""
        self._task = replace(self._task, parts=plans)
        tokens = sum(self.total(number).tokens for number in range(len(plans)))
        id_bytes = tokens * self._task.id_type.itemsize
        shards = [plan.shards for plan in plans]
        groups = planning.groups_of(self._folder.url, self._task.shards, shards, id_bytes)
        self._task = replace(self._task, groups=groups)
        self._regroup_tasks = [] if groups is None else groups.tasks()
        others = self._folder.kept.keys() - {*self._regroup_tasks}
        self._folder.forget(
            self._folder.kept[name] for name in others if name.startswith(f"{REGROUP}-")
        )
        self._folder.expect(f"{WORK}/{name}.bin" for name in self._regroup_tasks)

    def new_shards_steps(
        self, scatter: Sequence[str], new: Sequence[str]
    ) -> Callable[[ArrangeTask, Engine, Collection], Collection]:
        """Return the last steps, from the scattered documents to new shards.

        Args:
            scatter: The names of the tasks that scatter documents; call `remaining` first.
            new: The elements of the new shards.
        """
        groups = list(map(str, self.remaining(self._regroup_tasks, self._task.blocks_made_of)))
        known, regrouped = self.files_of(scatter), self.files_of(self._regroup_tasks)

        def described(task: ArrangeTask, engine: Engine, scattered: Collection) -> Collection:
            blocks, written = scattered, known
            if task.groups is not None:
                do = partial(regroup_blocks, unsynced(task), known)
                tasks = engine.tasks("Groups", groups)
                blocks, written = engine.run("RegroupBlocks", do, tasks, str, scattered), regrouped
            write = partial(write_new_shard, task, written)
            return engine.run("WriteNewShard", write, engine.tasks("NewShards", new), str, blocks)

        return described

    def tokens_of_new_shards(self) -> dict[str, int]:
        """Return the tokens that each task of the last steps reads, about."""
        tokens: dict[str, int] = {}
        for number, plan in enumerate(self._task.parts):
            total = self.total(number).tokens
            for shard in range(plan.shards):
                end, start = ((shard + n) * total // plan.shards for n in (1, 0))
                tokens[plan.task(shard)] = end - start
        total = sum(tokens.values())
        return tokens | {name: total // len(self._regroup_tasks) for name in self._regroup_tasks}

    def files_of(self, tasks: Sequence[str]) -> list[str]:
        """Return the URLs of the first files of the tasks that `remaining` has not named."""
        receipts = filter(None, map(self._folder.receipt, tasks))
        return [self._folder.path(receipt.files[0].name) for receipt in receipts]

    def finish(self, plans: Sequence[PartPlan]) -> list[Manifest]:
        """Give the new shards their final names, and write the manifest of each part."""
        folder, storage = self._folder, self._folder.storage
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
        tokenizer = self._tokenizer.json_bytes
        counts = [self.write_counts(*each) for each in enumerate(manifests)]
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
        folder, documents = self._folder, self._documents
        names = [plan.task(shard) for shard in range(plan.shards)]
        known = folder.all_receipts(names)
        receipts = [known[name] for name in names]
        total = self.total(number)
        numbered = planning.numbered_shards(receipts, total)
        if isinstance(numbered, int):
            regrouped = (known[name] for name in self._regroup_tasks if name in known)
            folder.forget([*receipts, *regrouped])
            raise planning.other_tokens(folder.url, numbered, total)
        rows = numbered.rows
        rejects = Rejects({}, ())
        if number == 0 and documents.rejects.files:
            # They belong to the whole corpus: no shard has them.
            rejects = documents.rejects
            rows.append(
                shard_rows.shard_row((), 0, len(names), rejects=sum(rejects.by_reason.values()))
            )
        manifest = structs.replace(
            documents,
            **shard_rows.manifest_rows(rows),
            format=self._task.shard_format,
            plan=NO_PLAN,
            rejects=rejects,
            arranged=self.described_part(number, numbered.padding),
            columns=self._task.origin.columns or UNSET,
        )
        return numbered.publications, manifest

    def folder_of(self, number: int) -> str:
        """Return the folder of the shards of a part."""
        part = self._task.arrangement.parts[number]
        return self._folder.path(part) if part else self._folder.url


def unsynced(task: ArrangeTask) -> ArrangeTask:
    """Return the same task for steps whose files are temporary."""
    folder = task.folder
    return replace(task, folder=TaskFolder(folder.storage.unsynced, folder.url, folder.fingerprint))


def added_texts(parts: Sequence[shard_rows.PartTexts]) -> shard_rows.PartTexts:
    """Return the sums over the shards of documents."""
    sources = shard_rows.added_sources(each.sources for each in parts)
    return shard_rows.PartTexts(sum(each.text_bytes for each in parts), sources)


def restored_parts(storage: Storage, output: str, parts: Sequence[str], _: bytes) -> RestoredFolder:
    """Return a finished folder: all tasks run again if a file is missing or changed."""
    files: list[FileInfo] = []
    jobs = set()
    for part in parts:
        url = storage.join(output, *inside(part, MANIFEST_FILE).split("/"))
        # Not by `read_manifest`, which refuses a folder whose manifest is missing.
        manifest = Manifest.from_bytes(storage.read_bytes(url), redact(url))
        jobs.add(manifest.job_fingerprint)
        written = [*manifest.rejects.files, *filter(None, [manifest.token_counts])]
        written += (file for shard in manifest.shards for file in shard.files)
        files += _files_inside(part, written)
    # Manifests of several jobs belong to none of them.
    job = (jobs.pop() or None) if len(jobs) == 1 else None
    return RestoredFolder(job, {"shards": RestoredTask(tuple(files), None)})


def _files_inside(part: str, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    """Return files under their names below the output."""
    return tuple(structs.replace(file, name=inside(part, file.name)) for file in files)


def _moved_into(part: str, publication: Publication) -> Publication:
    """Return a publication whose final names are in the folder of a part."""
    moves = tuple((name, inside(part, final)) for name, final in publication.moves)
    files = _files_inside(part, publication.receipt.files)
    return Publication(structs.replace(publication.receipt, files=files), moves)
