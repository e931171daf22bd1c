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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import (
    JOB_FILE,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
    part_name,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.folder_lock import FolderLock
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.receipts import WORK, Publication, Receipt, receipt_name, side_by_side
from bpe_beam.folders.run_folder import JobFolder, names_present, remove_all_in
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, redact

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

    `job` is the fingerprint of its job, None if the file does not have it. `tasks` are the job's
    tasks by name; files of no task are in tasks without stats.
    """

    job: str | None
    tasks: Mapping[str, RestoredTask]


Restore = Callable[[bytes], RestoredFolder]
"""Reads a finished folder from its final file; raises DataError if that is damaged."""

Warn = Callable[[str], None]


class OutputFolder(JobFolder):
    """A folder that a job has claimed; see `claim.py`.

    Attributes:
        finished: Whether an equal job has finished here, so that nothing is left to do.
        restored: If an equal job had finished here, but files are missing: the files of its tasks,
            by task. The tasks with stats have receipts again.
        kept: The receipts of finished tasks whose files match, by task.
        recorded_names: The names in `__job` as it is now.
        names_before: The names of the files that existed when the folder was claimed.
    """

    def __init__(
        self, storage: Storage, url: str, record: JobRecord, warn: Warn = lambda _: None
    ) -> None:
        super().__init__(storage, url, record)
        self._warn = warn
        self.finished = False
        self.restored: dict[str, tuple[FileInfo, ...]] = {}
        self.kept: dict[str, Receipt] = {}
        self.recorded_names = record.names
        self.names_before: frozenset[str] = frozenset()
        self.lock: FolderLock | None = None
        self._claimed = record.names  # `record.names` may have more, of an earlier run

    def say_made_again(self, names: Iterable[str]) -> None:
        """Warn that files are missing or damaged, and are made again."""
        shown = list_few([*names])
        self._warn(f"{redact(self.url)}: files are missing or damaged, and are made again: {shown}")

    def write(self, name: str, data: bytes) -> None:
        """Write a small file unless it has this content; say so if the folder is finished."""
        if not self.matches(FileInfo.of(name, data)):
            if self.finished:
                self.say_made_again([name])
            self.storage.write_bytes(self.path(name), data)

    def receipt(self, task: str) -> Receipt | None:
        """Return the receipt of a task that an earlier run finished, and whose files match it."""
        return self.kept.get(task)

    def require_ours(self) -> None:
        """Refuse to publish into a folder that another job has taken meanwhile."""
        now = read_job(self.storage, self.path(JOB_FILE))
        if now is None or now.fingerprint != self.fingerprint:
            raise DataError(
                f"{self.url}: another job overwrote this folder while this one ran",
                remedy="run this one again with another {output}",
            )

    def require_whole(self, receipts: Iterable[Receipt]) -> None:
        """Check that the files of all tasks exist with their sizes."""
        files = [file for receipt in receipts for file in receipt.files]
        for file, whole in zip(files, self.have_sizes(files), strict=True):
            if not whole:
                raise self._other_run(file.name)

    def forget(self, receipts: Iterable[Receipt]) -> None:
        """Remove the files and receipts of tasks that must run again.

        Files go first: a receipt whose files are missing is not trusted.
        """
        forgotten = {receipt.task: receipt for receipt in receipts}
        self.remove(file.name for receipt in forgotten.values() for file in receipt.files)
        self.remove(map(receipt_name, forgotten))
        self.kept = {task: kept for task, kept in self.kept.items() if task not in forgotten}

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
        receipts = [publication.receipt for publication in publications]

        def move(publication: Publication) -> None:
            receipt = publication.receipt
            if self._move_files(publication.moves):
                self.keep_receipt(receipt)

        side_by_side(move, publications)
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
        self.keep_receipt(replace(receipt, files=tuple(files)))
        return Publication(receipt, moves)

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
        if names != self.recorded_names:
            self.storage.write_bytes(self.path(JOB_FILE), self.record.to_bytes())
            self.recorded_names = names

    def _other_run(self, name: str) -> DataError:
        return DataError(
            f"{self.path(name)} is gone or changed: another run of this job works in the same "
            "folder; when it has ended, run this one again"
        )

    def remove_strays(self, names: Iterable[str], receipts: Iterable[Receipt]) -> None:
        """Remove files of the job that no receipt names: killed tasks may have left them."""
        named = {file.name for receipt in receipts for file in receipt.files}
        present = names_present(self.storage, self.url, self.folders)
        self.remove(present.intersection(names) - named)

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
            if not self.matches(FileInfo.of(final_name, data)):
                raise self._other_run(final_name) from error
        self.storage.sync_folders(self.url)
        self.finished = True
        present = names_present(self.storage, self.url, self.folders)
        # Another run may be writing the final file with the same bytes: keep the attempts that
        # began after this run claimed the folder.
        begun = {name for name in present if name.startswith(f"{final_name}.")}
        self.clear_attempts(present - (begun - self.names_before))
        self.remove_work()

    def release(self) -> None:
        """Remove `__job` of a folder without results, so that any job may claim it."""
        self.remove_work()
        self.storage.remove(self.path(JOB_FILE))
        self.storage.remove_folder_if_empty(self.url)

    def remove_work(self) -> None:
        """Remove temporary files, with the tokenized documents of a run that arranges them."""
        if self.record.job == "tokenize":
            documents = self.path(f"{WORK}/{DOCUMENTS}")
            remove_all_in(self.storage, documents)
            self.storage.remove_folder_if_empty(documents)
        elif self.record.job == "WriteTokens":
            remove_all_in(self.storage, self.path(WORK))
        super().remove_work()


def read_job(storage: Storage, url: str) -> JobRecord | None:
    """Return the job that a `__job` records; None if it records none."""
    if storage.size(url) > _MAX_JOB_BYTES:
        return None
    return JobRecord.from_bytes(storage.read_bytes(url))


def recorded_job(storage: Storage, url: str) -> JobRecord | None:
    """Return the job that a folder is of; None if no `__job` says one."""
    if JOB_FILE not in storage.list_names(url):
        return None
    return read_job(storage, storage.join(url, JOB_FILE))
