"""A folder that one run of a writing transform claims, writes and completes.

`__job` claims the folder from the time when all elements have arrived until the manifest is
written. It has a number that is new for each pipeline: a step that a runner repeats continues, and
another pipeline fails. A pipeline that fails before the claim leaves the folder empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import ClassVar
from weakref import WeakKeyDictionary

import apache_beam as beam
from msgspec.structs import replace

from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import recorded_job
from bpe_beam.folders.receipts import WORK, side_by_side
from bpe_beam.folders.run_folder import RunFolder, names_present, remove_all_in
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.names import attempted_name

_taken: WeakKeyDictionary[beam.Pipeline, set[str]] = WeakKeyDictionary()


def take_folder(pipeline: beam.Pipeline, folder: str, parameter: str) -> None:
    """Refuse a folder that another transform of a pipeline writes to."""
    taken = _taken.setdefault(pipeline, set())
    name = folder.rstrip("/")
    require(
        name not in taken,
        f"must be different for each transform of a pipeline, got {redact(name)} twice",
        parameter,
    )
    taken.add(name)


class ClaimedFolder:
    """The folder of a run; subclasses are frozen dataclasses, since steps carry it to workers."""

    storage: Storage
    url: str
    number: str  # the number of the run that claims the folder

    transform: ClassVar[str]
    """The transform: the job in `__job`, and the subject of messages."""

    @property
    def fixed_names(self) -> frozenset[str]:
        """The names of files that every run may write, besides the names that it claims."""
        return frozenset()

    def path(self, name: str) -> str:
        return self.storage.join(self.url, name)

    def job_record(self) -> JobRecord | None:
        """Return the `__job` of the folder; None if there is none or it is of another run."""
        record = recorded_job(self.storage, self.url)
        ours = record is not None and record.settings.get("claim") == self.number
        return record if ours else None

    def require_claimed(self) -> None:
        """Refuse a folder whose `__job` is not of this run."""
        if self.job_record() is None:
            raise DataError(
                f"{self.transform}: another run took the folder {redact(self.url)} while this one "
                "ran: run this one again with another folder"
            )

    def require_free(self) -> None:
        """Refuse a folder that another run has claimed, or where one has finished."""
        if self.job_record() is not None:
            return
        names = self.storage.list_names(self.url)
        if JOB_FILE in names:
            raise UsageError(
                f"{self.transform}: another run has claimed the folder {redact(self.url)}, and "
                "works there or has failed: give another folder, or, when none works there, set "
                "overwrite=True to remove what it wrote"
            )
        others = [name for name in names if attempted_name(name) != JOB_FILE]
        if others:
            raise UsageError(
                f"{self.transform}: the folder {redact(self.url)} must be empty or new, got "
                f"{list_few(others)}, which came after the pipeline was built: give another folder"
            )

    def claim(self, names: Collection[str]) -> None:
        """Claim the folder for this run, before it writes files of these names."""
        record = self.job_record()
        if record is not None:  # this step runs again, after a runner lost its result
            if not record.names.issuperset(names):
                record = replace(record, names=record.names | frozenset(names))
                self.storage.write_bytes(self.path(JOB_FILE), record.to_bytes())
            return
        self.require_free()
        data = record_of(self.transform, self.fixed_names.union(names), self.number).to_bytes()
        if write_once(self.storage, self.path(JOB_FILE), data):
            present = self.storage.list_names(self.url)
            if all(JOB_FILE in (name, attempted_name(name)) for name in present):
                return
            self.storage.remove(self.path(JOB_FILE))  # another run has finished meanwhile
        self.require_free()

    def complete(
        self, manifest: bytes, files: Mapping[str, int], small: Mapping[str, bytes] | None = None
    ) -> str:
        """Write the manifest, which completes the folder, and return its URL.

        Args:
            manifest: The content of the manifest.
            files: The sizes of the claimed files, by name; they must exist.
            small: The contents of the other files by name, which are written before the manifest.
        """
        url = self.path(MANIFEST_FILE)
        record = self.job_record()
        if record is None:
            # The runner repeats this step after it has ended.
            if not self.storage.exists(url) or self.storage.read_bytes(url) != manifest:
                self.require_claimed()
            return url
        side_by_side(
            lambda file: _check_file(self.storage, self.path(file[0]), file[1]), files.items()
        )
        for name, content in (small or {}).items():
            self.storage.write_bytes(self.path(name), content)
        self._remove_strays(record, files)
        self.storage.sync_folders(self.url)
        self.storage.write_bytes(url, manifest)
        self.storage.sync_folders(self.url)
        self._release()
        return url

    def is_complete(self) -> bool:
        """Return whether the manifest exists, because a step that ends the run runs again."""
        if not self.storage.exists(self.path(MANIFEST_FILE)):
            return False
        if self.job_record() is not None:
            self._release()
        return True

    def _release(self) -> None:
        """Remove the temporary files, and then the claim."""
        remove_all_in(self.storage, self.path(WORK))
        self.storage.remove_folder_if_empty(self.path(WORK))
        self.storage.remove(self.path(JOB_FILE))

    def _remove_strays(self, record: JobRecord, files: Collection[str]) -> None:
        """Remove the attempts of repeated or killed steps, and claimed files but these."""
        folder = RunFolder(self.storage, self.url, record)
        present = names_present(self.storage, self.url, ())
        folder.clear_attempts(present)
        folder.remove((present & record.names) - self.fixed_names - set(files))


def _check_file(storage: Storage, url: str, size: int) -> None:
    """Check that a file exists whole, before the manifest lists it."""
    if storage.size(url) != size:
        raise DataError(f"{redact(url)}: changed after it was written")


def record_of(transform: str, names: Iterable[str], number: str | None = None) -> JobRecord:
    """Return the `__job` of a folder with files of these names.

    `number` is the number of a run; None: no run works there.
    """
    return JobRecord(transform, {"claim": number}, MANIFEST_FILE, frozenset(names))


def remove_earlier_run(
    storage: Storage, folder: str, finished: Callable[[], JobRecord | None]
) -> None:
    """Remove what a job or another run wrote in a folder.

    A folder with other files is refused, and nothing is removed; so is one where a job of the
    command line works. `finished` returns the record of a run that has finished there, which
    removed its `__job`.
    """
    names = storage.list_names(folder)
    record = recorded_job(storage, folder)
    if record is None and MANIFEST_FILE in names and JOB_FILE not in names:
        record = finished()
    known = set() if record is None else {name.partition("/")[0] for name in record.all_names}
    if JOB_FILE in names:  # it is removed after `work/`
        known.add(WORK)
    foreign = [name for name in names if (attempted_name(name) or name) not in known]
    require(
        not foreign,
        f"must have only files that bpe-beam wrote, got {redact(folder)} with {list_few(foreign)}",
        "folder",
        remedy="move that away, or give another folder",
    )
    if record is not None:
        if JOB_FILE not in names:
            storage.write_bytes(storage.join(folder, JOB_FILE), record.to_bytes())
        claim_folder(storage, folder, {"job": record.job}, (), overwrite=True).release()
