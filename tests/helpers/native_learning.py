"""The native trainer on the reference's input, for tests that compare the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from reference_bpe import CountedWord, Pair, Rules

from bpe_beam import _native


def native_learn(
    counted: Sequence[CountedWord],
    ids: Mapping[str, int],
    rules: Rules,
    with_spans: bool,
) -> tuple[dict[str, int], list[Pair]]:
    """Return what `reference_bpe.continue_bpe` returns, by the native trainer.

    Characters are UTF-8.
    """
    size = max(ids.values(), default=-1) + 1
    tokens = [b""] * size
    for token, token_id in ids.items():
        tokens[token_id] = token.encode()
    symbols = [symbol for word, _ in counted for symbol in word]
    learner = _native.BpeLearner(
        np.array([ids[symbol.text] for symbol in symbols], np.uint32),
        np.cumsum([0, *(len(word) for word, _ in counted)], dtype=np.int64),
        np.array([count for _, count in counted], np.int64),
        tokens,
        rules.vocab_size + size - len(ids),
        rules.min_frequency,
        rules.tie_break,
        "likelihood" if rules.likelihood else "count",
        rules.prefix.encode(),
        rules.max_token_length,
        np.array([symbol.length for symbol in symbols], np.uint32) if with_spans else None,
    )
    rows = []
    while True:
        merges, _ = learner.learn(7)
        if not len(merges):
            break
        rows += merges.tolist()
    strings = [token.decode() for token in learner.tokens()]
    for left, right, joined in rows:
        assert strings[joined] == rules.joined(strings[left], strings[right])
    vocab = {string: token_id for token_id, string in enumerate(strings) if string}
    return vocab, [(strings[left], strings[right]) for left, right, _ in rows]
