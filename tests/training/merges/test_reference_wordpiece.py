"""The definition of WordPiece learning, by worked examples."""

from __future__ import annotations

from fractions import Fraction

import pytest
from reference_bpe import count_pairs, frequencies, split_words
from reference_wordpiece import learn_word_level, learn_wordpiece

from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick

PROTON = [
    ("ProtonX", 2), ("là", 2), ("một", 2), ("công", 1), ("ty", 1), ("AI", 2), ("nơi", 1),
    ("ươm", 1), ("mầm", 1), ("tài", 1), ("năng", 1),
]  # fmt: skip
ALPHABET = "##I ##X ##g ##i ##m ##n ##o ##r ##t ##y ##à ##ô ##ă ##ơ ##ầ ##ộ A P c l m n t ư"
JOINED = (
    "cô Pr ty AI ươ nơ nă nơi ươm ##ầm là tà tài mộ mầm Pro Prot Proto một Proton ProtonX côn năn "
    "công năng"
)
GA = [("ga", 5), ("gấu", 6), ("gan", 8), ("gấm", 7), ("ha", 3)]


def scores(words: list[tuple[str, int]]) -> dict[tuple[str, str], Fraction]:
    counted = split_words(words, {*"".join(word for word, _ in words)}, "##")
    frequency = frequencies(counted)
    return {
        (left, right): Fraction(count, frequency[left] * frequency[right])
        for (left, right), count in count_pairs(counted).items()
    }


def test_scores() -> None:
    found = scores(PROTON)
    assert found["P", "##r"] == Fraction(1, 2)
    assert found["##r", "##o"] == Fraction(1, 4)
    assert found["##o", "##t"] == Fraction(1, 8)
    assert found["c", "##ô"] == 1
    assert found["t", "##à"] == Fraction(1, 6)


def test_the_whole_vocabulary() -> None:
    size = len(ALPHABET.split()) + 25
    vocab, merges = learn_wordpiece(PROTON, vocab_size=size, tie_break="first_seen")
    assert vocab == [*ALPHABET.split(), *JOINED.split()]
    assert merges[0] == ("c", "##ô")
    assert len(merges) == 25


def test_ties() -> None:
    found = scores(GA)
    assert found["g", "##a"] == Fraction(13, 26 * 16) < found["g", "##ấ"] == Fraction(13, 26 * 13)
    assert found["##ấ", "##u"] == found["##ấ", "##m"] == Fraction(1, 13) == max(found.values())
    firsts = {
        rule: learn_wordpiece(GA, vocab_size=99, tie_break=rule)[1][0]
        for rule in ("first_seen", "lowest_id")
    }
    assert firsts == {"first_seen": ("##ấ", "##u"), "lowest_id": ("##ấ", "##m")}


def test_the_prefix_belongs_to_the_string() -> None:
    """Of (a, ##b) and (##c, ##d), which tie, a's is the greater: `#` sorts before letters."""
    merges = learn_wordpiece([("ab", 2), ("c", 1)], vocab_size=9, tie_break="greatest_bytes")[1]
    assert merges == [("a", "##b")]
    words = [("ab", 2), ("xcd", 2), ("x", 2)]
    first = learn_wordpiece(words, vocab_size=99, tie_break="greatest_bytes")[1][0]
    assert first == ("a", "##b")
    assert learn_wordpiece(words, vocab_size=99)[1][0] == ("##c", "##d")


def test_a_rare_pair_is_passed_over() -> None:
    """(x, ##y) scores 1 and occurs once; (a, ##b) scores less and is learned in its place."""
    words = [("xy", 1), ("ab", 3), ("ac", 3)]
    assert learn_wordpiece(words, vocab_size=99)[1][0] == ("x", "##y")
    assert learn_wordpiece(words, vocab_size=99, min_frequency=2)[1][0] == ("a", "##b")


def test_initial_alphabet_in_both_places() -> None:
    vocab, _ = learn_wordpiece([("a", 1)], vocab_size=9, initial_alphabet="z")
    assert vocab == ["##z", "a", "z"]


def test_vocabulary_too_small() -> None:
    with pytest.raises(UsageError, match="must be at least 25"):
        learn_wordpiece(PROTON, vocab_size=24, special_tokens=["[UNK]"])


class TestWordLevel:
    def test_by_count_then_text(self) -> None:
        words = [("b", 2), ("a", 2), ("c", 5), ("d", 1), ("<s>", 9)]
        vocab = learn_word_level(words, vocab_size=9, special_tokens=["<s>"], min_frequency=2)
        assert vocab == ["<unk>", "<s>", "c", "a", "b"]
        assert learn_word_level(words, vocab_size=3) == ["<unk>", "<s>", "c"]

    def test_the_unknown_token_among_the_special_ones(self) -> None:
        vocab = learn_word_level([("a", 1)], vocab_size=9, special_tokens=["<s>", "<unk>"])
        assert vocab == ["<s>", "<unk>", "a"]

    def test_vocabulary_too_small(self) -> None:
        with pytest.raises(UsageError, match="at least 2"):
            learn_word_level([], vocab_size=1, special_tokens=["<s>"])
