"""The streaming job: files that arrive over time to windows of token shards, each file once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from bpe_beam.corpus.new_files import Watched
from bpe_beam.engines.beam import run_pipeline
from bpe_beam.folders.artifact_names import MANIFEST_FILE, SHARDS_TOKENIZER_FILE
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.tokenize.inputs import (
    doubled_warnings,
    framing,
    require_frame,
    tokenizer_warnings,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.stream_tokenize import StreamTokenizeSettings
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.shard_rows import NO_CHANGES, Totals
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.create_exclusive import creates_only
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.tokenize_new_files import TokenizeNewFiles
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.measured import Measured
from bpe_beam.workers.stream.tokenize_window import STAGE, Stream
from bpe_beam.workers.stream.window_log import (
    INPUT_FILE,
    has_windows_of,
    require_root,
    window_name,
    window_numbers,
)


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
    distributions: dict[str, Any] | None


def run(settings: StreamTokenizeSettings, progress: Progress) -> StreamSummary:
    """Tokenize files as they arrive, until none has arrived for long enough, or without end."""
    started = time.monotonic()
    chosen = settings.tokenize
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(chosen.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(chosen))
    require_frame(chosen.format, encoding)
    corpus_input.require_no_artifacts(storage, chosen.input.inputs)
    watched = Watched.of(storage, chosen.input.inputs, chosen.input.exclude, chosen.output)
    made_by = {**framing(chosen), **identity_of(chosen.input)}
    # Streams of versions that had one format do not name it.
    other = {} if chosen.format == DEFAULT_SHARD_FORMAT else {"format": chosen.format}
    folder = OutputFolder.claim(
        storage,
        chosen.output,
        {"job": "stream-tokenize", "tokenizer": tokenizer.fingerprint, **other, **made_by},
        [SHARDS_TOKENIZER_FILE, INPUT_FILE],
        None,
        final="ended.json",  # never written: a stream has no end
        is_of_job=lambda fingerprint: has_windows_of(storage, chosen.output, fingerprint),
        warn=progress.warn,
    )
    require_root(storage, folder.url, watched)
    warnings = [*tokenizer_warnings(encoding), *_store_warnings(storage, folder.url)]
    for warning in warnings:
        progress.warn(warning)
    folder.write(SHARDS_TOKENIZER_FILE, tokenizer.json_bytes)
    storage.remove_folder_if_empty(folder.path("work"))
    stream = Stream(
        storage=storage,
        output=folder.url,
        fingerprint=folder.record.fingerprint,
        watched=watched,
        reading=corpus_input.read_settings(chosen.input),
        encoding=encoding.kept_at(storage, folder.path(SHARDS_TOKENIZER_FILE)),
        settings=made_by,
        range_bytes=chosen.input.range_bytes,
        max_rejects=chosen.input.max_rejects,
        max_lost=chosen.input.max_lost,
        poll_seconds=settings.poll_seconds,
        window_seconds=settings.window_seconds,
        until_idle_seconds=settings.until_idle_seconds,
        shard_format=chosen.format,
    )
    # Some runners need the flag.
    options = [option for option in settings.run.runner_options if option != "--streaming"]
    measured = Measured()
    before = _finished(storage, folder.url)
    with progress.stage(STAGE, None, "bytes"):
        run_pipeline(
            replace(settings.run, runner_options=(*options, "--streaming")),
            "StreamTokenize",
            TokenizeNewFiles(stream),
            1,
            measured,
            lambda: None,
        )
    made = sorted(_finished(storage, folder.url, before))
    files, totals, changes = 0, Totals.of([]), NO_CHANGES
    for name in made:
        manifest = read_manifest(storage, storage.join(chosen.output, name))
        files += len(manifest.plan["files"])
        totals += manifest.totals
        changes += manifest.changes
    doubled = doubled_warnings(encoding, changes, totals.documents)
    return StreamSummary(
        output=chosen.output,
        windows=len(made),
        windows_finished_before=len(before) or None,
        files=files,
        **asdict(totals),
        bytes_per_token=totals.text_bytes / totals.tokens if totals.tokens else None,
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", storage.join(chosen.output, name)) for name in made[:1]],
        warnings=[*warnings, *doubled] or None,
        **measured.to_json(),
    )


def _store_warnings(storage: Storage, output: str) -> list[str]:
    """Return a warning if the store of the output folder cannot create files exclusively."""
    if creates_only(storage, output):
        return []
    return [
        f"the store of {redact(output)} replaces files that a job asks it only to create: while "
        "two jobs write to this folder, a file may come into two windows and a window may lose "
        "files. Run one job at a time there, and end a job on its runner before it is started again"
    ]


def _finished(storage: Storage, output: str, known: Collection[str] = ()) -> set[str]:
    """Return the names of the windows that have a manifest, without those that are known."""
    names = [window_name(number) for number in window_numbers(storage, output)]
    left = [name for name in names if name not in known]
    there = side_by_side(storage.exists, [storage.join(output, n, MANIFEST_FILE) for n in left])
    return set(itertools.compress(left, there))
