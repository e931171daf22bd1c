"""The names of shards: numbers without gaps over the splits that have tokens.

A worker knows the number of its split, but not which other splits have tokens. It writes its shard
under the split's name in `work/`. When all splits are done, each shard gets its final name: the
names follow from the plan and the receipts alone, whoever made which shard, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_beam.shards.formats import shard_name

_REJECTS = "rejects/"


@dataclass(frozen=True)
class NumberedPiece:
    """A split's receipt and how its shard gets its final name.

    Attributes:
        receipt: The receipt with the final names; without shard files if there is no token.
        moves: (name now, final name) of each file of the shard.
    """

    receipt: dict[str, Any]
    moves: tuple[tuple[str, str], ...]


def numbered(receipts: Sequence[Mapping[str, Any]]) -> list[NumberedPiece]:
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


def _numbered(receipt: Mapping[str, Any], name: str | None) -> NumberedPiece:
    files, moves = [], []
    for file in shard_files(receipt) if name is not None else ():
        final = f"{name}.{file['name'].rpartition('.')[2]}"
        files.append({**file, "name": final})
        moves.append((file["name"], final))
    rejects = [file for file in receipt["files"] if file["name"].startswith(_REJECTS)]
    return NumberedPiece({**receipt, "files": [*files, *rejects]}, tuple(moves))
