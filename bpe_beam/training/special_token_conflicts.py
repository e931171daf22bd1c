"""Special tokens that a byte-level model might also learn from the text.

`Ġthe` as a special token and `Ġthe`, as a merge makes it of the bytes of ` the`, would be one entry
with two meanings. So the words are searched first: no merge makes bytes that no word contains.
"""

from __future__ import annotations

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.recipe import Recipe
from bpe_beam.training.symbols import spelling_of
from bpe_beam.training.words import Words, first_word_with


def ambiguous_tokens(recipe: Recipe, base_tokenizer: Tokenizer | None = None) -> tuple[str, ...]:
    """Return the special and added tokens whose bytes words must not contain.

    Args:
        recipe: The settings; to continue a tokenizer, as `recipe_like` returned them.
        base_tokenizer: The tokenizer to continue, if any.
    """
    if not spelling_of(recipe).in_bytes:
        return ()
    added = () if base_tokenizer is None else base_tokenizer.spec.added_tokens
    tokens = dict.fromkeys((*recipe.specials, *(token.content for token in added)))
    return tuple(filter(byte_level.is_ambiguous, tokens))


def refuse_spelled(words: Words, tokens: tuple[str, ...]) -> None:
    """Refuse words that contain the bytes of ambiguous tokens.

    Args:
        words: All words, or a part.
        tokens: The tokens, as `ambiguous_tokens` returned them.

    Raises:
        UsageError: A word does; the message has the token and its bytes.
    """
    for token in tokens:
        data = byte_level.to_bytes(token)
        if first_word_with(words, data) is not None:
            raise UsageError(
                f"must not contain {token!r}, which is also how the bytes {data!r} are written in "
                "the byte-level alphabet, and words of the text contain these",
                ("special_tokens",),
                "choose another text",
            )
