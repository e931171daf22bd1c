"""Learning merges, slow and readable: the definition that the fast learners are tested against.

docs/algorithm.md describes it. Every round counts all pairs again from nothing, so no state can
go stale; Python's integers and fractions are exact. A symbol is its string: two ways to make the
same string make the same symbol. Cost: (merges) x (symbols of all words); for small corpora only.

WordPiece and word level stand in `reference_wordpiece.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.training.recipe import ALPHABETS, TIE_BREAKS

Pair = tuple[str, str]

BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))


class Symbol(NamedTuple):
    """A token at its place in a word.

    Attributes:
        text: Its string, decorations included.
        length: How many characters (or bytes) of the word it covers.
    """

    text: str
    length: int = 1


CountedWord = tuple[Sequence[Symbol], int]


@dataclass(frozen=True)
class Rules:
    """How the next pair is chosen and joined.

    Attributes:
        vocab_size: Entries at which to stop.
        min_frequency: The least count of a pair that is merged; 0 is as 1.
        tie_break: Which of the best pairs to take: the lowest pair of ids (`lowest_id`), the one
            met first (`first_seen`), or the one whose two byte strings are greatest
            (`greatest_bytes`).
        max_token_length: A place where the joined token would cover this many characters or more
            is neither counted nor merged, unless it would cover two; None is no limit.
        prefix: Dropped from the right part when a pair is joined.
        likelihood: The best pair has the highest count / (frequency of left x of right), not the
            highest count; and one below `min_frequency` is passed over.
        symbol_bytes: The bytes of a symbol, for `greatest_bytes`.
    """

    vocab_size: int
    min_frequency: int = 0
    tie_break: str = "lowest_id"
    max_token_length: int | None = None
    prefix: str = ""
    likelihood: bool = False
    symbol_bytes: Callable[[str], bytes] = str.encode

    def __post_init__(self) -> None:
        """Checks the tie rule."""
        require_choice("tie_break", self.tie_break, TIE_BREAKS)

    def may_join(self, left: Symbol, right: Symbol) -> bool:
        """Whether the joined token would not be too long at this place."""
        length = left.length + right.length
        return length == 2 or self.max_token_length is None or length < self.max_token_length

    def joined(self, left: str, right: str) -> str:
        """The token of a pair."""
        return left + right.removeprefix(self.prefix)


def learn_bpe(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    alphabet: str = "bytes",
    special_tokens: Sequence[str] = (),
    min_frequency: int = 0,
    tie_break: str = "lowest_id",
    symbol_bytes: Callable[[str], bytes] = byte_level.to_bytes,
    initial_alphabet: Iterable[str] = (),
    limit_alphabet: int | None = None,
    max_token_length: int | None = None,
    end_of_word_suffix: str = "",
    end_of_word_symbol: str = "",
    continuing_subword_prefix: str = "",
    byte_fallback: bool = False,
    unk_token: str | None = None,
) -> tuple[list[str], list[Pair]]:
    """Learns byte-pair merges from counted words.

    Args:
        words: (word, count) in order of first occurrence in the corpus. Each character of a word
            is a symbol: of the byte-level alphabet for byte-level BPE, plain ones otherwise.
        vocab_size: Entries of the vocabulary at which to stop.
        alphabet: `bytes` puts all 256 byte-level characters into the vocabulary, `seen` only
            those that occur.
        special_tokens: The vocabulary's first entries; a repeated one counts once.
        min_frequency: Stop when the best pair counts less than this.
        tie_break: Which of the pairs with the highest count to take; see `Rules`.
        symbol_bytes: The bytes of a symbol, for `greatest_bytes`; `str.encode` for plain
            characters.
        initial_alphabet: Characters that stand in the vocabulary even if they do not occur.
        limit_alphabet: How many characters to keep; the others are deleted from the words.
        max_token_length: See `Rules`.
        end_of_word_suffix: Added to the last character of a word.
        end_of_word_symbol: One character that is put after each word as a symbol of its own.
        continuing_subword_prefix: Put before each character of a word but the first; dropped from
            the right part when a pair is joined.
        byte_fallback: Put the tokens of the 256 bytes after the special tokens.
        unk_token: The unknown token: a special token, the first unless it is among them.

    Returns:
        The vocabulary in the order of ids, and the merges in the order learned. A merge whose
        joined token is in the vocabulary already stands among the merges and adds no entry; so a
        pair that comes back can be learned twice.

    Raises:
        UsageError: An unknown `alphabet` or `tie_break`, a `vocab_size` below the special tokens
            and the alphabet, or a word that holds the `end_of_word_symbol`.
    """
    prefix = continuing_subword_prefix
    rules = Rules(
        vocab_size, min_frequency, tie_break, max_token_length, prefix, symbol_bytes=symbol_bytes
    )
    require_choice("alphabet", alphabet, ALPHABETS)
    words = end_words(words, end_of_word_symbol)
    initial = {*initial_alphabet, *end_of_word_symbol}
    if alphabet == "bytes":
        initial.update(byte_level.BYTE_TO_CHAR)
    characters = choose_alphabet(words, initial, limit_alphabet)
    ids = number(first_entries(special_tokens, unk_token, byte_fallback), characters)
    counted = split_words(words, ids, prefix, end_of_word_suffix)
    ids = number(ids, sorted({symbol.text for symbols, _ in counted for symbol in symbols}))
    merges = learn(counted, ids, rules)
    return list(ids), merges


def continue_bpe(
    counted: Iterable[CountedWord], ids: Mapping[str, int], rules: Rules
) -> tuple[dict[str, int], list[Pair]]:
    """Goes on from an existing vocabulary.

    Args:
        counted: The words as that tokenizer splits them, and their counts. All symbols are in
            `ids`.
        ids: The vocabulary, missing characters appended. Ids may have holes; new entries are
            numbered on from the greatest.
        rules: How to go on; `vocab_size` counts entries, not holes.

    Returns:
        The whole vocabulary and the new merges.
    """
    extended = dict(ids)
    return extended, learn(counted, extended, rules)


def learn(counted: Iterable[CountedWord], ids: dict[str, int], rules: Rules) -> list[Pair]:
    """Learns merges; adds the joined tokens to `ids`.

    Raises:
        UsageError: `rules.vocab_size` is less than there are entries.
    """
    if rules.vocab_size < len(ids):
        raise UsageError(
            f"vocab_size={rules.vocab_size}: must be at least {len(ids)}, the special tokens and "
            "the alphabet"
        )
    counted = list(counted)
    merges: list[Pair] = []
    next_id = max(ids.values(), default=-1) + 1
    while len(ids) < rules.vocab_size:
        counts = count_pairs(counted, rules.may_join)
        best = best_pair(counts, frequencies(counted), ids, rules)
        if best is None:
            break
        counted = [(merge_pair(symbols, best, rules), count) for symbols, count in counted]
        merges.append(best)
        if ids.setdefault(rules.joined(*best), next_id) == next_id:
            next_id += 1
    return merges


def best_pair(
    counts: Mapping[Pair, int], frequency: Mapping[str, int], ids: Mapping[str, int], rules: Rules
) -> Pair | None:
    """The pair to merge; None when none is frequent enough."""
    scores = {
        pair: Fraction(count, frequency[pair[0]] * frequency[pair[1]])
        if rules.likelihood
        else Fraction(count)
        for pair, count in counts.items()
        if count >= max(1, rules.min_frequency)
    }
    if not scores:
        return None
    highest = max(scores.values())
    # In order of first occurrence: the words stand in that order, and a dict keeps it.
    tied = [pair for pair, score in scores.items() if score == highest]
    if rules.tie_break == "lowest_id":
        return min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
    if rules.tie_break == "first_seen":
        return tied[0]
    in_bytes = rules.symbol_bytes
    return max(tied, key=lambda pair: (in_bytes(pair[0]), in_bytes(pair[1])))


def count_pairs(
    counted: Iterable[CountedWord],
    may_join: Callable[[Symbol, Symbol], bool] = lambda left, right: True,
) -> dict[Pair, int]:
    """Counts adjacent pairs, each word weighted by its count, in order of first occurrence.

    Overlapping pairs count each: `a a a` holds (a, a) twice.
    """
    counts: dict[Pair, int] = {}
    for symbols, count in counted:
        for left, right in pairwise(symbols):
            if may_join(left, right):
                pair = (left.text, right.text)
                counts[pair] = counts.get(pair, 0) + count
    return counts


def frequencies(counted: Iterable[CountedWord]) -> dict[str, int]:
    """How often each symbol occurs, each word weighted by its count."""
    counts: dict[str, int] = {}
    for symbols, count in counted:
        for symbol in symbols:
            counts[symbol.text] = counts.get(symbol.text, 0) + count
    return counts


def merge_pair(symbols: Sequence[Symbol], pair: Pair, rules: Rules) -> list[Symbol]:
    """Joins a pair at every position, left to right, non-overlapping: `a a a` gives `aa a`."""
    merged: list[Symbol] = []
    place = 0
    while place < len(symbols):
        here = symbols[place : place + 2]
        if tuple(symbol.text for symbol in here) == pair and rules.may_join(*here):
            merged.append(Symbol(rules.joined(*pair), here[0].length + here[1].length))
            place += 2
        else:
            merged.append(symbols[place])
            place += 1
    return merged


def first_entries(
    special_tokens: Sequence[str], unk_token: str | None, byte_fallback: bool
) -> dict[str, int]:
    """The vocabulary before the alphabet."""
    unknown = [] if unk_token is None or unk_token in special_tokens else [unk_token]
    return number({}, [*unknown, *special_tokens, *(BYTE_TOKENS if byte_fallback else ())])


def number(ids: Mapping[str, int], tokens: Iterable[str]) -> dict[str, int]:
    """Appends those tokens that have no id yet."""
    numbered = dict(ids)
    next_id = max(numbered.values(), default=-1) + 1
    for token in tokens:
        if token not in numbered:
            numbered[token] = next_id
            next_id += 1
    return numbered


def choose_alphabet(
    words: Iterable[tuple[str, int]], initial: Iterable[str], limit: int | None
) -> list[str]:
    """The characters of the vocabulary, by code point.

    With a limit these are kept: the initial ones, then the most frequent; ties by code point.
    """
    counts: dict[str, int] = dict.fromkeys(initial, 0)
    chosen = frozenset(counts)
    for word, count in words:
        for character in word:
            counts[character] = counts.get(character, 0) + count

    def rank(character: str) -> tuple[bool, int, str]:
        if character in chosen:
            return (False, 0, character)
        return (True, -counts[character], character)

    return sorted(sorted(counts, key=rank)[:limit])


def split_words(
    words: Iterable[tuple[str, int]], kept: Iterable[str], prefix: str = "", suffix: str = ""
) -> list[CountedWord]:
    """Words as their first symbols; characters that are not kept are deleted.

    Which character is the first and which the last is decided before any is deleted.
    """
    kept = frozenset(kept)
    counted: list[CountedWord] = []
    for word, count in words:
        symbols = []
        for place, character in enumerate(word):
            if character in kept:
                before = prefix if place > 0 else ""
                after = suffix if place == len(word) - 1 else ""
                symbols.append(Symbol(before + character + after))
        counted.append((symbols, count))
    return counted


def end_words(words: Iterable[tuple[str, int]], symbol: str) -> list[tuple[str, int]]:
    """Puts the end-of-word symbol, if there is one, after each word.

    Raises:
        UsageError: A word holds it.
    """
    words = list(words)
    for word, _ in words:
        if symbol and symbol in word:
            raise UsageError(f"end_of_word_symbol={symbol!r}: stands in the word {word!r}")
    return [(word + symbol, count) for word, count in words]
