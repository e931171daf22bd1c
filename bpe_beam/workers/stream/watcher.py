"""The watcher of a stream: looks at a folder, adds windows, returns tasks, writes manifests.

Its decisions are on storage before it acts on them. So a watcher may be killed and replaced at
any moment, and two may run at once. Its tasks, which workers run, are in this module too.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bpe_beam.corpus.listing import described
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Limit
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.errors import DataError, NotFoundError
from bpe_beam.folders.artifact_names import WINDOW_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Publication
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.manifest import small_files, with_files
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage, StoredFile
from bpe_beam.workers.corpus_totals import CorpusTotals, check_limits
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import SplitTask, require_visible, split_tasks
from bpe_beam.workers.stream.window_log import Window, WindowFolder, WindowLog, version_of
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


class WindowTask(NamedTuple):
    """The task of tokenizing a split of a window, an element of `split_tasks`.

    It travels as the JSON of this tuple. `folder` is the name of the window's folder.
    """

    folder: str
    fingerprint: str
    split: str


class Watcher:
    """Looks at a folder repeatedly; keeps about 0.9 kB for each file that exists or was read."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.next_look = 0.0  # the time of the next look, in the clock's seconds
        self.ended = False  # whether there was nothing to do for `until_idle_seconds`
        self.counts: Counter[Metric] = Counter()  # sums of the watcher's actions, by `Metric`
        self._lock = threading.Lock()
        self._log = WindowLog(
            stream.storage, stream.output, stream.fingerprint, stream.watched.root
        )
        self._handed_out: dict[int, int] = {}  # the position by window
        self._before: dict[str, StoredFile] = {}
        self._changed: set[str] = set()
        self._ready_since: dict[str, float] = {}
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
            self._log.read_new()
            for window in list(self._log.open.values()):
                self._finish(window)
            fresh = self._fresh()
            self._make_window(self._steady(fresh), now)
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
            if version is None:
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
            files = described(stream.storage, chosen, stream.reading.input_format)
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
        if self._log.append(plan) is not None:
            self.counts["files_taken"] += len(files)

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

    def _finish(self, window: Window) -> None:
        """Write the manifest of a window if all its shards exist."""
        folder = self._log.folder(window)
        if not folder.is_finished():
            results = folder.results(window.plan)
            if results is None:
                return
            if len(results) == len(window.plan.splits):
                self._publish(window, folder, results)
            elif not folder.is_finished():
                self._handed_out.pop(window.number, None)
                return
        self._log.open.pop(window.number, None)
        self._handed_out.pop(window.number, None)

    def _publish(self, window: Window, folder: WindowFolder, results: list[Publication]) -> None:
        stream = self.stream
        receipts = [result.receipt for result in results]
        tokenizer = stream.encoding.tokenizer()
        manifest = manifest_of(
            window.plan, receipts, tokenizer, stream.settings, stream.shard_format
        )
        totals = CorpusTotals(
            manifest.totals.documents, manifest.rejects.by_reason, manifest.rejects.lost
        )
        check_limits(
            folder,
            totals,
            window.plan.size,
            [file.name for file in manifest.rejects.files],
            max_rejects=stream.max_rejects,
            max_lost=stream.max_lost,
            reading=stream.reading,
            window=True,
        )
        data = tokenizer.json_bytes
        small = small_files(manifest, data)
        manifest = with_files(manifest, data, FileInfo.of(WINDOW_FILE, window.record))
        folder.finish(results, manifest.to_bytes(), small)
        self.counts["windows_finished"] += 1


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
        # Without a limit to allow it, the file may come back before the next try.
        lose_changed=Limit.parse(stream.max_lost, "max_lost").numerator > 0,
    )
    try:
        result = tokenize_split(task, window.split)
    except DataError:
        # Another attempt was faster, and the end of the window removed this one's files.
        if not folder.is_finished():
            raise
        return None
    return result._replace(outputs=[f"{window.folder}/{name}" for name in result.outputs])
