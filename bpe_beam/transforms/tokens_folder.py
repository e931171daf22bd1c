"""The folder that one run of `WriteTokens` claims, writes and completes.

`__job` claims the folder from the time when all documents have arrived until the manifest is
written. It has a number that is new for each pipeline: a step that a runner repeats continues, and
another pipeline fails. A pipeline that fails before the claim leaves the folder empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import apache_beam as beam
from msgspec.structs import replace

from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import recorded_job
from bpe_beam.folders.receipts import WORK
from bpe_beam.folders.run_folder import RunFolder, names_present
from bpe_beam.messages import list_few
from bpe_beam.shards.manifest import index_names, read_manifest
from bpe_beam.storage import Storage
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.storage.names import attempted_name
from bpe_beam.tokenizer.tokenizer import Tokenizer

_JOB = "WriteTokens"

_taken: WeakKeyDictionary[beam.Pipeline, set[str]] = WeakKeyDictionary()


def take_folder(pipeline: beam.Pipeline, folder: str, parameter: str) -> None:
    """Refuse a folder that another transform of a pipeline writes to."""
    taken = _taken.setdefault(pipeline, set())
    name = folder.rstrip("/")
    require(
        name not in taken,
        f"must be different for each transform of a pipeline, got {name} twice",
        parameter,
    )
    taken.add(name)


class TokensFolder(NamedTuple):
    """A folder of shards, with the tokenizer that made their ids."""

    storage: Storage
    url: str
    shards: int
    tokenizer_json: str  # the tokenizer's file
    format: str
    number: str  # the number of the run that claims the folder

    def path(self, name: str) -> str:
        return self.storage.join(self.url, name)

    @property
    def vocab_size(self) -> int:
        return Tokenizer.from_json(self.tokenizer_json).max_id + 1

    def job_record(self) -> JobRecord | None:
        """Return the `__job` of the folder; None if there is none or it is of another run."""
        record = recorded_job(self.storage, self.url)
        ours = record is not None and record.settings.get("claim") == self.number
        return record if ours else None

    def require_claimed(self) -> None:
        """Refuse a folder whose `__job` is not of this run."""
        if self.job_record() is None:
            raise DataError(
                f"WriteTokens: another run took the folder {self.url} while this one ran: run "
                "this one again with another folder"
            )

    def require_free(self) -> None:
        """Refuse a folder that another run has claimed, or where one has finished."""
        if self.job_record() is not None:
            return
        names = self.storage.list_names(self.url)
        if JOB_FILE in names:
            raise UsageError(
                f"WriteTokens: another run has claimed the folder {self.url}, and works there "
                "or has failed: give another folder, or, when none works there, set overwrite=True "
                "to remove what it wrote"
            )
        others = [name for name in names if attempted_name(name) != JOB_FILE]
        if others:
            raise UsageError(
                f"WriteTokens: the folder {self.url} must be empty or new, got "
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
        data = _record(self.format, names, self.number).to_bytes()
        if write_once(self.storage, self.path(JOB_FILE), data):
            present = self.storage.list_names(self.url)
            if all(JOB_FILE in (name, attempted_name(name)) for name in present):
                return
            self.storage.remove(self.path(JOB_FILE))  # another run has finished meanwhile
        self.require_free()

    def remove_strays(self, record: JobRecord, files: Collection[str]) -> None:
        """Remove the attempts of repeated or killed steps, and their shards of other numbers."""
        folder = RunFolder(self.storage, self.url, record)
        present = names_present(self.storage, self.url, ())
        folder.clear_attempts(present)
        fixed = {SHARDS_TOKENIZER_FILE, *index_names(self.format)}
        folder.remove((present & record.names) - fixed - set(files))


def remove_earlier_run(storage: Storage, folder: str) -> None:
    """Remove what a job or another run wrote in a folder.

    A folder with other files is refused, and nothing is removed; so is one where a job of the
    command line works.
    """
    names = storage.list_names(folder)
    record = recorded_job(storage, folder)
    if record is None and MANIFEST_FILE in names and JOB_FILE not in names:
        manifest = read_manifest(storage, folder)
        if not manifest.has_plan:  # a finished run of `WriteTokens`, which removes its `__job`
            files = [file.name for shard in manifest.shards for file in shard.files]
            record = _record(manifest.format, files)
    known = set() if record is None else {name.partition("/")[0] for name in record.all_names}
    known.add(WORK)
    foreign = [name for name in names if (attempted_name(name) or name) not in known]
    require(
        not foreign,
        f"must have only files that bpe-beam wrote, got {folder} with {list_few(foreign)}",
        "folder",
        remedy="move that away, or give another folder",
    )
    if record is not None:
        if JOB_FILE not in names:
            storage.write_bytes(storage.join(folder, JOB_FILE), record.to_bytes())
        claim_folder(storage, folder, {"job": _JOB}, (), overwrite=True).release()


def _record(format_name: str, names: Iterable[str], number: str | None = None) -> JobRecord:
    """Return the `__job` of a folder with shards in files of these names.

    `number` is the number of a run; None: no run works there.
    """
    all_names = {*names, SHARDS_TOKENIZER_FILE, *index_names(format_name)}
    return JobRecord(_JOB, {"claim": number}, MANIFEST_FILE, frozenset(all_names))
