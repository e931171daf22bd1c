"""The folder `rounds` in a train job's output: words on storage between rounds, a commit a round.

The steps of each round write to a run folder of their own (`run_folder.py`). After a round the
driver writes `commit-00003.json`, with all merges so far and the name of the run that wrote the
current word batches, and removes the run before. A job that was killed resumes at the last commit.
The folder `passes` in it has the commits of passes over the words, with the pieces in files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
from msgspec import Struct, structs

from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.receipts import WORK, side_by_side
from bpe_beam.folders.run_folder import JobFolder, RunFolder
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import JsonObject, read_signed, to_struct, with_checksum
from bpe_beam.training.merges.native_trainer import Row, WordTotals
from bpe_beam.workers.rounds.task import FOLDERS, ROUND_FILE, PartSlice, WordBatch, is_round_file

if TYPE_CHECKING:
    from typing_extensions import Self

MINIMUM_WORD_BYTES = 8_000_000
MAXIMUM_WORD_BYTES = 128_000_000
"""The bytes of words that a word batch has at first: parts of the counts are joined, or cut, to
come between these."""

_COMMIT = re.compile(r"commit-([0-9]{5,9})\.json")
_START = "start.json"
_PASSES = "passes"


def first_slices(manifest: CountsManifest) -> list[tuple[PartSlice, ...]]:
    """Return the words of each word batch before the first round."""
    sources: list[list[PartSlice]] = []
    room = 0
    for number, part in enumerate(manifest.parts):
        slices = max(1, -(-part.word_bytes // MAXIMUM_WORD_BYTES))
        if sources and slices == 1 and part.word_bytes <= room:
            sources[-1].append(PartSlice(number, 0, 1))
        else:
            sources += [[PartSlice(number, i, slices)] for i in range(slices)]
            room = MINIMUM_WORD_BYTES
        room -= part.word_bytes
    return list(map(tuple, sources))


class _AnyCommit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    number: int = 0  # from 1; 0 before the first commit
    run: str = ""  # the name of the run that wrote the files

    @property
    def files(self) -> Sequence[tuple[str, Sequence[FileInfo]]]:
        """The names of runs, each with the files that the next one reads."""
        raise NotImplementedError

    def kept(self, intact: Sequence[bool]) -> Self | None:
        """Return the commit without damaged files, if training can go on; `intact` is for each of
        `files`.
        """
        return self if all(intact) else None


class Commit(_AnyCommit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a training after a round; `number` is the round's.

    The merges of this round are not applied to the word batches yet.
    """

    word_batches: Sequence[WordBatch] = ()
    rows: Sequence[Row] = ()
    counts: Sequence[int] = ()  # how often each pair occurred when it was merged
    known: int  # the number of ids before this round's merges
    applied: int = 0  # the number of merges that are applied to the words
    floor: int  # the minimum count of the pairs that the next round looks for
    divisor: int  # the divisor of the next round, see `training.merges.rounds.threshold`
    done: bool
    text_full: bool = False  # whether training ended at `native_trainer.MAX_TEXT`
    totals: WordTotals | None = None
    singles: int = 0  # the words that were dropped as one symbol, each weighted by its count
    history: Sequence[JsonObject] = ()  # a row for each round, for the summary
    start: str  # the SHA-256 of the file of the initial vocabulary

    @property
    def files(self) -> Sequence[tuple[str, Sequence[FileInfo]]]:
        """The word batches."""
        return [(self.run, [word_batch.file for word_batch in self.word_batches])]


class PassCommit(_AnyCommit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pieces before the first pass (`number` 1), or after a pass.

    The first pass also writes the segments of each word batch, which stay in its run.
    """

    pieces: FileInfo
    sizes: Sequence[int]  # see `PieceState`
    first_run: str = ""
    segments: Sequence[FileInfo] = ()
    history: Sequence[JsonObject] = ()  # a row for each merge round, for the summary

    @property
    def files(self) -> Sequence[tuple[str, Sequence[FileInfo]]]:
        """The file of the pieces, and the files of the segments."""
        return [(self.run, [self.pieces]), (self.first_run, self.segments)]

    def kept(self, intact: Sequence[bool]) -> Self | None:
        """See `_AnyCommit.kept`; the next pass makes lost segments again."""
        pieces, segments = intact
        if not pieces:
            return None
        return self if segments else structs.replace(self, first_run="", segments=())


C = TypeVar("C", bound=_AnyCommit)


class _RoundRun(RunFolder):
    """The folder of a round's steps; files of any counts are recognised by their names."""

    folders = frozenset(FOLDERS)

    def owns(self, name: str) -> bool:
        folder, _, file = name.rpartition("/")
        return name == ROUND_FILE or (folder in FOLDERS and is_round_file(file))

    def is_receipt(self, name: str) -> bool:
        """Return False: `owns` recognises receipts, too."""
        return False


class _CommitsFolder(JobFolder, Generic[C]):
    """A folder of runs, and of commits of one kind."""

    folders = frozenset({WORK})
    kind: type[C]

    def __init__(self, storage: Storage, url: str, identity: JsonObject) -> None:
        super().__init__(storage, url, JobRecord("rounds", identity, "", frozenset()))

    def owns(self, name: str) -> bool:
        """Return whether rounds of any job write a file of this name."""
        return name == _START or _COMMIT.fullmatch(name) is not None

    def is_receipt(self, name: str) -> bool:
        """Return False: tasks of rounds have their receipts in the folder of a run."""
        return False

    def run(self, name: str) -> RunFolder:
        return _RoundRun(self.storage, self.path(f"{WORK}/{name}"), self.record)

    def latest(self) -> C | None:
        """Return the last commit whose files are intact; remove the others and their files.

        Cost: reads the files once, and the segments too.
        """
        self.storage.make_folder(self.url)
        # Listed first: files that another driver makes meanwhile are neither read nor removed.
        runs, commits = self.runs(), self._commits()
        read = map(self._read, sorted(commits, reverse=True))
        latest = next(filter(None, read), None)
        self._remove_others(latest, commits, runs)
        return latest

    def commit(self, commit: C) -> None:
        """Write a commit, and remove the one before it."""
        commits = self._commits()
        if commits != [_name(number) for number in (commit.number - 1,) if number]:
            raise DataError(
                f"{self.url}: another run of this job works in the same folder; when it has "
                "ended, run this one again"
            )
        data = {"fingerprint": self.fingerprint, "commit": msgspec.to_builtins(commit)}
        run = self.run(commit.run)
        self.storage.sync_folders(*map(run.path, FOLDERS))
        self.storage.write_bytes(self.path(_name(commit.number)), with_checksum(data, indent=None))
        self.storage.sync_folders(self.url)
        self._remove_others(commit, commits, self.runs())

    def _commits(self) -> list[str]:
        return [name for name in self.storage.list_names(self.url) if _COMMIT.fullmatch(name)]

    def _read(self, name: str) -> C | None:
        """Return a commit of this job; None if it or its files are damaged."""
        try:
            signed = read_signed(self.storage.read_bytes(self.path(name)), name)
            if signed.get("fingerprint") != self.fingerprint:
                return None
            commit = to_struct(signed.get("commit"), self.kind, name)
            return self._kept(commit)
        except (DataError, NotFoundError):
            return None

    def _kept(self, commit: C) -> C | None:
        """Return the commit, as far as its files are intact."""
        intact = [all(side_by_side(self.run(run).matches, files)) for run, files in commit.files]
        return commit.kept(intact)

    def _remove_others(
        self, commit: C | None, commits: Iterable[str], runs: Iterable[RunFolder]
    ) -> None:
        """Remove these commits and runs, except one commit and the runs of its files."""
        for name in commits:
            if commit is None or name != _name(commit.number):
                self.storage.remove(self.path(name))
        for run in runs:
            if commit is None or run.name not in dict(commit.files):
                run.remove_run()


class RoundsFolder(_CommitsFolder[Commit]):
    """The folder of merge rounds: of words and commits."""

    kind = Commit

    @property
    def start(self) -> str:
        """The URL of the file of the initial vocabulary; every run of the job writes the same."""
        return self.path(_START)

    def _kept(self, commit: Commit) -> Commit | None:
        start = hashlib.sha256(self.storage.read_bytes(self.start)).hexdigest()
        return super()._kept(commit) if start == commit.start else None


class PassesFolder(_CommitsFolder[PassCommit]):
    """The folder of passes over the words, in the folder of merge rounds."""

    kind = PassCommit

    def __init__(self, rounds: RoundsFolder) -> None:
        super().__init__(rounds.storage, rounds.path(_PASSES), rounds.record.settings)


def _name(number: int) -> str:
    return f"commit-{number:05}.json"


def holds_commits(storage: Storage, url: str) -> bool:
    """Return whether a folder of rounds has commits of any job."""
    names = (*storage.list_names(url), *storage.list_names(storage.join(url, _PASSES)))
    return any(map(_COMMIT.fullmatch, names))


def remove_rounds(storage: Storage, url: str) -> None:
    """Remove everything that rounds and passes of any job wrote in a folder, and nothing else."""
    if storage.exists(url):
        rounds = RoundsFolder(storage, url, {})
        folders: tuple[JobFolder, ...] = (PassesFolder(rounds), rounds)
        for folder in folders:
            for run in folder.runs():
                run.remove_run()
            folder.remove_run()
