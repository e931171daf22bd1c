"""The figures of an evaluation, slow and readable: what `bpe_beam/evaluation/` is tested against.

Everything is made of a list: each word of the corpus, occurrence by occurrence, with its tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import regex

from bpe_beam.evaluation.vocabulary import SCRIPTS
from bpe_beam.tokenizer.tokenizer import Tokenizer


def metrics(
    words: Mapping[str, int],
    encode: Callable[[str], list[str]],
    vocab_size: int,
    text_of: Callable[[str], bytes],
    unknown: str | None = None,
) -> dict[str, Any]:
    """Return the figures of words.

    Args:
        words: How often each word occurs.
        encode: Returns the tokens of a word.
        vocab_size: The number of tokens of the vocabulary.
        text_of: Returns the bytes of a token's text.
        unknown: The unknown token.
    """
    corpus = [word for word, times in words.items() for _ in range(times)]
    split = [encode(word) for word in corpus]
    tokens = [token for each in split for token in each]
    counts = Counter(tokens)
    shares = [Fraction(times, len(tokens)) for times in counts.values()]
    renyi = math.log2(math.fsum(float(share) ** 2.5 for share in shares)) / (1 - 2.5)
    number_of_bytes = sum(len(word.encode()) for word in corpus)

    def share_of(wanted: Callable[[str], bool]) -> float:
        return float(Fraction(sum(map(wanted, tokens)), len(tokens)))

    return {
        "words": len(corpus),
        "bytes": number_of_bytes,
        "characters": sum(map(len, corpus)),
        "tokens": len(tokens),
        "bytes_per_token": float(Fraction(number_of_bytes, len(tokens))),
        "characters_per_token": float(Fraction(sum(map(len, corpus)), len(tokens))),
        "words_per_token": float(Fraction(len(corpus), len(tokens))),
        "tokens_per_word": float(Fraction(len(tokens), len(corpus))),
        "words_kept_whole": float(
            Fraction(sum(len(each) == 1 and each != [unknown] for each in split), len(corpus))
        ),
        "continued_words": float(Fraction(sum(len(each) > 1 for each in split), len(corpus))),
        "single_byte_tokens": share_of(lambda token: len(text_of(token)) == 1),
        "partial_character_tokens": share_of(lambda token: not is_text(text_of(token))),
        "unknown_tokens": share_of(lambda token: token == unknown),
        "vocabulary_used": len(counts),
        "vocabulary_used_share": float(Fraction(len(counts), vocab_size)),
        "rare_vocabulary_share": float(
            1 - Fraction(sum(times >= 100 for times in counts.values()), vocab_size)
        ),
        "entropy": -math.fsum(float(share) * math.log2(share) for share in shares),
        "renyi_entropy": renyi,
        "renyi_efficiency": renyi / math.log2(vocab_size),
    }


def is_text(data: bytes) -> bool:
    """Return whether bytes are whole characters of UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def gini(values: Sequence[float]) -> float:
    """Return the mean difference of all pairs of values, a pair of itself included, over twice the
    mean."""
    exact = list(map(Fraction, values))
    differences = 2 * sum(abs(a - b) for a, b in combinations(exact, 2))
    return float(Fraction(differences) / len(exact) ** 2 / (2 * sum(exact) / len(exact)))


def tokens_made(
    symbols: Sequence[str], merges: Sequence[tuple[str, str]]
) -> tuple[list[str], Counter[str]]:
    """Return the tokens of a word, and how often encoding it made each token by a merge.

    Args:
        symbols: The symbols of the word.
        merges: Pairs in the order of rank.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens, made = list(symbols), Counter(symbols)
    while True:
        ranked = [(ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not ranked:
            return tokens, made
        _, index = min(ranked)
        tokens[index : index + 2] = [tokens[index] + tokens[index + 1]]
        made[tokens[index]] += 1


def given_by(tokenizer: Tokenizer, texts: Collection[str]) -> set[int]:
    """Return the ids that some texts give."""
    return {token_id for text in texts for token_id in tokenizer.encode(text)}


def tokens_by_script(tokens: Sequence[bytes]) -> dict[str, int]:
    """Return the number of tokens of each script, by Unicode's property of each letter.

    Args:
        tokens: The bytes of the tokens' texts.
    """
    numbers: Counter[str] = Counter()
    for data in tokens:
        try:
            letters = [char for char in data.decode() if char.isalpha()]
        except UnicodeDecodeError:
            numbers["partial_character"] += 1
            continue
        found = {_script_of(letter) for letter in letters} - {"Common"}
        numbers["several" if len(found) > 1 else next(iter(found), "none")] += 1
    return dict(sorted(numbers.items(), key=lambda row: (-row[1], row[0])))


def _script_of(letter: str) -> str:
    for script in ("Common", *SCRIPTS):
        if regex.match(rf"\p{{Script={script}}}", letter):
            return script
    return "other"
