"""Encoding and decoding, slow and readable: the definition that the fast code is tested against.

docs/algorithm.md describes it. Special tokens are extracted, and the rest is split into words by a
pattern. Each word begins as its symbols. The leftmost adjacent pair of lowest rank is merged, until
no adjacent pair has a rank. The cost is quadratic in the length of a word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

import regex

from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN


def pretokenize(text: str, pattern: str = GPT2_PATTERN) -> list[str]:
    """Return the words of a text: every match of the pattern, in order.

    Args:
        text: Any text.
        pattern: The pre-tokenizer's pattern.
    """
    return [match.group() for match in regex.finditer(pattern, text)]


def encode_word(
    symbols: Iterable[str],
    vocab: Collection[str],
    merges: Sequence[tuple[str, str]],
    unk_token: str | None = None,
) -> list[str]:
    """Return the tokens of one word.

    Args:
        symbols: The word's symbols: characters, or bytes in the byte-level alphabet.
        vocab: The tokens that exist.
        merges: Pairs in the order of rank; a pair listed twice has its last rank.
        unk_token: The token of a symbol outside the vocabulary.

    Returns:
        The word's tokens.

    Raises:
        DataError: A symbol is not in the vocabulary and there is no unknown token.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    tokens: list[str] = []
    for position, symbol in enumerate(symbols):
        if symbol in vocab:
            tokens.append(symbol)
        elif unk_token is not None:
            tokens.append(unk_token)
        else:
            raise DataError(f"symbol {symbol!r} at {position} is not in the vocabulary")
    while True:
        ranked = [
            (ranks[pair], index) for index, pair in enumerate(pairwise(tokens)) if pair in ranks
        ]
        if not ranked:
            return tokens
        _, index = min(ranked)
        tokens[index : index + 2] = [tokens[index] + tokens[index + 1]]


def split_specials(
    text: str, special_tokens: Collection[str], allowed: Collection[str]
) -> list[tuple[str, bool]]:
    """Return a text split at its special tokens.

    At each position, from the left, the longest allowed token matches. Those that are not allowed
    are plain text.

    Args:
        text: Any text.
        special_tokens: All special tokens.
        allowed: The special tokens that are recognized.

    Returns:
        (text, whether it is an allowed special token), in order.
    """
    stretches: list[tuple[str, bool]] = []
    plain_from = at = 0
    while at < len(text):
        matching = (t for t in special_tokens if t in allowed and text.startswith(t, at))
        found = max(matching, key=len, default="")
        if found:
            stretches += [(text[plain_from:at], False), (found, True)]
            plain_from = at + len(found)
        at += len(found) or 1
    stretches.append((text[plain_from:], False))
    return [stretch for stretch in stretches if stretch[0]]


def encode(
    text: str,
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    special_tokens: Mapping[str, int] | None = None,
    allowed_special: Collection[str] = (),
    pattern: str = GPT2_PATTERN,
) -> list[int]:
    """Return the ids of a text by a byte-level BPE tokenizer without normalizer.

    Args:
        text: Any text without lone surrogates.
        vocab: Ids by token, in the byte-level alphabet.
        merges: Pairs in the order of rank.
        special_tokens: Ids of the special tokens, by their text.
        allowed_special: The special tokens that are recognized in the text.
        pattern: The pre-tokenizer's pattern.

    Returns:
        The ids.

    Raises:
        DataError: A byte is not in the vocabulary.
    """
    specials = special_tokens or {}
    ids: list[int] = []
    for stretch, is_special in split_specials(text, specials, allowed_special):
        if is_special:
            ids.append(specials[stretch])
            continue
        for word in pretokenize(stretch, pattern):
            symbols = byte_level.to_chars(word.encode())
            ids += [vocab[token] for token in encode_word(symbols, vocab, merges)]
    return ids


def decode(
    ids: Iterable[int],
    vocab: Mapping[str, int],
    special_tokens: Mapping[str, int] | None = None,
) -> str:
    """Return the text of ids by a byte-level tokenizer; invalid UTF-8 becomes U+FFFD.

    Args:
        ids: The ids.
        vocab: Ids by token, in the byte-level alphabet.
        special_tokens: Ids of the special tokens, by their text.

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
