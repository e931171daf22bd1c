"""BPE learning, slow and readable: the definition that the fast learners are tested against.

Section 2 of the semantics. Every round counts all pairs again from nothing, so no state can go
stale; Python's integers do not overflow. A symbol is its string: two ways to make the same
string make the same symbol. Cost: (merges) x (symbols of all words); for small corpora only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level

Pair = tuple[str, str]

TIE_BREAKS = ("lowest_id", "first_seen", "greatest_bytes")
ALPHABETS = ("bytes", "seen")


def learn_bpe(
    words: Iterable[tuple[str, int]],
    *,
    vocab_size: int,
    alphabet: str = "bytes",
    special_tokens: Sequence[str] = (),
    min_frequency: int = 0,
    tie_break: str = "lowest_id",
    symbol_bytes: Callable[[str], bytes] = byte_level.to_bytes,
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
        tie_break: Which of the pairs with the highest count to take: the lowest pair of ids
            (`lowest_id`), the one met first (`first_seen`), or the one whose two byte strings are
            greatest (`greatest_bytes`).
        symbol_bytes: The bytes of a symbol, for `greatest_bytes`; `str.encode` for plain
            characters.

    Returns:
        The vocabulary in the order of ids, and the merges in the order learned. A merge whose
        joined token is in the vocabulary already stands among the merges and adds no entry; so a
        pair that comes back can be learned twice.

    Raises:
        UsageError: An unknown `alphabet` or `tie_break`, or a `vocab_size` below the special
            tokens and the alphabet.
    """
    if tie_break not in TIE_BREAKS:
        raise UsageError(f"tie_break={tie_break!r}: must be one of {', '.join(TIE_BREAKS)}")
    if alphabet not in ALPHABETS:
        raise UsageError(f"alphabet={alphabet!r}: must be one of {', '.join(ALPHABETS)}")
    counted = [(list(word), count) for word, count in words]
    characters = {symbol for symbols, _ in counted for symbol in symbols}
    if alphabet == "bytes":
        characters.update(byte_level.BYTE_TO_CHAR)
    # A dict keeps the order of insertion, so the ids are 0, 1, 2 ... as entries are added.
    ids: dict[str, int] = {}
    for token in (*special_tokens, *sorted(characters)):
        ids.setdefault(token, len(ids))
    if vocab_size < len(ids):
        raise UsageError(
            f"vocab_size={vocab_size}: must be at least {len(ids)}, the special tokens and the "
            "alphabet"
        )

    merges: list[Pair] = []
    while len(ids) < vocab_size:
        counts = count_pairs(counted)
        if not counts:
            break
        highest = max(counts.values())
        if highest < max(1, min_frequency):
            break
        # In order of first occurrence: the words stand in that order, and a dict keeps it.
        tied = [pair for pair, count in counts.items() if count == highest]
        if tie_break == "lowest_id":
            best = min(tied, key=lambda pair: (ids[pair[0]], ids[pair[1]]))
        elif tie_break == "first_seen":
            best = tied[0]
        else:
            best = max(tied, key=lambda pair: (symbol_bytes(pair[0]), symbol_bytes(pair[1])))
        counted = [(merge_pair(symbols, best), count) for symbols, count in counted]
        merges.append(best)
        ids.setdefault(best[0] + best[1], len(ids))
    return list(ids), merges


def count_pairs(counted: Iterable[tuple[Sequence[str], int]]) -> dict[Pair, int]:
    """Counts adjacent pairs, each word weighted by its count, in order of first occurrence.

    Overlapping pairs count each: `a a a` holds (a, a) twice.
    """
    counts: dict[Pair, int] = {}
    for symbols, count in counted:
        for pair in pairwise(symbols):
            counts[pair] = counts.get(pair, 0) + count
    return counts


def merge_pair(symbols: Sequence[str], pair: Pair) -> list[str]:
    """Joins a pair wherever it stands, left to right, non-overlapping: `a a a` gives `aa a`."""
    merged: list[str] = []
    place = 0
    while place < len(symbols):
        if tuple(symbols[place : place + 2]) == pair:
            merged.append(pair[0] + pair[1])
            place += 2
        else:
            merged.append(symbols[place])
            place += 1
    return merged
