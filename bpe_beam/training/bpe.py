"""BPE from word counts, over the native learner."""

from __future__ import annotations

from bpe_beam.tokenizer import byte_level
from bpe_beam.training.learning import Learned, Progress, Symbols, learn, number
from bpe_beam.training.recipe import BpeRecipe
from bpe_beam.training.symbols import SeenSymbols, Spelling, see, spell
from bpe_beam.training.words import Words

BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The tokens of `byte_fallback`."""


def learn_bpe(words: Words, recipe: BpeRecipe, on_progress: Progress | None = None) -> Learned:
    """Learns merges; exactly those of `training.reference.learn_bpe`.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens and the alphabet, or a word
            holds the end-of-word symbol.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    found = see(words, spelling_of(recipe), recipe.limit_alphabet is not None)
    first = number({}, [*recipe.specials, *(BYTE_TOKENS if recipe.byte_fallback else ())])
    ids = with_alphabet(first, found, recipe)
    symbols, offsets = spell(words, found, ids, ids)
    decorated = bool(recipe.end_of_word_suffix or recipe.continuing_subword_prefix)
    return learn(
        Symbols(symbols, offsets, words.counts, decorated=decorated), ids, recipe, on_progress
    )


def spelling_of(recipe: BpeRecipe) -> Spelling:
    """How the recipe has words written."""
    return Spelling(
        recipe.symbols == "bytes",
        recipe.continuing_subword_prefix,
        recipe.end_of_word_suffix,
        recipe.end_of_word_symbol,
    )


def with_alphabet(first: dict[str, int], found: SeenSymbols, recipe: BpeRecipe) -> dict[str, int]:
    """Appends the characters by code point, then the decorated symbols as strings."""
    initial = {*recipe.initial_alphabet, *recipe.end_of_word_symbol}
    if recipe.all_bytes:
        initial.update(byte_level.BYTE_TO_CHAR)
    ids = number(first, found.alphabet(initial, recipe.limit_alphabet))
    return number(ids, sorted(found.symbols(found.spelling.kinds, ids)))
