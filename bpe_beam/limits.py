"""Limits that several rooms share."""

from __future__ import annotations

MAX_VOCAB_SIZE = 2**31
"""The most entries of a vocabulary: ids are at most 2^31 - 1, which 32 bits hold with a sign or
without."""

MAX_ELEMENT_BYTES = 1_000_000
"""The most bytes of an element that a pipeline shuffles; longer values travel as chunks."""
