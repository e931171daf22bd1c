"""The documents of a mixture's folders: their sources, and the tables of those in a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from numpy.typing import NDArray

from bpe_beam.errors import DataError
from bpe_beam.messages import list_few
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.document_batches import DocumentBatch, bounds_of, document_batches
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import LabelledReader, ShardReader
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.mixture import MixtureOptions
from bpe_beam.storage import Storage

_DOCUMENTS = 1 << 16
_SHOWN_SOURCES = 20


class InputFolder(Struct, frozen=True):
    """A folder that is read; its documents are of one `source`, or None: of their own."""

    url: str
    format: str
    source: str | None


def source_of_all(manifest: Manifest, fallback: str) -> str | None:
    """Return the source of all documents of a folder; None if they have their own labels."""
    sources = manifest.sources_of_texts
    if sources is None:
        return fallback
    if len(sources) == 1:
        return next(iter(sources))
    return None if shard_format(manifest.format).labelled else fallback


def may_be_by_id(
    folders: Sequence[InputFolder], name: str, identity: str | None, duplicates: str
) -> bool:
    """Return whether documents of a source may be known by their ids.

    The formats of all folders that may have the source must store ids.
    """
    if identity == "tokens" or duplicates != "keep":
        return False
    own = (each for each in folders if each.source in (name, None))
    return all(shard_format(each.format).labelled for each in own)


def choose_identities(
    folders: Sequence[InputFolder],
    names: Sequence[str],
    options: MixtureOptions,
    number: Callable[[tuple[bool, ...]], set[int]],
) -> None:
    """Number documents by their ids, or in sources whose ids are not unique by their tokens.

    `number` is called with whether the documents of each source are known by their ids, and returns
    the numbers of the sources with a document that has no id of its own.

    Raises:
        DataError: The option `identity` is `id`, and a source has such a document.
    """
    duplicates = options.duplicates or "keep"
    by_id = tuple(may_be_by_id(folders, name, options.identity, duplicates) for name in names)
    without = {source for source in number(by_id) if by_id[source]}
    if not without:
        return
    if options.identity == "id":
        shown = list_few([names[source] for source in sorted(without)], _SHOWN_SOURCES)
        raise DataError(
            f"{shown}: a document has no id, or the id of another one, or the position of a line",
            remedy="give {identity} tokens",
        )
    number(tuple(known and source not in without for source, known in enumerate(by_id)))


class IndexedDocuments(NamedTuple):
    """The table of some documents of a mixture, and what it was made of.

    `unusable` is bool[n]: which documents should be known by an id and have no usable one;
    `by_tokens` has the identities by tokens, None if no tokens were read; `ids` are the labels.
    """

    table: tables.Table
    unusable: NDArray[np.bool_]
    by_tokens: tables.Hashes | None
    ids: pa.Array | None


def sources_of(
    folder: InputFolder, names: Sequence[str], batch: DocumentBatch
) -> NDArray[np.int64]:
    """Return int64[n]: the number of the source of each document; -1 of one that is not mixed."""
    if folder.source is not None:
        known = names.index(folder.source) if folder.source in names else -1
        return np.full(batch.offsets.size - 1, known)
    assert batch.labels is not None
    column = batch.labels.column("source")
    known = pc.index_in(column, pa.array(names, column.type)).fill_null(-1)
    numbers: NDArray[np.int64] = known.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def indexed_documents(
    storage: Storage,
    folder: InputFolder,
    shard: tuple[int, str],
    names: Sequence[str],
    by_id: Sequence[bool],
    vocab_size: int,
    *,
    with_tokens: bool = False,
) -> Iterator[IndexedDocuments]:
    """Yield the tables of the mixed documents of a shard, given by its number and its name.

    Tokens are read if documents are known by them, and with `with_tokens`.
    """
    of_folder = by_id
    if folder.source in names:
        of_folder = (by_id[names.index(folder.source)],)
    with_tokens = with_tokens or not all(of_folder)
    format_, first = shard_format(folder.format), 0
    number, name = shard
    with format_.reader(storage, folder.url, name) as reader:
        for batch in _batches(reader, format_.labelled, with_tokens):
            index = first + np.arange(batch.offsets.size - 1)
            first += index.size
            sources = sources_of(folder, names, batch)
            chosen = sources >= 0
            lengths = np.diff(batch.offsets)
            if not chosen.all():
                if not with_tokens:
                    batch = batch._replace(offsets=np.zeros_like(batch.offsets))
                batch, lengths = batch.filter(chosen), lengths[chosen]
                index, sources = index[chosen], sources[chosen]
            by_tokens = tables.hashes_of_tokens(batch, vocab_size) if with_tokens else None
            ids = None if batch.labels is None else batch.labels.column("id")
            known = np.array(by_id, np.bool_)[sources]
            usable = np.zeros(sources.size, np.bool_) if ids is None else tables.usable_ids(ids)
            identities = np.zeros((sources.size, 2), np.uint64)
            if by_tokens is not None:
                identities[~known] = by_tokens[~known]
            if ids is not None and known.any():
                identities[known & usable] = tables.hashes_of_ids(
                    ids.filter(pa.array(known & usable))
                )
            ties = None if known.all() else ids
            table = tables.identified(identities, ties, lengths, sources, number, index)
            yield IndexedDocuments(table, known & ~usable, by_tokens, ids)


def _batches(reader: ShardReader, labelled: bool, with_tokens: bool) -> Iterator[DocumentBatch]:
    """Yield the documents of a shard, with labels if it has any; without tokens by lengths only."""
    if with_tokens:
        yield from document_batches(reader, labelled=labelled)
        return
    labels_of = cast(LabelledReader, reader) if labelled else None
    for first in range(0, len(reader), _DOCUMENTS):
        stop = min(first + _DOCUMENTS, len(reader))
        yield DocumentBatch(
            np.empty(0, np.uint32),
            bounds_of(reader.lengths(first, stop)),
            None if labels_of is None else labels_of.labels(first, stop),
        )
