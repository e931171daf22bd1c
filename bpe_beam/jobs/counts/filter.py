"""The counts filter job: a counts folder without rare words, or with some of its sources only.

Memory: the words of one partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from bpe_beam.counts.manifest import CountsManifest, CountsPart, Filtered, SourceTotals
from bpe_beam.counts.part_files import added_up, read_part
from bpe_beam.counts.word_table import weighted_total
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.counts.shared import CountsMaker, NewCountsSummary, known_sources
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.filter import FilterCountsSettings
from bpe_beam.settings.field import identity_of


def run(settings: FilterCountsSettings, progress: Progress) -> NewCountsSummary:
    """Write the words of a counts folder that pass a filter into a new one."""
    return _Filter(settings).run(progress)


class _Filter(CountsMaker[FilterCountsSettings]):
    def __init__(self, settings: FilterCountsSettings) -> None:
        super().__init__(settings, (settings.folder,))
        self._sources = known_sources(self.base, settings.sources)
        manifest = {"counts_manifest": self.hashes[0]}
        self.job = {"job": "counts filter", **manifest, **identity_of(settings)}

    def words(self, partition: int) -> Mapping[str | None, list[pa.RecordBatch]]:
        base, minimum = self.base, self.settings.min_count
        counted = read_part(self.storage, self.settings.folder, base, base.parts[partition])
        if base.sources is None:
            frequent = pc.greater_equal(counted[None]["count"], minimum)
            return {None: counted[None].filter(frequent).to_batches()}
        factors = {name: int(name in self._sources) for name in base.sources}
        totals = added_up(counted, base.with_places, factors)
        frequent = totals["word"].filter(pc.greater_equal(totals["count"], minimum))
        return {
            source: rows.filter(pc.is_in(rows["word"], frequent)).to_batches()
            for source, rows in counted.items()
            if source in self._sources
        }

    def manifest(self, parts: Sequence[CountsPart]) -> CountsManifest:
        """See `CountsMaker`; the new parts are read for the occurrences of their words."""
        base = self.base
        words: dict[str | None, int] = dict.fromkeys(base.sources or (None,), 0)
        for part in parts:
            written = read_part(self.storage, self.settings.output, base, part)
            for source, rows in written.items():
                counts = rows["count"].to_numpy()
                words[source] += weighted_total(np.ones_like(counts), counts)
        total = sum(words.values())
        dropped = Filtered(
            self.settings.min_count,
            self._sources if self.settings.sources else None,
            base.unique_words - sum(part.unique_words for part in parts),
            base.words - total,
        )
        manifest = replace(base, words=total, filtered=(*base.filtered, dropped))
        if base.sources is None:
            return manifest
        sources = {
            name: SourceTotals(
                base.sources[name].documents,
                base.sources[name].text_bytes,
                words[name],
                sum((part.sources or {}).get(name, 0) for part in parts),
            )
            for name in self._sources
        }
        return replace(
            manifest,
            documents=sum(totals.documents for totals in sources.values()),
            text_bytes=sum(totals.text_bytes for totals in sources.values()),
            sources=sources,
        )

    def rows(self, manifest: CountsManifest) -> Rows:
        dropped = manifest.filtered[-1]
        return {
            "left_out_unique_words": dropped.unique_words,
            "left_out_words": dropped.words,
        }
