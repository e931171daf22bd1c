"""The documents of a mixture in its order, read from the folders that it is made of.

Nothing is written. The documents are selected when the mixture is opened, which takes about 100
bytes of memory for each document of the folders, and keeps 20 for each one that is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_beam.errors import parameter_renamed
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards import stored_shard
from bpe_beam.shards.dataset import TokenDataset
from bpe_beam.shards.document_batches import bounds_of
from bpe_beam.shards.folder_reader import FolderReader
from bpe_beam.shards.mixture import MixtureOptions, options_of, read_mixture
from bpe_beam.shards.mixture_documents import (
    InputFolder,
    choose_identities,
    indexed_documents,
)
from bpe_beam.shards.mixture_folders import mixed_folders
from bpe_beam.shards.token_view import Order
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import JsonObject


def open_mixture(
    storage: Storage,
    folders: Sequence[tuple[str | None, str]],
    mixture: Mapping[str, Any] | str,
    memory: int,
) -> TokenDataset:
    """Return the documents of a mixture; `folders` are pairs of a source or None, and a URL."""
    options = read_mixture(storage, mixture) if isinstance(mixture, str) else options_of(mixture)
    with parameter_renamed("folders", "url"):
        mixed = mixed_folders(storage, folders)
    shards = [
        (number, shard.name)
        for number, manifest in enumerate(mixed.manifests)
        for shard in manifest.shards
    ]
    each_memory = memory // len(mixed.folders)  # each reader has a cache of its own
    readers = side_by_side(
        lambda pair: FolderReader(storage, pair[0].url, each_memory, pair[1]),
        [*zip(mixed.folders, mixed.manifests, strict=True)],
    )
    table, names = _selected(
        storage, mixed.folders, shards, options, [*mixed.sizes], readers[0].vocab_size
    )
    tables.refuse_nothing(int(table["length"].sum()))
    return TokenDataset(
        reader := MixedReader(readers, shards, table, names),
        Order.of_all(reader.documents),
        np.dtype(np.uint32),
    )


def _selected(
    storage: Storage,
    folders: Sequence[InputFolder],
    shards: Sequence[tuple[int, str]],
    options: MixtureOptions,
    sources: Sequence[str],
    vocab_size: int,
) -> tuple[tables.Table, list[str]]:
    """Return the documents that are taken, in their order, and the names of the sources."""
    parts = options.parts(sources)
    names, seed, duplicates = [*parts], options.seed or 0, options.duplicates or "keep"
    numbered = np.empty(0, tables.NUMBERED)

    def number(by_id: tuple[bool, ...]) -> set[int]:
        nonlocal numbered
        rows, without = [np.empty(0, tables.DOCUMENT)], set[int]()
        for at, (folder, shard) in enumerate(shards):
            for each in indexed_documents(
                storage, folders[folder], (at, shard), names, by_id, vocab_size
            ):
                rows.append(each.table)
                without |= {*each.table["source"][each.unusable].tolist()}
        numbered = tables.numbered(np.concatenate(rows), duplicates, names, seed)
        return without | {*numbered["source"][numbered["counter"] > 0].tolist()}

    choose_identities(folders, names, options, number)
    sums = tables.sums_by_source(numbered, len(names))[tables.TRAIN, :, 1].tolist()
    left_out = " without duplicates" if duplicates != "keep" else ""
    tables.refuse_too_many(parts, dict(zip(names, sums, strict=True)), left_out)
    ranges = [tables.SourceRange(parts[n], total) for n, total in zip(names, sums, strict=True)]
    keyed = [
        tables.keyed(numbered, source, tables.TRAIN, epoch, names[source], seed)
        for source, each in enumerate(ranges)
        for epoch in each.epochs
    ]
    before = np.zeros(len(tables.slots(ranges)), np.int64)
    return tables.taken(np.concatenate(keyed), ranges, before), names


class MixedReader(FolderReader):
    """Reads the documents of a mixture; `shards` has the folder and the name of each shard."""

    def __init__(
        self,
        readers: Sequence[FolderReader],
        shards: Sequence[tuple[int, str]],
        table: tables.Table,
        names: Sequence[str],
    ) -> None:
        first = readers[0]
        self._readers, self._names = readers, names
        self.url, self.format, self.windows = first.url, first.format, None
        self.vocab_size, self.tokenizer = first.vocab_size, first.tokenizer
        self.has_sequences = False
        self.remote = any(reader.remote for reader in readers)
        # The first document of each shard in its folder.
        begins = [
            reader.first_document(name) for reader, name in ((readers[n], s) for n, s in shards)
        ]
        self._folders = np.array([number for number, _ in shards], np.uint32)[table["shard"]]
        self._items = np.array(begins, np.int64)[table["shard"]] + table["index"].astype(np.int64)
        self._sources = table["source"].copy()
        self._bounds = bounds_of(table["length"])
        self.documents, self.tokens = len(table), int(self._bounds[-1])
        content = [reader.content for reader in readers]
        digest = hashlib.sha256("".join(content).encode())
        for array in (self._folders, self._items):
            digest.update(array.tobytes())
        self.content = digest.hexdigest()

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def document(self, index: int, dtype: stored_shard.IdType) -> stored_shard.Ids:
        """See `FolderReader.document`."""
        reader = self._readers[int(self._folders[index])]
        return reader.document(int(self._items[index]), dtype)

    def labels(self, index: int) -> JsonObject:
        """See `FolderReader.labels`; the source is the mixture's."""
        labels = self._readers[int(self._folders[index])].labels(int(self._items[index]))
        return {**labels, "source": self._names[self._sources[index]]}

    def documents_from(
        self, start: int, stop: int, limit: int, dtype: stored_shard.IdType
    ) -> Sequence[stored_shard.Ids]:
        """See `FolderReader.documents_from`."""
        end = int(np.searchsorted(self._bounds, self._bounds[start] + limit, side="right")) - 1
        return [self.document(at, dtype) for at in range(start, min(max(end, start + 1), stop))]

    def ids(self, start: int, stop: int, dtype: stored_shard.IdType) -> stored_shard.Ids:
        """See `FolderReader.ids`."""
        first = int(np.searchsorted(self._bounds, start, side="right")) - 1
        last = int(np.searchsorted(self._bounds, stop))
        parts = [self.document(at, dtype) for at in range(first, last)] if start < stop else []
        ids: stored_shard.Ids = np.concatenate([np.empty(0, dtype), *parts])
        begin = start - int(self._bounds[first])
        return ids[begin : begin + stop - start]

    def starts(self, start: int, stop: int) -> NDArray[np.int64]:
        """See `FolderReader.starts`."""
        return stored_shard.starts_within(self._bounds, start, stop)
