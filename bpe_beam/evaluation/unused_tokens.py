"""Tokens that a vocabulary could do without: never used, unreachable, or steps to longer ones."""

from __future__ import annotations

from itertools import compress

import numpy as np
import pyarrow as pa
from msgspec import Struct

from bpe_beam.errors import DataError
from bpe_beam.evaluation.smaller_vocabularies import Derivations
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
    """A token in a list: its text quoted, or its bytes if these are not whole characters."""

    id: int
    token: str


class StepToken(Struct, frozen=True):
    """A token that is used almost only inside longer ones, which count in `made` too."""

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

    def listed(positions: list[int]) -> list[ListedToken]:
        return [
            ListedToken(int(vocabulary.ids[position]), vocabulary.shown(position))
            for position in positions[:MOST_LISTED]
        ]

    never = never_used(vocabulary, tokens)
    unreachable = unreachable_tokens(vocabulary, never, derivations)
    steps = None if derivations is None else steps_of(vocabulary, tokens, derivations)
    return UnusedTokens(
        never_used=len(never),
        unreachable=len(unreachable),
        inside_longer_ones=None if steps is None else len(steps),
        never_used_tokens=listed(never),
        unreachable_tokens=listed(unreachable),
        tokens_inside_longer_ones=None
        if steps is None
        else [
            StepToken(
                int(vocabulary.ids[at]), vocabulary.shown(at), int(tokens[at]), -negative_times
            )
            for negative_times, at in sorted(steps)[:MOST_LISTED]
        ],
    )


def never_used(vocabulary: Vocabulary, tokens: Integers) -> list[int]:
    """Return the positions of tokens that do not occur, without added tokens."""
    return [*np.flatnonzero((tokens == 0) & ~vocabulary.added).tolist()]


def steps_of(
    vocabulary: Vocabulary, tokens: Integers, derivations: Derivations
) -> list[tuple[int, int]]:
    """Return the tokens that are used almost only inside longer ones.

    Each is (-number of times that encoding made it, position).
    """
    made, used = derivations.times_made(tokens), tokens.tolist()
    return [
        (-made[position], position)
        for position in np.flatnonzero((tokens > 0) & ~vocabulary.added).tolist()
        if used[position] * STEP_SHARE <= made[position]
    ]


def unreachable_tokens(
    vocabulary: Vocabulary, candidates: list[int], derivations: Derivations | None
) -> list[int]:
    """Return the positions of tokens that no text gives, as far as is known."""
    model = vocabulary.tokenizer.spec.model
    if isinstance(model, BPE) and model.ignore_merges:
        derivations = None  # a whole word may be any token
    positions = np.array(candidates, np.int64)
    partial = vocabulary.partial[positions]
    unreachable = [
        position
        for position in positions[partial].tolist()
        if not is_within_utf8(vocabulary.token_bytes[position])
        or (derivations is not None and not derivations.is_made(position))
    ]
    remaining: list[int] = positions[~partial].tolist()
    for context in CONTEXTS:
        remaining = _not_given(vocabulary, remaining, context.encode())
    return sorted([*unreachable, *remaining])


def _not_given(vocabulary: Vocabulary, positions: list[int], context: bytes) -> list[int]:
    """Return the tokens that do not occur in their own text after a context."""
    missing: list[int] = []
    for start in range(0, len(positions), _AT_ONCE):
        batch = positions[start : start + _AT_ONCE]
        data = context.join([b"", *map(vocabulary.token_bytes.__getitem__, batch)])
        ends = np.cumsum(vocabulary.sizes[batch] + len(context))
        offsets = pa.py_buffer(np.concatenate(([0], ends)).astype(np.int64))
        texts = pa.LargeStringArray.from_buffers(len(batch), offsets, pa.py_buffer(data))
        given = _given(vocabulary, texts, vocabulary.ids[batch])
        missing += compress(batch, (~given).tolist())
    return missing


def _given(vocabulary: Vocabulary, texts: pa.Array, ids: Integers) -> Flags:
    """Return which texts have an id among theirs, each its own.

    A text that the vocabulary cannot represent has no ids.
    """
    tokenizer = vocabulary.tokenizer
    try:
        encoded = tokenizer.encode_batch(texts, output="arrow")
    except DataError:
        given = []
        for text, token_id in zip(texts.to_pylist(), ids.tolist(), strict=True):
            try:
                given.append(token_id in tokenizer.encode(text))
            except DataError:
                given.append(False)
        return np.array(given, bool)
    ends = encoded.offsets.to_numpy()
    equal = encoded.values.to_numpy() == np.repeat(ids, np.diff(ends))
    before: Integers = np.concatenate(([0], np.cumsum(equal)))
    flags: Flags = before[ends[1:]] > before[ends[:-1]]
    return flags
