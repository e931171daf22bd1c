"""The differences between two tokenizers, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bpe_beam.evaluation.differences import ADDED_TOKEN, Pair, PartDifference, differences
from bpe_beam.html_report.figures import Variables, as_text, token_texts, visible
from bpe_beam.html_report.words import MOST_TOKENS, WordLists, shown_text

MOST_ADDED_TOKENS = 5
"""The most added tokens with equal settings that have a row each where they differ."""


def pair_differences(pair: Pair, second: int, lists: WordLists | None) -> Variables:
    """Return what differs between the first tokenizer and the one of number `second`."""
    different = differences(pair)
    return {
        "a": pair.names[0],
        "b": pair.names[1],
        "tokens": different.tokens,
        "ids": different.ids,
        "merges": different.merges,
        "parts": list(_folded(different.parts)),
        "second": second,
        "words": None if lists is None else _other_words(lists, pair, second),
    }


def _other_words(lists: WordLists, pair: Pair, second: int) -> Variables:
    """Return the words that a pair encodes differently."""
    compared = lists.differences[second - 1]
    words = pa.array([word.word for word in compared.most_frequent], pa.large_string())
    by_both = []
    for vocabulary, encoder in zip(
        pair.vocabularies, (lists.encoders[0], lists.encoders[second]), strict=True
    ):
        encoded = encoder.encode(words)
        first = (one.values[:MOST_TOKENS].to_numpy() for one in encoded)
        lengths = np.diff(encoded.offsets.to_numpy()).tolist()
        tokens = (token_texts(vocabulary, vocabulary.positions(ids)) for ids in first)
        by_both.append([*zip(tokens, lengths, strict=True)])
    return {
        "unique": compared.other_unique_words,
        "share": as_text("unknown_tokens", compared.other_words / max(compared.words, 1)),
        "rows": [
            {"text": shown_text(word.word), "count": word.count, "a": a, "b": b}
            for word, a, b in zip(compared.most_frequent, *by_both, strict=True)
        ],
    }


def _folded(parts: Sequence[PartDifference]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the components that differ; many added tokens with equal settings are one row.

    A row has the component, what it is in both tokenizers, and the names of the folded tokens.
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        if part.part.startswith(ADDED_TOKEN):
            alike.setdefault((part.a, part.b), []).append(part.part.removeprefix(ADDED_TOKEN))
    for part in parts:
        tokens = alike.get((part.a, part.b), [])
        if not part.part.startswith(ADDED_TOKEN) or len(tokens) <= MOST_ADDED_TOKENS:
            yield visible(part.part), visible(part.a), visible(part.b), []
        elif part.part == ADDED_TOKEN + tokens[0]:
            names = [visible(token) for token in tokens]
            yield f"{len(tokens):,} added tokens", visible(part.a), visible(part.b), names
