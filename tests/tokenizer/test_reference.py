"""The definition of encoding, by hand."""

from __future__ import annotations

import pytest
from reference_encoding import decode, encode, encode_word, pretokenize, split_specials

from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components import byte_level

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm sure they'll say", ["I", "'m", " sure", " they", "'ll", " say"]),
        ("'re 've 'd 's 't 'x", ["'re", " '", "ve", " '", "d", " '", "s", " '", "t", " '", "x"]),
        ("a  b", ["a", " ", " b"]),
        ("a   b", ["a", "  ", " b"]),
        ("a\n\nb", ["a", "\n", "\n", "b"]),
        ("a \n", ["a", " \n"]),
        ("x1.5!?", ["x", "1", ".", "5", "!?"]),
        ("你好。世界", ["你好", "。", "世界"]),
        ("", []),
    ],
)
def test_pretokenize(text: str, words: list[str]) -> None:
    assert pretokenize(text) == words


def test_lowest_rank_first() -> None:
    """(b, c) ranks before (a, b), though (a, b) is first in the text."""
    assert encode_word("abc", {"a", "b", "c", "ab", "bc"}, [("b", "c"), ("a", "b")]) == ["a", "bc"]


def test_leftmost_of_equals_first() -> None:
    assert encode_word("aaa", {"a", "aa"}, [("a", "a")]) == ["aa", "a"]


def test_not_the_merges_in_order() -> None:
    """Applied in order, (ab, c) would find nothing, as (a, b) is learned after it."""
    vocab = {"a", "b", "c", "ab", "abc"}
    assert encode_word("abc", vocab, [("ab", "c"), ("a", "b")]) == ["abc"]


def test_a_pair_listed_twice_has_its_last_rank() -> None:
    vocab = {"a", "b", "c", "ab", "bc"}
    merges = [("a", "b"), ("b", "c"), ("a", "b")]
    assert encode_word("abc", vocab, merges) == ["a", "bc"]


def test_no_whole_word_look_up() -> None:
    assert encode_word("abc", {"a", "b", "c", "abc"}, []) == ["a", "b", "c"]


def test_unknown_symbols() -> None:
    assert encode_word("xax", {"a", "?"}, [], unk_token="?") == ["?", "a", "?"]
    with pytest.raises(DataError, match="symbol 'x' at 1 is not in the vocabulary"):
        encode_word("ax", {"a"}, [])


def test_split_specials() -> None:
    tokens = ["<a>", "<a><b>", "<b>"]
    assert split_specials("x<a><b><b>y", tokens, tokens) == [
        ("x", False),
        ("<a><b>", True),
        ("<b>", True),
        ("y", False),
    ]
    # A token that is not allowed is plain text, and hides no other.
    assert split_specials("x<a><b><b>y", tokens, ["<b>"]) == [
        ("x<a>", False),
        ("<b>", True),
        ("<b>", True),
        ("y", False),
    ]
    assert split_specials("x<a>", tokens, []) == [("x<a>", False)]
    assert split_specials("", tokens, tokens) == []


def test_encode_and_decode() -> None:
    vocab = {char: byte for byte, char in enumerate(byte_level.BYTE_TO_CHAR)}
    vocab["Ã©"] = 256
    specials = {"<s>": 257}
    ids = encode("é<s>é <s", vocab, [("Ã", "©")], specials, ["<s>"])
    assert ids == [256, 257, 256, *b" <s"]
    assert decode(ids, vocab, specials) == "é<s>é <s"
    assert decode([0xC3, 256], vocab) == "\ufffdé"
