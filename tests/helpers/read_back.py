"""The files of a job's folder, read without the package's own readers."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from bpe_beam.shards.manifest import Manifest

_DTYPES = {1: "<u1", 4: "<i4", 8: "<u2"}


def tree(
    folder: Path, without: tuple[str, ...] = ("summary.json",), corner: str | None = None
) -> dict[str, bytes]:
    """Return every file and every empty folder below a folder, by relative name.

    Args:
        folder: The folder.
        without: Names of files that may differ from run to run.
        corner: The start of the relative names that are left out: another run may write there.
    """
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"<folder>"
        for path in sorted(_below(folder, None if corner is None else f"{folder}/{corner}"))
        if path.name not in without and (path.is_file() or not any(path.iterdir()))
    }


def without_job(folder: Path) -> dict[str, Any]:
    """Return the files of a folder of shards, without what they say of the job that wrote it."""
    manifest = Manifest.from_bytes((folder / "__manifest").read_bytes())
    assert manifest.job_fingerprint
    files = tree(folder, without=("__job", "__manifest"))
    return {**files, "__manifest": replace(manifest, job_fingerprint=UNSET)}


def _below(folder: Path, corner: str | None) -> Iterator[Path]:
    for path in folder.iterdir():
        if corner is None or not str(path).startswith(corner):
            yield path
            if path.is_dir() and not path.is_symlink():
                yield from _below(path, corner)


def read_shards(folder: Path) -> list[list[int]]:
    """Return the ids of each document of a folder of Megatron pairs, in the order of the shards."""
    shards = sorted(folder.glob("shard-*.idx"))
    return [ids for shard in shards for ids in read_pair(shard.with_suffix(""))]


def read_pair(shard: Path) -> list[list[int]]:
    """Return the ids of each document of one pair.

    Args:
        shard: The pair's path without `.bin` and `.idx`.
    """
    index = shard.with_suffix(".idx").read_bytes()
    magic, version, dtype, count, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\x00\x00", 1)
    at = struct.calcsize("<9sQBQQ")
    lengths = np.frombuffer(index, "<i4", count, at)
    pointers = np.frombuffer(index, "<i8", count, at + 4 * count)
    bounds = np.frombuffer(index, "<i8", documents, at + 12 * count)
    assert bounds.tolist() == list(range(count + 1)), "a sequence is a document"
    data = shard.with_suffix(".bin").read_bytes()
    ids = np.dtype(_DTYPES[dtype])
    assert pointers.tolist() == [0, *(np.cumsum(lengths) * ids.itemsize).tolist()][: len(pointers)]
    assert len(data) == max(1, int(lengths.sum())) * ids.itemsize
    return [
        np.frombuffer(data, ids, length, start).tolist()
        for length, start in zip(lengths.tolist(), pointers.tolist(), strict=True)
    ]
