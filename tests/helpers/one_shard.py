"""Documents written as one shard of a format, read back, and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from bpe_beam.shards.formats.interface import ShardFiles, ShardFormat
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"
STORAGE = Storage()


def pack(documents: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Documents as `write_documents` takes them."""
    ids = np.array([token for document in documents for token in document], dtype=np.uint32)
    return ids, np.cumsum([0, *map(len, documents)], dtype=np.int64)


def write(
    open_writer: Callable[..., AbstractContextManager[Any]],
    folder: Path,
    *batches: Sequence[Sequence[int]],
    vocab_size: int = 300,
) -> ShardFiles:
    """Write batches of documents to the shard `NAME`."""
    with open_writer(STORAGE, str(folder), NAME, vocab_size) as writer:
        for documents in batches:
            writer.write_documents(*pack(documents))
    files: ShardFiles = writer.result()
    return files


def read(open_reader: Callable[..., AbstractContextManager[Any]], folder: Path) -> list[list[int]]:
    """Read all documents of the shard `NAME`."""
    with open_reader(STORAGE, str(folder), NAME) as reader:
        return [reader.document(index).tolist() for index in range(len(reader))]


def problems(shard_format: ShardFormat, folder: Path, vocab_size: int = 2**31) -> list[str]:
    """Check the shard `NAME`."""
    check = shard_format.check(NAME, vocab_size)
    with shard_format.reader(STORAGE, str(folder), NAME) as reader:
        return list(check.problems(reader))
