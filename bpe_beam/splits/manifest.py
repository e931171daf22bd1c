"""The manifest of a folder of shards, out of its plan and what the workers recorded of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bpe_beam.corpus import Plan
from bpe_beam.shards.formats import FileFacts, shard_name
from bpe_beam.shards.manifest import SUFFIXES, Manifest, Shard, SourceFacts, SourceSlice, Totals
from bpe_beam.tokenizer.tokenizer import Tokenizer


def manifest_of(
    plan: Plan,
    receipts: Sequence[Mapping[str, Any]],
    tokenizer: Tokenizer,
    settings: Mapping[str, Any],
    shard_format: str = "megatron",
) -> Manifest:
    """The manifest.

    Args:
        plan: The plan.
        receipts: Of each split, in order: its `files` and `facts`, as `TokenizeSplits` has
            them recorded.
        tokenizer: What encoded.
        settings: Those of encoding and of reading.
        shard_format: The shards' format.
    """
    shards = []
    rejects: list[FileFacts] = []
    suffixes = len(SUFFIXES[shard_format])
    for split, receipt in zip(plan.splits, receipts, strict=True):
        files = [FileFacts(**file) for file in receipt["files"]]
        facts = receipt["facts"]
        rejects += files[suffixes:]
        shards.append(
            Shard(
                name=shard_name(split.index, len(plan.splits)),
                slices=tuple(
                    SourceSlice(plan.files[piece.file].name, piece.start, piece.end)
                    for piece in split.slices
                ),
                documents=facts["documents"],
                text_bytes=facts["text_bytes"],
                tokens=facts["tokens"],
                rejects=sum(facts["rejects"].values()),
                files=tuple(files[:suffixes]),
                sources=_sources(facts),
            )
        )
    return Manifest(
        format=shard_format,
        tokenizer=tokenizer.fingerprint,
        vocab_size=tokenizer.max_id + 1,
        settings=settings,
        plan=plan.to_json(),
        plan_fingerprint=plan.fingerprint(),
        shards=tuple(shards),
        totals=Totals.of(shards),
        reject_reasons=reject_reasons(receipt["facts"] for receipt in receipts),
        reject_files=tuple(sorted(rejects, key=lambda file: file.name)),
    )


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
