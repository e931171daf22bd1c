"""The verify job: checks that folders of shards are intact and, with `full`, against the corpus."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.engines.local import local_workers
from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.jobs import corpus_input
from bpe_beam.messages import and_more
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.tools import VerifySettings
from bpe_beam.shards.manifest import Manifest, read_manifest, tokens_folders
from bpe_beam.shards.verify import VerifyReport, verify
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import parent
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.shard_manifest import plan_of
from bpe_beam.workers.split_task import SplitTask, split_tasks
from bpe_beam.workers.verify_split import STAGE, CompareTask, compare_with_split

_SHOWN_PROBLEMS = 20


class VerifiedFolder(Struct, frozen=True, kw_only=True):
    """The figures of one verified folder; `sequences` is None if it has documents."""

    shards: int
    sequences: int | None
    documents: int
    tokens: int
    bytes: int


class VerifySummary(Struct, frozen=True, kw_only=True):
    """The summary of a verification.

    Of several folders, each has its documents and tokens: they may be the same in several formats.
    """

    job: str = "verify"
    folder: str | UnsetType = UNSET
    folders: dict[str, VerifiedFolder] | UnsetType = UNSET
    whole: bool = True
    shards: int
    sequences: int | UnsetType | None
    documents: int | UnsetType
    tokens: int | UnsetType
    bytes: int
    compared: str | None
    seconds: float
    bytes_per_second: int | None


def run(settings: VerifySettings, progress: Progress) -> VerifySummary:
    """Verify folders of shards, each to its end.

    Raises:
        UsageError: `full` is set without the corpus, or a folder is of another kind.
        DataError: A folder is not intact; lists the problems of all folders.
    """
    started = time.monotonic()
    if settings.full and settings.input is None:
        raise UsageError("needs the corpus", ("full",), "name it with {inputs}")
    storage = Storage(settings.run.storage_options)
    for folder in settings.folders:
        if storage.exists(folder) and not storage.is_folder(folder):
            raise UsageError(
                f"{redact(folder)} is a file: give the folder of shards that tokenize or convert "
                "wrote"
            )
    folders = list(
        dict.fromkeys(
            inside for folder in settings.folders for inside in tokens_folders(storage, folder)
        )
    )
    verified: dict[str, VerifiedFolder] = {}
    compared = None
    problems = []
    for folder in folders:
        try:
            verified[folder], compared = _verify_folder(settings, storage, folder, progress)
        except (DataError, UsageError) as error:
            # A folder below one that was typed has to be there.
            if len(folders) == 1 or (isinstance(error, UsageError) and folder in settings.folders):
                raise
            problems.append(str(error))
    if problems:
        whole = [f"{folder} is whole" for folder in verified]
        raise DataError("\n".join([*problems, *whole]))
    seconds = time.monotonic() - started
    rows = verified.values()
    size = sum(row.bytes for row in rows)
    only = next(iter(rows)) if len(rows) == 1 else None
    return VerifySummary(
        folder=folders[0] if len(folders) == 1 else UNSET,
        folders=verified if len(folders) > 1 else UNSET,
        shards=sum(row.shards for row in rows),
        sequences=UNSET if only is None else only.sequences,
        documents=UNSET if only is None else only.documents,
        tokens=UNSET if only is None else only.tokens,
        bytes=size,
        compared=compared,
        seconds=round(seconds, 3),
        bytes_per_second=round(size / seconds) if seconds else None,
    )


def _verify_folder(
    settings: VerifySettings, storage: Storage, folder: str, progress: Progress
) -> tuple[VerifiedFolder, str | None]:
    """Verify one folder; return its figures, and what was compared with the corpus."""
    report = _read_all(storage, folder, workers_of(settings.run), progress)
    if not report.ok:
        raise DataError(_problems(folder, report.problems, report.problem_count))
    manifest = read_manifest(storage, folder)
    _check_records(storage, folder, manifest)
    compared = None
    if settings.input is not None:
        compared = _compare_with_corpus(
            settings, folder, settings.input, storage, manifest, progress
        )
    # The shards have what the manifest says: this has been compared.
    figures = VerifiedFolder(
        shards=report.shards,
        sequences=manifest.sequences,
        documents=manifest.documents,
        tokens=report.tokens,
        bytes=report.bytes,
    )
    return figures, compared


def _compare_with_corpus(
    settings: VerifySettings,
    folder: str,
    input_settings: InputSettings,
    storage: Storage,
    manifest: Manifest,
    progress: Progress,
) -> str:
    """Compare a folder with its corpus; return what was compared."""
    # `tokenize` left out its output, which has a __job; a part of it has none.
    above = parent(folder)
    is_part = JOB_FILE not in storage.list_names(folder) and JOB_FILE in storage.list_names(above)
    outputs = (*settings.folders, above) if is_part else settings.folders
    input_settings = replace(input_settings, exclude=(*input_settings.exclude, *outputs))
    if manifest.can_be_arranged_again and settings.full:
        # An import that other folders do not need.
        from bpe_beam.jobs.verify_arranged import differences_from_text

        found = tuple(
            differences_from_text(storage, folder, manifest, input_settings, settings.run, progress)
        )
        if found:
            raise DataError(_problems(folder, found, len(found)))
        return "every token, with the corpus encoded and arranged again"
    require(
        manifest.has_plan,
        "must not be given: no plan says which text is in which shard, since these were arranged, "
        "joined, divided or written by a pipeline",
        "inputs",
        remedy="leave it out, or verify the folder that tokenize wrote"
        if not manifest.can_be_arranged_again
        else "give {full} too",
    )
    plan = _same_plan(storage, manifest, input_settings)
    if settings.full:
        workers = workers_of(settings.run)
        _compare(storage, folder, manifest, plan, workers, progress)
        return "every token, with the corpus encoded again"
    return "names and sizes of the corpus's files"


def _read_all(storage: Storage, folder: str, workers: int, progress: Progress) -> VerifyReport:
    with progress.stage("verify", None, "bytes") as stage:

        def on_progress(done: int, total: int) -> None:
            stage.total = total
            stage.at_least(done)

        return verify(storage, folder, workers=workers, on_progress=on_progress)


def _problems(folder: str, problems: tuple[str, ...], count: int) -> str:
    shown = [f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
    if count > len(shown):
        shown.append(f"  {and_more(count - len(shown))}")
    noun = "problem" if count == 1 else "problems"
    return f"{folder} is not whole, {count:,} {noun}:\n" + "\n".join(shown)


def _check_records(storage: Storage, folder: str, manifest: Manifest) -> None:
    """Compare `__job`, the plan and the manifest with one another.

    Raises:
        DataError: They contradict each other, or one of them was changed.
    """
    url = storage.join(folder, JOB_FILE)
    if not storage.exists(url):
        # A folder of `WriteTokens`, which has no plan, a window, or a copy without the file.
        if manifest.has_plan:
            plan_of(manifest, "")
        return
    plan = plan_of(manifest, "") if manifest.has_plan else None
    record = JobRecord.from_bytes(storage.read_bytes(url))
    if record is None or record.job not in ("tokenize", "convert"):
        raise DataError(f"{url}: is damaged, or no job of bpe-beam wrote it")
    expected: dict[str, Any] = {
        "tokenizer": manifest.tokenizer.fingerprint,
        "format": manifest.format,
    }
    if manifest.columns:
        expected["columns"] = list(manifest.columns)
    if record.job == "tokenize":
        expected |= {**manifest.encoding, "reading": manifest.reading}
    for key, value in expected.items():
        if record.settings.get(key) != value:
            raise DataError(
                f"{url}: {key} is {record.settings.get(key)!r}; {MANIFEST_FILE} has {value!r}"
            )
    if plan is None or record.job == "convert":
        return
    files = record.settings["plan"]
    if (files["files"], files["bytes"]) != (len(plan.files), plan.size):
        raise DataError(
            f"{url}: the input has {files['files']} files of {files['bytes']} bytes; the plan in "
            f"{MANIFEST_FILE} has {len(plan.files)} of {plan.size}"
        )


def _same_plan(storage: Storage, manifest: Manifest, input_settings: InputSettings) -> Plan:
    """Return the manifest's plan over the input, which must be the files that were tokenized.

    Raises:
        DataError: There are other files, or files of another size.
    """
    # The settings of `tokenize` decided on the format.
    input_settings = replace(input_settings, input_format=str(manifest.settings["input_format"]))
    now = corpus_input.plan_of(storage, input_settings)
    plan = plan_of(manifest, now.root)
    there = {file.name: file for file in plan.files}
    # A manifest has no tags.
    here = {file.name: structs.replace(file, tag="") for file in now.files}
    for name in sorted(there.keys() | here.keys()):
        if there.get(name) != here.get(name):
            raise DataError(
                f"the input is not what was tokenized: {name} is {_shown(here.get(name))} here "
                f"and was {_shown(there.get(name))} then"
            )
    # The tags of the files are those of now.
    return replace(now, splits=plan.splits)


def _shown(file: Any) -> str:
    if file is None:
        return "missing"
    packed = "" if file.compression == "none" else f" in {file.compression}"
    return f"{file.size:,} bytes of {file.format}{packed}"


def _compare(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    plan: Plan,
    workers: int,
    progress: Progress,
) -> None:
    """Encode every split again and compare it with its shard, `workers` at a time.

    Raises:
        DataError: A shard differs; says where.
    """
    url = storage.join(folder, SHARDS_TOKENIZER_FILE)
    tokenizer = Tokenizer.from_file(url, storage=storage)
    chosen = manifest.reading
    encoding = Encoding.of(tokenizer, **manifest.encoding).kept_at(storage, url)
    task = CompareTask(storage, folder, ReadSettings(**chosen), encoding, manifest.format)
    with (
        progress.stage(STAGE, plan.size, "bytes"),
        local_workers(workers, in_processes=tokenizer.holds_gil) as pool,
    ):
        tasks = split_tasks(plan)  # the largest first
        rows = manifest.by_split
        in_order = [rows[SplitTask.from_json(each).split.index] for each in tasks]
        found = pool.map(partial(compare_with_split, task), tasks, in_order)
        differences = sorted(filter(None, found))
    if differences:
        raise DataError(_problems(folder, tuple(differences), len(differences)))
