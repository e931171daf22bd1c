"""Which documents are for validation: a salted hash of the text, or of the id, decides.

So neither the tokenizer and the tokens around documents, nor other documents and their order,
matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.corpus.batches import integers
from bpe_beam.corpus.rejects import Limit
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.shards.formats.table_schema import ID_HASH, TEXT_HASH
from bpe_beam.shards.mixture_tables import usable_ids

MAX_TEXTS = 1 << 22
"""The maximum texts that are compared to count those in both parts: 32 MiB of hashes."""

_BYTES = 8
_SALT = b"bpe-beam validation"


def with_hashes(batch: pa.RecordBatch, text_files: Sequence[str] = ()) -> pa.RecordBatch:
    """Return documents with the columns ID_HASH and TEXT_HASH.

    Cost: BLAKE2b of each id and text, where they are in memory.
    """
    of_id = hashlib.blake2b(digest_size=_BYTES, key=_SALT)
    of_text = of_id.copy()
    of_id.update(b"id ")
    of_text.update(b"text ")
    positions = tuple(f"{file}:".encode("utf-8", "surrogatepass") for file in text_files)
    ids = batch.column("id")
    known = ids.is_valid().to_numpy(zero_copy_only=False).tolist()
    id_bytes, id_ends = _bytes_of(ids)
    text_bytes, text_ends = _bytes_of(batch.column("text"))
    id_digests, text_digests = [], []
    rows = zip(known, pairwise(id_ends), pairwise(text_ends), strict=True)
    for has_id, (id_start, id_end), (start, end) in rows:
        name = bytes(id_bytes[id_start:id_end]) if has_id else None
        hasher = of_text.copy()
        hasher.update(text_bytes[start:end])
        text_digests.append(hasher.digest())
        if name is not None and not name.startswith(positions):
            hasher = of_id.copy()
            hasher.update(name)
        id_digests.append(hasher.digest())
    for column, digests in ((ID_HASH, id_digests), (TEXT_HASH, text_digests)):
        hashes = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
        batch = batch.append_column(pa.field(column, pa.uint64()), integers(hashes))
    return batch


def hashes_of_tokens(identities: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return uint64[n]: the hashes by which documents are divided by their tokens.

    `identities` is uint64[n, 2], the hashes of `bpe_beam.shards.mixture_tables.hashes_of_tokens`.
    """
    data = identities.astype(">u8").tobytes()
    return _hashes(b"tokens ", (data[at : at + 16] for at in range(0, len(data), 16)))


def mixed_hashes(by_tokens: NDArray[np.uint64], ids: pa.Array | None) -> NDArray[np.uint64]:
    """Return uint64[n]: the hashes by which documents of a mixture are divided.

    `by_tokens` is uint64[n, 2], as for `hashes_of_tokens`. With `ids`, a usable id decides.
    """
    hashes = hashes_of_tokens(by_tokens)
    if ids is not None:
        usable = usable_ids(ids)
        hashes[usable] = hashes_of_ids(ids.filter(pa.array(usable)))
    return hashes


def hashes_of_ids(ids: pa.Array) -> NDArray[np.uint64]:
    """Return uint64[n]: the hashes by which `with_hashes` divides documents by their ids."""
    return _hashes(b"id ", (str(each).encode("utf-8", "surrogatepass") for each in ids.to_pylist()))


def _hashes(begin: bytes, values: Iterable[bytes]) -> NDArray[np.uint64]:
    first = hashlib.blake2b(begin, digest_size=_BYTES, key=_SALT)
    digests = []
    for value in values:
        hasher = first.copy()
        hasher.update(value)
        digests.append(hasher.digest())
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def for_validation(hashes: NDArray[np.uint64], share: str) -> NDArray[np.bool_]:
    """Return bool[n]: which documents are for validation, by uint64[n], their hashes."""
    limit = Limit.parse(share, "validation_share")
    threshold = (limit.numerator << 64) // limit.denominator
    if threshold == 0:
        return np.zeros(hashes.size, np.bool_)
    chosen: NDArray[np.bool_] = hashes <= np.uint64(min(threshold, 1 << 64) - 1)
    return chosen


def sampled_texts(
    hashes: NDArray[np.uint64], in_validation: NDArray[np.bool_], documents: int
) -> NDArray[np.uint64]:
    """Return the hashes of texts that are compared; the last bit is whether it is in validation.

    All texts are, or about MAX_TEXTS of more. A hash of the hash chooses them, since the hash
    itself may have decided on validation. `hashes` is uint64[n], `in_validation` bool[n].
    """
    if documents > MAX_TEXTS:
        chosen = hashes * np.uint64(0x9E3779B97F4A7C15) < np.uint64((MAX_TEXTS << 64) // documents)
        hashes, in_validation = hashes[chosen], in_validation[chosen]
    marked: NDArray[np.uint64] = hashes & ~np.uint64(1) | in_validation.astype(np.uint64)
    return marked


def overlap_of(sampled: NDArray[np.uint64], documents: int) -> int:
    """Return how many documents for validation have a text that is in training, too.

    The number is exact for up to MAX_TEXTS documents, and an estimate for more. `sampled` has the
    results of `sampled_texts` for all documents.
    """
    last = np.uint64(1)
    train, validation = sampled[sampled & last == 0], sampled[sampled & last == 1] & ~last
    overlap = int(np.isin(validation, train).sum())
    return round(overlap * max(documents, MAX_TEXTS) / MAX_TEXTS)


def _bytes_of(texts: pa.Array) -> tuple[memoryview, list[int]]:
    """Return the bytes of a column, and where each value begins, and the end of the last."""
    data, ends = string_buffers(texts.fill_null("") if texts.null_count else texts)
    return memoryview(data), ends.tolist()
