"""Smaller vocabularies and steps from one tally, against encoding with the first merges."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import reference_evaluation as reference
from reference_encoding import pretokenize
from small_tokenizers import SAMPLE, SPECIAL_TOKENS, learn

from bpe_beam.errors import UsageError
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.smaller_vocabularies import Derivations
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

# Other words than those of the training, too: pieces of its words.
WORDS = Counter(pretokenize(SAMPLE * 2 + "whether thirty they'llthing \u4f60\u754c \U0001f600x"))


def tally_of(vocabulary: Vocabulary, words: Counter[str]) -> Tally:
    tally = Tally.empty(len(vocabulary))
    texts = pa.array(list(words), pa.large_string())
    counts = np.array(list(words.values()), np.int64)
    encoder = WordEncoder(vocabulary.tokenizer, "none", "gpt2")
    tally.add_words(vocabulary, texts, counts, encoder.encode(texts))
    return tally


def by_token(vocabulary: Vocabulary, counts: list[int]) -> dict[str, int]:
    return {token: n for token, n in zip(vocabulary.tokens, counts, strict=True) if n}


@pytest.mark.parametrize("specials", [(), SPECIAL_TOKENS])
def test_smaller_vocabularies(specials: tuple[str, ...]) -> None:
    tokenizer = learn("bytes", specials, 120)
    vocabulary = Vocabulary(tokenizer)
    derivations = Derivations(vocabulary)
    derivations.check_order()
    assert derivations.minimum_size == 256 + len(specials)
    sizes = [derivations.minimum_size + merges for merges in (0, 1, 7, 50, 119, 120)]
    for size, tally in derivations.shrunk(tally_of(vocabulary, WORDS), sizes).items():
        merges = tokenizer.merges[: size - derivations.minimum_size]
        tokens: Counter[str] = Counter()
        whole = continued = 0
        for word, times in WORDS.items():
            found, _ = reference.tokens_made(byte_level.to_chars(word.encode()), merges)
            tokens.update(found * times)
            whole += times * (len(found) == 1)
            continued += times * (len(found) > 1)
        assert by_token(vocabulary, tally.tokens.tolist()) == tokens
        assert (int(tally.whole.sum()), tally.continued) == (whole, continued)
        assert tally.words == WORDS.total()


def test_times_made() -> None:
    tokenizer = learn("bytes", (), 120)
    vocabulary = Vocabulary(tokenizer)
    made: Counter[str] = Counter()
    for word, times in WORDS.items():
        symbols = byte_level.to_chars(word.encode())
        for token, number in reference.tokens_made(symbols, tokenizer.merges)[1].items():
            made[token] += times * number
    found = Derivations(vocabulary).times_made(tally_of(vocabulary, WORDS).tokens)
    assert by_token(vocabulary, found) == made


def test_a_token_that_two_merges_make_is_of_the_merge_that_happens() -> None:
    # b+c comes first, so abc is always a+bc.
    vocab = ["a", "b", "c", "ab", "bc", "abc"]
    merges = [("b", "c"), ("a", "b"), ("ab", "c"), ("a", "bc")]
    vocabulary = Vocabulary(Tokenizer.from_learned(vocab, merges))
    derivations = Derivations(vocabulary)
    made = {vocabulary.tokens[one.token]: one.rank for one in derivations.order}
    assert made == {"bc": 0, "ab": 1, "abc": 3}
    assert derivations.is_made(vocabulary.position_of["abc"])
    tally = derivations.shrunk(tally_of(vocabulary, Counter({"abc": 5, "ab": 1})), [5])[5]
    assert by_token(vocabulary, tally.tokens.tolist()) == {"a": 5, "bc": 5, "ab": 1}


def test_a_pair_listed_twice_has_its_last_rank() -> None:
    vocab = {token: number for number, token in enumerate(["a", "b", "c", "ab", "bc"])}
    model = BPE(vocab, [("a", "b"), ("b", "c"), ("a", "b")])
    vocabulary = Vocabulary(Tokenizer(TokenizerSpec(model)))
    made = {vocabulary.tokens[one.token]: one.rank for one in Derivations(vocabulary).order}
    assert made == {"bc": 1, "ab": 2}


def test_merges_out_of_order_are_refused() -> None:
    vocab = ["a", "b", "c", "ab", "abc"]
    vocabulary = Vocabulary(Tokenizer.from_learned(vocab, [("ab", "c"), ("a", "b")]))
    with pytest.raises(UsageError, match="merge 0 uses a token that a later merge makes"):
        Derivations(vocabulary).check_order()


def test_times_made_beyond_64_bits() -> None:
    vocabulary = Vocabulary(Tokenizer.from_learned(["a", "aa", "aaaa"], [("a", "a"), ("aa", "aa")]))
    derivations = Derivations(vocabulary)
    counts = np.array([1, 2, 2**61], np.int64)
    assert derivations.times_made(counts) == [1 + 2 * (2 + 2**62), 2 + 2**62, 2**61]
    assert derivations.times_made(np.array([0, 2**61 + 1, 2**61])) == [
        6 * 2**61 + 2,
        3 * 2**61 + 1,
        2**61,
    ]
    assert counts.tolist() == [1, 2, 2**61]
