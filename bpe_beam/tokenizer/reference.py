"""Encoding and decoding, slow and readable: the definition that the fast ones are tested against.

docs/algorithm.md describes it: special tokens are cut out, the rest is cut into words by a
pattern, each word starts from its symbols, and the adjacent pair of lowest rank is joined,
leftmost first, until no adjacent pair has a rank. Cost: quadratic in the length of a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import regex

from bpe_beam.errors import DataError
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.patterns import GPT2_PATTERN


def pretokenize(text: str, pattern: str = GPT2_PATTERN) -> list[str]:
    """Cuts text into words: every match of the pattern, in order."""
    return [match.group() for match in regex.finditer(pattern, text)]


def encode_word(
    symbols: Iterable[str],
    vocab: Collection[str],
    merges: Sequence[tuple[str, str]],
    unk_token: str | None = None,
) -> list[str]:
    """Encodes one word.

    Args:
        symbols: The word's symbols: characters, or bytes in the byte-level alphabet.
        vocab: The tokens that exist.
        merges: Pairs in the order of rank; a pair listed twice has its last rank.
        unk_token: What a symbol outside the vocabulary becomes.

    Returns:
        The word's tokens.

    Raises:
        DataError: A symbol is not in the vocabulary and there is no unknown token.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens: list[str] = []
    for place, symbol in enumerate(symbols):
        if symbol in vocab:
            tokens.append(symbol)
        elif unk_token is not None:
            tokens.append(unk_token)
        else:
            raise DataError(f"symbol {symbol!r} at {place} is not in the vocabulary")
    while True:
        ranked = [
            (ranks[pair], place) for place, pair in enumerate(pairwise(tokens)) if pair in ranks
        ]
        if not ranked:
            return tokens
        _, place = min(ranked)
        tokens[place : place + 2] = [tokens[place] + tokens[place + 1]]


def split_specials(
    text: str, special_tokens: Collection[str], allowed: Collection[str]
) -> list[tuple[str, bool]]:
    """Cuts the special tokens out of a text.

    At each place, from the left, the longest special token that stands there is taken. One that
    is not allowed becomes plain text, together with what stands around it; a shorter one that it
    overlapped stays lost.

    Returns:
        The pieces in order: (text, whether it is an allowed special token).
    """
    pieces: list[tuple[str, bool]] = []
    plain_from = place = 0
    while place < len(text):
        found = max((t for t in special_tokens if text.startswith(t, place)), key=len, default="")
        if found in allowed and found:
            pieces += [(text[plain_from:place], False), (found, True)]
            plain_from = place + len(found)
        place += len(found) or 1
    pieces.append((text[plain_from:], False))
    return [piece for piece in pieces if piece[0]]


def encode(
    text: str,
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    special_tokens: Mapping[str, int] | None = None,
    allowed_special: Collection[str] = (),
    pattern: str = GPT2_PATTERN,
) -> list[int]:
    """Encodes a text with a byte-level BPE tokenizer without normalizer.

    Args:
        text: Any text without lone surrogates.
        vocab: Ids by token, in the byte-level alphabet.
        merges: Pairs in the order of rank.
        special_tokens: Ids of the special tokens, by their text.
        allowed_special: Which of them may be found in the text.
        pattern: The pre-tokenizer's pattern.

    Returns:
        The ids.

    Raises:
        DataError: A byte is not in the vocabulary.
    """
    specials = special_tokens or {}
    ids: list[int] = []
    for piece, is_special in split_specials(text, specials, allowed_special):
        if is_special:
            ids.append(specials[piece])
            continue
        for word in pretokenize(piece, pattern):
            symbols = byte_level.to_chars(word.encode())
            ids += [vocab[token] for token in encode_word(symbols, vocab, merges)]
    return ids


def decode(
    ids: Iterable[int],
    vocab: Mapping[str, int],
    special_tokens: Mapping[str, int] | None = None,
) -> str:
    """Decodes ids of a byte-level tokenizer; broken UTF-8 becomes U+FFFD.

    Raises:
        KeyError: An id that the tokenizer does not have.
    """
    data = {
        token_id: byte_level.to_bytes(token)
        for token, token_id in vocab.items()
        if byte_level.is_byte_level(token)
    }
    data.update({token_id: token.encode() for token, token_id in (special_tokens or {}).items()})
    return b"".join(data[token_id] for token_id in ids).decode("utf-8", errors="replace")
