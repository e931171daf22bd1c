"""The formats of token shards, a module each, and the facts that every writer reports."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.folders.file_info import FileInfo

MAX_VOCAB_SIZE = 2**31
"""Ids are at most 2^31 - 1, so that 32 bits hold them with a sign or without."""


@dataclass(frozen=True)
class ShardFiles:
    """One shard as it was written.

    Attributes:
        documents: how many documents it holds, empty ones included.
        tokens: how many token ids it holds.
        files: its files, in the order in which they became visible; none if it has no token.
    """

    documents: int
    tokens: int
    files: tuple[FileInfo, ...]


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
