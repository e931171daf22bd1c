"""The streaming job: files that arrive over time to windows of token shards, each file once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection
from dataclasses import replace

from msgspec import Struct
from msgspec.structs import asdict

from bpe_beam.corpus.new_files import Watched
from bpe_beam.engines.beam import run_pipeline
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.receipts import WORK, side_by_side
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.tokenize.documents import (
    doubled_warnings,
    framing,
    require_frame,
    tokenizer_warnings,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.stream_tokenize import StreamTokenizeSettings
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.shard_rows import NO_CHANGES, Totals
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.create_exclusive import creates_only
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.tokenize_new_files import TokenizeNewFiles
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.stream.watcher import STAGE, Stream
from bpe_beam.workers.stream.window_log import (
    INPUT_FILE,
    has_windows_of,
    require_root,
    window_name,
    window_numbers,
)
from bpe_beam.workers.task_results import MetricSums


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
    if not creates_only(storage, stream.output):
        warnings.append(
            f"the store of {redact(stream.output)} replaces files that a job asks it only to "
            "create: while two jobs write to this folder, a file may come into two windows and a "
            "window may lose files. Run one job at a time there, and end a job on its runner "
            "before it is started again"
        )
    for warning in warnings:
        progress.warn(warning)
    # Some runners need the flag.
    options = [option for option in settings.run.runner_options if option != "--streaming"]
    measured = MetricSums()
    before = _finished(storage, stream.output)
    with progress.stage(STAGE, None, "bytes"):
        run_pipeline(
            replace(settings.run, runner_options=(*options, "--streaming")),
            "StreamTokenize",
            TokenizeNewFiles(stream),
            1,
            measured,
            lambda: None,
        )
    windows = sorted(_finished(storage, stream.output, before))
    manifests = [read_manifest(storage, storage.join(chosen.output, name)) for name in windows]
    totals = sum((manifest.totals for manifest in manifests), Totals.of([]))
    changes = sum((manifest.changes for manifest in manifests), NO_CHANGES)
    doubled = doubled_warnings(encoding, changes, totals.documents)
    return StreamSummary(
        output=chosen.output,
        windows=len(windows),
        windows_finished_before=len(before) or None,
        files=sum(len(manifest.plan["files"]) for manifest in manifests),
        **asdict(totals),
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
    )


def _finished(storage: Storage, output: str, known: Collection[str] = ()) -> set[str]:
    """Return the names of the windows that have a manifest, without those that are known."""
    names = [window_name(number) for number in window_numbers(storage, output)]
    new = [name for name in names if name not in known]
    finished = side_by_side(storage.exists, [storage.join(output, n, MANIFEST_FILE) for n in new])
    return set(itertools.compress(new, finished))
