"""Counted words to ids, by any tokenizer.

A word of counts is the text between two boundaries of a pre-tokenizer. A tokenizer with the same
normalizer and pre-tokenizer encodes a corpus word by word, so the ids of the counted words are
exactly the corpus's. Another tokenizer encodes each word as a short text. Its tokens
then cannot cross the boundaries of the counts, but for this they equal the corpus's if the
words are all of the text, as the words of named patterns are.
"""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.counts.word_table import WordRules
from bpe_beam.tokenizer.components.normalizers import (
    NORMALIZERS,
    Normalizer,
    NormalizerSequence,
    Prepend,
    normalizer_from_name,
)
from bpe_beam.tokenizer.components.pretokenizers import (
    PRETOKENIZERS,
    ByteLevelPreTokenizer,
    Metaspace,
    PreTokenizer,
    PreTokenizerSequence,
    ends_in_bytes,
    flat,
    pretokenizer_from_name,
    steps_of,
)
from bpe_beam.tokenizer.tokenizer import Tokenizer

_KEEP_BLANKS = (ByteLevelPreTokenizer, Metaspace)
_SPACE_MARK = "\u2581"


def rules_of_words(tokenizer: Tokenizer) -> WordRules | None:
    """Return rules by which counted words have the tokens of the corpus; None if none are known."""
    spec = tokenizer.spec
    normalizers = (one for one in NORMALIZERS if spec.normalizer == normalizer_from_name(one))
    normalizer = next(normalizers, None)
    if normalizer is None:
        return None
    for name in PRETOKENIZERS:
        if name != "none" and is_exact(tokenizer, normalizer, name):
            return WordRules(normalizer, name)
    return None


def is_exact(tokenizer: Tokenizer, normalizer: str, pretokenizer: str) -> bool:
    """Return whether the words of counts have the tokens of the corpus; see `WordEncoder.exact`."""
    spec = tokenizer.spec
    special = set(tokenizer.special_tokens)
    return (
        spec.normalizer == normalizer_from_name(normalizer)
        and _split_equally(
            spec.pre_tokenizer, pretokenizer_from_name(pretokenizer, byte_level=True)
        )
        and special >= {token.content for token in spec.added_tokens}
    )


class WordEncoder:
    """Encodes the words of counts.

    Attributes:
        exact: Whether the ids equal the corpus's: the tokenizer splits it into the same words.
        spec: What encodes the words: the tokenizer without what depends on the text around them.
    """

    def __init__(self, tokenizer: Tokenizer, normalizer: str, pretokenizer: str) -> None:
        spec = tokenizer.spec
        self.exact = is_exact(tokenizer, normalizer, pretokenizer)
        if self.exact:
            whole = ByteLevelPreTokenizer(use_regex=False)
            self.spec = replace(
                spec,
                added_tokens=(),
                normalizer=None,
                pre_tokenizer=whole if ends_in_bytes(spec.pre_tokenizer) else None,
                post_processor=None,
            )
            self._whole = tokenizer.words_encoder(self.spec)
        else:
            self.spec = replace(
                spec,
                normalizer=_unprefixed_normalizer(spec.normalizer),
                pre_tokenizer=_unprefixed(spec.pre_tokenizer),
            )
            parts = [(one.normalizer, one.pre_tokenizer) for one in (spec, self.spec)]
            # The tokenizer at hand may have its native encoder.
            self._words = tokenizer if parts[0] == parts[1] else Tokenizer(self.spec)
        self._marks_spaces = pretokenizer == "metaspace"

    def encode(self, words: pa.Array) -> pa.LargeListArray:
        """Return the ids of words."""
        if self.exact:
            return self._whole.encode_words(words)
        texts = self.texts_of(words)
        encoded: pa.LargeListArray = self._words.encode_batch(texts, output="arrow")
        return encoded

    def texts_of(self, words: pa.Array) -> pa.Array:
        """Return the texts of words: with spaces for the marks of the pre-tokenizer `metaspace`."""
        if not self._marks_spaces:
            return words
        import pyarrow.compute as pc  # slow to import: only for such counts

        return pc.replace_substring(words, _SPACE_MARK, " ")


def _split_equally(one: PreTokenizer | None, other: PreTokenizer | None) -> bool:
    """Return whether pre-tokenizers split each text in the same way, as far as is known."""
    if flat(one) == flat(other):
        return True
    # Settings without effect on the words, and spellings of one scanner, are the same steps.
    return steps_of(one, last_as_bytes=True) == steps_of(other, last_as_bytes=True)


def _unprefixed_normalizer(normalizer: Normalizer | None) -> Normalizer | None:
    """Return a normalizer that puts nothing before a text."""
    if isinstance(normalizer, Prepend):
        return None
    if isinstance(normalizer, NormalizerSequence):
        kept = [_unprefixed_normalizer(one) for one in normalizer.normalizers]
        return NormalizerSequence(tuple(one for one in kept if one is not None))
    return normalizer


def _unprefixed(pre_tokenizer: PreTokenizer | None) -> PreTokenizer | None:
    """Return a pre-tokenizer that puts no space before a text.

    A space is kept where the step before drops blanks: there it marks each word.
    """
    steps: list[PreTokenizer] = []
    for one in flat(pre_tokenizer):
        blanks = all(isinstance(step, _KEEP_BLANKS) for step in steps)
        if blanks and isinstance(one, Metaspace):
            one = replace(one, prepend_scheme="never")
        elif blanks and isinstance(one, ByteLevelPreTokenizer):
            one = replace(one, add_prefix_space=False)
        steps.append(one)
    if len(steps) < 2:
        return steps[0] if steps else None
    return PreTokenizerSequence(tuple(steps))
