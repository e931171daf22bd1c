"""The names of shards: numbers without gaps over the splits that have tokens.

A worker does not know which other splits have tokens, or several shards, so it writes its shards
under the split's name in `work/`. The final names follow from the plan and the receipts of all
splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from bpe_beam.folders.artifact_names import REJECTS
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Publication, Receipt

TOKEN_COUNTS_SUFFIX = ".token-counts"
"""The end of the names of temporary files with the token counts of a split."""

_REJECTS = f"{REJECTS}/"


def shard_name(index: int, count: int) -> str:
    """Return the name of a shard."""
    return f"shard-{index:05d}-of-{count:05d}"


def number_shards(receipts: Sequence[Receipt], tokens: Iterable[int]) -> list[Publication]:
    """Return the receipts of all splits with the final names of their shards."""
    shards = [
        shards_of(receipt) if count else [] for receipt, count in zip(receipts, tokens, strict=True)
    ]
    total = sum(map(len, shards))
    names = (shard_name(index, total) for index in range(total))
    publications = []
    for receipt, of_split in zip(receipts, shards, strict=True):
        named: list[FileInfo] = []
        moves = []
        for files, name in zip(of_split, names, strict=False):
            for file in files:
                named.append(replace(file, name=f"{name}.{_suffix_of(file.name)}"))
                moves.append((file.name, named[-1].name))
        others = filter(_is_other, receipt.files)
        publications.append(Publication(replace(receipt, files=(*named, *others)), tuple(moves)))
    return publications


def shard_files(receipt: Receipt) -> tuple[FileInfo, ...]:
    """Return the files of a receipt that belong to shards."""
    return tuple(file for file in receipt.files if not _is_other(file))


def shards_of(receipt: Receipt) -> list[tuple[FileInfo, ...]]:
    """Return the files of each shard of a receipt: none of a split without files of a shard."""
    shards: list[dict[str, FileInfo]] = []
    for file in shard_files(receipt):
        suffix = _suffix_of(file.name)
        if not shards or suffix in shards[-1]:
            shards.append({})
        shards[-1][suffix] = file
    return [tuple(shard.values()) for shard in shards]


def reject_files(receipt: Receipt) -> tuple[FileInfo, ...]:
    """Return the files of a receipt with rejects."""
    return tuple(file for file in receipt.files if file.name.startswith(_REJECTS))


def token_counts_file(receipt: Receipt) -> FileInfo | None:
    """Return the file with the token counts of a split; None if the receipt names none."""
    matches = (file for file in receipt.files if file.name.endswith(TOKEN_COUNTS_SUFFIX))
    return next(matches, None)


def _is_other(file: FileInfo) -> bool:
    """Return whether a file is of a split, but not of its shard."""
    return file.name.startswith(_REJECTS) or file.name.endswith(TOKEN_COUNTS_SUFFIX)


def _suffix_of(name: str) -> str:
    """Return the suffix of a file: what follows the first dot of its name."""
    return name.rpartition("/")[2].partition(".")[2]
