"""Normalizers: what is done to text before it is cut into words. So far: nothing."""

from __future__ import annotations

from bpe_beam.errors import UsageError

NORMALIZERS = ("none",)
"""The names that this version knows."""


def normalizer_from_name(name: str) -> None:
    """Makes a normalizer from its name on the command line.

    Args:
        name: One of `NORMALIZERS`.

    Returns:
        None, which stands for "text is taken as it is", as `null` does in `tokenizer.json`.

    Raises:
        UsageError: A name that this version does not have; lists those that it has.
    """
    if name not in NORMALIZERS:
        raise UsageError(
            f"normalizer {name!r}: this version of bpe-beam has {', '.join(NORMALIZERS)}"
        )
