"""The figures of a stream's output from storage alone: its lag, its windows, its bad files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from bpe_beam.folders.receipts import side_by_side
from bpe_beam.jobs.corpus.summary import losses_summary
from bpe_beam.messages import first_few, format_seconds
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.shards.shard_rows import Totals
from bpe_beam.shards.windows import windows_of
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.workers.stream.status import WatcherReport, read_reports
from bpe_beam.workers.stream.watcher import Lag
from bpe_beam.workers.stream.window_log import read_left_out

_SHOWN = 20


def stream_figures(storage: Storage, output: str) -> JsonObject:
    """Return the figures of a stream's output, also while its job runs on any machine.

    Cost: three requests for each window, several at a time.
    """
    reports = read_reports(storage, output)
    windows = windows_of(storage, output)
    urls = [storage.join(output, name) for name in windows.finished]
    manifests = side_by_side(lambda url: read_manifest(storage, url), urls)
    totals = sum((manifest.totals for manifest in manifests), Totals.of([]))
    reasons: Counter[str] = Counter()
    for manifest in manifests:
        reasons.update(manifest.rejects.by_reason)
    names = [*windows.finished, *windows.open]
    left_out = [
        f"{bad.name}: {bad.problem}"
        for rows in side_by_side(lambda name: read_left_out(storage, output, name), names)
        for bad in rows
    ]
    first = manifests[0] if manifests else None
    return {
        "kind": "windows of shards",
        "format": first and first.format,
        "watchers": [_in_words(report) for report in reports] or None,
        **(lag_figures(reports[0].lag) if reports else {}),
        "windows_finished": len(windows.finished),
        "windows_open": len(windows.open),
        "first_open_window": windows.open[0] if windows.open else None,
        **_files(manifests),
        "documents": sum(manifest.documents for manifest in manifests),
        **_sequences(manifests),
        "tokens": totals.tokens,
        "shards": totals.shards,
        "rejects": totals.rejects,
        "rejects_by_reason": dict(sorted(reasons.items())),
        "lost": losses_summary([loss for each in manifests for loss in each.rejects.lost]),
        "left_out": first_few(left_out, _SHOWN) or None,
        "settings": first and first.settings,
        "tokenizer_fingerprint": first and first.tokenizer.fingerprint,
    }


def _sequences(manifests: Sequence[Manifest]) -> dict[str, int]:
    """Return the number of sequences, if the windows have any."""
    counts = [manifest.sequences for manifest in manifests if manifest.sequences is not None]
    return {"sequences": sum(counts)} if counts else {}


def _files(manifests: Sequence[Manifest]) -> dict[str, int]:
    """Return the number of files; a stream of other documents than files has none."""
    if any(not manifest.has_plan for manifest in manifests):
        return {}
    return {"files": sum(len(manifest.plan["files"]) for manifest in manifests)}


def lag_figures(lag: Lag) -> dict[str, int]:
    """Return a lag as figures: numbers of files and windows, and seconds."""
    since = lag.oldest_since
    oldest = {} if since is None else {"oldest_waiting_seconds": max(0, round(time.time() - since))}
    return {
        "files_waiting": lag.files_waiting,
        **oldest,
        "windows_open": lag.windows_open,
        "windows_finished": lag.windows_finished,
    }


def _in_words(report: WatcherReport) -> str:
    """Return what a watcher does, by its report and the clock of this machine."""
    ago = max(0.0, time.time() - report.at)
    when = f"{format_seconds(ago)} ago"
    if ago > report.silent_seconds:
        return f"silent since {when}: its job was stopped, or was killed"
    return f"{'stands by' if report.stands_by else 'looked'} {when}"
