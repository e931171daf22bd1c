"""Finished tokens folders of documents that a test chooses, without a job."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import (
    Manifest,
    Rejects,
    TokenizerInfo,
    small_files,
    with_files,
)
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import Shard, Totals
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import VERSION

Documents = list[list[int]]


def write_folder(
    folder: object,
    format_name: str,
    shards: Sequence[Documents],
    vocab_size: int = 300,
    storage: Storage | None = None,
) -> str:
    """Write a finished folder, one shard for each list of documents; return its URL."""
    storage, url = storage or Storage(), str(folder)
    storage.make_folder(url)
    rows = []
    for number, documents in enumerate(shards):
        name = shard_name(number, len(shards))
        ids = np.array([token for document in documents for token in document], np.uint32)
        offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
        with shard_format(format_name).writer(storage, url, name, vocab_size) as writer:
            writer.write_documents(ids, offsets)
        done = writer.result()
        rows.append(Shard(name, number, (), done.documents, 0, done.tokens, 0, done.files))
    manifest = Manifest(
        format=format_name,
        version=VERSION,
        tokenizer=TokenizerInfo(hashlib.sha256(b"{}").hexdigest(), vocab_size),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        plan={"fingerprint": "0" * 64, "files": [], "splits": [*range(len(rows))]},
        shards=tuple(rows),
        totals=Totals.of(rows),
        rejects=Rejects({}, ()),
        tokenless=(),
    )
    finish_folder(storage, url, manifest)
    return url


def finish_folder(storage: Storage, url: str, manifest: Manifest) -> None:
    """Write the small files of a folder, with a tokenizer that has nothing, and the manifest."""
    for name, data in small_files(manifest, b"{}").items():
        storage.write_bytes(storage.join(url, name), data)
    data = with_files(manifest, b"{}").to_bytes()
    storage.write_bytes(storage.join(url, "__manifest"), data)


def made_documents(count: int, longest: int, vocab_size: int = 300, seed: int = 7) -> Documents:
    """Return documents of random lengths up to `longest`; some are empty, the last is not."""
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(0, longest + 1, count - 1).tolist(), longest]
    return [rng.integers(0, vocab_size, length).tolist() for length in lengths]


def answer(data: bytes, at: int, pipe: Any) -> None:
    """Send a document of a pickled data set; another process imports this by name."""
    pipe.send(pickle.loads(data)[at].tolist())
