"""Words that are one token, found by their texts instead of by encoding.

Where the tokens of every word are together the bytes of the word, a word that is one token has the
text of that token, and a word with any other text has two or more tokens. Words with the text of a
token are counted as that token; which of these texts are one token is found out in the end, by
encoding each once.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import compress

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer, Digits, Split, flat
from bpe_beam.tokenizer.spec import TokenizerSpec


class WholeWords:
    """Adds words to tallies without their tokens."""

    def __init__(self, vocabulary: Vocabulary, encoder: WordEncoder) -> None:
        self._vocabulary = vocabulary
        self._encoder = encoder
        whole = ~vocabulary.partial
        texts = b"".join(compress(vocabulary.token_bytes, whole.tolist()))
        offsets = np.concatenate(([0], np.cumsum(np.where(whole, vocabulary.sizes, 0))))
        self._native = _native.WholeWords(texts, offsets)

    def add(self, tally: Tally, texts: pa.Array, counts: Integers) -> None:
        """Add words to a tally; `settle` must follow."""
        tally.add_whole_words(self._native, texts, counts)

    def settle(self, tallies: Collection[Tally]) -> None:
        """Find out which of the words with the text of a token are one token.

        Cost: the encoding of these texts, each as a word.
        """
        found = np.flatnonzero(np.any([tally.whole > 0 for tally in tallies], axis=0))
        texts = [self._vocabulary.texts[position] for position in found.tolist()]
        encoded = self._encoder.encode(pa.array(texts, pa.large_string()))
        ends = encoded.offsets.to_numpy()
        is_one = np.diff(ends) == 1
        positions = self._vocabulary.positions(encoded.values.to_numpy()[ends[:-1][is_one]])
        for tally in tallies:
            times = tally.whole[found]
            tally.whole[found] = 0
            tally.whole[positions] = times[is_one]
            tally.continued += int(times[~is_one].sum())


def whole_words(vocabulary: Vocabulary, encoder: WordEncoder) -> WholeWords | None:
    """Return what adds words by their texts; None if these do not tell which are one token."""
    if not _are_their_bytes(encoder.spec):
        return None
    unknown = vocabulary.unknown
    if unknown is not None and (text := vocabulary.texts[unknown]):
        ids = encoder.encode(pa.array([text], pa.large_string())).values.to_pylist()
        if ids == [int(vocabulary.ids[unknown])]:
            return None  # such a word is one token, but not kept whole
    return WholeWords(vocabulary, encoder)


def _are_their_bytes(spec: TokenizerSpec) -> bool:
    """Return whether the tokens of a text make up its bytes, and the bytes of `Vocabulary.texts`.

    Then a text that is not empty has a token, and none is unknown.
    """
    model = spec.model
    if spec.normalizer is not None or not isinstance(model, BPE) or not spec.model_reads_bytes:
        return False
    alphabet = byte_level.CHAR_TO_BYTE.keys()
    if not model.vocab.keys() >= alphabet:
        return False
    # Special tokens are plain text, and none of them is a token that merges make of other bytes.
    plain = all(
        token.special and (token.content.isascii() or not alphabet >= set(token.content))
        for token in spec.added_tokens
    )
    *steps, last = flat(spec.pre_tokenizer)
    return (
        plain
        and isinstance(last, ByteLevelPreTokenizer)
        and not last.add_prefix_space
        and all(isinstance(one, Digits) or _keeps_all(one) for one in steps)
    )


def _keeps_all(step: object) -> bool:
    return isinstance(step, Split) and step.behavior != "Removed"
