"""The folders that pipelines write in, and the folder that a job keeps their results in.

Each pipeline that is launched has a folder of its own, `work/run-<12 hex digits>/` in the folder of
its job, and laid out like it. When the pipeline has ended, the driver moves the files and the
receipts of its tasks up to the job's folder. If the driver died, its pipeline may run for hours on
a cluster: the next driver has taken over the finished tasks, and no one reads what comes later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from msgspec.structs import replace

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.artifact_names import JOB_FILE, name_of_first_part
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.receipts import WORK, Receipt, TaskFolder, receipt_name, side_by_side, task_of
from bpe_beam.storage import Storage
from bpe_beam.storage.names import attempted_name, escape_glob, is_local

_RUN = re.compile(r"run-[0-9a-f]{12}")


class RunFolder(TaskFolder):
    """A folder with the files and the receipts of a job's tasks."""

    def __init__(self, storage: Storage, url: str, record: JobRecord) -> None:
        super().__init__(storage, url, record.fingerprint)
        self.record = record
        self._known: dict[str, Receipt] = {}

    def owns(self, name: str) -> bool:
        """Return whether the job writes a file of this name that is no receipt."""
        return name_of_first_part(name) in self.record.names

    def is_receipt(self, name: str) -> bool:
        """Return whether a file of this name is a receipt of a task of the job."""
        return task_of(name) is not None

    @property
    def folders(self) -> frozenset[str]:
        """The names of the folders that the job writes to."""
        return frozenset({*folders_of(self.record.names), WORK})

    @property
    def name(self) -> str:
        """The last part of the folder's URL."""
        return self.url.rstrip("/").rpartition("/")[2]

    def for_workers(self) -> TaskFolder:
        """Return the folder as tasks know it, without the job's record, which may be large."""
        return TaskFolder(self.storage, self.url, self.fingerprint)

    def receipts(self) -> dict[str, Receipt]:
        """Return the job's receipts in storage now, by task in order.

        Cost: one listing, and reads each receipt that this process has neither read nor written.
        """
        tasks = self.finished_tasks()
        unread = [task for task in tasks if task not in self._known]
        for receipt in self.request_each(self.read_receipt, unread):
            if receipt is not None and all(self._may_be(file.name) for file in receipt.files):
                self._known[receipt.task] = receipt
        return {task: self._known[task] for task in tasks if task in self._known}

    def write_receipt(self, task: str, files: Iterable[FileInfo], stats: object) -> None:
        """See `TaskFolder`."""
        self._known.pop(task, None)
        super().write_receipt(task, files, stats)

    def remove(self, names: Iterable[str]) -> None:
        """See `TaskFolder`."""
        names = list(names)
        for task in filter(None, map(task_of, names)):
            self._known.pop(task, None)
        super().remove(names)

    def all_receipts(self, tasks: Iterable[str]) -> dict[str, Receipt]:
        """Return all receipts, after a check that each of these tasks has one."""
        receipts = self.receipts()
        missing = next((task for task in tasks if task not in receipts), None)
        if missing is not None:
            raise DataError(
                f"{self.url}: there is no receipt of {missing}: another run of this job works "
                "in the same folder or has finished there, or the runner lost a task; when no "
                "other run works there, run this one again"
            )
        return receipts

    def remove_run(self) -> None:
        """Remove what the job wrote in this folder, and the folders left empty."""
        present = names_present(self.storage, self.url, self.folders)
        self.remove(
            name
            for name in present
            if self.owns(name) or self.is_receipt(name) or self._is_attempt(name)
        )
        for folder in sorted(self.folders, reverse=True):
            self.storage.remove_folder_if_empty(self.path(folder))
        self.storage.remove_folder_if_empty(self.url)

    def clear_attempts(self, present: Iterable[str]) -> None:
        """Remove the attempts among these files, which were never completed."""
        self.remove([name for name in present if self._is_attempt(name)])

    def _is_attempt(self, name: str) -> bool:
        final = attempted_name(name)
        if final is None:
            return False
        return self.owns(final) or final in (JOB_FILE, self.record.final) or self.is_receipt(final)

    def _may_be(self, name: str) -> bool:
        """Return whether a receipt may name this file: one of the job, here or in a run's folder.

        Files that a receipt names are opened, moved and removed.
        """
        work, _, rest = name.partition("/")
        run, _, inside = rest.partition("/")
        in_run = work == WORK and _RUN.fullmatch(run) is not None
        return self.owns(inside if in_run else name)


class JobFolder(RunFolder):
    """The folder of a job, with the folders of its runs in `work/`."""

    def new_run(self, *, synced: bool = True) -> RunFolder:
        """Make the folder of a pipeline that is to be launched."""
        run = self.run(f"run-{os.urandom(6).hex()}")
        for folder in sorted(run.folders):
            self.storage.make_folder(run.path(folder), synced=synced)
        return run

    def run(self, name: str) -> RunFolder:
        return RunFolder(self.storage, self.path(f"{WORK}/{name}"), self.record)

    def runs(self) -> list[RunFolder]:
        """Return the folders of all pipelines that were launched."""
        names = self.storage.list_names(self.path(WORK))
        return [self.run(name) for name in names if _RUN.fullmatch(name)]

    def take(self, run: RunFolder, *, all_files: bool) -> None:
        """Move the finished tasks of a run to this folder: files first, then the receipt.

        A move that was interrupted is done again with the same result.
        """

        def move_files(receipt: Receipt) -> Receipt | None:
            """Return the receipt with new names; None if a file is gone: the task runs again."""
            files = []
            for file in receipt.files:
                if all_files or not file.name.startswith(f"{WORK}/"):
                    try:
                        self.storage.move(run.path(file.name), self.path(file.name))
                    except NotFoundError:
                        return None
                    files.append(file)
                else:
                    files.append(replace(file, name=f"{WORK}/{run.name}/{file.name}"))
            return replace(receipt, files=tuple(files))

        receipts = list(run.receipts().values())
        folders = folders_of(file.name for receipt in receipts for file in receipt.files)
        for folder in folders:
            self.storage.make_folder(self.path(folder))
        moved = [each for each in self.request_each(move_files, receipts) if each is not None]
        self.storage.sync_folders(self.url, *map(self.path, folders))
        side_by_side(self.keep_receipt, moved)
        self.storage.sync_folders(self.path(WORK))
        run.remove(receipt_name(receipt.task) for receipt in receipts)

    def keep_receipt(self, receipt: Receipt) -> None:
        """Write a receipt of this job."""
        self.write_receipt(receipt.task, receipt.files, receipt.stats)
        self._known[receipt.task] = receipt

    def sync(self) -> None:
        """Sync the folders, so that files survive a power cut by name."""
        self.storage.sync_folders(self.url, *map(self.path, self.folders))

    def remove_work(self) -> None:
        """Remove temporary files, also of runs; files that no job wrote stay."""
        for run in self.runs():
            run.remove_run()
        known = {receipt_name(task) for task in self.receipts()}
        # Damaged ones cannot be read, so the names of the tasks' files tell.
        stems = (name.rpartition("/")[2].partition(".")[0] for name in self.record.names)
        known |= {receipt_name(task) for task in stems}
        names = [f"{WORK}/{name}" for name in self.storage.list_names(self.path(WORK))]
        self.remove(
            name for name in names if name in known or self.owns(name) or self._is_attempt(name)
        )
        self.storage.remove_folder_if_empty(self.path(WORK))


def folders_of(names: Iterable[str]) -> set[str]:
    """Return the folders of relative names, without the folder that they are relative to."""
    return {name.rpartition("/")[0] for name in names} - {""}


def names_present(storage: Storage, url: str, folders: Iterable[str]) -> frozenset[str]:
    """Return the relative names of existing files in a folder, its `work/` and other folders."""
    names = set(storage.list_names(url))
    for folder in {*folders, WORK}:
        if folder.partition("/")[0] in names:
            inside = storage.list_names(storage.join(url, *folder.split("/")))
            names |= {f"{folder}/{name}" for name in inside}
    return frozenset(names)


def remove_all_in(storage: Storage, url: str) -> None:
    """Remove all files below a folder; links themselves, not what they lead to."""
    if storage.is_link(url):
        storage.remove(url)
        return
    if not is_local(url):  # the loop below asks two requests for each file
        files = storage.expand(storage.join(escape_glob(url), "**"))
        side_by_side(storage.remove, storage.remove_all([file.url for file in files]))
    for name in storage.list_names(url):
        inside = storage.join(url, name)
        if storage.is_folder(inside) and not storage.is_link(inside):
            remove_all_in(storage, inside)
            storage.remove_folder_if_empty(inside)
        else:
            storage.remove(inside)
