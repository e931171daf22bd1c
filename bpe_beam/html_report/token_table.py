"""All tokens of a tokenizer for the page of a report, compressed: about nine bytes each."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import msgspec
import numpy as np

from bpe_beam.evaluation.smaller_vocabularies import Derivations
from bpe_beam.evaluation.unused_tokens import never_used, steps_of, unreachable_tokens
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary
from bpe_beam.tokenizer.components.models import BPE

# The script of the page draws the tree of merges of a token from this form: a merge is stored as
# the length of its left token, since the two tokens follow from their bytes.

KINDS = {
    "added": "added, such as special tokens",
    "never": "never used",
    "unreachable": "that no text gives",
    "step": "almost only inside longer ones",
    "partial": "not whole characters",
    "single": "of one byte",
}
"""The kinds of tokens that can be chosen; a token's kinds are the bits of a number, in order."""

_LEVEL = 6
"""The level of compression: the highest one takes eight times as long for 3 % less."""


def token_table(vocabulary: Vocabulary, counts: Integers) -> str:
    """Return the tokens, compressed, in base64."""
    model = vocabulary.tokenizer.spec.model
    derivations = Derivations(vocabulary) if isinstance(model, BPE) else None
    size = len(vocabulary)
    table: dict[str, Any] = {
        "text": [
            list(data) if text is None else text
            for text, data in zip(vocabulary.texts, vocabulary.token_bytes, strict=True)
        ],
        "count": counts.tolist(),
        "kinds": _kinds(vocabulary, counts, derivations),
    }
    if not np.array_equal(vocabulary.ids, np.arange(size)):
        table["ids"] = vocabulary.ids.tolist()
    if isinstance(model, BPE) and derivations is not None:
        table |= _merges(vocabulary, derivations)
        # Whether one merge for each token is all that is needed to encode a word of bytes.
        one_each = len(model.merges) == len(derivations.order)
        table["encodes"] = one_each and vocabulary.tokenizer.spec.model_reads_bytes
        table["whole"] = model.ignore_merges
    data = msgspec.json.encode(table)
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()


def _kinds(vocabulary: Vocabulary, counts: Integers, derivations: Derivations | None) -> list[int]:
    """Return the kinds of each token as the bits of a number."""
    never = never_used(vocabulary, counts)
    steps = [] if derivations is None else steps_of(vocabulary, counts, derivations)
    chosen: dict[str, Flags | list[int]] = {
        "added": vocabulary.added,
        "never": never,
        "unreachable": unreachable_tokens(vocabulary, never, derivations),
        "step": [position for _, position in steps],
        "partial": vocabulary.partial,
        "single": vocabulary.single_byte,
    }
    kinds = np.zeros(len(counts), np.int64)
    for bit, kind in enumerate(KINDS):
        kinds[chosen[kind]] |= 1 << bit
    return [*kinds.tolist()]


def _merges(vocabulary: Vocabulary, derivations: Derivations) -> dict[str, Any]:
    """Return the merge of each token."""
    data = vocabulary.token_bytes
    first: dict[bytes, int] = {}
    for position, added in enumerate(vocabulary.added.tolist()):
        if not added:
            first.setdefault(data[position], position)
    split, ranks = [0] * len(data), [0] * len(data)
    made: dict[int, tuple[int, int]] = {}
    before = 0
    for one in sorted(derivations.order):
        length = len(data[one.left])
        ranks[one.token], before = one.rank - before, one.rank
        split[one.token] = length
        parts = data[one.token][:length], data[one.token][length:]
        if (first.get(parts[0]), first.get(parts[1])) != (one.left, one.right):
            made[one.token] = one.left, one.right
    return {"split": split, "rank": ranks, "made": made}
