"""Tokens that a vocabulary could do without, against texts that were tried one by one."""

from __future__ import annotations

import itertools

import numpy as np
import reference_evaluation as reference
from small_tokenizers import learn

from bpe_beam.evaluation.smaller_vocabularies import Derivations
from bpe_beam.evaluation.unused_tokens import MOST_LISTED, unreachable_tokens, unused_tokens
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import WordPiece
from bpe_beam.tokenizer.components.pretokenizers import BertPreTokenizer
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

NO_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}


def unreachable(tokenizer: Tokenizer) -> set[str]:
    vocabulary = Vocabulary(tokenizer)
    derivations = Derivations(vocabulary) if tokenizer.merges else None
    everything = list(range(len(vocabulary)))
    return {vocabulary.tokens[i] for i in unreachable_tokens(vocabulary, everything, derivations)}


def test_a_trained_tokenizer() -> None:
    tokenizer = learn("bytes", (), 120)
    # The first parts of 'll and 've are steps to them, and never words of their own.
    steps = {"'l", "'v"}
    assert unreachable(tokenizer) == steps | {byte_level.BYTE_TO_CHAR[byte] for byte in NO_UTF8}


def test_against_all_short_texts() -> None:
    # ca is cut off by ab; "a a" is two words; bab needs a merge that comes too late.
    vocab = ["a", "b", "c", "\u0120", "ab", "bc", "abc", "ca", "\u0120a", "a\u0120a", "bab"]
    merges = [
        ("a", "b"), ("b", "c"), ("a", "bc"), ("c", "a"), ("\u0120", "a"), ("a", "\u0120a"),
        ("b", "ab"),
    ]  # fmt: skip
    tokenizer = Tokenizer.from_learned(vocab, merges)
    texts = ["".join(t) for n in range(6) for t in itertools.product("abc ", repeat=n)]
    used = reference.given_by(tokenizer, texts)
    assert unreachable(tokenizer) == {
        token for token, i in tokenizer.vocab.items() if i not in used
    }
    assert unreachable(tokenizer) == {"abc", "a\u0120a"}


def test_a_part_of_a_character_that_merges_skip() -> None:
    chars = byte_level.to_chars("\U0001f600".encode())
    a, b, c = list(chars)[:3]
    vocab = [*byte_level.BYTE_TO_CHAR, a + b, b + c, chars[:3]]
    # a+b comes first, so b+c is never made in a+b+c.
    tokenizer = Tokenizer.from_learned(vocab, [(a, b), (b, c), (a, b + c)])
    assert unreachable(tokenizer) >= {chars[:3]}
    assert not unreachable(tokenizer) & {a + b, b + c}


def test_pieces_that_continue_words() -> None:
    vocab = {"[UNK]": 0, "x": 1, "##y": 2, "a b": 3, "##A b": 4, "z": 5}
    tokenizer = Tokenizer(TokenizerSpec(WordPiece(vocab), pre_tokenizer=BertPreTokenizer()))
    assert unreachable(tokenizer) == {"a b", "##A b"}


def test_tokens_inside_longer_ones() -> None:
    vocab = ["a", "b", "c", "ab", "abc", "<s>"]
    tokenizer = Tokenizer.from_learned(vocab, [("a", "b"), ("ab", "c")], ("<s>",))
    vocabulary = Vocabulary(tokenizer)
    found = unused_tokens(vocabulary, np.array([7, 0, 1, 5, 990, 0]), Derivations(vocabulary))
    # ab stays in 5 of 995 times, c in 1 of 991, a in 7 of 1,002; b never occurs.
    assert found.inside_longer_ones == 3
    assert found.tokens_inside_longer_ones is not None
    rows = [(one.id, one.used, one.made) for one in found.tokens_inside_longer_ones]
    assert rows == [(0, 7, 1002), (3, 5, 995), (2, 1, 991)]
    assert (found.never_used, found.unreachable) == (1, 0)
    assert [one.token for one in found.never_used_tokens] == ['"b"']
    even = unused_tokens(vocabulary, np.array([0, 0, 10, 0, 990, 0]), Derivations(vocabulary))
    assert even.inside_longer_ones == 1  # exactly once in 100


def test_lists_are_short() -> None:
    vocabulary = Vocabulary(learn("bytes", (), 0))
    found = unused_tokens(vocabulary, np.zeros(256, np.int64), None)
    assert found.never_used == 256
    assert len(found.never_used_tokens) == MOST_LISTED
    assert found.inside_longer_ones is None
