"""The manifest of a folder of shards, out of its plan and what the workers recorded of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bpe_beam.corpus.losses import losses_of
from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.numbering import numbered, shard_files
from bpe_beam.shards.shard_rows import Shard, SourceFacts, SourceSlice, TokenlessSplit, Totals
from bpe_beam.tokenizer.tokenizer import Tokenizer


def manifest_of(
    plan: Plan,
    receipts: Sequence[Mapping[str, Any]],
    tokenizer: Tokenizer,
    settings: Mapping[str, Any],
    shard_format: str = DEFAULT_SHARD_FORMAT,
) -> Manifest:
    """The manifest.

    Args:
        plan: The plan.
        receipts: Of each split, in order: its `files` and `facts`, as `TokenizeSplits` has
            them recorded. The shards have their final names in the manifest.
        tokenizer: What encoded.
        settings: Those of encoding and of reading.
        shard_format: The shards' format.
    """
    shards: list[Shard] = []
    tokenless: list[TokenlessSplit] = []
    rejects: list[FileInfo] = []
    for split, piece in zip(plan.splits, numbered(receipts), strict=True):
        facts = piece.receipt["facts"]
        files = [FileInfo(**file) for file in shard_files(piece.receipt)]
        rejects += [FileInfo(**file) for file in piece.receipt["files"][len(files) :]]
        row: dict[str, Any] = {
            "split": split.index,
            "slices": slices_of(plan, split),
            "documents": facts["documents"],
            "text_bytes": facts["text_bytes"],
            "rejects": sum(facts["rejects"].values()),
            "sources": _sources(facts),
        }
        if files:
            name = files[0].name.partition(".")[0]
            shards.append(Shard(name=name, tokens=facts["tokens"], files=tuple(files), **row))
        else:
            tokenless.append(TokenlessSplit(**row))
    return Manifest(
        format=shard_format,
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.max_id + 1,
        settings=settings,
        plan=plan.to_json(),
        plan_fingerprint=plan.fingerprint(),
        shards=tuple(shards),
        totals=Totals.of(shards, tokenless),
        reject_reasons=reject_reasons(receipt["facts"] for receipt in receipts),
        reject_files=tuple(sorted(rejects, key=lambda file: file.name)),
        tokenless=tuple(tokenless),
        lost=lost_rows(receipt["facts"] for receipt in receipts),
    )


def slices_of(plan: Plan, split: Split) -> tuple[SourceSlice, ...]:
    """Return the slices of a split of a plan as a manifest has them."""
    return tuple(
        SourceSlice(plan.files[piece.file].name, piece.start, piece.end) for piece in split.slices
    )


def plan_of(manifest: Manifest, root: str) -> Plan:
    """Return the plan of a manifest, once it is proven to cover its files.

    Args:
        manifest: A manifest with a plan: one of a job, not of `WriteTokens`.
        root: The folder that the files' names start at.

    Raises:
        DataError: The plan is damaged, a byte of a file is in no split or in two, or a shard says
            that it is made of other bytes than its split has.
    """
    plan = Plan.from_json(manifest.plan, root)
    if plan.fingerprint() != manifest.plan_fingerprint:
        raise DataError(f"{MANIFEST_FILE}: the fingerprint of the plan does not match the plan")
    plan.check_cover()
    for row in manifest.splits:
        if row.slices != slices_of(plan, plan.splits[row.split]):
            raise DataError(f"{MANIFEST_FILE}: split {row.split} has other slices than the plan")
    return plan


def lost_rows(facts: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """What is lost of each file, over all pieces, as manifests have it."""
    return tuple(loss.to_json() for loss in losses_of(facts))


def reject_reasons(facts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Rejects by reason, over all pieces."""
    reasons: Counter[str] = Counter()
    for row in facts:
        reasons.update(row["rejects"])
    return dict(sorted(reasons.items()))


def _sources(facts: Mapping[str, Any]) -> dict[str, SourceFacts] | None:
    """What a shard has of each source, if they were told apart."""
    if "sources" not in facts:
        return None
    return {name: SourceFacts(**row) for name, row in facts["sources"].items()}
