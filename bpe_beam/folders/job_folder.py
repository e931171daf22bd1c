"""A folder laid out as a job's: files under the names that the job records, receipts in `work/`.

There are two kinds: the output folder itself, see `output.py`, and in its `work/` one folder for
each pipeline that was launched, `run-<12 hex digits>/`, in which that pipeline's workers write.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import check_checksum, with_checksum
from bpe_beam.storage.names import attempted_name

WORK = "work"

_BLOCK_BYTES = 1 << 20
_VERSION = 2
"""Of a receipt. One without a version, which may have no checksum, is read, too."""

_KEYS = ("version", "piece", "fingerprint", "files", "facts")
"""Of a receipt, besides its checksum."""

_PIECE = re.compile(r"[A-Za-z0-9._-]+")
_RECEIPT = re.compile(rf"{WORK}/({_PIECE.pattern})\.json")
_RUN = re.compile(r"run-[0-9a-f]{12}")

T = TypeVar("T")

Receipt = dict[str, Any]
"""`{"version", "piece", "fingerprint", "files": [{"name", "bytes", "sha256"}], "facts": {...}}`."""


@dataclass(frozen=True)
class ReceiptWriter:
    """Writes receipts on any worker; small and picklable, for workers.

    Attributes:
        storage: The storage client.
        url: The folder that the pieces' files are in: that of a run.
        fingerprint: The job's.
    """

    storage: Storage
    url: str
    fingerprint: str

    def write_receipt(
        self, piece: str, files: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Record that a piece is finished; call it after its files were written.

        Args:
            piece: The piece's name: letters, digits, `.`, `_`, `-`.
            files: Its files, each `{"name", "bytes", "sha256"}`, the name relative to the folder;
                empty for a piece that has no files.
            facts: What the job wants to know of it again, JSON-able and small.

        Raises:
            ValueError: If the piece's name is not such a name.
        """
        if _PIECE.fullmatch(piece) is None:
            raise ValueError(f"a piece's name must match {_PIECE.pattern}, not {piece!r}")
        receipt = {
            "version": _VERSION,
            "piece": piece,
            "fingerprint": self.fingerprint,
            "files": [dict(file) for file in files],
            "facts": dict(facts),
        }
        url = self.storage.join(self.url, WORK, f"{piece}.json")
        self.storage.write_bytes(url, with_checksum(receipt))


@dataclass
class JobFolder:
    """A folder with what a job has made so far.

    Attributes:
        storage: The storage client.
        url: The folder.
        record: The job whose it is, and the names that it may write there.
    """

    storage: Storage
    url: str
    record: JobRecord

    def path(self, name: str) -> str:
        """The URL of a file of the folder."""
        return self.storage.join(self.url, *name.split("/"))

    def writer(self) -> ReceiptWriter:
        """Return the writer of this job's receipts."""
        return ReceiptWriter(self.storage, self.url, self.record.fingerprint)

    def receipts(self) -> dict[str, Receipt]:
        """Return all receipts that are in storage now, by piece, in order of their names.

        Cost: reads each receipt, none of the files that they name.
        """
        found = self.storage.list_names(self.path(WORK))
        names = sorted(f"{WORK}/{name}" for name in found if _RECEIPT.fullmatch(f"{WORK}/{name}"))
        read = side_by_side(self._read_receipt, names)
        return {receipt["piece"]: receipt for receipt in read if receipt is not None}

    def all_receipts(self, pieces: Iterable[str]) -> dict[str, Receipt]:
        """Return all receipts, after a check that those of these pieces are there.

        Raises:
            DataError: One is not there: a run beside this one has removed it, or the runner ended
                without it.
        """
        receipts = self.receipts()
        missing = [piece for piece in pieces if piece not in receipts]
        if missing:
            raise DataError(
                f"{self.url}: there is no receipt of {missing[0]}: another run of this job works "
                "in the same folder or has finished there, or the runner lost what was to be done; "
                "when no other run works there, run this one again"
            )
        return receipts

    def finished_pieces(self) -> frozenset[str]:
        """Names of the pieces that have receipts. Cost: one listing."""
        found = self.storage.list_names(self.path(WORK))
        return frozenset(name[:-5] for name in found if _RECEIPT.fullmatch(f"{WORK}/{name}"))

    def has_size(self, file: Mapping[str, Any]) -> bool:
        """Whether a file is there, with the size that its receipt says. Cost: one request."""
        try:
            return self.storage.size(self.path(file["name"])) == int(file["bytes"])
        except NotFoundError:
            return False

    def matches(self, file: Mapping[str, Any]) -> bool:
        """Whether a file has the size and the hash that its receipt says."""
        if not self.has_size(file):
            return False
        url = self.path(file["name"])
        try:
            digest = hashlib.sha256()
            with self.storage.open(url) as stream:
                while block := stream.read(_BLOCK_BYTES):
                    digest.update(block)
        except NotFoundError:
            return False
        except OSError as error:
            raise DataError(f"cannot read {url}: {error.strerror or error}") from error
        return digest.hexdigest() == str(file["sha256"])

    def holds(self, name: str, data: bytes) -> bool:
        """Whether a file is there and has exactly these bytes.

        Args:
            name: The file, relative to the folder.
            data: What it should hold.

        Cost: one request, and a second one for a file of the same size, which is then read.
        """
        file = {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return self.matches(file)

    # ---- runs ----

    def new_run(self) -> JobFolder:
        """A folder in `work/` for the pipeline that is to be launched."""
        run = self._run(f"run-{secrets.token_hex(6)}")
        for folder in sorted(folders_of(self.record.names) | {WORK}):
            self.storage.make_folder(run.path(folder))
        return run

    def runs(self) -> list[JobFolder]:
        """The folders of all pipelines that were launched."""
        found = self.storage.list_names(self.path(WORK))
        return [self._run(name) for name in found if _RUN.fullmatch(name)]

    def take(self, run: JobFolder, *, all_files: bool) -> None:
        """Move the finished pieces of a run to this folder.

        Files first, then the receipt: where that was broken off it is done again, with the same
        result. What the run left half done stays there.

        Args:
            run: Its folder.
            all_files: Move temporary files, too. Without, they stay where they are and are named
                there: only while no worker of the run is left, who might touch them.
        """
        inside = f"{WORK}/{run.url.rstrip('/').rpartition('/')[2]}"

        def move_files(receipt: Receipt) -> list[dict[str, Any]] | None:
            files = []
            whole = True
            for file in receipt["files"]:
                name = file["name"]
                if all_files or not name.startswith(f"{WORK}/"):
                    whole &= self._moved(run, name)
                else:
                    name = f"{inside}/{name}"
                files.append({**file, "name": name})
            return files if whole else None

        def write_receipt(receipt: Receipt, files: list[dict[str, Any]] | None) -> None:
            if files is not None:
                self.writer().write_receipt(receipt["piece"], files, receipt["facts"])

        receipts = list(run.receipts().values())
        folders = folders_of(file["name"] for receipt in receipts for file in receipt["files"])
        for folder in folders:
            self.storage.make_folder(self.path(folder))
        moved = side_by_side(move_files, receipts)
        self.storage.sync_folders(self.url, *map(self.path, folders))
        side_by_side(lambda pair: write_receipt(*pair), zip(receipts, moved, strict=True))
        self.storage.sync_folders(self.path(WORK))
        run.remove(f"{WORK}/{receipt['piece']}.json" for receipt in receipts)

    def _moved(self, run: JobFolder, name: str) -> bool:
        """Move a file of a run; return False if it is nowhere: its piece must be made again."""
        try:
            self.storage.move(run.path(name), self.path(name))
        except NotFoundError:
            return False
        return True

    def _run(self, name: str) -> JobFolder:
        return JobFolder(self.storage, self.path(f"{WORK}/{name}"), self.record)

    def sync(self) -> None:
        """Make the names of all that the job wrote survive a power cut; the files' bytes do."""
        folders = {*folders_of(self.record.names), WORK}
        self.storage.sync_folders(self.url, *map(self.path, folders))

    # ---- removing ----

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of the folder."""
        side_by_side(lambda name: self.storage.remove(self.path(name)), names)

    def remove_work(self) -> None:
        """Remove temporary files, of runs as well, and nothing that no job wrote."""
        for run in self.runs():
            run.remove(_ours(run, names_present(self.storage, run.url, self.record.names)))
            for folder in sorted(folders_of(self.record.names) | {WORK}, reverse=True):
                self.storage.remove_folder_if_empty(run.path(folder))
            self.storage.remove_folder_if_empty(run.url)
        there = {f"{WORK}/{name}" for name in self.storage.list_names(self.path(WORK))}
        self.remove(_ours(self, there))
        self.storage.remove_folder_if_empty(self.path(WORK))

    def clear_attempts(self, present: Iterable[str]) -> None:
        """Remove files that were never completed."""
        self.remove([name for name in present if self._is_attempt(name)])

    def _is_attempt(self, name: str) -> bool:
        final = attempted_name(name)
        return final is not None and (
            final in self.record.all_names or _RECEIPT.fullmatch(final) is not None
        )

    def _read_receipt(self, name: str) -> Receipt | None:
        """Read a receipt of this job; None if the file is anything else."""
        try:
            data = self.storage.read_bytes(self.path(name))
        except NotFoundError:  # an equal run finished just now
            return None
        try:
            value = json.loads(data)
            check_checksum(data, value, name, _KEYS, required="version" in value)
            ours = value.get("version", _VERSION) == _VERSION
            ours = ours and value["fingerprint"] == self.record.fingerprint
            ours = ours and f"{value['piece']}.json" == name[5:]
            whole = isinstance(value["facts"], dict) and all(
                self._may_be(file["name"])
                and isinstance(file["bytes"], int)
                and isinstance(file["sha256"], str)
                for file in value["files"]
            )
            return value if ours and whole else None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError):
            return None

    def _may_be(self, name: str) -> bool:
        """Whether a receipt may name such a file: one of the job's, here or in a run's folder."""
        work, _, rest = name.partition("/")
        run, _, inside = rest.partition("/")
        in_run = work == WORK and _RUN.fullmatch(run) is not None
        return (inside if in_run else name) in self.record.names


def _ours(folder: JobFolder, there: Collection[str]) -> list[str]:
    """Return those of the names present that a job wrote, for a folder to be removed."""
    if _RUN.fullmatch(folder.url.rstrip("/").rpartition("/")[2]):
        known = set(folder.record.names) | {name for name in there if _RECEIPT.fullmatch(name)}
    else:
        known = {f"{WORK}/{piece}.json" for piece in folder.receipts()}
        known |= {name for name in folder.record.names if name.startswith(f"{WORK}/")}
    return [name for name in there if name in known or folder._is_attempt(name)]


def is_job_attempt(name: str) -> bool:
    """Whether a name is that of a `job.json` that was never completed."""
    return attempted_name(name) == JOB_FILE


def folders_of(names: Iterable[str]) -> set[str]:
    """The folders that names stand in, relative; not the output folder itself."""
    return {name.rpartition("/")[0] for name in names} - {""}


def names_present(storage: Storage, url: str, names: Collection[str]) -> frozenset[str]:
    """What is in the folder, in `work/`, and in the folders of `names`; relative names."""
    found = set(storage.list_names(url))
    for folder in folders_of(names) | {WORK}:
        if folder.partition("/")[0] in found:
            inside = storage.list_names(storage.join(url, *folder.split("/")))
            found |= {f"{folder}/{name}" for name in inside}
    return frozenset(found)


def side_by_side(call: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """Call a store with bounded concurrency: it hides the latency and is not throttled."""
    with ThreadPoolExecutor(min(16, 4 * (os.cpu_count() or 1))) as pool:
        return list(pool.map(call, items))
