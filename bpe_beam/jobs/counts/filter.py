"""The counts filter job: a counts folder without rare words, or with some of its sources only.

Memory: the words of one partition.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from bpe_beam.counts.artifact import added_up, read_part, write_part
from bpe_beam.counts.manifest import (
    CountsManifest,
    CountsPart,
    Filtered,
    SourceTotals,
    part_name,
    read_hashed_manifest,
)
from bpe_beam.counts.word_table import weighted_total
from bpe_beam.jobs.counts import shared
from bpe_beam.jobs.input_folders import refuse_own_folder
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.filter import FilterCountsSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.storage import Storage


def run(settings: FilterCountsSettings, progress: Progress) -> shared.NewCountsSummary:
    """Write the words of a counts folder that pass a filter into a new one."""
    storage = Storage(settings.run.storage_options)
    refuse_own_folder(settings.output, (settings.folder,))
    base, sha256 = read_hashed_manifest(storage, settings.folder)
    sources = shared.known_sources(base, settings.sources)
    job = {"job": "counts filter", "counts_manifest": sha256, **identity_of(settings)}
    return shared.make_counts(
        storage,
        settings,
        job,
        len(base.parts),
        progress,
        lambda partition: _filter_part(storage, settings, base, sources, partition),
        lambda parts: _manifest(storage, settings, base, sources, parts),
        lambda manifest: {
            "left_out_unique_words": manifest.filtered[-1].unique_words,
            "left_out_words": manifest.filtered[-1].words,
        },
    )


def _filter_part(
    storage: Storage,
    settings: FilterCountsSettings,
    base: CountsManifest,
    sources: tuple[str, ...],
    partition: int,
) -> CountsPart:
    """Write one part of the new folder."""
    counted = read_part(storage, settings.folder, base, base.parts[partition])
    output = (storage, settings.output, part_name(partition, len(base.parts)))
    if base.sources is None:
        frequent = pc.greater_equal(counted[None]["count"], settings.min_count)
        words = counted[None].filter(frequent)
        return write_part(*output, {None: words.to_batches()}, base.with_places)
    factors = {name: int(name in sources) for name in base.sources}
    totals = added_up(counted, base.with_places, factors)
    frequent = totals["word"].filter(pc.greater_equal(totals["count"], settings.min_count))
    by_source: dict[str | None, list[pa.RecordBatch]] = {
        source: rows.filter(pc.is_in(rows["word"], frequent)).to_batches()
        for source, rows in counted.items()
        if source in sources
    }
    return write_part(*output, by_source, base.with_places)


def _manifest(
    storage: Storage,
    settings: FilterCountsSettings,
    base: CountsManifest,
    chosen: tuple[str, ...],
    parts: tuple[CountsPart, ...],
) -> CountsManifest:
    """Return the new manifest; the written parts are read again for the occurrences of words."""
    words: dict[str | None, int] = dict.fromkeys(base.sources or (None,), 0)
    for part in parts:
        for source, rows in read_part(storage, settings.output, base, part).items():
            counts = rows["count"].to_numpy()
            words[source] += weighted_total(np.ones_like(counts), counts)
    sources = None
    documents, text_bytes = base.documents, base.text_bytes
    if base.sources is not None:
        sources = {
            name: SourceTotals(
                base.sources[name].documents,
                base.sources[name].text_bytes,
                words[name],
                sum((part.sources or {}).get(name, 0) for part in parts),
            )
            for name in chosen
        }
        documents = sum(totals.documents for totals in sources.values())
        text_bytes = sum(totals.text_bytes for totals in sources.values())
    unique_words, total = sum(part.unique_words for part in parts), sum(words.values())
    dropped = Filtered(
        settings.min_count,
        chosen if settings.sources else None,
        base.unique_words - unique_words,
        base.words - total,
    )
    return replace(
        base,
        documents=documents,
        text_bytes=text_bytes,
        words=total,
        unique_words=unique_words,
        word_bytes=sum(part.word_bytes for part in parts),
        parts=parts,
        sources=sources,
        filtered=(*base.filtered, dropped),
    )
