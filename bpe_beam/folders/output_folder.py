"""The output folder of a job: claimed by one job, filled piece by piece, finished once.

`job.json` comes first and says whose the folder is: the job's settings, their fingerprint, and the
exact names of all files that the job writes. Each finished piece leaves a receipt in `work/`: its
files with size and hash, and what is known about it. The final file (a manifest, as a rule) comes
last; then `work/` goes. Everything appears whole or not at all, so a job that is killed at any
moment and started again keeps the pieces that stand by their hash and ends with the same bytes.

Workers never write here. Each pipeline that is launched has a folder of its own,
`work/run-<12 hex digits>/`, laid out like this one, and when it has ended the driver moves its
pieces to their places (see `job_folder.py`). A pipeline whose driver died may go on for hours on a
cluster: what it writes then is looked at by nobody, or was taken over, whole, by the next driver.

Two runs of one job on one folder are not locked out: what they make of the same splits has the
same bytes and names. But one takes over what the other has finished so far, and that other then
ends with an error that says so, or finds the folder finished. At its end a run looks whether all
files are there. Two that finish at the same moment both end well. Files that were never completed
(attempts) may be another run's, so they are removed when the folder is finished, not before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE, TOKENIZER_FILE
from bpe_beam.folders.job_folder import (
    WORK,
    JobFolder,
    Receipt,
    folders_of,
    is_job_attempt,
    names_present,
    side_by_side,
)
from bpe_beam.folders.job_json import JobRecord, differences
from bpe_beam.folders.publication import Publication
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage
from bpe_beam.storage.names import absolute, is_local

_MAX_JOB_BYTES = 1 << 28

HASHED_BYTES = 256 << 20
"""Bytes of a finished local folder that are read again when its job is started once more: half a
second of work. `bpe-beam verify` reads all."""

COUNTS = "counts"
"""Where training on a corpus leaves its counts, within its output."""


@dataclass
class OutputFolder(JobFolder):
    """A folder that a job has claimed. Made by `claim`.

    Attributes:
        finished: An equal job has finished here, and nothing is to do.
        restored: An equal job had finished here, but files are missing: the files of its pieces, by
            piece. Receipts were written again of those pieces that its final file tells all about.
    """

    finished: bool = False
    restored: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _kept: dict[str, Receipt] = field(default_factory=dict)
    _claimed: frozenset[str] = frozenset()
    """The names that the claim asked for; `record.names` may have more, of an earlier run."""
    _found: frozenset[str] = frozenset()
    """What was there when the folder was claimed."""
    _recorded: frozenset[str] = frozenset()
    """The names in `job.json` as it is now."""

    @classmethod
    def claim(
        cls,
        storage: Storage,
        url: str,
        job: Mapping[str, Any],
        names: Collection[str],
        overwrite: bool = False,
        *,
        final: str = MANIFEST_FILE,
        restore: Callable[[bytes], Mapping[str, Mapping[str, Any]]] | None = None,
        beside: Collection[str] = (),
    ) -> OutputFolder:
        """Takes a folder for a job: a new or empty one, or one that an equal job began.

        Args:
            storage: The door to storage.
            url: The folder; made if need be.
            job: The job's name under the key `job`, and every setting that its results depend on;
                JSON-able. Nothing that differs between machines or runs.
            names: The exact names, relative to the folder, of all files that a job of these
                settings may write besides `job.json`, receipts and the final file. Those under
                `work/` are temporary.
            overwrite: Remove what the job recorded there wrote, and begin anew.
            final: The file whose presence says that the job has finished.
            restore: For a finished folder: from the final file's bytes to its pieces, each
                `{"files": [...], "facts": {...}}`. With it a finished folder that misses a file,
                or holds one of another size or, where that is cheap to see, other bytes, is opened
                again and mended; without it the final file is believed. Facts None: the piece is
                looked at too, but made again then, since the final file does not say all about it.
            beside: Names of folders in it that may stand there already: other jobs claim them, and
                `overwrite` leaves them.

        Raises:
            UsageError: If the folder is someone else's: it says what differs and the ways out.

        Cost: one listing; when resuming, all finished pieces are read once for their hashes.
        """
        settings = {key: value for key, value in job.items() if key != "job"}
        # Through JSON, so that it compares with what is read back: tuples become lists.
        settings = json.loads(json.dumps(settings, allow_nan=False))
        record = JobRecord(str(job["job"]), settings, final, frozenset(names))
        data = record.to_bytes()
        if storage.exists(url) and not storage.is_folder(url):
            raise UsageError(f"output {url} is a file: give the name of a folder")
        present = names_present(storage, url, record.all_names)
        old = None
        if JOB_FILE in present:
            old = _read_job(storage, storage.join(url, JOB_FILE))
        if old is not None:
            present |= names_present(storage, url, old.all_names)
        present -= frozenset(beside)
        _refuse_others(url, present, old, record, overwrite)

        folder = cls(storage, absolute(url), record, _claimed=record.names, _recorded=record.names)
        if old is not None and overwrite:
            cls(storage, absolute(url), old)._remove_all(present)
        if old is not None and not overwrite:
            folder._recorded = old.names
            folder.record = replace(record, names=record.names | old.names)
        if old is None or overwrite:
            storage.make_folder(url)
            storage.write_bytes(storage.join(url, JOB_FILE), data)
        else:
            if final in present and folder._stands(present, restore):
                folder.finished = True
                folder.clear_attempts(present)
                folder.remove_work()
                return folder
            if final in present:
                storage.remove(storage.join(url, final))
            folder._found = present
            for run in folder.runs():
                folder.take(run, all_files=True)
            folder._keep_what_stands()
        storage.make_folder(storage.join(url, WORK))
        return folder

    def receipt(self, piece: str) -> Receipt | None:
        """The receipt of a piece that was finished before this run and stands by its hashes."""
        return self._kept.get(piece)

    def require_ours(self) -> None:
        """Refuses to publish into a folder that another job has taken meanwhile.

        Raises:
            DataError: `job.json` is of another job, or gone.
        """
        now = _read_job(self.storage, self.path(JOB_FILE))
        if now is None or now.fingerprint != self.record.fingerprint:
            raise DataError(
                f"{self.url}: another job took this folder with --overwrite while this one ran: "
                "run this one again with another --output"
            )

    def require_whole(self, receipts: Iterable[Receipt]) -> None:
        """Looks once more whether the files of all pieces stand, by their sizes.

        Raises:
            DataError: One does not: a run beside this one has replaced or removed it.
        """

        def check(file: Mapping[str, Any]) -> None:
            if not self.has_size(file):
                raise self._other_run(file["name"])

        side_by_side(check, [file for receipt in receipts for file in receipt["files"]])

    def forget(self, receipts: Iterable[Receipt]) -> None:
        """Removes pieces that are to be made again: their files first, since a receipt of files
        that are gone holds no longer by itself."""
        forgotten = list(receipts)
        self.remove([file["name"] for receipt in forgotten for file in receipt["files"]])
        self.remove([f"{WORK}/{receipt['piece']}.json" for receipt in forgotten])
        for receipt in forgotten:
            self._kept.pop(receipt["piece"], None)

    def publish(self, pieces: Iterable[Publication]) -> list[Receipt]:
        """Move the shards of all splits from `work/` to their final names.

        Where this is broken off, the next run does the rest: a receipt names the files of its piece
        where they are, except for the pieces that were being moved, which are made again.

        Args:
            pieces: All splits of the job, see `shards/numbering.py`.

        Returns:
            The receipts with the final names.

        Raises:
            UsageError: A file of such a name is there, and no job recorded it.
            DataError: A file is gone: another run of the job works in the folder.
        """
        pieces = list(pieces)
        final = frozenset(name for piece in pieces for _, name in piece.moves)
        foreign = (final - self.record.names) & names_present(self.storage, self.url, ())
        if foreign:
            raise UsageError(
                f"output {self.url} holds {list_few(sorted(foreign))}, which no job of bpe-beam "
                "recorded and this job would replace: move them away, and run this one again"
            )
        self._record_names(self.record.names | final)
        # All of them before the first one is published: its final name may be another one's now.
        pieces = side_by_side(self._withdraw_piece, pieces)
        side_by_side(self._publish_piece, pieces)
        receipts = [piece.receipt for piece in pieces]
        self.require_whole(receipts)
        outside = {name for name in self.record.names if not name.startswith(f"{WORK}/")}
        self.remove_strays(outside - {TOKENIZER_FILE}, receipts)
        self._record_names(self._claimed | final)
        return receipts

    def _withdraw_piece(self, piece: Publication) -> Publication:
        """Move a shard with the final name of an earlier run, which is another one now, back."""
        receipt = piece.receipt
        if all(name == final or name.startswith(f"{WORK}/") for name, final in piece.moves):
            return piece
        back = [
            (name, f"{WORK}/{receipt['piece']}.{name.rpartition('.')[2]}")
            for name, _ in piece.moves
        ]
        self._move_files(back)
        names = [name for _, name in back]
        files = [
            {**file, "name": name} for file, name in zip(receipt["files"], names, strict=False)
        ]
        files += receipt["files"][len(names) :]
        self.write_receipt(receipt["piece"], files, receipt["facts"])
        finals = [final for _, final in piece.moves]
        return Publication(receipt, tuple(zip(names, finals, strict=True)))

    def _publish_piece(self, piece: Publication) -> None:
        if self._move_files(piece.moves):
            receipt = piece.receipt
            self.write_receipt(receipt["piece"], receipt["files"], receipt["facts"])

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
        """Write `job.json` again if it does not have exactly these names."""
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
        """Removes those of the job's files that no receipt names: a piece that was killed between
        its file and its receipt may have left them."""
        named = {file["name"] for receipt in receipts for file in receipt["files"]}
        there = names_present(self.storage, self.url, self.record.names)
        self.remove(there.intersection(names) - named)

    def write_receipt(
        self, piece: str, files: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """As `ReceiptWriter.write_receipt`, for pieces that the driver makes itself."""
        self.writer().write_receipt(piece, files, facts)

    def finish(self, final_name: str, data: bytes) -> None:
        """Writes the final file and removes everything temporary; what others put there stays.

        Args:
            final_name: The name that was claimed as `final`.
            data: Its content.
        """
        if final_name != self.record.final:
            raise ValueError(f"claimed with final={self.record.final!r}, not {final_name!r}")
        self.require_ours()
        self.sync()
        try:
            self.storage.write_bytes(self.path(final_name), data)
        except NotFoundError as error:
            # Another run has finished the folder meanwhile, and removed what was temporary.
            if not self.holds(final_name, data):
                raise self._other_run(final_name) from error
        self.storage.sync_folders(self.url)
        self.finished = True
        there = names_present(self.storage, self.url, self.record.all_names)
        # Another run may be writing the final file, too; it holds the same bytes.
        begun = {name for name in there if name.startswith(f"{final_name}.")}
        self.clear_attempts(there - (begun - self._found))
        self.remove_work()

    def release(self) -> None:
        """Gives the folder up: nothing was made, and any job may have it."""
        self.remove_work()
        self.storage.remove(self.path(JOB_FILE))
        self.storage.remove_folder_if_empty(self.url)

    def _keep_what_stands(self) -> None:
        """Checks every receipt against the files; those that do not stand are removed."""
        receipts = self.receipts()
        stand = side_by_side(
            lambda receipt: all(map(self.matches, receipt["files"])), receipts.values()
        )
        for (piece, receipt), stands in zip(receipts.items(), stand, strict=True):
            if stands:
                self._kept[piece] = receipt
            else:
                self.storage.remove(self.path(f"{WORK}/{piece}.json"))

    def _stands(
        self,
        present: frozenset[str],
        restore: Callable[[bytes], Mapping[str, Mapping[str, Any]]] | None,
    ) -> bool:
        """Whether a finished folder is whole by names and sizes, and by hashes where cheap.

        If not, the receipts of its pieces are written again, for what stands to be kept.
        """
        if restore is None:
            return True
        try:
            pieces = restore(self.storage.read_bytes(self.path(self.record.final)))
            files = [file for piece in pieces.values() for file in piece["files"]]
            whole = all(
                file["name"] in present
                and self.storage.size(self.path(file["name"])) == file["bytes"]
                for file in files
            ) and all(side_by_side(self.matches, self._cheap_to_read(files)))
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, DataError):
            return False
        if not whole:
            self.storage.make_folder(self.path(WORK))
            for name, piece in pieces.items():
                self.restored[name] = [dict(file) for file in piece["files"]]
                if piece["facts"] is not None:
                    self.write_receipt(name, piece["files"], piece["facts"])
        return whole

    def _cheap_to_read(self, files: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The files whose hashes are compared at every start: on local disks, the smallest ones, up
        to HASHED_BYTES in total."""
        chosen: list[dict[str, Any]] = []
        left = HASHED_BYTES if is_local(self.url) else 0
        for file in sorted(files, key=lambda file: int(file["bytes"])):
            left -= int(file["bytes"])
            if left < 0:
                break
            chosen.append(file)
        return chosen

    def _remove_all(self, present: frozenset[str]) -> None:
        """Removes all that the recorded job wrote, but for `job.json`, which the next replaces.

        The final file goes first: a folder with it missing is unfinished, never falsely whole.
        """
        if self.record.final in present:
            self.storage.remove(self.path(self.record.final))
        self.remove_work()
        self.clear_attempts(present)
        self.remove(self.record.names & present)
        for folder in sorted(folders_of(self.record.names), reverse=True):
            self.storage.remove_folder_if_empty(self.path(folder))
        if COUNTS in present and self.record.job == "train" and "plan" in self.record.settings:
            self._remove_counts()

    def _remove_counts(self) -> None:
        """Removes the counts that training on a corpus left here: a job of their own."""
        url = self.path(COUNTS)
        if JOB_FILE not in self.storage.list_names(url):
            return
        record = _read_job(self.storage, self.storage.join(url, JOB_FILE))
        if record is not None and record.job == "count":
            counts = OutputFolder(self.storage, url, record)
            counts._remove_all(names_present(self.storage, url, record.all_names))
            counts.release()


def _read_job(storage: Storage, url: str) -> JobRecord | None:
    if storage.size(url) > _MAX_JOB_BYTES:
        return None
    return JobRecord.from_bytes(storage.read_bytes(url))


def _refuse_others(
    url: str,
    present: frozenset[str],
    old: JobRecord | None,
    new: JobRecord,
    overwrite: bool,
) -> None:
    """Refuses a folder that is not this job's to use; nothing has been touched yet."""
    top = {name for name in present if "/" not in name}
    # A run that was killed while it wrote its first file has left no more than this.
    top = {name for name in top if not is_job_attempt(name)}
    if old is None and top and not overwrite:
        raise UsageError(
            f"output {url} holds files that no job of bpe-beam recorded ({list_few(sorted(top))}): "
            "give another --output, or --overwrite, which leaves those files alone"
        )
    # The names may differ: shards are numbered when it is known which splits have tokens.
    same = old is not None and (old.fingerprint, old.final) == (new.fingerprint, new.final)
    if old is not None and not same and not overwrite:
        raise UsageError(
            f"output {url} holds the work of another job; what differs:\n"
            + "\n".join(differences(old, new))
            + "\nGive another --output, or --overwrite to remove what that job wrote"
        )
    recorded = old.all_names if old is not None else frozenset()
    foreign = (new.all_names & present) - recorded
    if old is None and WORK in present:
        foreign |= {WORK}
    if foreign:
        raise UsageError(
            f"output {url} holds {list_few(sorted(foreign))}, which no job of bpe-beam recorded "
            "and this job would replace: move them away, or give another --output"
        )
