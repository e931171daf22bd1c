"""The definition of BPE learning, by worked examples."""

from __future__ import annotations

import pytest
from reference_bpe import (
    CountedWord,
    Rules,
    count_pairs,
    learn_bpe,
    merge_pair,
    split_words,
)
from reference_encoding import encode_word, pretokenize

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.training.recipe import TIE_BREAKS

pytestmark = pytest.mark.quick

FIVE_WORDS = [("hug", 10), ("pug", 5), ("pun", 12), ("bun", 4), ("hugs", 5)]
END_OF_WORD = [("cam_", 5), ("nham_", 4), ("tam_", 3), ("can_", 6), ("ham_", 4)]
COURSE = (
    "This is the Hugging Face Course.",
    "This chapter is about tokenization.",
    "This section shows several tokenizer algorithms.",
    "Hopefully, you will be able to understand how they are trained and generate tokens.",
)


def course_words() -> list[tuple[str, int]]:
    """The course corpus as counted words, in order of first occurrence."""
    counts: dict[str, int] = {}
    for document in COURSE:
        for word in pretokenize(document):
            chars = byte_level.to_chars(word.encode())
            counts[chars] = counts.get(chars, 0) + 1
    return list(counts.items())


def whole(words: list[tuple[str, int]]) -> list[CountedWord]:
    """Words as plain symbols."""
    return split_words(words, {*"".join(word for word, _ in words)})


def merged(word: str) -> list[str]:
    """After the merge of (a, a)."""
    [(symbols, _)] = whole([(word, 1)])
    return [symbol.text for symbol in merge_pair(symbols, ("a", "a"), Rules(0))]


class TestFiveWords:
    """hug 10, pug 5, pun 12, bun 4, hugs 5 (section 2)."""

    def test_counts(self) -> None:
        counts = count_pairs(whole(FIVE_WORDS))
        assert counts["h", "u"] == 15
        assert counts["u", "g"] == 20

    @pytest.mark.parametrize("tie_break", TIE_BREAKS)
    def test_merges(self, tie_break: str) -> None:
        vocab, merges = learn_bpe(
            FIVE_WORDS, vocab_size=10, alphabet="seen", tie_break=tie_break, symbol_bytes=str.encode
        )
        assert merges == [("u", "g"), ("u", "n"), ("h", "ug")]
        assert vocab == [*"bghnpsu", "ug", "un", "hug"]

    @pytest.mark.parametrize(
        ("word", "tokens"),
        [("bug", "b ug"), ("mug", "[UNK] ug"), ("thug", "[UNK] hug"), ("unhug", "un hug")],
    )
    def test_encoding(self, word: str, tokens: str) -> None:
        vocab, merges = learn_bpe(FIVE_WORDS, vocab_size=10, alphabet="seen")
        assert encode_word(word, vocab, merges, unk_token="[UNK]") == tokens.split()


class TestCourseCorpus:
    """Four documents, GPT-2 pre-tokenization, `first_seen`, 50 entries (section 2)."""

    MERGES = (
        "Ġ,t i,s e,r Ġ,a Ġt,o e,n T,h Th,is o,u s,e Ġto,k Ġtok,en n,d Ġ,is Ġt,h Ġth,e i,n "
        "Ġa,b Ġtoken,i"
    )
    ALPHABET = ", . C F H T a b c d e f g h i k l m n o p r s t u v w y z Ġ"

    def learn(self) -> tuple[list[str], list[tuple[str, str]]]:
        return learn_bpe(
            course_words(),
            vocab_size=50,
            alphabet="seen",
            special_tokens=["<|endoftext|>"],
            tie_break="first_seen",
        )

    def test_first_pair(self) -> None:
        counts = count_pairs(whole(course_words()))
        assert counts["Ġ", "t"] == 7 == max(counts.values())

    def test_merges_and_vocabulary(self) -> None:
        vocab, merges = self.learn()
        assert merges == [tuple(pair.split(",")) for pair in self.MERGES.split()]
        joined = [pair.replace(",", "") for pair in self.MERGES.split()]
        assert vocab == ["<|endoftext|>", *self.ALPHABET.split(), *joined]

    def test_encoding(self) -> None:
        vocab, merges = self.learn()
        tokens: list[str] = []
        for word in pretokenize("This is not a token."):
            tokens += encode_word(byte_level.to_chars(word.encode()), vocab, merges)
        assert tokens == ["This", "Ġis", "Ġ", "n", "o", "t", "Ġa", "Ġtoken", "."]


class TestEndOfWordSymbol:
    """cam 5, nham 4, tam 3, can 6, ham 4, `_` at the end of each (section 2)."""

    def test_counts(self) -> None:
        counts = count_pairs(whole(END_OF_WORD))
        assert {a + b: count for (a, b), count in counts.items()} == {
            "ca": 11, "am": 16, "m_": 16, "nh": 4, "ha": 8, "ta": 3, "an": 6, "n_": 6,
        }  # fmt: skip

    def test_merges_and_encoding(self) -> None:
        alphabet = len(set("camnht_"))
        vocab, merges = learn_bpe(
            END_OF_WORD, vocab_size=alphabet + 4, alphabet="seen", tie_break="first_seen"
        )
        assert merges == [("a", "m"), ("am", "_"), ("h", "am_"), ("c", "a")]
        assert encode_word("tam_", vocab, merges) == ["t", "am_"]


class TestRules:
    def test_ties(self) -> None:
        """Both pairs count 1; each rule has its own reason to take one of them."""
        words = [("ba", 1), ("ab", 1)]
        merges = {
            rule: learn_bpe(words, vocab_size=3, alphabet="seen", tie_break=rule)[1]
            for rule in TIE_BREAKS
        }
        assert merges == {
            "lowest_id": [("a", "b")],
            "first_seen": [("b", "a")],
            "greatest_bytes": [("b", "a")],
        }

    def test_greatest_bytes_compares_bytes_not_characters(self) -> None:
        """A space is `Ġ` (U+0120) in the alphabet, but byte 32, the lesser."""
        vocab = learn_bpe(
            [("Ġx", 1), ("ax", 1)], vocab_size=4, alphabet="seen", tie_break="greatest_bytes"
        )[0]
        assert vocab[-1] == "ax"

    def test_greatest_bytes_compares_the_left_string_first(self) -> None:
        """(a, bz) against (ab, a): as pairs the second is greater, as joined strings the first."""
        words = [("bz", 9), ("ab", 8), ("abz", 1), ("aba", 1)]
        merges = learn_bpe(words, vocab_size=6, alphabet="seen", tie_break="greatest_bytes")[1]
        assert merges == [("b", "z"), ("a", "b"), ("ab", "a")]

    def test_lowest_id_of_a_special_tokens_character(self) -> None:
        """`z` is special token 0, so (z, z) beats (a, a)."""
        merges = learn_bpe(
            [("aa", 1), ("zz", 1)], vocab_size=3, alphabet="seen", special_tokens=["z"]
        )[1]
        assert merges == [("z", "z")]

    def test_equal_symbols_merge_from_the_left(self) -> None:
        assert merged("aaa") == ["aa", "a"]
        assert merged("aaaaa") == ["aa", "aa", "a"]

    def test_overlapping_pairs_count_each(self) -> None:
        assert count_pairs(whole([("aaa", 5)])) == {("a", "a"): 10}

    def test_a_joined_token_that_exists_is_learned_and_adds_no_entry(self) -> None:
        vocab, merges = learn_bpe(
            [("abc", 3)], vocab_size=5, alphabet="seen", special_tokens=["ab"]
        )
        assert merges == [("a", "b"), ("ab", "c")]
        assert vocab == ["ab", "a", "b", "c", "abc"]

    def test_min_frequency(self) -> None:
        assert learn_bpe(FIVE_WORDS, vocab_size=99, alphabet="seen", min_frequency=16)[1] == [
            ("u", "g"),
            ("u", "n"),
        ]

    def test_stops_when_no_pair_is_left(self) -> None:
        vocab, merges = learn_bpe([("ab", 1)], vocab_size=99, alphabet="seen")
        assert (vocab, merges) == (["a", "b", "ab"], [("a", "b")])

    def test_words_that_never_occur_teach_nothing(self) -> None:
        assert learn_bpe([("ab", 0)], vocab_size=99, alphabet="seen")[1] == []

    def test_counts_beyond_64_bits(self) -> None:
        """2^53 + 1 against 2^53: a float or a 32-bit count could not tell them apart."""
        for more, less in (("ab", "cd"), ("cd", "ab")):
            merges = learn_bpe([(less, 2**53), (more, 2**53 + 1)], vocab_size=5, alphabet="seen")[1]
            assert merges == [tuple(more)]

    def test_all_bytes(self) -> None:
        vocab, _ = learn_bpe([("ab", 1)], vocab_size=257)
        assert vocab == [*sorted(byte_level.BYTE_TO_CHAR), "ab"]

    def test_vocab_size_below_the_alphabet(self) -> None:
        with pytest.raises(UsageError, match="vocab_size=256: must be at least 257"):
            learn_bpe([("ab", 1)], vocab_size=256, special_tokens=["<s>"])

    def test_unknown_settings(self) -> None:
        with pytest.raises(UsageError, match=r"tie_break must be one of lowest_id, .*, got 'best'"):
            learn_bpe([], vocab_size=256, tie_break="best")
        with pytest.raises(UsageError, match="alphabet must be one of bytes, seen, got 'some'"):
            learn_bpe([], vocab_size=256, alphabet="some")
