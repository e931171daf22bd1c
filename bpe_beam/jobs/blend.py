"""The blend job: a list of Megatron shards for Megatron-LM's training."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from bpe_beam.counts.weights import parse_weight
from bpe_beam.errors import UsageError, require
from bpe_beam.folders.folder_checks import refuse_unlike
from bpe_beam.jobs.output import prepare_file, write_json, write_stdout
from bpe_beam.progress import Progress
from bpe_beam.settings.blend import BlendSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest, kind_of_tokens, read_manifest
from bpe_beam.storage import Storage, redact


class BlendSummary(Struct, frozen=True):
    """The summary of `blend`."""

    job: str
    folders: dict[str, dict[str, int]]
    shards: int
    sequences: int | None
    documents: int
    tokens: int


def run(settings: BlendSettings, _progress: Progress) -> BlendSummary:
    """Write the list of all shards to stdout, and the file of sequences."""
    storage = Storage(settings.run.storage_options)
    if settings.sequences is not None:
        prepare_file(storage, settings.sequences, "sequences")
    manifests = [_megatron_manifest(storage, folder) for folder in settings.folders]
    weights = _weights(settings, manifests)
    rows = [
        (folder, manifest, weight)
        for folder, manifest, weight in zip(settings.folders, manifests, weights, strict=True)
        if weight != 0  # the shards of a folder with the weight 0 are not in the list
    ]
    _refuse_other_tokens([row[:2] for row in rows if row[1].totals.tokens])
    lines: list[str] = []
    sequences: dict[str, tuple[int, int]] = {}
    for folder, manifest, weight in rows:
        for shard in manifest.shards:
            prefix = storage.join(folder, shard.name)
            if len(prefix.split()) > 1:
                raise UsageError(
                    f"must have no spaces, which Megatron's list cannot have, got {folder}",
                    ("folders",),
                )
            if weight is not None:
                lines.append(f"{float(weight * shard.tokens / manifest.totals.tokens)} {prefix}")
            else:
                lines.append(prefix)
            # A document is a sequence, and the document index has an entry for the end.
            sequences[prefix] = shard.documents, shard.documents + 1
    write_stdout("".join(f"{line}\n" for line in lines).encode())
    if settings.sequences is not None:
        write_json(sequences, settings.sequences, settings.run.storage_options)
    return BlendSummary(
        "blend",
        {
            folder: {"shards": manifest.totals.shards, "tokens": manifest.totals.tokens}
            for folder, manifest, _ in rows
        },
        len(lines),
        sum(manifest.sequences or 0 for _, manifest, _ in rows) or None,
        sum(manifest.documents for _, manifest, _ in rows),
        sum(manifest.totals.tokens for _, manifest, _ in rows),
    )


def _megatron_manifest(storage: Storage, folder: str) -> Manifest:
    manifest = read_manifest(storage, folder)
    require(
        shard_format(manifest.format).megatron_pairs,
        f"must be folders of Megatron shards, got {manifest.format} in {redact(folder)}",
        "folders",
        remedy="convert them",
    )
    return manifest


def _refuse_other_tokens(folders: Sequence[tuple[str, Manifest]]) -> None:
    """Refuse shards whose ids mean other tokens, are of another type, or are framed differently."""
    kinds: list[dict[str, object]] = []
    for _, manifest in folders:
        shard = manifest.shards[0]
        width = shard.files[0].bytes // shard.tokens
        kinds.append({**kind_of_tokens(manifest), "bytes_of_an_id": width})
    refuse_unlike(
        [folder for folder, _ in folders],
        kinds,
        "these shards cannot be blended",
        "tokenize with the same settings, or leave a folder out",
    )


def _weights(settings: BlendSettings, manifests: Sequence[Manifest]) -> Sequence[Fraction | None]:
    """Return the weight of each folder; None if its tokens decide."""
    if settings.weights is None:
        return [None] * len(settings.folders)
    require(
        len(settings.weights) == len(settings.folders),
        f"must be one for each folder, {len(settings.folders)}, got {len(settings.weights)}",
        "weights",
    )
    pairs = zip(settings.folders, settings.weights, strict=True)
    weights = [Fraction(parse_weight(folder, weight)) for folder, weight in pairs]
    require(any(weights), "must not all be 0", "weights")
    total = sum(weights)
    for folder, manifest, weight in zip(settings.folders, manifests, weights, strict=True):
        require(
            manifest.totals.tokens > 0 or not weight,
            f"must have tokens to have a weight, got {redact(folder)}",
            "folders",
            remedy="leave the folder out, or give it the weight 0",
        )
    return [weight / total for weight in weights]
