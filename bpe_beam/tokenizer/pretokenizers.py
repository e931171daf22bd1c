"""Pre-tokenizers: how text is cut into words before any merge is learned or applied.

Each is a small frozen dataclass of its settings; the native scanner does the cutting by name,
and the pattern is what the scanner is tested against.
"""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.errors import UsageError

GPT2_PATTERN = (
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
"""GPT-2's pattern (section 1 of the semantics), for the `regex` package."""

PRETOKENIZERS = ("gpt2",)
"""The names that this version knows."""


@dataclass(frozen=True)
class ByteLevelPreTokenizer:
    """Cuts text by GPT-2's pattern and hands on the bytes of each word.

    Attributes:
        trim_offsets: Stands in Hugging Face's file beside the settings that matter and is kept
            for it; as there, it has no effect in a pre-tokenizer.
    """

    trim_offsets: bool = True

    @property
    def name(self) -> str:
        """The name on the command line, in counts, and to the native scanner."""
        return "gpt2"

    @property
    def pattern(self) -> str:
        """The pattern, for the `regex` package."""
        return GPT2_PATTERN


def pretokenizer_from_name(name: str) -> ByteLevelPreTokenizer:
    """Makes a pre-tokenizer from its name on the command line.

    Args:
        name: One of `PRETOKENIZERS`.

    Raises:
        UsageError: A name that this version does not have; lists those that it has.
    """
    if name not in PRETOKENIZERS:
        raise UsageError(
            f"pretokenizer {name!r}: this version of bpe-beam has {', '.join(PRETOKENIZERS)}"
        )
    return ByteLevelPreTokenizer()
