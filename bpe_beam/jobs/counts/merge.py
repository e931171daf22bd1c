"""The counts merge job: counts folders to one, as if their corpora had been counted at once.

Memory: the words of one partition, of all sources.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.plan import MAX_FILES
from bpe_beam.counts.artifact import (
    iter_sources,
    read_part,
    write_part,
    write_sources_part,
)
from bpe_beam.counts.manifest import (
    CountsManifest,
    CountsPart,
    check_sources,
    part_name,
    read_manifest,
    source_totals,
)
from bpe_beam.counts.word_table import WordTable
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.jobs.counts import shared as counts_folder
from bpe_beam.jobs.source_summary import source_facts
from bpe_beam.messages import list_few
from bpe_beam.progress import Progress
from bpe_beam.settings.counts import MergeCountsSettings
from bpe_beam.storage import Storage

_SHOWN = 5


def run(settings: MergeCountsSettings, progress: Progress) -> dict[str, Any]:
    """Merges counts.

    Args:
        settings: What to do.
        progress: Where it is shown.

    Returns:
        The summary.

    Raises:
        UsageError: Folders that cannot be added, saying how they differ; an output folder that is
            not free.
        DataError: A folder that is damaged; sums beyond 64 bits.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    _refuse_twice(settings.folders)
    counts_folder.refuse_own_folder(settings.output, settings.folders)
    manifests = [read_manifest(storage, folder) for folder in settings.folders]
    _refuse_others(settings.folders, manifests)
    _refuse_overflow(manifests)
    partitions = len(manifests[0].parts)
    job = {
        "job": "counts merge",
        "counts_manifests": [counts_folder.manifest_hash(storage, f) for f in settings.folders],
    }
    folder = counts_folder.claim(storage, settings.output, job, partitions, settings.run.overwrite)
    resumed = folder.finished
    if not folder.finished:
        sources = list(zip(settings.folders, manifests, strict=True))
        parts = counts_folder.make_parts(
            folder,
            partitions,
            progress,
            lambda partition: _merge_part(storage, sources, settings.output, partition),
        )
        folder.finish(MANIFEST_FILE, _manifest(manifests, parts).to_json())
    manifest = counts_folder.finished_manifest(folder)
    return {
        "job": "counts merge",
        "output": settings.output,
        "was_finished_before": resumed or None,
        "warnings": _warnings(settings.folders, manifests) or None,
        "merged": list(settings.folders),
        **counts_folder.totals_of(manifest),
        "sources": source_facts(manifest),
        "rejects": sum(manifest.rejects.values()),
        "seconds": round(time.monotonic() - started, 3),
        "next": [f"bpe-beam counts show {settings.output}"],
    }


def _refuse_twice(folders: Sequence[str]) -> None:
    for i, folder in enumerate(folders):
        for other in folders[:i]:
            if counts_folder.same_folder(folder, other):
                raise UsageError(f"{folder} is named twice: its words would be counted twice")


def _refuse_others(folders: Sequence[str], manifests: Sequence[CountsManifest]) -> None:
    """Refuse counts of another kind than the first."""
    for folder, manifest in zip(folders[1:], manifests[1:], strict=True):
        first, other = _kind(manifests[0]), _kind(manifest)
        lines = [
            f"  {name}: {first[name]} in {folders[0]}, {other[name]} in {folder}"
            for name in first
            if first[name] != other[name]
        ]
        if lines:
            raise UsageError("these counts cannot be added; what differs:\n" + "\n".join(lines))
    if manifests[0].with_places and sum(len(m.inputs) for m in manifests) > MAX_FILES:
        raise UsageError(
            f"these counts tell where words occurred first, and that can be told of {MAX_FILES:,} "
            "files at most; they have more together"
        )


def _refuse_overflow(manifests: Sequence[CountsManifest]) -> None:
    """Refuse counts whose totals a manifest cannot hold."""
    for name in ("documents", "text_bytes", "words"):
        total = sum(getattr(manifest, name) for manifest in manifests)
        if total >= 2**63:
            raise DataError(f"{name} of these counts come to {total:,} together, beyond 64 bits")


def _kind(manifest: CountsManifest) -> dict[str, str]:
    """What counts that are added must share, in words."""
    return {
        "normalizer": manifest.normalizer,
        "pretokenizer": manifest.pretokenizer,
        "special tokens": " ".join(manifest.special_tokens) or "none",
        "places of first occurrences": "kept" if manifest.with_places else "not kept",
        "sources": "not told apart" if manifest.sources is None else "told apart",
        "parts": f"{len(manifest.parts)}",
    }


def _warnings(folders: Sequence[str], manifests: Sequence[CountsManifest]) -> list[str]:
    warnings = []
    seen = Counter(row for manifest in manifests for row in set(manifest.inputs))
    twice = sorted(name for (name, _), count in seen.items() if count > 1)
    if twice:
        warnings.append(
            f"{len(twice):,} inputs of the same name and size stand in more than one of the "
            f"folders: {list_few(twice, _SHOWN)}; if they are the same files, their words are "
            "counted twice"
        )
    filtered = [f for f, manifest in zip(folders, manifests, strict=True) if manifest.filtered]
    if filtered:
        warnings.append(f"words were left out of {', '.join(filtered)} before")
    return warnings


def _merge_part(
    storage: Storage,
    folders: Sequence[tuple[str, CountsManifest]],
    output: str,
    partition: int,
) -> CountsPart:
    """Add one partition of all folders up."""
    with_places = folders[0][1].with_places
    tables: dict[str, WordTable] = {}
    files = 0
    for folder, manifest in folders:
        part = manifest.parts[partition]
        table = read_part(storage, folder, manifest, part)
        if with_places:
            table = _moved(table, files, len(manifest.inputs), storage.join(folder, part.name))
        for source, words in iter_sources(table, part):
            name = source or ""
            if name not in tables:
                tables[name] = WordTable(with_places=with_places)
            for block in words.to_batches():
                tables[name].add_block(block)
        files += len(manifest.inputs)
    name = part_name(partition, len(folders[0][1].parts))
    if folders[0][1].sources is not None:
        return write_sources_part(storage, output, name, tables, with_places)
    blocks = (block for each in tables.values() for _, block in each.blocks(partitions=1))
    return write_part(storage, output, name, blocks, with_places)


def _moved(table: pa.Table, before: int, files: int, url: str) -> pa.Table:
    """The words with their places moved behind those of so many files."""
    column = table.schema.get_field_index("first_document")
    places = table["first_document"]
    if len(places) and pc.max(places).as_py() >= files << PLACE_BITS:
        raise DataError(f"{url}: a word occurs first in a file that the manifest does not have")
    moved = pc.add(places, pa.scalar(before << PLACE_BITS, pa.uint64()))
    return table.set_column(column, "first_document", moved)


def _manifest(manifests: Sequence[CountsManifest], parts: tuple[CountsPart, ...]) -> CountsManifest:
    first = manifests[0]
    rejects: Counter[str] = Counter()
    for manifest in manifests:
        rejects.update(manifest.rejects)
    sources = None
    if first.sources is not None:
        check_sources(name for manifest in manifests for name in manifest.sources or ())
        sources = source_totals((_source_rows(manifest) for manifest in manifests), parts)
    return CountsManifest(
        normalizer=first.normalizer,
        pretokenizer=first.pretokenizer,
        special_tokens=first.special_tokens,
        with_places=first.with_places,
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


def _source_rows(manifest: CountsManifest) -> dict[str, Mapping[str, int]]:
    return {name: vars(totals) for name, totals in (manifest.sources or {}).items()}
