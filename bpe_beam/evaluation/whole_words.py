"""Words that are one token, found by their texts instead of by encoding.

Where the tokens of every word are together the bytes of the word, a word that is one token has the
text of that token. So the texts of the vocabulary are encoded, once, and any other word has two or
more tokens.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.models import BPE
from bpe_beam.tokenizer.pretokenizers import ByteLevelPreTokenizer, Digits, Split, flat
from bpe_beam.tokenizer.spec import TokenizerSpec


def whole_words(vocabulary: Vocabulary, encoder: WordEncoder) -> _native.WholeWords | None:
    """Return the words that are one token; None if they cannot be known from their texts.

    Cost: the encoding of the vocabulary's texts, each as a word.

    Args:
        vocabulary: The tokens of the tokenizer.
        encoder: The encoder of words.
    """
    if not _are_their_bytes(encoder.spec):
        return None
    numbers = [number for number, text in enumerate(vocabulary.texts) if text]
    texts = [vocabulary.texts[number] for number in numbers]
    encoded = encoder.encode(pa.array(texts, pa.large_string()))
    ends = encoded.offsets.to_numpy()
    single = np.flatnonzero(np.diff(ends) == 1)
    positions = vocabulary.positions(encoded.values.to_numpy()[ends[single]])
    if vocabulary.unknown is not None and (positions == vocabulary.unknown).any():
        return None  # such a word is one token, but not kept whole
    chosen = [vocabulary.token_bytes[numbers[at]] for at in single.tolist()]
    return _native.WholeWords([*zip(chosen, positions.tolist(), strict=True)])


def _are_their_bytes(spec: TokenizerSpec) -> bool:
    """Return whether the tokens of a text are together its bytes, and those of `Vocabulary.texts`.

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
