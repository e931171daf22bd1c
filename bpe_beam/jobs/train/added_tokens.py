"""Warnings about the added tokens of a base tokenizer that counting did not extract."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.messages import shortened

_SEPARATOR = b"\xff"
"""Follows each word where many are searched at once; no token has this byte."""


def added_token_warnings(plan: TrainingPlan) -> list[str]:
    """Return a warning if words of the counts have added tokens of the base tokenizer.

    A word that has one is divided there when text is encoded, so that merges over it are of no
    use. An added token that the pre-tokenizer divides is not in one word, and is named without a
    number.
    """
    counts = plan.counts
    assert counts is not None
    added = (token.content for token in plan.added_tokens)
    tokens = [token for token in added if token not in counts.manifest.special_tokens]
    if not tokens:
        return []
    import pyarrow.compute as pc  # slow to import

    finder = _native.TokenFinder([(text.encode(), i, False) for i, text in enumerate(tokens)])
    totals = [0] * len(tokens)
    for words in counts.words(plan.storage):
        texts = words["word"].combine_chunks().cast(pa.large_binary())
        ends = (pa.scalar(text, pa.large_binary()) for text in (b"", _SEPARATOR))
        _, positions, data = pc.binary_join_element_wise(texts, *ends).buffers()
        offsets = np.frombuffer(positions, np.int64)
        numbers = words["count"].to_numpy()
        for token, begin, _ in finder.find(data):
            assert token is not None  # none is special
            word = int(np.searchsorted(offsets, begin, side="right")) - 1
            totals[token] += int(numbers[word])
    unit = 1 if counts.weights is None else counts.weights.unit
    listed = [
        f"{shortened(t)} {n // unit:,} times" for t, n in zip(tokens, totals, strict=True) if n
    ]
    if not listed:
        return []
    return [
        f"the counted words have added tokens of {plan.settings.continue_from}: "
        f"{', '.join(listed)}. They were counted as plain text, and merges over them are of no "
        "use: train from the corpus, or count with --special-token to extract them"
    ]
