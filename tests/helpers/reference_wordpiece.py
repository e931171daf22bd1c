"""WordPiece and word-level learning, slow and readable; see docs/algorithm.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reference_bpe import (
    Pair,
    Rules,
    choose_alphabet,
    first_entries,
    learn,
    number,
    split_words,
)

from bpe_beam.errors import UsageError


def learn_wordpiece(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    unk_token: str | None = None,
    min_frequency: int = 0,
    tie_break: str = "lowest_id",
    initial_alphabet: Iterable[str] = (),
    limit_alphabet: int | None = None,
    max_token_length: int | None = None,
    continuing_subword_prefix: str = "##",
) -> tuple[list[str], list[Pair]]:
    """Learns WordPiece's vocabulary by likelihood.

    The best pair is that of the highest count / (frequency of left x frequency of right). (What
    Hugging Face calls WordPiece training is `reference_bpe.learn_bpe` with a prefix.)

    Args:
        words: (word, count) in order of first occurrence.
        vocab_size: Entries at which to stop.
        special_tokens: The first entries.
        unk_token: The unknown token: a special token, the first unless it is among them.
        min_frequency: A pair that counts less is passed over.
        tie_break: Which of the pairs with the highest score to take; see `reference_bpe.Rules`.
        initial_alphabet: Characters that stand in the vocabulary even if they do not occur, as
            the first of a word and as a later one.
        limit_alphabet: How many characters to keep; the others are deleted from the words.
        max_token_length: See `reference_bpe.Rules`.
        continuing_subword_prefix: Put before each character of a word but the first.

    Returns:
        The vocabulary in the order of ids: special tokens, the alphabet sorted as strings, joined
        tokens as they were learned; and the merges.

    Raises:
        UsageError: An unknown `tie_break`, or a `vocab_size` below the first entries.
    """
    prefix = continuing_subword_prefix
    rules = Rules(vocab_size, min_frequency, tie_break, max_token_length, prefix, likelihood=True)
    words = list(words)
    initial = set(initial_alphabet)
    kept = choose_alphabet(words, initial, limit_alphabet)
    first = first_entries(special_tokens, unk_token, byte_fallback=False)
    counted = split_words(words, {*kept, *first}, prefix)
    symbols = {symbol.text for symbols, _ in counted for symbol in symbols}
    for character in initial.intersection(kept):
        symbols |= {character, prefix + character}
    ids = number(first, sorted(symbols))
    merges = learn(counted, ids, rules)
    return list(ids), merges


def learn_word_level(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    special_tokens: Sequence[str] = (),
    unk_token: str | None = "<unk>",
    min_frequency: int = 0,
) -> list[str]:
    """The most frequent words, ties by text, after the special tokens.

    Raises:
        UsageError: A `vocab_size` below the special tokens.
    """
    ids = first_entries(special_tokens, unk_token, byte_fallback=False)
    if vocab_size < len(ids):
        raise UsageError(
            f"vocab_size={vocab_size}: must be at least {len(ids)}, the special tokens"
        )
    ranked = sorted(
        ((word, count) for word, count in words if count >= min_frequency and word not in ids),
        key=lambda entry: (-entry[1], entry[0]),
    )
    return [*ids, *(word for word, _ in ranked[: vocab_size - len(ids)])]
