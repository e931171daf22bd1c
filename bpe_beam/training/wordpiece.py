"""WordPiece by likelihood from word counts, over the native learner.

What Hugging Face calls WordPiece training is BPE with a prefix: `bpe.py`.
"""

from __future__ import annotations

from bpe_beam.training.learning import Learned, Progress, Symbols, learn, number
from bpe_beam.training.recipe import WordPieceRecipe
from bpe_beam.training.symbols import Spelling, see, spell
from bpe_beam.training.words import Words


def learn_wordpiece(
    words: Words, recipe: WordPieceRecipe, on_progress: Progress | None = None
) -> Learned:
    """Learns a vocabulary; exactly that of `reference_wordpiece.learn_wordpiece`.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: The settings.
        on_progress: Called with how many more merges have been learned.

    Returns:
        The vocabulary, and the merges that made it; WordPiece encodes without them.

    Raises:
        UsageError: The vocabulary is smaller than the special tokens and the alphabet.
        OverflowError: Counts whose sum is beyond 64 bits.
    """
    prefix = recipe.continuing_subword_prefix
    found = see(words, Spelling(False, prefix), recipe.limit_alphabet is not None)
    first = number({}, recipe.specials)
    kept = found.alphabet(recipe.initial_alphabet, recipe.limit_alphabet)
    symbols = found.symbols(found.spelling.kinds, {*kept, *first})
    for character in set(recipe.initial_alphabet).intersection(kept):
        symbols |= {character, prefix + character}
    ids = number(first, sorted(symbols))
    written, offsets = spell(words, found, ids, {*kept, *first})
    return learn(
        Symbols(written, offsets, words.counts, decorated=bool(prefix)), ids, recipe, on_progress
    )
