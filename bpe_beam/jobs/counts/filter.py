"""The counts filter job: a counts folder without rare words, or with some of its sources.

Memory: the words of one partition.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.counts.artifact import (
    added_up,
    iter_sources,
    read_part,
    write_part,
    write_sources_part,
)
from bpe_beam.counts.manifest import (
    CountsManifest,
    CountsPart,
    Filtered,
    SourceTotals,
    part_name,
    read_manifest,
)
from bpe_beam.counts.word_table import WordTable
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.jobs.counts import shared as counts_folder
from bpe_beam.jobs.source_summary import source_facts
from bpe_beam.progress import Progress
from bpe_beam.settings.counts import FilterCountsSettings
from bpe_beam.storage import Storage


def run(settings: FilterCountsSettings, progress: Progress) -> dict[str, Any]:
    """Filters counts.

    Args:
        settings: What to do.
        progress: Where it is shown.

    Returns:
        The summary.

    Raises:
        UsageError: A source that there is not, an output folder that is not free.
        DataError: A folder that is damaged.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    counts_folder.refuse_own_folder(settings.output, (settings.folder,))
    old = read_manifest(storage, settings.folder)
    kept = counts_folder.known_sources(old, settings.sources)
    job = {
        "job": "counts filter",
        "counts_manifest": counts_folder.manifest_hash(storage, settings.folder),
        "min_count": settings.min_count,
        "sources": list(kept) if settings.sources else None,
    }
    partitions = len(old.parts)
    folder = counts_folder.claim(storage, settings.output, job, partitions, settings.run.overwrite)
    resumed = folder.finished
    if not folder.finished:
        filtering = _Filtering(storage, settings, old, kept)
        parts = counts_folder.make_parts(folder, partitions, progress, filtering.make)
        words = _words(storage, settings.output, old, parts)
        folder.finish(MANIFEST_FILE, _manifest(settings, old, kept, parts, words).to_json())
    manifest = counts_folder.finished_manifest(folder)
    left_out = manifest.filtered[-1]
    return {
        "job": "counts filter",
        "output": settings.output,
        "was_finished_before": resumed or None,
        **counts_folder.totals_of(manifest),
        "sources": source_facts(manifest),
        "left_out_unique_words": left_out.unique_words,
        "left_out_words": left_out.words,
        "seconds": round(time.monotonic() - started, 3),
        "next": [f"bpe-beam counts show {settings.output}"],
    }


class _Filtering:
    """Write the parts of the new folder."""

    def __init__(
        self,
        storage: Storage,
        settings: FilterCountsSettings,
        manifest: CountsManifest,
        kept: tuple[str, ...],
    ) -> None:
        self.storage = storage
        self.settings = settings
        self.manifest = manifest
        self.factors = {name: int(name in kept) for name in manifest.sources or ()}

    def make(self, partition: int) -> CountsPart:
        """Write one part."""
        part = self.manifest.parts[partition]
        table = read_part(self.storage, self.settings.folder, self.manifest, part)
        with_places = self.manifest.with_places
        to = (
            self.storage,
            self.settings.output,
            part_name(partition, len(self.manifest.parts)),
        )
        if part.sources is None:
            often = pc.greater_equal(table["count"], self.settings.min_count)
            return write_part(*to, table.filter(often).to_batches(), with_places)
        every = added_up(table, part, with_places, self.factors)
        words = every["word"].filter(pc.greater_equal(every["count"], self.settings.min_count))
        tables: dict[str, WordTable] = {}
        for source, rows in iter_sources(table, part):
            if self.factors[str(source)]:
                kept = WordTable(with_places=with_places)
                for block in rows.filter(pc.is_in(rows["word"], words)).to_batches():
                    kept.add_block(block)
                tables[str(source)] = kept
        return write_sources_part(*to, tables, with_places)


def _words(
    storage: Storage, output: str, old: CountsManifest, parts: tuple[CountsPart, ...]
) -> dict[str | None, int]:
    """Occurrences of all words in the parts that were written, by source."""
    words: dict[str | None, int] = dict.fromkeys(old.sources or (None,), 0)
    for part in parts:
        table = read_part(storage, output, old, part)
        for source, rows in iter_sources(table, part):
            words[source] += _sum(rows["count"])
    return words


def _sum(counts: pa.ChunkedArray) -> int:
    """In halves, whose sums stay within 64 bits."""
    high = pc.sum(pc.shift_right(counts, 32)).as_py() or 0
    low = pc.sum(pc.bit_wise_and(counts, 0xFFFFFFFF)).as_py() or 0
    return (int(high) << 32) + int(low)


def _manifest(
    settings: FilterCountsSettings,
    old: CountsManifest,
    kept: tuple[str, ...],
    parts: tuple[CountsPart, ...],
    words: dict[str | None, int],
) -> CountsManifest:
    sources = None
    documents, text_bytes = old.documents, old.text_bytes
    if old.sources is not None:
        unique = {name: sum((part.sources or {}).get(name, 0) for part in parts) for name in kept}
        sources = {
            name: SourceTotals(
                old.sources[name].documents, old.sources[name].text_bytes, words[name], unique[name]
            )
            for name in kept
        }
        documents = sum(totals.documents for totals in sources.values())
        text_bytes = sum(totals.text_bytes for totals in sources.values())
    unique_words, total = sum(part.unique_words for part in parts), sum(words.values())
    left_out = Filtered(
        settings.min_count,
        kept if settings.sources else None,
        old.unique_words - unique_words,
        old.words - total,
    )
    return CountsManifest(
        normalizer=old.normalizer,
        pretokenizer=old.pretokenizer,
        special_tokens=old.special_tokens,
        with_places=old.with_places,
        documents=documents,
        text_bytes=text_bytes,
        words=total,
        unique_words=unique_words,
        word_bytes=sum(part.word_bytes for part in parts),
        rejects=old.rejects,
        inputs=old.inputs,
        parts=parts,
        sources=sources,
        filtered=(*old.filtered, left_out),
        lost=old.lost,
    )
