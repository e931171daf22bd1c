"""Limits that several rooms share."""

from __future__ import annotations

MAX_VOCAB_SIZE = 2**31
"""The most entries of a vocabulary: ids are at most 2^31 - 1, for signed and unsigned 32 bits."""

MAX_DOCUMENT_TOKENS = 2**31 - 1
"""The most tokens of a document in a shard: lengths are int32."""

MAX_ELEMENT_BYTES = 1_000_000
"""The most bytes of an element that a pipeline shuffles; longer values are divided into chunks."""

MAX_SEED = 2**32 - 1
"""The greatest seed of an order."""
