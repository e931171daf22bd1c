"""Comparing arranged and mixed shards with what the same job makes again in a temporary folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs, to_builtins
from numpy.typing import NDArray

from bpe_beam.corpus.read_settings import FIELDS
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, PARTS, SHARDS_TOKENIZER_FILE
from bpe_beam.messages import shortened
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.tokenize import ArrangementSettings, TokenizeSettings
from bpe_beam.shards.dataset import open_dataset
from bpe_beam.shards.document_batches import bounds_of, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.shards.mixture_tables import hashes_of_tokens
from bpe_beam.shards.verify import compare_split
from bpe_beam.storage import Storage, redact
from bpe_beam.workers import document_hashes

if TYPE_CHECKING:
    from bpe_beam.settings.mix import MixSettings

Batch = tuple[NDArray[np.uint32], NDArray[np.int64]]

_BATCH_TOKENS = 1 << 20


def differences_from_text(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    input_settings: InputSettings,
    run: RunSettings,
    progress: Progress,
) -> Iterator[str]:
    """Arrange a corpus again, in a temporary folder, and compare it with a folder.

    Yields:
        The first difference of each shard that has one, and of the manifest.
    """
    from bpe_beam.jobs import tokenize  # an import that other folders do not need

    with tempfile.TemporaryDirectory(prefix="bpe-beam-verify-") as scratch:
        again = storage.join(scratch, "tokens")
        tokenizer = storage.join(folder, SHARDS_TOKENIZER_FILE)
        try:
            tokenize.run(_settings(manifest, tokenizer, again, input_settings, run), progress)
        except DataError as error:
            # Its remedies name options of `tokenize`, and files that are removed.
            raise DataError(
                f"the corpus cannot be tokenized and arranged as it was for {redact(folder)}: "
                f"{error.problem}",
                remedy="name the corpus that was tokenized with {inputs}",
            ) from error
        yield from _compared(storage, folder, manifest, again, "arranged")


def differences_from_folders(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    inputs: InputSettings,
    run: RunSettings,
    progress: Progress,
) -> Iterator[str]:
    """Mix folders again, in a temporary folder, and compare the result with a folder.

    Yields:
        The first difference of each shard that has one, and of the manifest.
    """
    from bpe_beam.jobs import mix  # an import that other folders do not need

    with tempfile.TemporaryDirectory(prefix="bpe-beam-verify-") as scratch:
        again = storage.join(scratch, "tokens")
        try:
            mix.run(_mix_settings(manifest, again, inputs.inputs, run), progress)
        except (DataError, UsageError) as error:
            raise DataError(
                f"the folders cannot be mixed as they were for {redact(folder)}: {error.problem}",
                remedy="name the folders that were mixed with {inputs}",
            ) from error
        yield from _compared(storage, folder, manifest, again, "mixture", "arranged")


def _mix_settings(
    manifest: Manifest, output: str, inputs: tuple[str, ...], run: RunSettings
) -> MixSettings:
    """Return the settings of `mix` that made the shards."""
    from bpe_beam.settings.mix import MixedOrderSettings, MixSettings

    mixture, arranged = manifest.mixture, manifest.arranged
    assert mixture
    assert arranged
    arranging = structs.asdict(arranged.settings)
    if arranging["validation_share"] is None:
        del arranging["validation_by"]
    amounts: dict[str, Any] = {
        option: tuple((name, getattr(each, field)) for name, each in mixture.sources.items())
        for option, field in (
            ("tokens_of", "target"),
            ("skip_tokens", "skip"),
            ("max_epochs", "max_epochs"),
        )
    }
    return MixSettings(
        folders=inputs,
        output=output,
        run=RunSettings(workers=run.workers, storage_options=run.storage_options),
        **amounts,
        seed=mixture.seed,
        duplicates=mixture.duplicates,
        identity=mixture.identity,
        format=manifest.format,
        columns=manifest.columns or (),
        arranging=MixedOrderSettings(**arranging),
    )


def documents_of_other_parts(storage: Storage, folder: str, manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each shard of a mixture with a document of the other part.

    The hash that divides documents tells it of each document by itself. It cannot be computed of
    sequences, nor of documents that were divided by ids which the format does not store.
    """
    arranged = manifest.arranged
    if not (manifest.mixture and arranged) or manifest.sequences is not None:
        return
    share, by_id = arranged.settings.validation_share, arranged.settings.validation_by == "id"
    if share is None or (by_id and not shard_format(manifest.format).labelled):
        return
    for shard in manifest.shards:
        with shard_format(manifest.format).reader(storage, folder, shard.name) as reader:
            wrong = 0
            for batch in document_batches(reader, labelled=by_id):
                hashes = document_hashes.mixed_hashes(
                    hashes_of_tokens(batch, manifest.tokenizer.vocab_size),
                    None if batch.labels is None else batch.labels.column("id"),
                )
                validation = document_hashes.for_validation(hashes, share)
                wrong += int((validation != (arranged.part == PARTS[1])).sum())
        if wrong:
            yield f"{shard.name}: {wrong:,} documents belong to the other part"


def _settings(
    manifest: Manifest, tokenizer: str, output: str, corpus: InputSettings, run: RunSettings
) -> TokenizeSettings:
    """Return the settings of `tokenize` that made the shards."""
    encoding: dict[str, Any] = manifest.encoding
    if isinstance(encoding["allowed_special"], list):
        encoding["allowed_special"] = tuple(encoding["allowed_special"])
    assert manifest.arranged
    arranging = structs.asdict(manifest.arranged.settings)
    if arranging["validation_share"] is None:
        del arranging["validation_by"]
    reading = manifest.reading
    for name in (*FIELDS, "sources"):
        if isinstance(reading.get(name), list):
            reading[name] = tuple(map(tuple, reading[name]))
    return TokenizeSettings(
        # Rejects are compared with the rejects of the manifest.
        input=structs.replace(corpus, **reading, max_rejects="100%", max_lost="100%"),
        tokenizer=tokenizer,
        output=output,
        run=RunSettings(workers=run.workers, storage_options=run.storage_options),
        formats=(manifest.format,),
        **encoding,
        arranging=ArrangementSettings(**arranging),
    )


def _compared(
    storage: Storage, folder: str, manifest: Manifest, output: str, *names: str
) -> Iterator[str]:
    """Yield how a folder differs from what a job wrote again, in shards and in these fields."""
    assert manifest.arranged
    again = storage.join(output, *filter(None, [manifest.arranged.part]))
    expected = read_manifest(storage, again)
    yield from _compared_shards(storage, folder, manifest, again)
    for name in names:
        stored, now = (to_builtins(getattr(each, name)) for each in (manifest, expected))
        yield from _differences(name, stored, now)


def _differences(name: str, stored: Any, now: Any) -> Iterator[str]:
    """Yield each value of the manifest that the corpus does not give, by the name of its field."""
    if isinstance(stored, dict) or isinstance(now, dict):
        keys = dict.fromkeys([*(stored or {}), *(now or {})])
        for key in keys:
            yield from _differences(f"{name}.{key}", (stored or {}).get(key), (now or {}).get(key))
    elif stored != now:
        before, after = (
            "none" if value is None else value if isinstance(value, str) else shortened(value)
            for value in (stored, now)
        )
        yield f"{MANIFEST_FILE}: {name} is {before}; the corpus gives {after}"


def _compared_shards(
    storage: Storage, folder: str, manifest: Manifest, again: str
) -> Iterator[str]:
    """Yield the first difference of each shard; the others may have other bounds."""
    dataset, first = open_dataset(storage, again), 0
    unit = "documents" if manifest.sequences is None else "sequences"
    for shard in manifest.shards:
        expected = _batches(dataset[first : first + shard.documents])
        first += shard.documents
        with shard_format(manifest.format).reader(storage, folder, shard.name) as reader:
            difference = compare_split(reader, expected, unit=unit)
        if difference is not None:
            yield f"{shard.name}: {difference}"
    if first < len(dataset):
        yield f"{folder}: {len(dataset) - first:,} {unit} of the corpus are missing at the end"


def _batches(documents: Iterable[NDArray[np.uint32]]) -> Iterator[Batch]:
    """Yield documents as `compare_split` takes them, about a million tokens at a time."""
    batch: list[NDArray[np.uint32]] = []
    weight = 0
    for ids in documents:
        batch.append(ids)
        weight += ids.size + 1
        if weight > _BATCH_TOKENS:
            yield np.concatenate(batch), bounds_of(np.array([*map(len, batch)]))
            batch, weight = [], 0
    if batch:
        yield np.concatenate(batch), bounds_of(np.array([*map(len, batch)]))
