"""`WordCounts`: counted words in memory, from which any number of tokenizers can be trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.counts.manifest import CountsManifest, SourceTotals, read_manifest
from bpe_beam.counts.part_files import added_up, read_part
from bpe_beam.counts.word_table import WordRules, schema_of, string_bytes
from bpe_beam.storage import PathName, Storage, path_name


class CountedSource(msgspec.Struct, frozen=True):
    """The words of one source (`schema_of`); `total` counts each occurrence."""

    words: pa.Table
    documents: int
    text_bytes: int
    total: int


class WordCounts(msgspec.Struct, frozen=True, dict=True):
    """The words of texts and how often they occur, in memory; made by `bpe_beam.count`.

    Attributes:
        manifest: How texts were split into words, and the totals, as a counts folder has them.
        tables: The words by source, with the columns `word` and `count`; without sources, the only
            key is None.
    """

    manifest: CountsManifest
    tables: Mapping[str | None, pa.Table]

    @staticmethod
    def of(rules: WordRules, sources: Mapping[str | None, CountedSource]) -> WordCounts:
        """Return the counts of sources.

        Args:
            rules: How texts were split into words.
            sources: The words by source; without sources, the only key is None.
        """
        sources = dict(sorted(sources.items(), key=lambda row: str(row[0])))
        tables = {name: source.words for name, source in sources.items()}
        every = added_up(tables, rules.with_places)["word"]
        totals = {
            str(name): SourceTotals(
                source.documents, source.text_bytes, source.total, source.words.num_rows
            )
            for name, source in sources.items()
        }
        manifest = CountsManifest(
            rules.normalizer,
            rules.pretokenizer,
            rules.special_tokens,
            rules.with_places,
            documents=sum(source.documents for source in sources.values()),
            text_bytes=sum(source.text_bytes for source in sources.values()),
            words=sum(source.total for source in sources.values()),
            unique_words=len(every),
            word_bytes=sum(map(string_bytes, every.chunks)),
            rejects={},
            inputs=(),
            parts=(),
            sources=None if None in sources else totals,
        )
        return WordCounts(manifest, tables)

    @staticmethod
    def read(storage: Storage, folder: PathName) -> WordCounts:
        """Return the words of a counts folder.

        Args:
            storage: The storage client.
            folder: The folder.

        Raises:
            DataError: The folder is damaged.
        """
        folder = path_name(folder, "folder")
        manifest = read_manifest(storage, folder)
        tables: dict[str | None, list[pa.Table]] = defaultdict(list)
        for part in manifest.parts:
            for source, words in read_part(storage, folder, manifest, part).items():
                tables[source].append(words)
        empty = schema_of(manifest.with_places).empty_table()
        names = [None] if manifest.sources is None else [*manifest.sources]
        whole = {name: pa.concat_tables(tables[name] or [empty]) for name in names}
        return WordCounts(replace(manifest, parts=()), whole)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted; empty without sources."""
        return tuple(self.manifest.sources or ())

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same words, counts, totals, rules and sources."""
        if not isinstance(other, WordCounts):
            return NotImplemented
        return self is other or (
            self.manifest == other.manifest and dict(self.tables) == dict(other.tables)
        )

    def __hash__(self) -> int:
        return hash((self.manifest.words, self.manifest.unique_words, self.manifest.text_bytes))

    def __len__(self) -> int:
        """The number of words, each counted once."""
        return self.manifest.unique_words

    @cached_property
    def words(self) -> pa.Table:
        """All words: the columns `word` and `count`, added up over all sources."""
        return added_up(self.tables, self.manifest.with_places).select(["word", "count"])

    def most_common(self, n: int = 10) -> list[tuple[str, int]]:
        """Return the most frequent words with their counts; equal counts in the order of words."""
        counts = self.words["count"].to_numpy()
        order = np.argsort(-counts, kind="stable")[:n]
        texts = self.words["word"].take(pa.array(order)).to_pylist()
        return list(zip(texts, counts[order].tolist(), strict=True))

    def __repr__(self) -> str:
        manifest = self.manifest
        sources = f", sources {', '.join(self.sources)}" if self.sources else ""
        return (
            f"<WordCounts: {manifest.unique_words:,} words, {manifest.words:,} occurrences, "
            f"{manifest.documents:,} texts, pretokenizer {manifest.pretokenizer}{sources}>"
        )
