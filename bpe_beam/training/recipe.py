"""Settings of a training run: frozen, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bpe_beam.errors import UsageError

TieBreak = Literal["lowest_id", "first_seen", "greatest_bytes"]
Alphabet = Literal["bytes", "seen"]

TIE_BREAKS: tuple[TieBreak, ...] = ("lowest_id", "first_seen", "greatest_bytes")
ALPHABETS: tuple[Alphabet, ...] = ("bytes", "seen")
MAX_VOCAB_SIZE = 2**31 - 1


@dataclass(frozen=True)
class BpeRecipe:
    """How byte-level BPE is trained; section 2 of the semantics.

    Attributes:
        vocab_size: Entries at which to stop: special tokens, alphabet and merged tokens.
        min_frequency: The least count of a pair that is merged; 0 is as 1.
        tie_break: Which of the pairs with the highest count is taken.
        alphabet: `bytes`: all 256 bytes are in the vocabulary; `seen`: those that occur.
        special_tokens: The first entries, in this order.

    Raises:
        UsageError: A setting out of its range.
    """

    vocab_size: int
    min_frequency: int = 0
    tie_break: TieBreak = "lowest_id"
    alphabet: Alphabet = "bytes"
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks each setting."""
        if not 1 <= self.vocab_size <= MAX_VOCAB_SIZE:
            raise UsageError(f"vocab_size is {self.vocab_size}: from 1 to {MAX_VOCAB_SIZE}")
        if self.min_frequency < 0:
            raise UsageError(f"min_frequency is {self.min_frequency}: 0 or more")
        if self.tie_break not in TIE_BREAKS:
            raise UsageError(f"tie_break is {self.tie_break!r}: one of {', '.join(TIE_BREAKS)}")
        if self.alphabet not in ALPHABETS:
            raise UsageError(f"alphabet is {self.alphabet!r}: one of {', '.join(ALPHABETS)}")
        if len(set(self.special_tokens)) < len(self.special_tokens):
            raise UsageError(f"special_tokens holds one twice: {', '.join(self.special_tokens)}")
        if "" in self.special_tokens:
            raise UsageError("special_tokens holds an empty token")
