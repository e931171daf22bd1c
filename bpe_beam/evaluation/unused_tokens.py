"""Tokens that a vocabulary could do without: never used, unreachable, or steps to longer ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from msgspec import Struct

from bpe_beam.errors import DataError
from bpe_beam.evaluation.derivations import Derivations
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary, is_within_utf8
from bpe_beam.tokenizer.components.models import BPE

MOST_LISTED = 100
"""The most tokens that a list of a report has."""

STEP_SHARE = 100
"""A token is a step if encoding made it at least this many times as often as it stays."""

CONTEXTS = ("", " ", "a", "x", "1", "\u2603", "\n", "\u4e2d")
"""What is put before a token's text to find out whether a text can give the token."""

_AT_ONCE = 65_536


class ListedToken(Struct, frozen=True):
    """A token in a list.

    Attributes:
        id: Its id.
        token: Its text, quoted; its bytes if these are not whole characters.
    """

    id: int
    token: str


class StepToken(Struct, frozen=True):
    """A token that is used almost only inside longer ones; see `ListedToken`.

    Attributes:
        used: How often it occurs.
        made: How often encoding made it, also where a later merge used it.
    """

    id: int
    token: str
    used: int
    made: int


class UnusedTokens(Struct, frozen=True):
    """Tokens that a vocabulary could do without; added tokens are not among them.

    A list has at most 100 tokens, the first by id, or those made most often.

    Attributes:
        never_used: The number of tokens that do not occur.
        unreachable: The number of those that no text gives, as far as is known: alone, and after
            each of some contexts. A token whose own symbols do not become this token, or whose
            bytes are no part of UTF-8, is certain.
        inside_longer_ones: The number of tokens that occur, but at most once for 100 times that
            encoding made them; None if the model is not BPE.
        never_used_tokens: Tokens that do not occur.
        unreachable_tokens: Tokens that no text gives.
        tokens_inside_longer_ones: Tokens that are used almost only inside longer ones.
    """

    never_used: int
    unreachable: int
    inside_longer_ones: int | None
    never_used_tokens: list[ListedToken]
    unreachable_tokens: list[ListedToken]
    tokens_inside_longer_ones: list[StepToken] | None


def unused_tokens(
    vocabulary: Vocabulary, tokens: Integers, derivations: Derivations | None
) -> UnusedTokens:
    """Return the tokens that a vocabulary could do without."""
    never = np.flatnonzero((tokens == 0) & ~vocabulary.added).tolist()
    unreachable = unreachable_tokens(vocabulary, never, derivations)
    steps = None if derivations is None else _steps(vocabulary, tokens, derivations)
    return UnusedTokens(
        never_used=len(never),
        unreachable=len(unreachable),
        inside_longer_ones=None if steps is None else len(steps),
        never_used_tokens=_listed(vocabulary, never),
        unreachable_tokens=_listed(vocabulary, unreachable),
        tokens_inside_longer_ones=None if steps is None else steps[:MOST_LISTED],
    )


def _listed(vocabulary: Vocabulary, positions: list[int]) -> list[ListedToken]:
    return [
        ListedToken(int(vocabulary.ids[position]), vocabulary.shown(position))
        for position in positions[:MOST_LISTED]
    ]


def _steps(vocabulary: Vocabulary, tokens: Integers, derivations: Derivations) -> list[StepToken]:
    """Return the tokens that are used almost only inside longer ones, those made most first."""
    made, used = derivations.times_made(tokens), tokens.tolist()
    rows = [
        (made[position], position)
        for position in np.flatnonzero((tokens > 0) & ~vocabulary.added).tolist()
        if used[position] * STEP_SHARE <= made[position]
    ]
    rows.sort(key=lambda row: (-row[0], row[1]))
    return [
        StepToken(
            int(vocabulary.ids[position]), vocabulary.shown(position), int(tokens[position]), times
        )
        for times, position in rows
    ]


def unreachable_tokens(
    vocabulary: Vocabulary, candidates: list[int], derivations: Derivations | None
) -> list[int]:
    """Return the tokens that no text gives, as far as is known; see `UnusedTokens`."""
    positions = np.array(candidates, np.int64)
    partial = vocabulary.partial[positions]
    unreachable = [
        position
        for position in positions[partial].tolist()
        if not _reachable_bytes(vocabulary, position, derivations)
    ]
    left: list[int] = positions[~partial].tolist()
    for context in CONTEXTS:
        left = _not_given(vocabulary, left, context)
    return sorted([*unreachable, *left])


def _reachable_bytes(
    vocabulary: Vocabulary, position: int, derivations: Derivations | None
) -> bool:
    """Return whether a text may give a token of bytes that are not whole characters."""
    if not is_within_utf8(vocabulary.token_bytes[position]):
        return False
    model = vocabulary.tokenizer.spec.model
    whole_words = isinstance(model, BPE) and model.ignore_merges
    return derivations is None or whole_words or derivations.is_made(position)


def _not_given(vocabulary: Vocabulary, positions: list[int], context: str) -> list[int]:
    """Return the tokens that do not occur in their own text after a context."""
    missing: list[int] = []
    for start in range(0, len(positions), _AT_ONCE):
        batch = positions[start : start + _AT_ONCE]
        texts = _texts_after(context.encode(), vocabulary, batch)
        given = _given(vocabulary, texts, vocabulary.ids[batch]).tolist()
        missing += [
            position for position, is_given in zip(batch, given, strict=True) if not is_given
        ]
    return missing


def _texts_after(context: bytes, vocabulary: Vocabulary, positions: list[int]) -> pa.Array:
    """Return the texts of tokens, each after a context, as large_string."""
    data = context.join([b"", *map(vocabulary.token_bytes.__getitem__, positions)])
    ends = np.cumsum(vocabulary.sizes[positions] + len(context))
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    buffers = pa.py_buffer(offsets), pa.py_buffer(data)
    return pa.LargeStringArray.from_buffers(len(positions), *buffers)


def _given(vocabulary: Vocabulary, texts: pa.Array, ids: Integers) -> Flags:
    """Return which texts have an id among theirs, each its own.

    A text that the vocabulary cannot represent has no ids.
    """
    tokenizer = vocabulary.tokenizer
    try:
        encoded = tokenizer.encode_batch(texts, output="arrow")
    except DataError:
        return np.array(
            [
                token_id in _ids_or_none(vocabulary, text)
                for text, token_id in zip(texts.to_pylist(), ids.tolist(), strict=True)
            ],
            np.bool_,
        )
    ends = encoded.offsets.to_numpy()
    equal = encoded.values.to_numpy() == np.repeat(ids, np.diff(ends))
    before: Integers = np.concatenate(([0], np.cumsum(equal)))
    flags: Flags = before[ends[1:]] > before[ends[:-1]]
    return flags


def _ids_or_none(vocabulary: Vocabulary, text: str) -> list[int]:
    try:
        return vocabulary.tokenizer.encode(text)
    except DataError:
        return []
