"""The verify job: checks that folders are intact and, with `full`, shards against the corpus."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.manifest import read_manifest as read_counts_manifest
from bpe_beam.engines.local import local_workers
from bpe_beam.engines.run import workers_of
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.artifact_names import (
    JOB_FILE,
    MANIFEST_FILE,
    SHARDS_TOKENIZER_FILE,
    SUMMARY_FILE,
    WINDOW_FILE,
)
from bpe_beam.folders.file_info import FileInfo, TrainedFiles, read_trained_files
from bpe_beam.folders.folder_kind import A_TOKENIZER, COUNTS, kind_of
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import COUNTS as COUNTS_FOLDER
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.messages import and_more
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.manifest import Manifest, read_manifest, tokens_folders
from bpe_beam.shards.verify import VerifyReport, verify
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute, parent
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.shard_manifest import plan_of
from bpe_beam.workers.split_task import SplitTask, split_tasks
from bpe_beam.workers.verify_split import STAGE, CompareTask, compare_with_split

_SHOWN_PROBLEMS = 20


class VerifiedFolder(Struct, frozen=True, kw_only=True):
    """The figures of one verified folder; None where it has none."""

    shards: int | None = None
    sequences: int | None = None
    documents: int | None = None
    tokens: int | None = None
    bytes: int


class VerifySummary(Struct, frozen=True, kw_only=True):
    """The summary of a verification.

    Several folders have no common number of documents and tokens: they may be the same documents.
    """

    job: str = "verify"
    folder: str | UnsetType = UNSET
    folders: dict[str, VerifiedFolder] | UnsetType = UNSET
    whole: bool = True
    shards: int | None
    sequences: int | UnsetType | None
    documents: int | UnsetType | None
    tokens: int | UnsetType | None
    bytes: int
    compared: str | None
    seconds: float
    bytes_per_second: int | None


def run(settings: VerifySettings, progress: Progress) -> VerifySummary:
    """Verify folders that jobs wrote, each to its end."""
    started = time.monotonic()
    if settings.full and settings.input is None:
        raise UsageError("needs the corpus", ("full",), "name it with {inputs}")
    storage = Storage(settings.run.storage_options)
    for folder in settings.folders:
        if storage.exists(folder) and not storage.is_folder(folder):
            raise UsageError(
                f"{redact(folder)} is a file: give the folder that tokenize, convert, count or "
                "train wrote"
            )
    folders = list(
        dict.fromkeys(
            inside for folder in settings.folders for inside in _folders_in(storage, folder)
        )
    )
    verified: dict[str, VerifiedFolder] = {}
    compared = None
    problems: list[str] = []
    remedies: list[str] = []
    for folder in folders:
        try:
            verified[folder], compared = _verify_folder(settings, storage, folder, progress)
        except (DataError, UsageError) as error:
            # A folder below one that was typed must exist.
            if len(folders) == 1 or (isinstance(error, UsageError) and folder in settings.folders):
                raise
            problems.append(error.problem)
            remedies.append(error.remedy)
    if problems:
        whole = [f"{folder} is whole" for folder in verified]
        raise DataError("\n".join([*problems, *whole]), remedy=next(filter(None, remedies), ""))
    seconds = time.monotonic() - started
    rows = verified.values()
    size = sum(row.bytes for row in rows)
    only = next(iter(rows)) if len(rows) == 1 else None
    return VerifySummary(
        folder=folders[0] if len(folders) == 1 else UNSET,
        folders=verified if len(folders) > 1 else UNSET,
        shards=sum(row.shards or 0 for row in rows) or None,
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
    """Verify one folder; return its figures, and a description of the comparison, if any."""
    kind = kind_of(storage, folder)
    if kind in (COUNTS, A_TOKENIZER):
        require(settings.input is None, f"must not be given: {folder} holds {kind}", "inputs")
        return _verify_listed(storage, folder, kind), None
    report = _read_all(storage, folder, workers_of(settings.run), progress)
    try:
        manifest = read_manifest(storage, folder)
        job_file = _job_file(settings, storage, folder, manifest)
        job_problems = _job_problems(storage, job_file, manifest, damaged=not report.ok)
    except DataError:  # is in the report
        job_problems = []
    if job_problems or not report.ok:
        problems = (*job_problems, *report.problems)
        raise _not_whole(storage, folder, problems, len(job_problems) + report.problem_count)
    _check_records(storage, job_file, manifest)
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


def _folders_in(storage: Storage, folder: str) -> list[str]:
    """Return the folders with a manifest in a folder: itself, or some below it."""
    counts = storage.join(folder, COUNTS_FOLDER)
    if kind_of(storage, folder) == A_TOKENIZER and storage.exists(counts):
        return [folder, counts]
    return tokens_folders(storage, folder)


def _verify_listed(storage: Storage, folder: str, kind: str) -> VerifiedFolder:
    """Compare all files of a folder of counts or of a tokenizer with its list of files."""
    names = storage.list_names(folder)
    listed: CountsManifest | TrainedFiles
    files: tuple[FileInfo, ...] = ()
    if kind == COUNTS:
        listed = counts = read_counts_manifest(storage, folder)
        files = tuple(part.file for part in counts.parts)
    elif SUMMARY_FILE in names:
        listed = read_trained_files(storage, folder)
    elif JOB_FILE in names:
        raise DataError(
            f"{redact(folder)}: not finished, it has no {SUMMARY_FILE}: train failed, was "
            "interrupted or is running, or the file is lost; run it again"
        )
    else:
        raise UsageError(f"{redact(folder)} holds a tokenizer that train did not write")
    files += listed.files
    described = TaskFolder(storage, folder, "")
    whole = described.request_each(described.matches, files)
    problems = [
        f"{file.name}: is missing, or is not the file that was written"
        for file, is_whole in zip(files, whole, strict=True)
        if not is_whole
    ]
    job_file = storage.join(folder, JOB_FILE)
    problems += _job_problems(storage, job_file, listed, damaged=bool(problems))
    if problems:
        raise _not_whole(storage, folder, tuple(problems), len(problems))
    return VerifiedFolder(bytes=sum(file.bytes for file in files))


def _job_problems(
    storage: Storage,
    url: str | None,
    listed: Manifest | CountsManifest | TrainedFiles,
    *,
    damaged: bool,
) -> list[str]:
    """Return the problems of the `__job` of a folder."""
    if not listed.job_fingerprint or url is None:
        return []
    if not storage.exists(url):
        return [f"{JOB_FILE}: is missing"]
    record = JobRecord.from_bytes(storage.read_bytes(url))
    if record is None:
        return [f"{JOB_FILE}: is damaged"]
    if record.fingerprint == listed.job_fingerprint:
        return []
    files = [JOB_FILE, SUMMARY_FILE if isinstance(listed, TrainedFiles) else MANIFEST_FILE]
    wrong, right = reversed(files) if damaged else files
    return [f"{wrong}: is of another job than {right}"]


def _job_file(
    settings: VerifySettings, storage: Storage, folder: str, manifest: Manifest
) -> str | None:
    """Return the `__job` of a folder; None for a copy of one part, which may lack it."""
    url = storage.join(folder, JOB_FILE)
    if not (manifest.arranged and manifest.arranged.part) or storage.exists(url):
        return url
    above = parent(folder)
    url = storage.join(above, JOB_FILE)
    typed = (f"{absolute(each).rstrip('/')}/" for each in settings.folders)
    return url if storage.exists(url) or f"{above}/".startswith(tuple(typed)) else None


def _not_whole(storage: Storage, folder: str, problems: tuple[str, ...], count: int) -> DataError:
    """Return the error of a folder that is not whole, and what to do."""
    remedy = "remove these files, and run the command that wrote the folder again: it makes them"
    if any(problem.startswith(WINDOW_FILE) for problem in problems):
        remedy = "remove the folder, and run stream-tokenize again: it reads the window's files"
    elif WINDOW_FILE in storage.list_names(folder):
        remedy = f"remove its {MANIFEST_FILE}, and run stream-tokenize again: it makes the window"
    return DataError(_problems(folder, problems, count), remedy=f"{remedy} again")


def _compare_with_corpus(
    settings: VerifySettings,
    folder: str,
    input_settings: InputSettings,
    storage: Storage,
    manifest: Manifest,
    progress: Progress,
) -> str:
    """Compare a folder with its corpus; return a description of the comparison."""
    # `tokenize` excluded its output, which has a __job; a part of the output has none.
    above = parent(folder)
    is_part = JOB_FILE not in storage.list_names(folder) and JOB_FILE in storage.list_names(above)
    outputs = (*settings.folders, above) if is_part else settings.folders
    input_settings = replace(input_settings, exclude=(*input_settings.exclude, *outputs))
    if manifest.can_be_arranged_again and settings.full:
        # An import that other folders do not need.
        from bpe_beam.jobs.verify.arranged import differences_from_text

        differences = tuple(
            differences_from_text(storage, folder, manifest, input_settings, settings.run, progress)
        )
        if differences:
            raise DataError(_problems(folder, differences, len(differences)))
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


def _check_records(storage: Storage, job_file: str | None, manifest: Manifest) -> None:
    """Compare `__job`, the plan and the manifest with one another."""
    plan = plan_of(manifest, "") if manifest.has_plan else None
    record = None
    if manifest.job_fingerprint and job_file is not None:
        record = JobRecord.from_bytes(storage.read_bytes(job_file))
    if job_file is None or record is None:
        return  # a folder of `WriteTokens`, a window, or a copy of a part
    expected: dict[str, object] = {
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
                f"{job_file}: {key} is {record.settings.get(key)!r}; {MANIFEST_FILE} has {value!r}"
            )
    if plan is None or record.job == "convert":
        return
    files = record.settings["plan"]
    if (files["files"], files["bytes"]) != (len(plan.files), plan.size):
        raise DataError(
            f"{job_file}: the input has {files['files']} files of {files['bytes']} bytes; the plan "
            f"in {MANIFEST_FILE} has {len(plan.files)} of {plan.size}"
        )


def _same_plan(storage: Storage, manifest: Manifest, input_settings: InputSettings) -> Plan:
    """Return the manifest's plan over the input, which must be the files that were tokenized."""
    # The format follows from the settings of `tokenize`.
    input_settings = replace(input_settings, input_format=str(manifest.settings["input_format"]))
    now = corpus_input.plan_of(storage, input_settings)
    plan = plan_of(manifest, now.root)
    before = {file.name: file for file in plan.files}
    # A manifest has no tags.
    here = {file.name: structs.replace(file, tag="") for file in now.files}
    for name in sorted(before.keys() | here.keys()):
        if before.get(name) != here.get(name):
            raise DataError(
                f"the input is not what was tokenized: {name} is {_shown(here.get(name))} here "
                f"and was {_shown(before.get(name))} then"
            )
    # The files have the tags of now.
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
    """Encode every split again and compare it with its shard, `workers` at a time."""
    url = storage.join(folder, SHARDS_TOKENIZER_FILE)
    tokenizer = Tokenizer.from_file(url, storage=storage)
    chosen = manifest.reading
    encoding = Encoding.of(tokenizer, **manifest.encoding).kept_at(storage, url)
    task = CompareTask(storage, folder, ReadSettings.from_json(chosen), encoding, manifest.format)
    with (
        progress.stage(STAGE, plan.size, "bytes"),
        local_workers(workers, in_processes=tokenizer.holds_gil) as pool,
    ):
        tasks = split_tasks(plan)  # the largest first
        rows = manifest.by_split
        in_order = [rows[SplitTask.from_json(each).split.index] for each in tasks]
        compared = pool.map(partial(compare_with_split, task), tasks, in_order)
        differences = sorted(filter(None, compared))
    if differences:
        raise DataError(_problems(folder, tuple(differences), len(differences)))
