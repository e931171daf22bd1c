"""The output folder of a job: claimed by one job, filled task by task, finished once.

`__job` comes first and names the job: its settings, their fingerprint, and the exact names of
all files that it writes. Each finished task leaves a receipt in `work/`. The final file, a manifest
as a rule, comes last; then `work/` is removed. Every file appears whole or not at all. So a job
that is killed and started again keeps the tasks whose files match their receipts, and ends with the
same bytes. Workers never write here, see `run_folder.py`.

One run at a time works in a folder of a local disk, see `folder_lock.py`. Stores have no locks: of
two runs of one job, one takes over the tasks that the other has finished so far; the other then
ends with an error that says so, or finds the folder finished. Incomplete files ("attempts") may
belong to another run, so they are removed when the folder is finished.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import (
    JOB_FILE,
    MANIFEST_FILE,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
    part_name,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_lock import FolderLock, lock_folder
from bpe_beam.folders.job_json import JobRecord, differences
from bpe_beam.folders.receipts import (
    HASHED_BYTES,
    WORK,
    Publication,
    Receipt,
    receipt_name,
    side_by_side,
    to_hash,
)
from bpe_beam.folders.run_folder import JobFolder, folders_of, names_present, remove_all_in
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute, attempted_name, is_local

_MAX_JOB_BYTES = 1 << 28

COUNTS = "counts"
"""The folder of the counts that training on a corpus makes, within its output."""

DOCUMENTS = "documents"
"""The folder of the tokenized documents that are to be arranged, within `work/` of the output."""


class RestoredTask(Struct, frozen=True):
    """A task of a finished job, as the job's final file describes it: its files and stats.

    Without stats, the task runs again if any file of the folder is missing or changed.
    """

    files: tuple[FileInfo, ...]
    stats: object | None


class RestoredFolder(Struct, frozen=True):
    """A finished folder, as its final file describes it.

    Attributes:
        job: The fingerprint of the job that wrote it; None if the file does not have it.
        tasks: The job's tasks by name; also files of no task, as tasks without stats.
    """

    job: str | None
    tasks: Mapping[str, RestoredTask]


Restore = Callable[[bytes], RestoredFolder]
"""Reads a finished folder from the bytes of its final file; raises DataError if they are damaged.
"""

Warn = Callable[[str], None]
"""Shows a warning to the user."""


class Takeover(Struct, frozen=True):
    """Which unfinished job may leave its folder to another one.

    The two jobs differ in one setting. The unfinished one has written nothing but temporary files,
    and has finished only tasks that take a moment to run again.

    Attributes:
        setting: The setting, which both jobs have.
        tasks: The kinds of such tasks, `measure` of `measure-00003-of-00012`.
    """

    setting: str
    tasks: tuple[str, ...]


class OutputFolder(JobFolder):
    """A folder that a job has claimed. Made by `claim`.

    Attributes:
        finished: Whether an equal job has finished here, so that nothing is left to do.
        restored: If an equal job had finished here, but files are missing: the files of its tasks,
            by task. The tasks with stats have receipts again.
    """

    def __init__(
        self, storage: Storage, url: str, record: JobRecord, warn: Warn = lambda _: None
    ) -> None:
        super().__init__(storage, url, record)
        self._warn = warn
        self.finished = False
        self.restored: dict[str, tuple[FileInfo, ...]] = {}
        self._kept: dict[str, Receipt] = {}
        self._claimed = record.names
        """The names that the claim asked for; `record.names` may have more, of an earlier run."""
        self._recorded = record.names
        """The names in `__job` as it is now."""
        self._found: frozenset[str] = frozenset()
        """The names of the files that existed when the folder was claimed."""
        self._lock: FolderLock | None = None

    @classmethod
    def claim(
        cls,
        storage: Storage,
        url: str,
        job: Mapping[str, object],
        names: Collection[str],
        overwrite: bool | None = False,
        *,
        final: str = MANIFEST_FILE,
        restore: Restore | None = None,
        beside: Collection[str] = (),
        takeover: Takeover | None = None,
        replace_others: bool = False,
        is_of_job: Callable[[str], bool] = lambda _: False,
        warn: Warn = lambda _: None,
    ) -> OutputFolder:
        """Return a folder for a job: a new or empty one, or one that an equal job began.

        Cost: one listing; when resuming, all finished tasks' files are read once for their hashes.
        """
        # Convert through JSON, so that the settings equal those that are read back: tuples become
        # lists.
        settings = json.loads(json.dumps(job, allow_nan=False))
        record = JobRecord(str(settings.pop("job")), settings, final, frozenset(names))
        data = record.to_bytes()
        if storage.exists(url) and not storage.is_folder(url):
            raise UsageError(f"must be a folder, got the file {url}", ("output",))
        if storage.is_link(storage.join(url, WORK)):
            raise UsageError(
                f"output {url} holds a link named {WORK}, and a job removes its temporary files "
                "there",
                remedy="remove the link, or give another {output}",
            )
        lock = _lock(storage, url)
        present = names_present(storage, url, folders_of(record.all_names))
        old = _read_job(storage, storage.join(url, JOB_FILE)) if JOB_FILE in present else None
        folder = cls(storage, absolute(url), record, warn)
        folder._lock = lock
        if old is not None:
            present |= names_present(storage, url, folders_of(old.all_names))
        present -= frozenset(beside)
        known = folder._record_by_other_files(old, present, restore, is_of_job)
        if known is not None:
            folder._say_made_again([JOB_FILE])
            storage.write_bytes(folder.path(JOB_FILE), known.to_bytes())
            old = known
            present |= names_present(storage, url, folders_of(old.all_names)) - frozenset(beside)
        elif replace_others and present and (old is None or not _is_same(old, record)):
            if old is None:
                folder._say_made_again([JOB_FILE, "all that it names"])
            remove_all_in(storage, url)
            old, present = None, frozenset()
        is_ours = old is not None or folder._has_more_than_job_file(present)
        if old is None and is_ours and overwrite:
            old = record
        other = old is not None and not _is_same(old, record)
        leaves = (
            old is not None
            and other
            and not overwrite
            and takeover is not None
            and cls(storage, absolute(url), old)._leaves_to(record, takeover, present)
        )
        _refuse_others(
            url, present, old, record, overwrite=overwrite, allow_other=leaves, is_ours=is_ours
        )

        if old is not None and leaves:
            cls(storage, absolute(url), old)._leave_to(record, present)
            old = record
            present = names_present(storage, url, folders_of(old.all_names)) - frozenset(beside)
        if old is not None and overwrite:
            cls(storage, absolute(url), old)._remove_all(present)
        if old is not None and not overwrite:
            folder._recorded = old.names
            folder.record = replace(record, names=record.names | old.names)
        if old is None or overwrite:
            storage.make_folder(url)
            storage.write_bytes(storage.join(url, JOB_FILE), data)
        else:
            if final in present and folder._is_whole(present, restore):
                folder.finished = True
                folder.clear_attempts(present)
                folder.remove_work()
                return folder
            if final in present:
                storage.remove(storage.join(url, final))
            elif restore is not None and WORK not in present and present & old.names:
                folder._say_made_again([final])
            folder._found = present
            for run in folder.runs():
                folder.take(run, all_files=True)
            folder._keep_matching()
        storage.make_folder(storage.join(url, WORK))
        return folder

    def _record_by_other_files(
        self,
        old: JobRecord | None,
        present: frozenset[str],
        restore: Restore | None,
        is_of_job: Callable[[str], bool],
    ) -> JobRecord | None:
        """Return the content of `__job` if it does not name this job, but other files do."""
        if old is not None and _is_same(old, self.record):
            return None
        if restore is not None and self.record.final in present:
            found = self._read_final(restore)
            if found is None or found.job != self.fingerprint:
                return None
            listed = {file.name for task in found.tasks.values() for file in task.files}
            return replace(self.record, names=self.record.names | listed)
        # Tasks of a job that was overwritten may run for hours, and leave receipts then.
        is_known = any(each.receipts() for each in (self, *self.runs()))
        return self.record if old is None and (is_known or is_of_job(self.fingerprint)) else None

    def _has_more_than_job_file(self, present: frozenset[str]) -> bool:
        """Return whether a folder with a damaged or missing `__job` shows that it is a job's."""
        if JOB_FILE in present and present & ({WORK, *self.record.all_names} - {JOB_FILE}):
            return True
        documents = self.path(f"{WORK}/{DOCUMENTS}/{JOB_FILE}")
        return bool(self.runs()) or self.storage.exists(documents)

    def _read_final(self, restore: Restore) -> RestoredFolder | None:
        """Return what the final file describes; None if it is damaged."""
        try:
            return restore(self.storage.read_bytes(self.path(self.record.final)))
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, DataError):
            return None

    def _say_made_again(self, names: Iterable[str]) -> None:
        self._warn(
            f"{redact(self.url)}: files are missing or damaged, and are made again: "
            f"{list_few([*names])}"
        )

    def write(self, name: str, data: bytes) -> None:
        """Write a small file unless it has this content; say so if the folder is finished."""
        if not self.has_content(name, data):
            if self.finished:
                self._say_made_again([name])
            self.storage.write_bytes(self.path(name), data)

    def _leaves_to(self, record: JobRecord, takeover: Takeover, present: frozenset[str]) -> bool:
        """Return whether the recorded job leaves its folder to another one, see `Takeover`."""
        settings = [
            {key: value for key, value in each.settings.items() if key != takeover.setting}
            for each in (self.record, record)
            if takeover.setting in each.settings
        ]
        if self.record.job != record.job or len(settings) < 2 or settings[0] != settings[1]:
            return False
        made = (present & self.record.all_names) - {JOB_FILE}
        done = [task for each in (self, *self.runs()) for task in each.finished_tasks()]
        return all(name.startswith(f"{WORK}/") for name in made) and all(
            task.rsplit("-", 3)[0] in takeover.tasks for task in done
        )

    def _leave_to(self, record: JobRecord, present: frozenset[str]) -> None:
        """Remove temporary files but the tokenized documents, and record another job.

        `__job` is replaced last: until then the folder is the old job's, which only has less.
        """
        super().remove_work()
        self.clear_attempts(present)
        self.storage.write_bytes(self.path(JOB_FILE), record.to_bytes())

    def receipt(self, task: str) -> Receipt | None:
        """Return the receipt of a task that an earlier run finished, and whose files match it."""
        return self._kept.get(task)

    def require_ours(self) -> None:
        """Refuse to publish into a folder that another job has taken meanwhile."""
        now = _read_job(self.storage, self.path(JOB_FILE))
        if now is None or now.fingerprint != self.fingerprint:
            raise DataError(
                f"{self.url}: another job overwrote this folder while this one ran",
                remedy="run this one again with another {output}",
            )

    def require_whole(self, receipts: Iterable[Receipt]) -> None:
        """Check that the files of all tasks exist with their sizes."""

        files = [file for receipt in receipts for file in receipt.files]
        for file, whole in zip(files, self.request_each(self.has_size, files), strict=True):
            if not whole:
                raise self._other_run(file.name)

    def forget(self, receipts: Iterable[Receipt]) -> None:
        """Remove the files and receipts of tasks that must run again.

        Files go first: a receipt whose files are missing is not trusted.
        """
        forgotten = {receipt.task: receipt for receipt in receipts}
        self.remove(file.name for receipt in forgotten.values() for file in receipt.files)
        self.remove(map(receipt_name, forgotten))
        self._kept = {task: kept for task, kept in self._kept.items() if task not in forgotten}

    def expect(self, names: Iterable[str]) -> None:
        """Record more names of files in `work/` that the job may write."""
        self._claimed |= frozenset(names)
        self._record_names(self.record.names | self._claimed)

    def publish(self, publications: Iterable[Publication]) -> list[Receipt]:
        """Move the files of all tasks from `work/` to their final names; return the receipts.

        If the run is interrupted here, only the tasks whose files were being moved run again: a
        receipt names the files of its task where they are.
        """
        publications = list(publications)
        final = frozenset(name for publication in publications for _, name in publication.moves)
        foreign = (final - self.record.names) & names_present(self.storage, self.url, ())
        if foreign:
            raise UsageError(
                f"output {self.url} holds {list_few(sorted(foreign))}, which no job of bpe-beam "
                "recorded and this job would replace: move them away, and run this one again"
            )
        self._record_names(self.record.names | final)
        # Withdraw all tasks before publishing one: a file of an earlier run may have a final name
        # that another task needs now.
        publications = self.request_each(self._withdraw, publications)
        side_by_side(self._publish, publications)
        receipts = [publication.receipt for publication in publications]
        self.require_whole(receipts)
        outside = {name for name in self.record.names if not name.startswith(f"{WORK}/")}
        self.remove_strays(outside - {SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE}, receipts)
        self._record_names(self._claimed | final)
        return receipts

    def _withdraw(self, publication: Publication) -> Publication:
        """Move a task's files back to `work/` if an earlier run gave them other final names."""
        receipt = publication.receipt
        if all(name == final or name.startswith(f"{WORK}/") for name, final in publication.moves):
            return publication
        back: dict[str, str] = {}
        parts: Counter[str] = Counter()
        for name, _ in publication.moves:
            suffix = name.rpartition("/")[2].partition(".")[2]
            back[name] = f"{WORK}/{part_name(receipt.task, parts[suffix])}.{suffix}"
            parts[suffix] += 1
        self._move_files(back.items())
        moves = tuple((back[name], final) for name, final in publication.moves)
        names = {final: name for name, final in moves}
        files = [replace(file, name=names.get(file.name, file.name)) for file in receipt.files]
        self.write_receipt(receipt.task, files, receipt.stats)
        return Publication(receipt, moves)

    def _publish(self, publication: Publication) -> None:
        if self._move_files(publication.moves):
            receipt = publication.receipt
            self.write_receipt(receipt.task, receipt.files, receipt.stats)

    def _move_files(self, moves: Iterable[tuple[str, str]]) -> bool:
        """Move files; return whether there was anything to do."""
        needed = [(name, target) for name, target in moves if name != target]
        for name, target in needed:
            try:
                self.storage.move(self.path(name), self.path(target))
            except NotFoundError as error:
                raise self._other_run(name) from error
        return bool(needed)

    def _record_names(self, names: frozenset[str]) -> None:
        """Write `__job` again if it does not have exactly these names."""
        self.record = replace(self.record, names=names)
        if names != self._recorded:
            self.storage.write_bytes(self.path(JOB_FILE), self.record.to_bytes())
            self._recorded = names

    def _other_run(self, name: str) -> DataError:
        return DataError(
            f"{self.path(name)} is gone or changed: another run of this job works in the same "
            "folder; when it has ended, run this one again"
        )

    def remove_strays(self, names: Iterable[str], receipts: Iterable[Receipt]) -> None:
        """Remove files of the job that no receipt names: killed tasks may have left them."""
        named = {file.name for receipt in receipts for file in receipt.files}
        there = names_present(self.storage, self.url, self.folders)
        self.remove(there.intersection(names) - named)

    def finish(self, final_name: str, data: bytes) -> None:
        """Write the final file and remove all temporary files; files that no job recorded stay."""
        if final_name != self.record.final:
            raise ValueError(f"final_name must be {self.record.final!r}, got {final_name!r}")
        self.require_ours()
        self.sync()
        try:
            self.storage.write_bytes(self.path(final_name), data)
        except NotFoundError as error:
            # Another run has finished the folder meanwhile, and removed the temporary files.
            if not self.has_content(final_name, data):
                raise self._other_run(final_name) from error
        self.storage.sync_folders(self.url)
        self.finished = True
        there = names_present(self.storage, self.url, self.folders)
        # Another run may be writing the final file with the same bytes: keep the attempts that
        # began after this run claimed the folder.
        begun = {name for name in there if name.startswith(f"{final_name}.")}
        self.clear_attempts(there - (begun - self._found))
        self.remove_work()

    def release(self) -> None:
        """Remove `__job` of a folder without results, so that any job may claim it."""
        self.remove_work()
        self.storage.remove(self.path(JOB_FILE))
        self.storage.remove_folder_if_empty(self.url)

    def _keep_matching(self) -> None:
        """Compare every receipt with its files; remove the receipts that do not match."""
        receipts = self.receipts()
        matching = side_by_side(
            lambda receipt: all(map(self.matches, receipt.files)), receipts.values()
        )
        whole = dict(zip(receipts, matching, strict=True))
        self._kept = {task: receipt for task, receipt in receipts.items() if whole[task]}
        self.remove(receipt_name(task) for task in receipts if not whole[task])

    def _is_whole(self, present: frozenset[str], restore: Restore | None) -> bool:
        """Return whether a finished folder is whole by names and sizes, and by hashes where cheap.

        If not, the receipts of its tasks are written again, so that matching files are kept.
        """
        if restore is None:
            return True
        found = self._read_final(restore)
        if found is None or found.job != self.fingerprint:
            self._say_made_again([self.record.final, "all that it names"])
            return False
        files = [file for task in found.tasks.values() for file in task.files]
        damaged = [file for file in files if file.name not in present or not self.has_size(file)]
        if not damaged:
            hashed = self._to_hash(files)
            same = side_by_side(self.matches, hashed)
            damaged = [file for file, whole in zip(hashed, same, strict=True) if not whole]
        if damaged:
            self._say_made_again(file.name for file in damaged)
            self.storage.make_folder(self.path(WORK))
            for name, task in found.tasks.items():
                self.restored[name] = task.files
                if task.stats is not None:
                    self.write_receipt(name, task.files, task.stats)
        return not damaged

    def _to_hash(self, files: Iterable[FileInfo]) -> list[FileInfo]:
        """Return the files to hash at every start: on local disks the smallest, to HASHED_BYTES.

        Of files that were not forced to disk, all: after a power cut they may be incomplete.
        """
        if not self.storage.synced:
            return list(files)
        return to_hash(files, HASHED_BYTES if is_local(self.url) else 0)

    def _remove_all(self, present: frozenset[str]) -> None:
        """Remove all files of the recorded job but `__job`, which the next job replaces.

        The final file goes first: without it the folder is unfinished, never falsely whole.
        """
        if self.record.final in present:
            self.storage.remove(self.path(self.record.final))
        self.remove_work()
        self.clear_attempts(present)
        self.remove(self.record.names & present)
        for folder in sorted(folders_of(self.record.names), reverse=True):
            self.storage.remove_folder_if_empty(self.path(folder))
        if COUNTS in present and self.record.job == "train" and "plan" in self.record.settings:
            url = self.path(COUNTS)
            record = recorded_job(self.storage, url)
            if record is not None and record.job == "count":
                inner = OutputFolder(self.storage, url, record)
                inner._remove_all(names_present(self.storage, url, inner.folders))
                inner.release()

    def remove_work(self) -> None:
        """Remove temporary files, with the tokenized documents of a job that arranges them."""
        if self.record.job == "tokenize":
            documents = self.path(f"{WORK}/{DOCUMENTS}")
            remove_all_in(self.storage, documents)
            self.storage.remove_folder_if_empty(documents)
        super().remove_work()


def _lock(storage: Storage, url: str) -> FolderLock | None:
    try:
        return lock_folder(storage, url)
    except BlockingIOError:
        raise DataError(
            f"another run works in {url}",
            remedy="when it has ended, run this one again, or give another {output}",
        ) from None


def _read_job(storage: Storage, url: str) -> JobRecord | None:
    if storage.size(url) > _MAX_JOB_BYTES:
        return None
    return JobRecord.from_bytes(storage.read_bytes(url))


def recorded_job(storage: Storage, url: str) -> JobRecord | None:
    """Return the job that a folder is of; None if no `__job` says one."""
    if JOB_FILE not in storage.list_names(url):
        return None
    return _read_job(storage, storage.join(url, JOB_FILE))


def _is_same(old: JobRecord, new: JobRecord) -> bool:
    # The names may differ: shards are numbered when it is known which splits have tokens.
    return (old.fingerprint, old.final) == (new.fingerprint, new.final)


def _refuse_others(
    url: str,
    present: frozenset[str],
    old: JobRecord | None,
    new: JobRecord,
    *,
    overwrite: bool | None,
    allow_other: bool,
    is_ours: bool,
) -> None:
    """Refuse a folder that this job must not use; nothing has been changed yet."""

    def ways(what_else: str) -> str:
        return "give another {output}" + (what_else if overwrite is not None else "")

    if old is not None and not _is_same(old, new) and not overwrite and not allow_other:
        raise UsageError(
            f"output {url} holds the work of another job; what differs:",
            remedy=ways(", or {overwrite} to remove what that job wrote"),
            lines=differences(old, new),
        )
    if old is None and is_ours:
        raise UsageError(
            f"output {url} has no readable {JOB_FILE}, so the job that wrote the folder is unknown",
            remedy=ways(", or {overwrite} to replace the files that this job writes"),
        )
    recorded = old.all_names if old is not None else frozenset()
    foreign = (new.all_names & present) - recorded
    if old is None and WORK in present:
        foreign |= {WORK}
    if foreign:
        raise UsageError(
            f"output {url} holds {list_few(sorted(foreign))}, which no job of bpe-beam recorded "
            "and this job would replace",
            remedy="move them away, or give another {output}",
        )
    # A run that was killed at its start may leave an incomplete __job, which does not count.
    top = {name for name in present if "/" not in name and attempted_name(name) != JOB_FILE}
    if old is None and top and not overwrite:
        raise UsageError(
            f"output {url} holds files that no job of bpe-beam recorded ({list_few(sorted(top))})",
            remedy=ways(", or {overwrite}, which leaves those files alone"),
        )
