"""Special tokens that a byte-level model might also learn from the text.

`Ġthe` as a special token and `Ġthe`, as a merge makes it of the bytes of ` the`, would be one
entry with two meanings, which no tokenizer can hold. So the words are searched before anything is
learned: what no word holds, no merge makes.
"""

from __future__ import annotations

import re

import numpy as np

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.recipe import BpeRecipe, Recipe
from bpe_beam.training.words import Words


def ambiguous_tokens(recipe: Recipe, old: Tokenizer | None = None) -> tuple[str, ...]:
    """The special and added tokens that words must not spell in bytes.

    Args:
        recipe: The settings; where a tokenizer is continued, as `recipe_like` gave them.
        old: The tokenizer that is continued, if any.
    """
    if not isinstance(recipe, BpeRecipe) or recipe.symbols != "bytes":
        return ()
    added = () if old is None else (token.content for token in old.spec.added_tokens)
    tokens = dict.fromkeys((*recipe.specials, *added))
    return tuple(token for token in tokens if byte_level.is_ambiguous(token))


def refuse_spelled(words: Words, tokens: tuple[str, ...]) -> None:
    """Refuses words that spell ambiguous tokens in bytes.

    Args:
        words: All words, or a part.
        tokens: As `ambiguous_tokens` gave them.

    Raises:
        UsageError: Names the token and its bytes.
    """
    text = words.data.data
    for token in tokens:
        data = byte_level.to_bytes(token)
        pattern = re.compile(re.escape(data))
        found = pattern.search(text)
        while found is not None:
            word = int(np.searchsorted(words.offsets, found.start(), side="right")) - 1
            if found.end() <= words.offsets[word + 1]:
                raise UsageError(
                    f"special_tokens holds {token!r}, which is also how the bytes {data!r} are "
                    "written in the byte-level alphabet, and words of the text hold these: give "
                    "another text"
                )
            found = pattern.search(text, found.start() + 1)
