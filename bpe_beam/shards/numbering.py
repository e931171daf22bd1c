"""The names of shards: numbers without gaps over the splits that have tokens.

A worker knows the number of its split, but not which other splits have tokens. It writes its shard
under the split's name in `work/`. When all splits are done, each shard gets its final name: the
names follow from the plan and the receipts alone, whoever made which shard, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_beam.folders.publication import Publication

_REJECTS = "rejects/"


def shard_name(index: int, count: int) -> str:
    """Return the name of a shard.

    Args:
        index: the shard's number, from 0.
        count: how many shards there are.

    Returns:
        For 3 and 12 `shard-00003-of-00012`: five digits, or more where a number needs them. Up to
        100,000 shards the names sort in the order of the shards.
    """
    return f"shard-{index:05d}-of-{count:05d}"


def numbered(receipts: Sequence[Mapping[str, Any]]) -> list[Publication]:
    """Return the receipts of all splits with the final names of their shards.

    Args:
        receipts: Of each split, in the order of the plan; some may have final names already.
    """
    with_tokens = [number for number, receipt in enumerate(receipts) if receipt["facts"]["tokens"]]
    names = {split: shard_name(i, len(with_tokens)) for i, split in enumerate(with_tokens)}
    return [_numbered(receipt, names.get(number)) for number, receipt in enumerate(receipts)]


def shard_files(receipt: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files of a receipt that belong to its shard."""
    return [file for file in receipt["files"] if not file["name"].startswith(_REJECTS)]


def _numbered(receipt: Mapping[str, Any], name: str | None) -> Publication:
    files, moves = [], []
    for file in shard_files(receipt) if name is not None else ():
        suffix = file["name"].rpartition("/")[2].partition(".")[2]
        final = f"{name}.{suffix}"
        files.append({**file, "name": final})
        moves.append((file["name"], final))
    rejects = [file for file in receipt["files"] if file["name"].startswith(_REJECTS)]
    return Publication({**receipt, "files": [*files, *rejects]}, tuple(moves))
