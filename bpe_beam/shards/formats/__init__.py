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
