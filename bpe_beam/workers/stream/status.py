"""The reports of a stream's watchers, on storage: what they have to do, and whether they live.

Each watcher replaces its own small file in the folder `__watchers` of the stream's output at each
look, and removes it when the stream ends. So anyone who sees the output can tell the lag of the
stream, without the runner and without the inputs. The reports decide nothing about files: windows
are recorded in `__window` alone.
"""

from __future__ import annotations

import secrets
import time

from msgspec import Struct

from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.artifact_names import WATCHERS
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.storage import Storage, json_file
from bpe_beam.storage.names import attempted_name
from bpe_beam.workers.stream.watcher import Lag, Stream, Watcher

SILENT_SECONDS = 60.0
"""A watcher that has not reported for this time, and for three of its polls, has ended."""

_SUFFIX = ".json"


class WatcherReport(Struct, frozen=True, forbid_unknown_fields=True):
    """What a watcher reports at a look."""

    version: int
    watcher: str  # a name that no other watcher has
    job: str  # `Stream.job` of its job
    number: int  # of its job: greater than the numbers of the jobs that had reported before
    looks: int
    at: float  # the time of the report, in seconds since 1970
    poll_seconds: float
    lag: Lag
    stands_by: bool = False  # whether a watcher of a greater rank looks instead
    set_aside: int = 0  # the number of bad files and windows that it has set aside
    last_set_aside: str | None = None  # the last of them, in words

    @property
    def rank(self) -> tuple[int, str, str]:
        """The order of watchers: the greatest one looks."""
        return self.number, self.job, self.watcher

    @property
    def silent_seconds(self) -> float:
        """The time after which the watcher has ended if it has not reported again."""
        return SILENT_SECONDS + 3 * self.poll_seconds


def read_reports(storage: Storage, output: str) -> list[WatcherReport]:
    """Return the last reports of all watchers of a stream: the greatest job first, and of each job
    the newest.

    Cost: one listing, and one request for each watcher, of which most streams have one.
    """
    folder = storage.join(output, WATCHERS)
    names = [name for name in storage.list_names(folder) if attempted_name(name) is None]

    def read(name: str) -> WatcherReport | None:
        url = storage.join(folder, name)
        try:
            values = json_file.read_signed(storage.read_bytes(url), url)
            return json_file.to_struct(values, WatcherReport, url)
        except NotFoundError:  # removed since the listing
            return None
        except DataError:  # damaged; its watcher writes it again
            return None

    reports = filter(None, side_by_side(read, names))
    return sorted(reports, key=lambda each: (each.number, each.job, each.at), reverse=True)


class ReportingWatcher(Watcher):
    """A watcher that reports on storage, and stands by while a watcher of a later job looks.

    Two watchers that look do no harm, but double work. So a new job takes over, and one that a
    runner has left alive stands by until the new one has been silent for `silent_seconds`. A runner
    may move a job's watcher to another process and back: the process that it calls looks. On a
    store without conditional writes, a watcher waits until all others, also those of its job, stand
    by or are silent.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._name = secrets.token_hex(8)
        self._number: int | None = None
        self._of_job: list[str] = []  # the other watchers of this job
        self._looks = 0
        # The looks of each other watcher, and when this one has first read that number.
        self._others: dict[str, tuple[int, float]] = {}

    def look(self, now: float, position: int = 0) -> list[tuple[int, str]]:
        """Look as `Watcher.look`, unless another watcher does."""
        if not self._leads(now):
            self.next_look = now + self.stream.poll_seconds
            return []
        tasks = super().look(now, position)
        if self.ended:
            for name in (self._name, *self._of_job):
                self._remove(name)
        else:
            self._report()
        return tasks

    def _leads(self, now: float) -> bool:
        reports = read_reports(self.stream.storage, self.stream.output)
        others = [report for report in reports if report.watcher != self._name]
        of_job = [report for report in others if report.job == self.stream.job]
        self._of_job = [report.watcher for report in of_job]
        if self._number is None:
            next_number = 1 + max((report.number for report in others), default=0)
            self._number = max((report.number for report in of_job), default=next_number)
            self.looked_before = max((report.at for report in others), default=None)
        living = [report for report in others if self._is_alive(report, now)]
        if self.stream.creates_only:
            living = [report for report in living if report not in of_job]
        rank = self._number, self.stream.job, self._name
        stands_by = any(report.rank > rank for report in living)
        waits = not self.stream.creates_only and any(not each.stands_by for each in living)
        if stands_by or waits:
            self._report(stands_by=stands_by)
        return not (stands_by or waits)

    def _is_alive(self, report: WatcherReport, now: float) -> bool:
        """Return whether a watcher has reported lately; remove the report of a silent one."""
        looks, since = self._others.get(report.watcher, (-1, now))
        if report.looks != looks:
            since = now
        self._others[report.watcher] = report.looks, since
        is_alive = now - since <= report.silent_seconds
        if not is_alive:
            self._remove(report.watcher)
        return is_alive

    def _report(self, *, stands_by: bool = False) -> None:
        assert self._number is not None
        self._looks += 1
        report = WatcherReport(
            version=json_file.VERSION,
            watcher=self._name,
            job=self.stream.job,
            number=self._number,
            looks=self._looks,
            at=time.time(),
            poll_seconds=self.stream.poll_seconds,
            lag=self.lag,
            stands_by=stands_by,
            set_aside=self.set_aside,
            last_set_aside=self.last_set_aside,
        )
        storage = self.stream.storage
        storage.make_folder(storage.join(self.stream.output, WATCHERS), synced=False)
        storage.write_bytes(self._url(self._name), json_file.with_checksum(report))

    def _remove(self, watcher: str) -> None:
        """Remove the files of a watcher, which may have been killed while it wrote one."""
        self._others.pop(watcher, None)
        storage, folder = (
            self.stream.storage,
            self.stream.storage.join(self.stream.output, WATCHERS),
        )
        for name in storage.list_names(folder):
            if name.startswith(watcher):
                storage.remove(storage.join(folder, name))
        storage.remove_folder_if_empty(folder)

    def _url(self, watcher: str) -> str:
        return self.stream.storage.join(self.stream.output, WATCHERS, f"{watcher}{_SUFFIX}")
