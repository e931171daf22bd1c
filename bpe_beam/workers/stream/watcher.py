"""The watcher of a stream: looks at a folder, adds windows, returns tasks, writes manifests.

Its decisions are on storage before it acts on them. So a watcher may be killed and replaced at
any moment, and two may run at once. Its tasks, which workers run, are in this module too.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import Struct

from bpe_beam.corpus.listing import described
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import InputFile
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Limit
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.errors import DataError, NotFoundError, UsageError
from bpe_beam.folders.artifact_names import WINDOW_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Publication, TaskFolder, side_by_side
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.manifest import Manifest, read_manifest, small_files, with_files
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.windows import window_name
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.reject_limits import CorpusTotals, WindowSums, exceeded_limit
from bpe_beam.workers.split_task import SplitTask, require_visible, split_tasks
from bpe_beam.workers.stream.window_log import (
    LeftOut,
    Window,
    WindowFolder,
    WindowLog,
    version_of,
)
from bpe_beam.workers.task_results import Metric, TaskResult
from bpe_beam.workers.tokenize_split import TokenizeTask, manifest_of, tokenize_split

STAGE = "stream-tokenize"  # the progress stage that gets reports

MAX_WINDOW_FILES = 100_000

KEYS = 4096  # the number of keys that spread splits. A runner keeps state for every key for ever.

_SPLIT_CHARACTERS = 400_000
"""Maximum characters that describe a split's files, so that an element stays below 1 MB. Elements
of a stream cannot be divided and joined again without state."""

_ODD = 2654435761  # windows of one split have different keys, too


@dataclass(frozen=True)
class Stream:
    """The settings of a stream for its watcher and workers; plain and picklable."""

    storage: Storage
    output: str
    fingerprint: str  # the stream's fingerprint; its windows carry it
    watched: Watched
    reading: ReadSettings
    encoding: Encoding
    settings: Mapping[str, Any]  # the settings of reading and encoding, as manifests have them
    range_bytes: int | None
    max_rejects: str
    max_lost: str
    poll_seconds: float
    window_seconds: float  # the time between a window's first file and the window
    # The idle time after which the watcher ends; None: it never ends.
    until_idle_seconds: float | None
    shard_format: str = DEFAULT_SHARD_FORMAT
    # Whether bad files, and windows beyond the limits, are set aside: else they end the stream.
    sets_aside: bool = False
    job: str = ""  # a name that no other job of the stream has
    creates_only: bool = True  # whether of two watchers that add a window one fails


class WindowTask(NamedTuple):
    """The task of tokenizing a split of a window, an element of `split_tasks`.

    It travels as the JSON of this tuple. `folder` is the name of the window's folder.
    """

    folder: str
    fingerprint: str
    split: str


class Lag(Struct, frozen=True):
    """What a stream has still to do, and how many windows it has finished."""

    files_waiting: int = 0  # the files that were listed and are in no finished window
    # A time, in seconds since 1970, after which the oldest of them has arrived; None without any.
    oldest_since: float | None = None
    windows_open: int = 0
    windows_finished: int = 0


class Watcher:
    """Looks at a folder repeatedly; keeps about 0.9 kB for each file that exists or was read.

    Windows finish in the order of their numbers. So the finished windows are always the first ones,
    and the limits of the stream hold at each window for the same windows before it.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.next_look = 0.0  # the time of the next look, in the clock's seconds
        self.ended = False  # whether there was nothing to do for `until_idle_seconds`
        self.counts: Counter[Metric] = Counter()  # sums of the watcher's actions, by `Metric`
        self.lag = Lag()  # at the last look
        self.set_aside = 0  # the number of bad files and windows that were set aside
        self.last_set_aside: str | None = None  # the last of them, in words
        # When the stream was last looked at, before this watcher; None: never.
        self.looked_before: float | None = None
        self._lock = threading.Lock()
        self._log = WindowLog(
            stream.storage, stream.output, stream.fingerprint, stream.watched.root
        )
        self._handed_out: dict[int, int] = {}  # the position by window
        self._before: dict[str, StoredFile] = {}
        self._changed: set[str] = set()
        self._ready_since: dict[str, float] = {}
        self._listed_after: dict[str, float] = {}  # a time before the arrival, of each new file
        self._oldest: dict[int, float] = {}  # the same of the oldest file of each open window
        self._limits = WindowLimits(stream)
        self._idle_since: float | None = None

    def resume_from(self, position: int) -> None:
        """Hand out again all tasks that were handed out at this position or later.

        A runner that resumes at an earlier position has lost the tasks since. A task may be handed
        out twice.
        """
        with self._lock:
            self._handed_out = {
                number: at for number, at in self._handed_out.items() if at < position
            }

    def look(self, now: float, position: int = 0) -> list[tuple[int, str]]:
        """Look once; return the new tasks, each with a key below KEYS that spreads them."""
        with self._lock:
            began = time.time()
            self._log.read_new()
            self._finish_windows()
            fresh = self._fresh()
            after = min(began, self.looked_before or began)
            self._listed_after = {name: self._listed_after.get(name, after) for name in fresh}
            self._make_window(self._steady(fresh), now)
            self._measure_lag(after)
            self.looked_before = began
            tasks = self._hand_out(position)
            if fresh or self._log.open:
                self._idle_since = None
            elif self._idle_since is None:
                self._idle_since = now
            limit = self.stream.until_idle_seconds
            idle = None if self._idle_since is None else now - self._idle_since
            self.ended = limit is not None and idle is not None and idle >= limit
            self.next_look = now + self.stream.poll_seconds
            return tasks

    def _fresh(self) -> dict[str, StoredFile]:
        """Return the files that are in no window yet."""
        fresh = {}
        for name, file in self.stream.watched.look(self.stream.storage):
            version = self._log.files.get(name)
            if name in self._log.left_out:
                # A repaired file is new, also if an earlier version was read.
                if version_of(file) != self._log.left_out[name]:
                    fresh[name] = file
            elif version is None:
                fresh[name] = file
            elif version_of(file) != version and name not in self._changed:
                self._changed.add(name)
                self.counts["files_changed"] += 1
        return fresh

    def _steady(self, fresh: dict[str, StoredFile]) -> dict[str, StoredFile]:
        """Return the complete files: files that have not changed since the last look.

        Some stores show complete files only.
        """
        before, self._before = self._before, fresh
        if self.stream.watched.appears_whole:
            return fresh
        return {name: file for name, file in fresh.items() if before.get(name) == file}

    def _make_window(self, steady: dict[str, StoredFile], now: float) -> None:
        self._ready_since = {name: self._ready_since.get(name, now) for name in steady}
        if not steady or now - min(self._ready_since.values()) < self.stream.window_seconds:
            return
        stream = self.stream
        chosen = sorted(steady.items())[:MAX_WINDOW_FILES]
        try:
            files, left_out = self._described(chosen)
        except NotFoundError:
            return  # a file was removed since it was listed
        plan = plan_of_files(
            stream.watched.root,
            files,
            document_separator=stream.reading.document_separator,
            range_bytes=stream.range_bytes,
            cut_compressed=False,
            speculative=False,
            split_characters=_SPLIT_CHARACTERS,
        )
        window = self._log.append(plan, left_out)
        if window is None:
            return
        self._oldest[window.number] = min(self._listed_after.pop(name) for name, _ in chosen)
        self.counts["files_taken"] += len(files)
        self.counts["files_left_out"] += len(left_out)
        if left_out:
            self.set_aside += len(left_out)
            self.last_set_aside = left_out_words(left_out[-1])

    def _described(
        self, chosen: list[tuple[str, StoredFile]]
    ) -> tuple[tuple[InputFile, ...], tuple[LeftOut, ...]]:
        """Return files as a plan has them, and those that are left out of the window."""
        storage, input_format = self.stream.storage, self.stream.reading.input_format
        try:
            return described(storage, chosen, input_format), ()
        except UsageError:
            if not self.stream.sets_aside:
                raise

        def describe(named: tuple[str, StoredFile]) -> InputFile | LeftOut:
            try:
                return described(storage, [named], input_format)[0]
            except UsageError as error:
                name, file = named
                problem = error.problem.rpartition(f"{redact(file.url)!r} ")[2]
                return LeftOut(name, file.size, file.tag, problem)

        rows = side_by_side(describe, chosen)
        files = tuple(row for row in rows if isinstance(row, InputFile))
        return files, tuple(row for row in rows if isinstance(row, LeftOut))

    def _measure_lag(self, looked_before: float) -> None:
        """Set `lag`; a time for windows of earlier watchers is the last look before this one."""
        for number in self._log.open:
            self._oldest.setdefault(number, looked_before)
        self._oldest = {number: self._oldest[number] for number in self._log.open}
        listed = [*self._listed_after.values()]
        in_windows = sum(len(window.plan.files) for window in self._log.open.values())
        self.lag = Lag(
            files_waiting=len(listed) + in_windows,
            oldest_since=min([*listed, *self._oldest.values()], default=None),
            windows_open=len(self._log.open),
            windows_finished=len(self._log.numbers) - len(self._log.open),
        )

    def _hand_out(self, position: int) -> list[tuple[int, str]]:
        """Return the splits of windows that this watcher has not handed out yet."""
        tasks = []
        for number, window in self._log.open.items():
            if number in self._handed_out:
                continue
            self._handed_out[number] = position
            folder = self._log.folder(window)
            for split in split_tasks(window.plan):
                task = WindowTask(window.name, folder.fingerprint, split)
                index = SplitTask.from_json(split).split.index
                element = json.dumps(task, ensure_ascii=False)
                tasks.append(((number * _ODD + index) % KEYS, element))
        return tasks

    def _finish_windows(self) -> None:
        """Finish windows in the order of their numbers, up to the first that lacks a shard."""
        for window in sorted(self._log.open.values(), key=lambda window: window.number):
            if not self._finish(window):
                return

    def _finish(self, window: Window) -> bool:
        """Write the manifest of a window if all its shards exist; return whether it has one."""
        folder = self._log.folder(window)
        if not folder.is_finished():
            results = folder.results(window.plan)
            if results is None:
                return False
            if len(results) == len(window.plan.splits):
                self._publish(window, folder, results)
            elif not folder.is_finished():
                self._handed_out.pop(window.number, None)
                return False
        self._log.open.pop(window.number, None)
        self._handed_out.pop(window.number, None)
        return True

    def _publish(self, window: Window, folder: WindowFolder, results: list[Publication]) -> None:
        stream = self.stream
        receipts = [result.receipt for result in results]
        tokenizer = stream.encoding.tokenizer()
        manifest = manifest_of(
            window.plan, receipts, tokenizer, stream.settings, stream.shard_format
        )
        self._check_limits(window, folder, manifest)
        data = tokenizer.json_bytes
        small = small_files(manifest, data)
        manifest = with_files(manifest, data, FileInfo.of(WINDOW_FILE, window.record))
        folder.finish(results, manifest.to_bytes(), small)
        self.counts["windows_finished"] += 1

    def _check_limits(self, window: Window, folder: WindowFolder, manifest: Manifest) -> None:
        """Refuse, or set aside, a window with which the stream exceeds a limit.

        The windows before it count too. They are all finished, so each watcher comes to the same
        verdict, whatever was killed or runs at the same time.
        """
        error = self._limits.error(folder, window.number, manifest, self._log.numbers)
        if error is None:
            return
        if not self.stream.sets_aside:
            raise error
        self.counts["windows_over_limit"] += 1
        self.set_aside += 1
        self.last_set_aside = over_limit_words(window.name, error)


class WindowLimits:
    """The limits of a stream, which count each window and all windows before it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._sums = WindowSums()  # of the windows before `_summed`
        self._summed = 0

    def error(
        self, folder: TaskFolder, number: int, manifest: Manifest, numbers: Iterable[int]
    ) -> DataError | None:
        """Return the error of a window with which the stream exceeds a limit; None within them.

        `numbers` has the windows of the stream. Call this in the order of the windows.

        Cost: one request for each window since the last call, and nothing while no record of the
        stream is unusable.
        """
        totals = _totals_of(manifest)
        if not totals.rejects:
            return None
        return exceeded_limit(
            folder,
            totals,
            _stored_bytes(manifest),
            [file.name for file in manifest.rejects.files],
            (self._stream.max_rejects, self._stream.max_lost),
            self._stream.reading,
            self._sums_before(number, numbers),
        )

    def _sums_before(self, number: int, numbers: Iterable[int]) -> WindowSums:
        stream = self._stream
        new = [each for each in numbers if self._summed <= each < number]

        def sums(each: int) -> WindowSums:
            url = stream.storage.join(stream.output, window_name(each))
            manifest = read_manifest(stream.storage, url)
            return WindowSums.of(_totals_of(manifest), _stored_bytes(manifest))

        for each in side_by_side(sums, new):
            self._sums = self._sums.plus(each)
        self._summed = max(self._summed, number)
        return self._sums


def left_out_words(file: LeftOut) -> str:
    """Return in words that a file is left out."""
    return f"{file.name} is left out: it {file.problem}"


def over_limit_words(window: str, error: DataError) -> str:
    """Return in words that a window is set aside, by its error."""
    return f"{window}: {error.parameters[0]} {error.problem}"


def _stored_bytes(manifest: Manifest) -> int:
    return sum(file["size"] for file in manifest.plan["files"])


def _totals_of(manifest: Manifest) -> CorpusTotals:
    rejects = manifest.rejects
    return CorpusTotals(manifest.totals.documents, rejects.by_reason, rejects.lost)


def tokenize_window_split(stream: Stream, element: str) -> TaskResult | None:
    """Write the shard of a window's split, and its receipt; the output is the shard's name.

    Returns None if the receipt exists already.
    """
    window = WindowTask(*json.loads(element))
    split_task = SplitTask.from_json(window.split)
    require_visible(stream.storage, stream.output)
    url = stream.storage.join(stream.output, window.folder)
    folder = WindowFolder(stream.storage, url, window.fingerprint)
    shard = shard_name(split_task.split.index, split_task.splits)
    if folder.is_finished() or folder.read_receipt(shard) is not None:
        return None
    folder.prepare()
    task = TokenizeTask(
        folder=folder,
        reading=stream.reading,
        encoding=stream.encoding,
        shard_format=stream.shard_format,
        stage=STAGE,
        # Without leave to lose the file, it may come back before the next try.
        lose_changed=stream.sets_aside or Limit.parse(stream.max_lost, "max_lost").numerator > 0,
    )
    try:
        result = tokenize_split(task, window.split)
    except DataError:
        # Another attempt was faster, and the end of the window removed this one's files.
        if not folder.is_finished():
            raise
        return None
    return result._replace(outputs=[f"{window.folder}/{name}" for name in result.outputs])
