"""Which documents are for validation: a salted hash of the id, or else of the text, decides.

So neither the tokenizer and the tokens around documents, nor other documents and their order,
matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam.corpus.batches import integers
from bpe_beam.corpus.limits import Limit
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.shards.formats.document_table import HASH

_BYTES = 8
_SALT = b"bpe-beam validation"


def with_hashes(batch: pa.RecordBatch, text_files: Sequence[str] = ()) -> pa.RecordBatch:
    """Return documents with the column HASH.

    Args:
        batch: The documents, of `BATCH_SCHEMA`.
        text_files: The text files that they may be from. A document of one has no id but a
            position, which changes when the file grows: the hash is that of its text.

    Cost: BLAKE2b of each id, or else text, where it is in memory.
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
    digests = []
    rows = zip(known, pairwise(id_ends), pairwise(text_ends), strict=True)
    for has_id, (id_start, id_end), (start, end) in rows:
        name = bytes(id_bytes[id_start:id_end]) if has_id else None
        if name is not None and not name.startswith(positions):
            digest = of_id.copy()
            digest.update(name)
        else:
            digest = of_text.copy()
            digest.update(text_bytes[start:end])
        digests.append(digest.digest())
    hashes = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
    return batch.append_column(pa.field(HASH, pa.uint64()), integers(hashes))


def for_validation(hashes: NDArray[np.uint64], share: str) -> NDArray[np.bool_]:
    """Return bool[n]: which documents are for validation.

    Args:
        hashes: uint64[n], the hash of each document.
        share: The share of the documents, such as `0.5%`.
    """
    limit = Limit.parse(share, "validation_share")
    threshold = (limit.numerator << 64) // limit.denominator
    if threshold == 0:
        return np.zeros(hashes.size, np.bool_)
    chosen: NDArray[np.bool_] = hashes <= np.uint64(min(threshold, 1 << 64) - 1)
    return chosen


def _bytes_of(texts: pa.Array) -> tuple[memoryview, list[int]]:
    """Return the bytes of a column, and where each value begins, and the end of the last."""
    data, ends = string_buffers(texts.fill_null("") if texts.null_count else texts)
    return memoryview(data), ends.tolist()
