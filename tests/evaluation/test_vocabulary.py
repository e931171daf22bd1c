"""Properties of tokens: their bytes, scripts and positions."""

from __future__ import annotations

import random

import numpy as np
import pytest
import reference_evaluation as reference

from bpe_beam.evaluation.vocabulary import Vocabulary, is_within_utf8, tokens_by_script
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE, Unigram, WordPiece
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer


def test_bytes_of_byte_level_tokens() -> None:
    tokens = [*byte_level.BYTE_TO_CHAR, byte_level.to_chars("\u8a9e".encode()), "<s>"]
    vocabulary = Vocabulary(Tokenizer.from_learned(tokens, [], ("<s>",)))
    assert vocabulary.token_bytes == [*(bytes([i]) for i in range(256)), "\u8a9e".encode(), b"<s>"]
    assert vocabulary.single_byte.tolist() == [True] * 256 + [False] * 2
    assert vocabulary.partial.tolist() == [False] * 128 + [True] * 128 + [False] * 2
    assert vocabulary.added.tolist() == [False] * 257 + [True]


def test_bytes_of_tokens_of_characters() -> None:
    pieces = Vocabulary(Tokenizer(TokenizerSpec(WordPiece({"[UNK]": 0, "##a": 1, "##": 2}))))
    assert pieces.token_bytes == [b"[UNK]", b"a", b"##"]
    assert pieces.unknown == 0
    scores = [("<unk>", 0.0), ("<0xE4>", -1.0), ("\u2581a", -1.0), ("<0xe4", -1.0)]
    model = Unigram(scores, unk_id=0, byte_fallback=True)
    unigram = Vocabulary(Tokenizer(TokenizerSpec(model)))
    assert unigram.token_bytes == [b"<unk>", b"\xe4", b" a", b"<0xe4"]
    ends = BPE({"a</w>": 0, "a": 1}, [], end_of_word_suffix="</w>")
    assert Vocabulary(Tokenizer(TokenizerSpec(ends))).token_bytes == [b"a", b"a"]


def test_all_tokens_at_once_against_one_by_one() -> None:
    made = random.Random(3)
    chars = [*byte_level.BYTE_TO_CHAR, "\u8a9e", "\U0001f600", "\u0145", "\u0430", " "]
    others = {"".join(made.choices(chars, k=made.randint(2, 5))) for _ in range(400)}
    texts = ("\u0434\u0430a", "\u65e5\u672c", "a1", "\u0627\u0644", "42", "\u00e9\u00df")
    words = [byte_level.to_chars(text.encode()) for text in texts]
    tokens = dict.fromkeys([*byte_level.BYTE_TO_CHAR, *words, *sorted(others)])
    model = BPE({token: number for number, token in enumerate(tokens)}, [])
    byte_level_steps = ByteLevelPreTokenizer(add_prefix_space=False)
    vocabulary = Vocabulary(Tokenizer(TokenizerSpec(model, pre_tokenizer=byte_level_steps)))
    expected = [
        byte_level.to_bytes(token) if byte_level.is_byte_level(token) else token.encode()
        for token in tokens
    ]
    assert vocabulary.token_bytes == expected
    assert tokens_by_script(vocabulary) == reference.tokens_by_script(expected)


def test_positions_of_ids_with_holes() -> None:
    vocabulary = Vocabulary(Tokenizer(TokenizerSpec(BPE({"a": 7, "b": 3, "c": 2**30}, []))))
    assert vocabulary.tokens == ["b", "a", "c"]
    ids = np.array([2**30, 3, 7, 7], np.uint32)
    assert vocabulary.positions(ids).tolist() == [2, 0, 1, 1]
    few = Vocabulary(Tokenizer(TokenizerSpec(BPE({"a": 7, "b": 3, "c": 900}, []))))
    ids = np.array([[900, 3], [7, 7]], np.uint32)
    assert few.positions(ids).tolist() == [[2, 0], [1, 1]]


def test_tokens_by_script() -> None:
    tokens = [
        "the",
        "\u2581the",
        "12",
        "\u0430",
        "\u0430a",
        "\u4f60\u597d",
        "\ua4d0",
        "\u0e01\u0e34",
        "a\u02bc",  # of a letter that all scripts share
    ]
    model = BPE({token: i for i, token in enumerate(tokens)}, [])
    assert tokens_by_script(Vocabulary(Tokenizer(TokenizerSpec(model)))) == {
        "Latin": 3, "Cyrillic": 1, "Han": 1, "Thai": 1, "none": 1, "other": 1, "several": 1,
    }  # fmt: skip
    bytes_only = Vocabulary(Tokenizer.from_learned(byte_level.BYTE_TO_CHAR, []))
    assert tokens_by_script(bytes_only) == {"partial_character": 128, "none": 76, "Latin": 52}


@pytest.mark.parametrize("data", [b"\xc0", b"\xff", b"a\xc1", b"\xe0\x80", b"\x80" * 4, b"\xe4a"])
def test_bytes_that_are_in_no_text(data: bytes) -> None:
    assert not is_within_utf8(data)


def test_slices_of_texts_are_within_utf8() -> None:
    data = "a\u00e9\u8a9e\U0001f600z\uffff\U0010ffff".encode()
    made = random.Random(1)
    for _ in range(300):
        begin = made.randrange(len(data))
        assert is_within_utf8(data[begin : made.randint(begin, len(data))])
