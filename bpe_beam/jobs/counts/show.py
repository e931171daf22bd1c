"""`counts show`: the most frequent words of a counts folder, for people, on stdout.

Memory: the words of one partition, and the best so far.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.counts.artifact import added_up, iter_sources, read_part
from bpe_beam.counts.manifest import CountsManifest, CountsPart, read_manifest
from bpe_beam.jobs.counts import shared as counts_folder
from bpe_beam.progress import Progress
from bpe_beam.settings.counts import ShowCountsSettings
from bpe_beam.storage import Storage

_MOST_COLUMNS = 8
"""Sources that have a column of their own; of more, those that are asked for by name."""


def run(settings: ShowCountsSettings, progress: Progress) -> dict[str, Any]:
    """Write the words to stdout.

    Args:
        settings: What to look at.
        progress: Not used: a counts folder is read at disk speed.

    Returns:
        The same as JSON values.

    Raises:
        UsageError: No counts folder, or a source that it has not.
        DataError: A folder that is damaged.
    """
    storage = Storage(settings.run.storage_options)
    manifest = read_manifest(storage, settings.folder)
    sources = counts_folder.known_sources(manifest, settings.sources)
    rows = _best(storage, settings, manifest, sources)
    total = manifest.words
    if manifest.sources is not None:
        total = sum(manifest.sources[name].words for name in sources)
    for row in rows:
        row["share"] = row["count"] / total if total else None
    columns = list(sources[:_MOST_COLUMNS]) if len(sources) > 1 else []
    print("\n".join(_lines(rows, columns)))
    if len(sources) > _MOST_COLUMNS:
        print(
            f"{len(sources):,} sources; these are the first {_MOST_COLUMNS}: name others with "
            "--source"
        )
    return {
        "job": "counts show",
        "folder": settings.folder,
        **counts_folder.totals_of(manifest),
        "words_of_sources": total if manifest.sources is not None else None,
        "most_frequent_words": rows,
    }


def _best(
    storage: Storage,
    settings: ShowCountsSettings,
    manifest: CountsManifest,
    sources: tuple[str, ...],
) -> list[dict[str, Any]]:
    """The most frequent words, ties by their bytes."""
    factors = {name: int(name in sources) for name in manifest.sources or ()}
    best: list[dict[str, Any]] = []
    for part in manifest.parts:
        table = read_part(storage, settings.folder, manifest, part)
        words = table if part.sources is None else added_up(table, part, False, factors)
        words = words.filter(pc.greater_equal(words["count"], settings.min_count))
        words = words.select(["word", "count"]).sort_by(
            [("count", "descending"), ("word", "ascending")]
        )
        rows = words.slice(0, settings.top).to_pylist()
        if part.sources is not None:
            _add_sources(rows, table, part, sources)
        # Python compares characters as UTF-8 compares bytes.
        best = sorted([*best, *rows], key=lambda row: (-row["count"], row["word"]))[: settings.top]
    return best


def _add_sources(
    rows: list[dict[str, Any]], table: pa.Table, part: CountsPart, sources: tuple[str, ...]
) -> None:
    """How often each of some words occurs in each source."""
    wanted = pa.array([row["word"] for row in rows], pa.large_string())
    for row in rows:
        row["sources"] = {}
    for source, words in iter_sources(table, part):
        if source in sources:
            places = pc.index_in(wanted, words["word"])
            counts = words["count"].combine_chunks().take(places).to_pylist()
            for row, count in zip(rows, counts, strict=True):
                if count is not None:
                    row["sources"][source] = count


def _lines(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """Aligned columns: count, share, those of sources, and the word, quoted."""
    heads = ["count", "share", *(name if name.isprintable() else repr(name) for name in columns)]
    cells = [
        [
            f"{row['count']:,}",
            "" if row["share"] is None else f"{row['share']:.4%}",
            *(f"{row['sources'].get(name, 0):,}" for name in columns),
        ]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    words = ["word", *(repr(row["word"]) for row in rows)]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), word])
        for line, word in zip([heads, *cells], words, strict=True)
    ]
