"""The streaming job: files that arrive over time to windows of token shards, each file once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct, structs
from msgspec.structs import asdict

from bpe_beam.corpus.new_files import Watched
from bpe_beam.engines.beam import run_pipeline
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.receipts import WORK, TaskFolder
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus.summary import Losses, losses_summary
from bpe_beam.jobs.stream_figures import lag_figures
from bpe_beam.jobs.tokenize.documents import (
    doubled_warnings,
    framing,
    require_frame,
    tokenizer_warnings,
)
from bpe_beam.messages import command, first_few
from bpe_beam.progress import Progress, Stage
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.stream_tokenize import StreamTokenizeSettings
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.shards.shard_rows import NO_CHANGES, Totals
from bpe_beam.shards.windows import number_of, windows_of
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.create_exclusive import creates_only
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.tokenize_new_files import TokenizeNewFiles
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.stream.status import WatcherReport, read_reports
from bpe_beam.workers.stream.watcher import (
    STAGE,
    Stream,
    WindowLimits,
    left_out_words,
    over_limit_words,
)
from bpe_beam.workers.stream.window_log import (
    INPUT_FILE,
    LeftOut,
    has_windows_of,
    read_left_out,
    require_root,
)
from bpe_beam.workers.task_results import MetricSums

_now = time.monotonic

_REPLACES = (
    "the store of {} replaces files that a job asks it only to create: while two jobs write to "
    "this folder, a file may come into two windows and a window may lose files. Run one job at a "
    "time there, and end a job on its runner before it is started again"
)
_ENDS = {
    "DRAINED": "the job was drained on its runner; the same command resumes the stream",
    "UPDATED": "another job has replaced this one on its runner: an update, which goes on there",
}
"""The states in which a user ends a stream, and what to say then."""
_SHOWN = 3


class StreamSummary(Struct, frozen=True, kw_only=True):
    """The summary of a run of the streaming job: of the windows that it finished."""

    job: str = "stream-tokenize"
    output: str
    windows: int
    windows_finished_before: int | None
    files: int
    documents: int
    text_bytes: int
    tokens: int
    bytes_per_token: float | None
    shards: int
    rejects: int
    lost: Losses | None
    left_out: list[str] | None  # the files that cannot be read, with the reasons
    windows_open: int
    seconds: float
    next: list[str]
    warnings: list[str] | None
    counters: dict[str, int] | None
    distributions: dict[str, object] | None


def run(settings: StreamTokenizeSettings, progress: Progress) -> StreamSummary:
    """Tokenize files as they arrive, until none has arrived for long enough, or without end."""
    started = time.monotonic()
    chosen, storage = settings.tokenize, Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(chosen.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(chosen))
    require_frame(chosen.format, encoding)
    stream = _stream(settings, storage, tokenizer, encoding, progress)
    warnings = tokenizer_warnings(encoding)
    stream = replace(stream, creates_only=creates_only(storage, stream.output))
    if not stream.creates_only:
        warnings.append(_REPLACES.format(redact(stream.output)))
    for warning in warnings:
        progress.warn(warning)
    # Some runners need the flag.
    options = [option for option in settings.run.runner_options if option != "--streaming"]
    measured = MetricSums()
    before = set(windows_of(storage, stream.output).finished)
    with progress.stage(STAGE, None, "bytes") as stage:
        reports = _Reports(stream, stage, progress)
        state = run_pipeline(
            structs.replace(settings.run, runner_options=(*options, "--streaming")),
            "StreamTokenize",
            TokenizeNewFiles(stream),
            1,
            measured,
            reports.show,
            tuple(_ENDS),
        )
    if state in _ENDS:
        warnings.append(_ENDS[state])
        progress.warn(_ENDS[state])
    now = windows_of(storage, stream.output)
    windows = [name for name in now.finished if name not in before]
    manifests = [read_manifest(storage, storage.join(chosen.output, name)) for name in windows]
    totals = sum((manifest.totals for manifest in manifests), Totals.of([]))
    changes = sum((manifest.changes for manifest in manifests), NO_CHANGES)
    doubled = doubled_warnings(encoding, changes, totals.documents)
    left_out = [read_left_out(storage, stream.output, name) for name in windows]
    if stream.sets_aside:
        reports.show_unsaid(_set_aside(stream, now.finished, windows, manifests, left_out))
    return StreamSummary(
        output=chosen.output,
        windows=len(windows),
        windows_finished_before=len(before) or None,
        files=sum(len(manifest.plan["files"]) for manifest in manifests),
        **asdict(totals),
        lost=losses_summary([loss for manifest in manifests for loss in manifest.rejects.lost]),
        left_out=[f"{bad.name}: {bad.problem}" for rows in left_out for bad in rows] or None,
        windows_open=len(now.open),
        bytes_per_token=totals.text_bytes / totals.tokens if totals.tokens else None,
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", storage.join(chosen.output, name)) for name in windows[:1]],
        warnings=[*warnings, *doubled] or None,
        **measured.to_json(),
    )


def _stream(
    settings: StreamTokenizeSettings,
    storage: Storage,
    tokenizer: Tokenizer,
    encoding: Encoding,
    progress: Progress,
) -> Stream:
    """Claim the output folder, and return what the steps of the pipeline need to know."""
    chosen = settings.tokenize
    corpus_input.require_no_artifacts(storage, chosen.input.inputs)
    watched = Watched.of(storage, chosen.input.inputs, chosen.input.exclude, chosen.output)
    of_windows = {**framing(chosen), **identity_of(chosen.input)}
    folder = claim_folder(
        storage,
        chosen.output,
        {
            "job": "stream-tokenize",
            "tokenizer": tokenizer.fingerprint,
            "format": chosen.format,
            **of_windows,
        },
        [SHARDS_TOKENIZER_FILE, INPUT_FILE],
        None,
        final="ended.json",  # never written: a stream has no end
        is_of_job=lambda fingerprint: has_windows_of(storage, chosen.output, fingerprint),
        warn=progress.warn,
    )
    require_root(storage, folder.url, watched)
    folder.write(SHARDS_TOKENIZER_FILE, tokenizer.json_bytes)
    storage.remove_folder_if_empty(folder.path(WORK))
    if folder.lock is not None:
        folder.lock.unlock()  # several jobs of a stream may run
    return Stream(
        storage=storage,
        output=folder.url,
        fingerprint=folder.record.fingerprint,
        watched=watched,
        reading=corpus_input.read_settings(chosen.input),
        encoding=encoding.kept_at(storage, folder.path(SHARDS_TOKENIZER_FILE)),
        settings=of_windows,
        range_bytes=chosen.input.range_bytes,
        max_rejects=chosen.input.max_rejects,
        max_lost=chosen.input.max_lost,
        poll_seconds=settings.poll_seconds,
        window_seconds=settings.window_seconds,
        until_idle_seconds=settings.until_idle_seconds,
        shard_format=chosen.format,
        sets_aside=settings.bad_files == "set_aside",
        job=secrets.token_hex(8),
    )


def _set_aside(
    stream: Stream,
    finished: Sequence[str],
    windows: Sequence[str],
    manifests: Sequence[Manifest],
    left_out: Sequence[Sequence[LeftOut]],
) -> list[str]:
    """Return what watchers say that they have set aside in some of the finished windows."""
    limits, numbers = WindowLimits(stream), [number_of(name) for name in finished]
    texts: list[str] = []
    for name, manifest, rows in zip(windows, manifests, left_out, strict=True):
        texts += map(left_out_words, rows[-1:])
        folder = TaskFolder(stream.storage, stream.storage.join(stream.output, name), "")
        error = limits.error(folder, number_of(name), manifest, numbers)
        if error is not None:
            texts.append(over_limit_words(name, error))
    return texts


class _Reports:
    """Shows the reports of a stream's watchers while its job runs."""

    def __init__(self, stream: Stream, stage: Stage, progress: Progress) -> None:
        self._stream = stream
        self._stage = stage
        self._progress = progress
        self._next = 0.0
        self._set_aside: dict[str, int] = {}  # what each watcher of this job had set aside
        self._told: set[str] = set()  # what the user knows to be set aside
        self._looks: dict[str, int] = {}  # the first report of each other watcher
        self._said = ""

    def show(self) -> None:
        """Show the lag, and say what was set aside and which other job of the stream runs."""
        if _now() < self._next:
            return
        self._next = _now() + self._stream.poll_seconds
        reports = read_reports(self._stream.storage, self._stream.output)
        if not reports:
            return
        self._stage.put(**lag_figures(reports[0].lag))
        ours = [report for report in reports if report.job == self._stream.job]
        for report in ours:
            if report.set_aside > self._set_aside.get(report.watcher, 0):
                self._progress.warn(f"set aside: {report.last_set_aside}")
                self._told.add(str(report.last_set_aside))
            self._set_aside[report.watcher] = report.set_aside
        others = [report for report in reports if report.job != self._stream.job]
        # A report that was not written again may be of a job that was killed.
        living = [
            report
            for report in others
            if report.looks != self._looks.setdefault(report.watcher, report.looks)
        ]
        said = self._about(ours[0], living) if ours and living else ""
        if said and said != self._said:
            self._progress.warn(said)
        self._said = said

    def show_unsaid(self, set_aside: Sequence[str]) -> None:
        """Say what was set aside after the last look: a watcher that ends removes its report."""
        unsaid = [text for text in set_aside if text not in self._told]
        if unsaid:
            self._progress.warn(f"set aside: {'; '.join(first_few(unsaid, _SHOWN))}")

    def _about(self, ours: WatcherReport, others: list[WatcherReport]) -> str:
        """Return what to say about the other jobs of the stream that run."""
        if ours.stands_by:
            seconds = round(others[0].silent_seconds)
            return (
                "a job of this stream that was started later runs: this one stands by, and goes "
                f"on if the other is silent for {seconds} seconds"
            )
        if not self._stream.creates_only and not all(other.stands_by for other in others):
            return (
                "another job of this stream still runs: this one waits until that one stands by "
                "or ends, since the store may take a file into two windows"
            )
        return (
            "another job of this stream still runs on its runner: this one has taken over, and the "
            "other stands by. Cancel the other there unless you want a spare"
        )
