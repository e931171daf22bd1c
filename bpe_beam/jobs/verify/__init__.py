"""The verify job: checks that folders are intact and, with `full`, shards against the corpus."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import chain

from msgspec import UNSET, Struct, UnsetType, structs

from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.manifest import read_manifest as read_counts_manifest
from bpe_beam.engines.run import local_workers, workers_of
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.artifact_names import (
    JOB_FILE,
    MANIFEST_FILE,
    PANE_FILE,
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
from bpe_beam.jobs.verify.arranged import (
    differences_from_folders,
    differences_from_text,
    documents_of_other_parts,
)
from bpe_beam.messages import and_more
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.manifest import Manifest, read_manifest, tokens_folders
from bpe_beam.shards.verify import verify
from bpe_beam.shards.windows import chosen_folders, is_stream
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute, parent
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import SplitTask, split_tasks
from bpe_beam.workers.tokenize_split import plan_of
from bpe_beam.workers.verify_split import STAGE, CompareTask, compare_with_split

_SHOWN_PROBLEMS = 20
_SHOWN_WHOLE = 20


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
    The windows of a stream are other documents each.
    """

    job: str = "verify"
    folder: str | UnsetType = UNSET
    folders: dict[str, VerifiedFolder] | UnsetType = UNSET
    windows: int | UnsetType = UNSET  # of a stream
    windows_open: int | UnsetType = UNSET
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
    chosen = chosen_folders(storage, settings.folders)
    found = (_folders_in(storage, folder) for folder in chosen.folders)
    folders = list(dict.fromkeys(chain.from_iterable(found)))
    is_of_stream = len(settings.folders) == 1 and is_stream(storage, settings.folders[0])
    verified: dict[str, VerifiedFolder] = {}
    compared = None
    errors: list[DataError | UsageError] = []
    for folder in folders:
        try:
            verified[folder], compared = _Folder(settings, storage, folder, progress).verify()
        except (DataError, UsageError) as error:
            # A folder below one that was typed must exist.
            if len(folders) == 1 or (isinstance(error, UsageError) and folder in settings.folders):
                raise
            errors.append(error)
    if errors:
        lines = [error.problem for error in errors]
        lines += [f"{name} is whole" for name in [*verified][:_SHOWN_WHOLE]]
        if len(verified) > _SHOWN_WHOLE:
            lines.append(f"{and_more(len(verified) - _SHOWN_WHOLE)} folders are whole")
        remedies = (error.remedy for error in errors if error.remedy)
        raise DataError("\n".join(lines), remedy=next(remedies, ""))
    seconds = time.monotonic() - started
    rows = verified.values()
    size = sum(row.bytes for row in rows)
    only = next(iter(rows)) if len(rows) == 1 else None
    if is_of_stream:
        only = VerifiedFolder(
            documents=sum(row.documents or 0 for row in rows),
            tokens=sum(row.tokens or 0 for row in rows),
            bytes=size,
        )
    return VerifySummary(
        folder=settings.folders[0] if is_of_stream else folders[0] if len(folders) == 1 else UNSET,
        folders=verified if len(folders) > 1 and not is_of_stream else UNSET,
        windows=len(folders) if is_of_stream else UNSET,
        windows_open=len(chosen.open) if is_of_stream else UNSET,
        shards=sum(row.shards or 0 for row in rows) or None,
        sequences=UNSET if only is None else only.sequences,
        documents=UNSET if only is None else only.documents,
        tokens=UNSET if only is None else only.tokens,
        bytes=size,
        compared=compared,
        seconds=round(seconds, 3),
        bytes_per_second=round(size / seconds) if seconds else None,
    )


def _folders_in(storage: Storage, folder: str) -> list[str]:
    """Return the folders with a manifest in a folder: itself, or some below it."""
    counts = storage.join(folder, COUNTS_FOLDER)
    if kind_of(storage, folder) == A_TOKENIZER and storage.exists(counts):
        return [folder, counts]
    return tokens_folders(storage, folder)


class _Folder:
    """The checks of one folder."""

    def __init__(
        self, settings: VerifySettings, storage: Storage, url: str, progress: Progress
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._url = url
        self._progress = progress

    def verify(self) -> tuple[VerifiedFolder, str | None]:
        """Return the figures of the folder, and a description of the comparison, if any."""
        kind, corpus = kind_of(self._storage, self._url), self._settings.input
        if kind in (COUNTS, A_TOKENIZER):
            require(corpus is None, f"must not be given: {self._url} holds {kind}", "inputs")
            return self._verify_listed(kind), None
        with self._progress.stage("verify", None, "bytes") as stage:

            def on_progress(done: int, total: int) -> None:
                stage.total = total
                stage.at_least(done)

            workers = workers_of(self._settings.run)
            report = verify(self._storage, self._url, workers=workers, on_progress=on_progress)
        try:
            manifest = read_manifest(self._storage, self._url)
            job_url = self._job_url(manifest)
            problems = self._job_problems(job_url, manifest, damaged=not report.ok)
        except DataError:  # is in the report
            problems = []
        if problems or not report.ok:
            count = len(problems) + report.problem_count
            raise self._not_whole([*problems, *report.problems], count)
        _check_records(self._storage, job_url, manifest)
        misplaced = list(documents_of_other_parts(self._storage, self._url, manifest))
        if misplaced:
            raise DataError(_problems(self._url, misplaced, len(misplaced)))
        compared = None if corpus is None else self._compare_with_corpus(corpus, manifest)
        # The shards have what the manifest says: this has been compared.
        figures = VerifiedFolder(
            shards=report.shards,
            sequences=manifest.sequences,
            documents=manifest.documents,
            tokens=report.tokens,
            bytes=report.bytes,
        )
        return figures, compared

    def _verify_listed(self, kind: str) -> VerifiedFolder:
        """Compare all files of a folder of counts or of a tokenizer with its list of files."""
        storage, url = self._storage, self._url
        names = storage.list_names(url)
        listed: CountsManifest | TrainedFiles
        files: tuple[FileInfo, ...] = ()
        if kind == COUNTS:
            listed = counts = read_counts_manifest(storage, url)
            files = tuple(part.file for part in counts.parts)
        elif SUMMARY_FILE in names:
            listed = read_trained_files(storage, url)
        elif JOB_FILE in names:
            raise DataError(
                f"{redact(url)}: not finished, it has no {SUMMARY_FILE}: train failed, was "
                "interrupted or is running, or the file is lost; run it again"
            )
        else:
            raise UsageError(f"{redact(url)} holds a tokenizer that train did not write")
        files += listed.files
        folder = TaskFolder(storage, url, "")
        whole = folder.request_each(folder.matches, files)
        problems = [
            f"{file.name}: is missing, or is not the file that was written"
            for file, is_whole in zip(files, whole, strict=True)
            if not is_whole
        ]
        job_url = storage.join(url, JOB_FILE)
        problems += self._job_problems(job_url, listed, damaged=bool(problems))
        if problems:
            raise self._not_whole(problems, len(problems))
        return VerifiedFolder(bytes=sum(file.bytes for file in files))

    def _job_url(self, manifest: Manifest) -> str | None:
        """Return the `__job` of the folder; None for a copy of one part, which may lack it."""
        url = self._storage.join(self._url, JOB_FILE)
        if not (manifest.arranged and manifest.arranged.part) or self._storage.exists(url):
            return url
        above = parent(self._url)
        url = self._storage.join(above, JOB_FILE)
        typed = (f"{absolute(each).rstrip('/')}/" for each in self._settings.folders)
        is_whole_output = f"{above}/".startswith(tuple(typed))
        return url if is_whole_output or self._storage.exists(url) else None

    def _job_problems(
        self, url: str | None, listed: Manifest | CountsManifest | TrainedFiles, *, damaged: bool
    ) -> list[str]:
        """Return the problems of the `__job` of the folder."""
        if not listed.job_fingerprint or url is None:
            return []
        if not self._storage.exists(url):
            return [f"{JOB_FILE}: is missing"]
        record = JobRecord.from_bytes(self._storage.read_bytes(url))
        if record is None:
            return [f"{JOB_FILE}: is damaged"]
        if record.fingerprint == listed.job_fingerprint:
            return []
        files = [JOB_FILE, SUMMARY_FILE if isinstance(listed, TrainedFiles) else MANIFEST_FILE]
        wrong, right = reversed(files) if damaged else files
        return [f"{wrong}: is of another job than {right}"]

    def _not_whole(self, problems: Sequence[str], count: int) -> DataError:
        """Return the error of a folder that is not whole, and what to do."""
        remedy = (
            "remove these files, and run the command that wrote the folder again: it makes them"
        )
        if PANE_FILE in self._storage.list_names(self._url):
            remedy = (
                "restore these files from a copy; or end the pipeline, remove the folder of this "
                "window, start the pipeline, and send the window's documents"
            )
        elif any(problem.startswith(WINDOW_FILE) for problem in problems):
            remedy = "remove the folder, and run stream-tokenize again: it reads the window's files"
        elif WINDOW_FILE in self._storage.list_names(self._url):
            remedy = (
                f"remove its {MANIFEST_FILE}, and run stream-tokenize again: it makes the window"
            )
        return DataError(_problems(self._url, problems, count), remedy=f"{remedy} again")

    def _compare_with_corpus(self, corpus: InputSettings, manifest: Manifest) -> str:
        """Compare the folder with its corpus; return a description of the comparison."""
        storage, url, run, full = self._storage, self._url, self._settings.run, self._settings.full
        # `tokenize` excluded its output, which has a __job; a part of the output has none.
        above = parent(url)
        is_part = JOB_FILE not in storage.list_names(url) and JOB_FILE in storage.list_names(above)
        outputs = (*self._settings.folders, above) if is_part else self._settings.folders
        corpus = structs.replace(corpus, exclude=(*corpus.exclude, *outputs))
        again = manifest.can_be_arranged_again or bool(manifest.mixture)
        if again and full:
            made_of = differences_from_folders if manifest.mixture else differences_from_text
            differences = list(made_of(storage, url, manifest, corpus, run, self._progress))
        else:
            require(
                manifest.has_plan,
                "must not be given: no plan says which text is in which shard, since these were "
                "arranged, joined, divided or written by a pipeline",
                "inputs",
                remedy="give {full} too"
                if again
                else "leave it out, or verify the folder that tokenize wrote",
            )
            plan = _same_plan(storage, manifest, corpus)
            if not full:
                return "names and sizes of the corpus's files"
            differences = self._differences_from_splits(manifest, plan)
        if differences:
            raise DataError(_problems(url, differences, len(differences)))
        if manifest.mixture:
            return "every token, with the folders mixed again"
        arranged = " and arranged" if again else ""
        return f"every token, with the corpus encoded{arranged} again"

    def _differences_from_splits(self, manifest: Manifest, plan: Plan) -> list[str]:
        """Encode every split again, some at once, and compare it with its shard."""
        storage, run = self._storage, self._settings.run
        url = storage.join(self._url, SHARDS_TOKENIZER_FILE)
        tokenizer = Tokenizer.from_file(url, storage=storage)
        reading = ReadSettings.from_json(manifest.reading)
        encoding = Encoding.of(tokenizer, **manifest.encoding).kept_at(storage, url)
        task = CompareTask(storage, self._url, reading, encoding, manifest.format)
        with (
            self._progress.stage(STAGE, plan.size, "bytes"),
            local_workers(workers_of(run), in_processes=tokenizer.holds_gil) as pool,
        ):
            tasks = split_tasks(plan)  # the largest first
            rows = manifest.by_split
            in_order = [rows[SplitTask.from_json(each).split.index] for each in tasks]
            return sorted(
                filter(None, pool.map(partial(compare_with_split, task), tasks, in_order))
            )


def _problems(folder: str, problems: Sequence[str], count: int) -> str:
    shown = [f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
    if count > len(shown):
        shown.append(f"  {and_more(count - len(shown))}")
    noun = "problem" if count == 1 else "problems"
    return f"{folder} is not whole, {count:,} {noun}:\n" + "\n".join(shown)


def _check_records(storage: Storage, job_url: str | None, manifest: Manifest) -> None:
    """Compare `__job`, the plan and the manifest with one another."""
    plan = plan_of(manifest, "") if manifest.has_plan else None
    if not manifest.job_fingerprint or job_url is None:
        return  # a folder of `WriteTokens`, a window, or a copy of a part
    record = JobRecord.from_bytes(storage.read_bytes(job_url))
    assert record is not None  # this has been checked
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
                f"{job_url}: {key} is {record.settings.get(key)!r}; {MANIFEST_FILE} has {value!r}"
            )
    if plan is None or record.job == "convert":
        return
    files = record.settings["plan"]
    if (files["files"], files["bytes"]) != (len(plan.files), plan.size):
        raise DataError(
            f"{job_url}: the input has {files['files']} files of {files['bytes']} bytes; the plan "
            f"in {MANIFEST_FILE} has {len(plan.files)} of {plan.size}"
        )


def _same_plan(storage: Storage, manifest: Manifest, corpus: InputSettings) -> Plan:
    """Return the manifest's plan over the input, which must be the files that were tokenized."""
    # The format follows from the settings of `tokenize`.
    corpus = structs.replace(corpus, input_format=str(manifest.settings["input_format"]))
    now = corpus_input.plan_of(storage, corpus)
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
    return structs.replace(now, splits=plan.splits)


def _shown(file: InputFile | None) -> str:
    if file is None:
        return "missing"
    packed = "" if file.compression == "none" else f" in {file.compression}"
    return f"{file.size:,} bytes of {file.format}{packed}"
