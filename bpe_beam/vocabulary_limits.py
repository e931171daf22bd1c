"""The limit of a vocabulary's size, for tokenizers, their training and their shards."""

from __future__ import annotations

MAX_VOCAB_SIZE = 2**31
"""Maximum number of entries: ids are at most 2^31 - 1, for signed and unsigned 32 bits."""
