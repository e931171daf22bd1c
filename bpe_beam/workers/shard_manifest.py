"""The manifest of a folder of shards, from its plan and the receipts of its splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Publication, Receipt
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.manifest import Manifest, Rejects, TokenizerInfo
from bpe_beam.shards.numbering import number_shards, reject_files, shards_of
from bpe_beam.shards.shard_rows import (
    Shard,
    SourceSlice,
    TokenlessSplit,
    manifest_rows,
    shard_row,
)
from bpe_beam.storage.json_file import VERSION, JsonObject
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.split_reader import lost_files, reject_reasons
from bpe_beam.workers.tokenize_split import TokenizeStats


def manifest_of(
    plan: Plan,
    receipts: Sequence[Receipt],
    tokenizer: Tokenizer,
    settings: Mapping[str, Any],
    shard_format: str = DEFAULT_SHARD_FORMAT,
) -> Manifest:
    """Return the manifest of all shards."""
    rows: list[Shard | TokenlessSplit] = []
    rejects: list[FileInfo] = []
    stats = [receipt.read_stats(TokenizeStats) for receipt in receipts]
    publications = number_shards(receipts, [split.tokens for split in stats])
    for split, split_stats, publication in zip(plan.splits, stats, publications, strict=True):
        written = shards_of(publication.receipt)
        rejects += reject_files(publication.receipt)
        of_split: JsonObject = {
            "slices": _slices_of(plan, split),
            "rejects": sum(split_stats.rejects.values()),
            "changes": split_stats.changes,
        }
        for number, sums in enumerate(split_stats.sums):
            row = shard_row(
                written[number] if written else (),
                sums.tokens,
                split.index,
                documents=sums.documents,
                text_bytes=sums.text_bytes,
                sources=sums.sources,
                **(of_split if number == 0 else {}),
            )
            rows.append(row)
    return Manifest(
        **manifest_rows(rows),
        format=shard_format,
        version=VERSION,
        tokenizer=TokenizerInfo(tokenizer.fingerprint, tokenizer.max_id + 1),
        settings=dict(settings),
        plan={"fingerprint": plan.fingerprint(), **plan.to_json()},
        rejects=Rejects(
            reject_reasons(stats),
            tuple(sorted(rejects, key=lambda file: file.name)),
            lost_files(stats),
        ),
    )


def final_names(receipts: Sequence[Receipt]) -> list[Publication]:
    """Return the receipts of all splits, in the order of the plan, with the shards' final names."""
    tokens = (receipt.read_stats(TokenizeStats).tokens for receipt in receipts)
    return number_shards(receipts, tokens)


def _slices_of(plan: Plan, split: Split) -> tuple[SourceSlice, ...]:
    return tuple(
        SourceSlice(plan.files[part.file].name, part.start, part.end) for part in split.slices
    )


def plan_of(manifest: Manifest, root: str) -> Plan:
    """Return the plan of a manifest, once it is proven to cover its files."""
    values = dict(manifest.plan)
    fingerprint = values.pop("fingerprint")
    plan = Plan.from_json(values, root)
    if plan.fingerprint() != fingerprint:
        raise DataError(f"{MANIFEST_FILE}: the fingerprint of the plan does not match the plan")
    plan.check_cover()
    for split, (row, *_) in zip(plan.splits, manifest.by_split, strict=True):
        if row.slices != _slices_of(plan, split):
            raise DataError(f"{MANIFEST_FILE}: split {row.split} has other slices than the plan")
    return plan
