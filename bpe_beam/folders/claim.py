"""Claiming an output folder for a job: a new or empty one, or one that an equal job began.

A folder of another job, or with files that no job recorded, is refused. Nothing is changed before
that is decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders import output_folder
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_lock import lock_folder
from bpe_beam.folders.job_json import JobRecord, differences
from bpe_beam.folders.output_folder import OutputFolder, Restore
from bpe_beam.folders.receipts import HASHED_BYTES, WORK, receipt_name, side_by_side, to_hash
from bpe_beam.folders.run_folder import JobFolder, folders_of, names_present, remove_all_in
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute, attempted_name, is_local


class Takeover(Struct, frozen=True):
    """A rule by which an unfinished job leaves its folder to another one.

    The two jobs differ in one setting. The unfinished one has written nothing but temporary files,
    and has finished only tasks whose files the other one cannot use. `tasks` has their kinds, as
    `measure` of `measure-00003-of-00012`.
    """

    setting: str
    tasks: tuple[str, ...]


def claim_folder(
    storage: Storage,
    url: str,
    job: Mapping[str, object],
    names: Collection[str],
    overwrite: bool | None = False,
    *,
    final: str = MANIFEST_FILE,
    restore: Restore | None = None,
    ignored: Collection[str] = (),
    takeover: Takeover | None = None,
    replace_others: bool = False,
    is_of_job: Callable[[str], bool] = lambda _: False,
    warn: output_folder.Warn = lambda _: None,
) -> OutputFolder:
    """Return a folder for a job: a new or empty one, or one that an equal job began.

    `ignored` names files and folders that other jobs may have written there.

    Cost: one listing; when resuming, all finished tasks' files are read once for their hashes.
    """
    # Through JSON, since the settings that are read back have lists for tuples.
    settings = json.loads(json.dumps(job, allow_nan=False))
    record = JobRecord(str(settings.pop("job")), settings, final, frozenset(names))
    _refuse_files_and_links(storage, url)
    folder = OutputFolder(storage, absolute(url), record, warn)
    folder.lock = lock_folder(storage, url)
    claim = _Claim(folder, overwrite, frozenset(ignored), restore)
    claim.look()
    if not claim.record_again(is_of_job) and replace_others:
        claim.remove_other_job()
    is_of_a_job = claim.is_of_a_job()
    if claim.existing is None and is_of_a_job and overwrite:
        claim.existing = record
    may_take_over = takeover is not None and claim.may_take_over(takeover)
    claim.refuse_others(url, allow_other=may_take_over, is_of_a_job=is_of_a_job)
    if may_take_over:
        claim.take_over()
    if claim.existing is not None and overwrite:
        _remove_job(OutputFolder(storage, folder.url, claim.existing), claim.present)
    if claim.existing is None or overwrite:
        claim.begin()
    else:
        claim.resume(claim.existing)
    return folder


class _Claim(msgspec.Struct):
    """A claim of a folder, step by step.

    `existing` is the job that `__job` records, None without a readable one; `present` are the names
    of the existing files of both jobs.
    """

    folder: OutputFolder
    overwrite: bool | None
    ignored: frozenset[str]
    restore: Restore | None
    existing: JobRecord | None = None
    present: frozenset[str] = frozenset()

    @property
    def _record(self) -> JobRecord:
        return self.folder.record

    @property
    def _is_of_this_job(self) -> bool:
        # The names may differ: shards are numbered when it is known which splits have tokens.
        old, new = self.existing, self._record
        return old is not None and (old.fingerprint, old.final) == (new.fingerprint, new.final)

    def look(self) -> None:
        """Read `__job`, and list the files."""
        self._list(self._record)
        if JOB_FILE in self.present:
            self.existing = output_folder.read_job(self.folder.storage, self.folder.path(JOB_FILE))
        if self.existing is not None:
            self._list(self.existing)

    def _list(self, record: JobRecord) -> None:
        folder = self.folder
        names = names_present(folder.storage, folder.url, folders_of(record.all_names))
        self.present |= names - self.ignored

    def record_again(self, is_of_job: Callable[[str], bool]) -> bool:
        """Write `__job` again if it does not name this job, but other files do; return whether."""
        folder, record = self.folder, self._record
        if self._is_of_this_job:
            return False
        if self.restore is not None and record.final in self.present:
            finished = self._read_final(self.restore)
            if finished is None:
                return False
            listed = {file.name for task in finished.tasks.values() for file in task.files}
            record = replace(record, names=record.names | listed)
        else:
            # Tasks of a job that was overwritten may run for hours, and leave receipts then.
            is_known = any(each.receipts() for each in (folder, *folder.runs()))
            if self.existing is not None or not (is_known or is_of_job(folder.fingerprint)):
                return False
        folder.say_made_again([JOB_FILE])
        folder.storage.write_bytes(folder.path(JOB_FILE), record.to_bytes())
        self.existing = record
        self._list(record)
        return True

    def _read_final(self, restore: Restore) -> output_folder.RestoredFolder | None:
        """Return what the final file describes; None if it is damaged or of another job."""
        try:
            data = self.folder.storage.read_bytes(self.folder.path(self._record.final))
            finished = restore(data)
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, DataError):
            return None
        return finished if finished.job == self.folder.fingerprint else None

    def remove_other_job(self) -> None:
        """Remove all files of the folder if they are of another job."""
        if not self.present or self._is_of_this_job:
            return
        if self.existing is None:
            self.folder.say_made_again([JOB_FILE, "all that it names"])
        remove_all_in(self.folder.storage, self.folder.url)
        self.existing, self.present = None, frozenset()

    def is_of_a_job(self) -> bool:
        """Return whether the folder is a job's, also if `__job` is missing or damaged."""
        if self.existing is not None:
            return True
        names = {WORK, *self._record.all_names} - {JOB_FILE}
        if JOB_FILE in self.present and self.present & names:
            return True
        documents = self.folder.path(f"{WORK}/{output_folder.DOCUMENTS}/{JOB_FILE}")
        return bool(self.folder.runs()) or self.folder.storage.exists(documents)

    def may_take_over(self, takeover: Takeover) -> bool:
        """Return whether another recorded job leaves its folder to this one, see `Takeover`."""
        other, record = self.existing, self._record
        if other is None or self.overwrite or self._is_of_this_job:
            return False
        settings = [
            {key: value for key, value in each.settings.items() if key != takeover.setting}
            for each in (other, record)
            if takeover.setting in each.settings
        ]
        if other.job != record.job or len(settings) < 2 or settings[0] != settings[1]:
            return False
        folder = OutputFolder(self.folder.storage, self.folder.url, other)
        written = (self.present & other.all_names) - {JOB_FILE}
        tasks = [task for each in (folder, *folder.runs()) for task in each.finished_tasks()]
        return all(name.startswith(f"{WORK}/") for name in written) and all(
            task.rsplit("-", 3)[0] in takeover.tasks for task in tasks
        )

    def take_over(self) -> None:
        """Remove temporary files but the tokenized documents, and record this job.

        `__job` is replaced last: until then the folder is the other job's, which only has less.
        """
        assert self.existing is not None
        folder = OutputFolder(self.folder.storage, self.folder.url, self.existing)
        JobFolder.remove_work(folder)
        folder.clear_attempts(self.present)
        folder.storage.write_bytes(folder.path(JOB_FILE), self._record.to_bytes())
        self.existing = self._record
        self.present = frozenset()
        self._list(self._record)

    def begin(self) -> None:
        """Record the job in a folder without results."""
        folder = self.folder
        folder.storage.make_folder(folder.url)
        folder.storage.write_bytes(folder.path(JOB_FILE), self._record.to_bytes())
        folder.storage.make_folder(folder.path(WORK))

    def resume(self, existing: JobRecord) -> None:
        """Take over what equal jobs have finished."""
        folder, final = self.folder, self._record.final
        folder.recorded_names = existing.names
        folder.record = replace(self._record, names=self._record.names | existing.names)
        if final in self.present and self._is_whole():
            folder.finished = True
            folder.clear_attempts(self.present)
            folder.remove_work()
            return
        if final in self.present:
            folder.storage.remove(folder.path(final))
        elif self.restore and WORK not in self.present and self.present & existing.names:
            folder.say_made_again([final])
        folder.names_before = self.present
        for run in folder.runs():
            folder.take(run, all_files=True)
        # Receipts whose files do not match are removed.
        receipts = folder.receipts()
        matching = side_by_side(
            lambda receipt: all(map(folder.matches, receipt.files)), receipts.values()
        )
        whole = dict(zip(receipts, matching, strict=True))
        folder.kept = {task: receipt for task, receipt in receipts.items() if whole[task]}
        folder.remove(receipt_name(task) for task in receipts if not whole[task])
        folder.storage.make_folder(folder.path(WORK))

    def _is_whole(self) -> bool:
        """Return whether a finished folder is whole by names and sizes, and by hashes where cheap.

        If not, the receipts of its tasks are written again, so that matching files are kept.
        """
        folder = self.folder
        if self.restore is None:
            return True
        finished = self._read_final(self.restore)
        if finished is None:
            folder.say_made_again([self._record.final, "all that it names"])
            return False
        files = [file for task in finished.tasks.values() for file in task.files]
        damaged = self._damaged(files)
        if damaged:
            folder.say_made_again(file.name for file in damaged)
            folder.storage.make_folder(folder.path(WORK))
            for name, task in finished.tasks.items():
                folder.restored[name] = task.files
                if task.stats is not None:
                    folder.write_receipt(name, task.files, task.stats)
        return not damaged

    def _damaged(self, files: list[FileInfo]) -> list[FileInfo]:
        """Return the files that are missing or have changed."""
        folder = self.folder
        whole = folder.have_sizes(files)
        if damaged := [file for file, same in zip(files, whole, strict=True) if not same]:
            return damaged
        # Files that were not forced to disk may be incomplete after a power cut.
        if folder.storage.synced:
            files = to_hash(files, HASHED_BYTES if is_local(folder.url) else 0)
        whole = side_by_side(folder.matches, files)
        return [file for file, same in zip(files, whole, strict=True) if not same]

    def refuse_others(self, url: str, *, allow_other: bool, is_of_a_job: bool) -> None:
        """Refuse a folder that this job must not use; nothing has been changed yet."""
        old, new, present = self.existing, self._record, self.present

        def ways(what_else: str) -> str:
            return "give another {output}" + (what_else if self.overwrite is not None else "")

        if old is not None and not (self._is_of_this_job or self.overwrite or allow_other):
            raise UsageError(
                f"output {redact(url)} holds the work of another job; what differs:",
                remedy=ways(", or {overwrite} to remove what that job wrote"),
                lines=differences(old, new),
            )
        if old is None and is_of_a_job:
            problem = f"has no readable {JOB_FILE}, so the job that wrote the folder is unknown"
            remedy = ways(", or {overwrite} to replace the files that this job writes")
            raise UsageError(f"output {redact(url)} {problem}", remedy=remedy)
        recorded = old.all_names if old is not None else frozenset()
        foreign = (new.all_names & present) - recorded
        if old is None and WORK in present:
            foreign |= {WORK}
        if foreign:
            raise UsageError(
                f"output {redact(url)} holds {list_few(sorted(foreign))}, which no job of bpe-beam "
                "recorded and this job would replace",
                remedy="move them away, or give another {output}",
            )
        # A run that was killed at its start may leave an incomplete __job, which does not count.
        top = {name for name in present if "/" not in name and attempted_name(name) != JOB_FILE}
        if old is None and top and not self.overwrite:
            problem = f"holds files that no job of bpe-beam recorded ({list_few(sorted(top))})"
            remedy = ways(", or {overwrite}, which leaves those files alone")
            raise UsageError(f"output {redact(url)} {problem}", remedy=remedy)


def _remove_job(folder: OutputFolder, present: frozenset[str]) -> None:
    """Remove all files of the recorded job but `__job`, which the next job replaces.

    The final file goes first: without it the folder is unfinished, never falsely whole.
    """
    storage, record = folder.storage, folder.record
    if record.final in present:
        storage.remove(folder.path(record.final))
    folder.remove_work()
    folder.clear_attempts(present)
    folder.remove(record.names & present)
    for name in sorted(folders_of(record.names), reverse=True):
        storage.remove_folder_if_empty(folder.path(name))
    if output_folder.COUNTS in present and record.job == "train" and "plan" in record.settings:
        url = folder.path(output_folder.COUNTS)
        counted = output_folder.recorded_job(storage, url)
        if counted is not None and counted.job == "count":
            inner = OutputFolder(storage, url, counted)
            _remove_job(inner, names_present(storage, url, inner.folders))
            inner.release()


def _refuse_files_and_links(storage: Storage, url: str) -> None:
    if storage.exists(url) and not storage.is_folder(url):
        raise UsageError(f"must be a folder, got the file {redact(url)}", ("output",))
    if storage.is_link(storage.join(url, WORK)):
        problem = f"holds a link named {WORK}, and a job removes its temporary files there"
        remedy = "remove the link, or give another {output}"
        raise UsageError(f"output {redact(url)} {problem}", remedy=remedy)
