"""The counts merge job: counts folders to one, as if their corpora had been counted at once.

Memory: the words of one partition, of all sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import asdict, replace

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.plan import MAX_FILES
from bpe_beam.counts.artifact import read_part, words_of, write_part
from bpe_beam.counts.manifest import (
    CountsManifest,
    CountsPart,
    part_name,
    read_hashed_manifest,
    source_totals,
)
from bpe_beam.counts.word_table import WordTable
from bpe_beam.errors import DataError, UsageError
from bpe_beam.jobs.counts import shared
from bpe_beam.jobs.input_folders import refuse_own_folder, refuse_twice, refuse_unlike
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts.merge import MergeCountsSettings
from bpe_beam.storage import Storage


def run(settings: MergeCountsSettings, progress: Progress) -> shared.NewCountsSummary:
    """Add counts folders up into a new one."""
    storage = Storage(settings.run.storage_options)
    refuse_twice(settings.folders, "its words would be counted twice")
    refuse_own_folder(settings.output, settings.folders)
    read = [read_hashed_manifest(storage, folder) for folder in settings.folders]
    manifests = [manifest for manifest, _ in read]
    kinds = list(map(_kind, manifests))
    refuse_unlike(settings.folders, kinds, "these counts cannot be added")
    _refuse_too_many(manifests)
    job = {"job": "counts merge", "counts_manifests": [sha256 for _, sha256 in read]}
    counts = list(zip(settings.folders, manifests, strict=True))
    return shared.make_counts(
        storage,
        settings,
        job,
        len(manifests[0].parts),
        progress,
        lambda partition: _merge_part(storage, counts, settings.output, partition),
        lambda parts: _manifest(manifests, parts),
        lambda manifest: {
            "warnings": _warnings(settings.folders, manifests) or None,
            "merged": list(settings.folders),
            "rejects": sum(manifest.rejects.values()),
        },
    )


def _refuse_too_many(manifests: Sequence[CountsManifest]) -> None:
    """Refuse counts of too many files, and counts whose totals exceed 64 bits."""
    if manifests[0].with_places and sum(len(m.inputs) for m in manifests) > MAX_FILES:
        raise UsageError(
            f"counts with the positions where words occur first can have at most {MAX_FILES:,} "
            "files; together these have more"
        )
    for name in ("documents", "text_bytes", "words"):
        total = sum(getattr(manifest, name) for manifest in manifests)
        if total >= 2**63:
            raise DataError(f"{name} of these counts come to {total:,} together, beyond 64 bits")


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


def _warnings(folders: Sequence[str], manifests: Sequence[CountsManifest]) -> list[str]:
    warnings = []
    seen = Counter(row for manifest in manifests for row in set(manifest.inputs))
    twice = sorted(name for (name, _), count in seen.items() if count > 1)
    if twice:
        warnings.append(
            "inputs of the same name and size are in more than one of the folders: "
            f"{list_few(twice)}; if they are the same files, their words are counted twice"
        )
    filtered = [f for f, manifest in zip(folders, manifests, strict=True) if manifest.filtered]
    if filtered:
        warnings.append(f"counts filter dropped words of {', '.join(filtered)}")
    return warnings


def _merge_part(
    storage: Storage,
    counts: Sequence[tuple[str, CountsManifest]],
    output: str,
    partition: int,
) -> CountsPart:
    """Write the sum of one partition of all folders."""
    with_places = counts[0][1].with_places
    tables: dict[str, WordTable] = {}
    files = 0
    for folder, manifest in counts:
        part = manifest.parts[partition]
        url = storage.join(folder, part.name)
        for source, words in read_part(storage, folder, manifest, part).items():
            if with_places:
                words = _moved(words, files, len(manifest.inputs), url)
            name = source or ""
            if name not in tables:
                tables[name] = WordTable(with_places=with_places)
            for block in words.to_batches():
                tables[name].add_block(block)
        files += len(manifest.inputs)
    name = part_name(partition, len(counts[0][1].parts))
    words = words_of(tables, by_source=counts[0][1].sources is not None)
    return write_part(storage, output, name, words, with_places)


def _moved(table: pa.Table, before: int, files: int, url: str) -> pa.Table:
    """Return the words of a folder with their positions moved by `before` files."""
    column = table.schema.get_field_index("first_document")
    positions = table["first_document"]
    if len(positions) and pc.max(positions).as_py() >= files << PLACE_BITS:
        raise DataError(f"{url}: a word occurs first in a file that the manifest does not have")
    moved = pc.add(positions, pa.scalar(before << PLACE_BITS, pa.uint64()))
    return table.set_column(column, "first_document", moved)


def _manifest(manifests: Sequence[CountsManifest], parts: tuple[CountsPart, ...]) -> CountsManifest:
    first = manifests[0]
    rejects: Counter[str] = Counter()
    for manifest in manifests:
        rejects.update(manifest.rejects)
    sources = None
    if first.sources is not None:
        rows = (
            {name: asdict(totals) for name, totals in (manifest.sources or {}).items()}
            for manifest in manifests
        )
        sources = source_totals(rows, parts)
    return replace(
        first,
        documents=sum(manifest.documents for manifest in manifests),
        text_bytes=sum(manifest.text_bytes for manifest in manifests),
        words=sum(manifest.words for manifest in manifests),
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects=dict(sorted(rejects.items())),
        inputs=tuple(row for manifest in manifests for row in manifest.inputs),
        parts=parts,
        sources=sources,
        filtered=tuple(row for manifest in manifests for row in manifest.filtered),
        lost=tuple(row for manifest in manifests for row in manifest.lost),
    )
