"""The counts merge job: counts folders to one, as if their corpora had been counted at once.

Memory: the words of one partition, of all sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.plan import MAX_FILES
from bpe_beam.counts.manifest import CountsManifest, CountsPart, added_up
from bpe_beam.counts.part_files import read_part, words_of
from bpe_beam.counts.word_table import WordTable
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.folder_checks import refuse_twice, refuse_unlike
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.counts.shared import CountsMaker, NewCountsSummary
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.merge import MergeCountsSettings


def run(settings: MergeCountsSettings, progress: Progress) -> NewCountsSummary:
    """Add counts folders up into a new one."""
    refuse_twice(settings.folders, "its words would be counted twice")
    return _Merge(settings).run(progress)


class _Merge(CountsMaker[MergeCountsSettings]):
    def __init__(self, settings: MergeCountsSettings) -> None:
        super().__init__(settings, settings.folders)
        self._manifests = [manifest for _, manifest in self.read]
        kinds = list(map(_kind, self._manifests))
        refuse_unlike(settings.folders, kinds, "these counts cannot be added")
        self._refuse_too_many()
        self.job = {"job": "counts merge", "counts_manifests": self.hashes}

    def _refuse_too_many(self) -> None:
        """Refuse counts of too many files, and counts whose totals exceed 64 bits."""
        if self.base.with_places and sum(len(m.inputs) for m in self._manifests) > MAX_FILES:
            raise UsageError(
                "counts with the positions where words occur first can have at most "
                f"{MAX_FILES:,} files; together these have more"
            )
        added_up(self._manifests)

    def words(self, partition: int) -> Mapping[str | None, Iterable[pa.RecordBatch]]:
        with_places = self.base.with_places
        tables: dict[str, WordTable] = {}
        files = 0
        for folder, manifest in self.read:
            part = manifest.parts[partition]
            url = self.storage.join(folder, part.name)
            for source, words in read_part(self.storage, folder, manifest, part).items():
                if with_places:
                    words = _moved(words, files, len(manifest.inputs), url)
                name = source or ""
                if name not in tables:
                    tables[name] = WordTable(with_places=with_places)
                for block in words.to_batches():
                    tables[name].add_block(block)
            files += len(manifest.inputs)
        return words_of(tables, by_source=self.base.sources is not None)

    def manifest(self, parts: Sequence[CountsPart]) -> CountsManifest:
        return added_up(self._manifests, parts)

    def rows(self, manifest: CountsManifest) -> Rows:
        warnings = []
        seen = Counter(row for _, each in self.read for row in set(each.inputs))
        twice = sorted(name for (name, _), count in seen.items() if count > 1)
        if twice:
            warnings.append(
                "inputs of the same name and size are in more than one of the folders: "
                f"{list_few(twice)}; if they are the same files, their words are counted twice"
            )
        filtered = [folder for folder, each in self.read if each.filtered]
        if filtered:
            warnings.append(f"counts filter dropped words of {', '.join(filtered)}")
        return {
            "warnings": warnings or None,
            "merged": list(self.settings.folders),
            "rejects": sum(manifest.rejects.values()),
        }


def _kind(manifest: CountsManifest) -> dict[str, str]:
    """Return the properties, in words, that added counts must share."""
    return {
        "normalizer": manifest.normalizer,
        "pretokenizer": manifest.pretokenizer,
        "special tokens": " ".join(manifest.special_tokens) or "none",
        "positions of first occurrences": "with" if manifest.with_places else "without",
        "sources": "without" if manifest.sources is None else "with",
        "parts": f"{len(manifest.parts)}",
    }


def _moved(table: pa.Table, before: int, files: int, url: str) -> pa.Table:
    """Return the words of a folder with their positions moved by `before` files."""
    column = table.schema.get_field_index("first_document")
    positions = table["first_document"]
    if len(positions) and pc.max(positions).as_py() >= files << PLACE_BITS:
        raise DataError(f"{url}: a word occurs first in a file that the manifest does not have")
    moved = pc.add(positions, pa.scalar(before << PLACE_BITS, pa.uint64()))
    return table.set_column(column, "first_document", moved)
