"""Tokenizer: text to ids and back, and every way to give it something wrong."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import reference_encoding as reference

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick

END = "<|end|>"
END_OF_TEXT = "<|endoftext|>"


def reference_ids(tokenizer: Tokenizer, text: str, allowed: list[str]) -> list[int]:
    """The same by definition."""
    return reference.encode(
        text, tokenizer.vocab, tokenizer.merges, tokenizer.special_tokens, allowed
    )


class TestEncode:
    def test_equal_to_the_reference(self, tokenizer: Tokenizer, sample: str) -> None:
        for allowed in ([], [END], list(tokenizer.special_tokens)):
            for text in (sample, *sample.split("\n"), *sample.split(" ")):
                ids = tokenizer.encode(text, allowed_special=allowed)
                assert ids == reference_ids(tokenizer, text, allowed)

    def test_ids_are_python_integers(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode("the 3")
        assert all(type(number) is int for number in ids)

    def test_empty(self, tokenizer: Tokenizer) -> None:
        assert tokenizer.encode("") == []
        assert tokenizer.encode_with_offsets("") == ([], [], [])
        assert tokenizer.decode([]) == ""
        assert list(tokenizer.encode_iterable([])) == []
        assert tokenizer.encode_batch([]) == []

    def test_long_runs_of_one_character(self, tokenizer: Tokenizer) -> None:
        for text in ("a" * 1_000_000, "^" * 1_000_000, " " * 1_000_000, "\n" * 1_000_000):
            assert tokenizer.decode(tokenizer.encode(text)) == text

    def test_odd_characters(self, tokenizer: Tokenizer) -> None:
        for text in ("\0", "\ufeff", "\r\n", "\x85", "\U0010ffff", "\ufffd", "\u2028"):
            assert tokenizer.decode(tokenizer.encode(text)) == text
            assert tokenizer.encode(text) == reference_ids(tokenizer, text, [])

    def test_lone_surrogate(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(DataError, match=r"U\+D800 at 2 is a lone surrogate"):
            tokenizer.encode("ab\ud800")
        with pytest.raises(DataError, match=r"text 1: character U\+DC00 at 0 is a lone"):
            tokenizer.encode_batch(["ab", "\udc00"])
        with pytest.raises(DataError, match=r"U\+D800 at 4 is a lone surrogate"):
            list(tokenizer.encode_iterable(["ab", "cd\ud800"]))
        with pytest.raises(DataError, match=r"U\+D800 at 40000 is a lone surrogate"):
            list(tokenizer.encode_iterable(["a" * 40_000 + "\ud800"]))

    def test_surrogate_pair(self, tokenizer: Tokenizer) -> None:
        """As JSON's escapes, or those of UTF-16, without a reader that joins them."""
        pair = r"U\+D83D at 1 is the first of a surrogate pair, .* join pairs by text\.encode"
        with pytest.raises(DataError, match=pair):
            tokenizer.encode("a\ud83d\udc4d")
        with pytest.raises(DataError, match=pair):
            tokenizer.encode_batch(["a\ud83d\udc4d"])
        with pytest.raises(DataError, match=r"U\+DC4D at 0 is a lone surrogate"):
            tokenizer.encode("\udc4d\ud83d")

    def test_batches_of_characters_of_each_width(self, tokenizer: Tokenizer) -> None:
        texts = [
            f"{'ab ' * before}{character * count} x"
            for character in ("c", "\xe9", "\u0431", "\u8a9e", "\U0001f600")
            for before in (0, 1, 5)
            for count in (0, 1, 9, 100)
        ]
        expected = [tokenizer.encode(text) for text in texts]
        assert tokenizer.encode_batch(texts) == expected
        for character in ("\ud800", "\udfff", "\ud800\U0001f600"):
            with pytest.raises(DataError, match=r"text 2: .* at 9 is a lone surrogate"):
                tokenizer.encode_batch(["a", "\xe9", f"\u0431 ab ab c{character}"])

    def test_results_of_large_batches_stay_while_others_are_freed(
        self, tokenizer: Tokenizer
    ) -> None:
        texts = [["a" * 1_100_000], ["b" * 1_100_000], ["ab" * 550_000]]
        expected = [tokenizer.encode(text) for (text,) in texts]
        found = [tokenizer.encode_batch(each, output="arrow") for each in texts]
        for _ in range(3):
            del found[1]
            found.insert(1, tokenizer.encode_batch(texts[1], output="arrow"))
            for ids, wanted in zip(found, expected, strict=True):
                assert np.array_equal(ids.values.to_numpy(), wanted)

    def test_not_a_string(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(UsageError, match="the text is of type bytes; must be str"):
            tokenizer.encode(b"ab")
        with pytest.raises(UsageError, match="chunks: number 1 is of type int; must be str"):
            list(tokenizer.encode_iterable(["a", 3]))  # type: ignore[list-item]
        with pytest.raises(UsageError, match="chunks must be a sequence of texts, got"):
            tokenizer.encode_iterable("abc")


class TestSpecialTokens:
    def test_plain_text_unless_allowed(self, tokenizer: Tokenizer) -> None:
        special = tokenizer.special_tokens[END]
        assert special not in tokenizer.encode(END)
        assert tokenizer.encode(END, allowed_special=[END]) == [special]
        assert tokenizer.encode(END, allowed_special={END}) == [special]
        assert tokenizer.encode(END, allowed_special="all") == [special]

    def test_the_longest_wins(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.special_tokens
        text = END * 3
        assert tokenizer.encode(text, allowed_special="all") == [ids[END + END], ids[END]]

    def test_a_disallowed_longer_one_hides_no_allowed_one(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.special_tokens
        found = tokenizer.encode(END * 3, allowed_special=[END])
        assert found == [ids[END]] * 3

    def test_disallowed_text_joins_what_stands_around(self, tokenizer: Tokenizer) -> None:
        """`a` and `s` of `a<s>s`: as one word with the signs, not cut at them."""
        text = "   <s>   x"
        assert tokenizer.encode(text) == reference_ids(tokenizer, text, [])
        cut = tokenizer.encode("   ") + tokenizer.encode("<s>") + tokenizer.encode("   x")
        assert tokenizer.encode(text) != cut

    def test_disallowed_as_an_error(self, tokenizer: Tokenizer) -> None:
        text = "é" + END_OF_TEXT
        expected = (
            r'the text has the special token "<\|endoftext\|>" at character 1, .*'
            r"allowed_special=\['<\|endoftext\|>'\] or allowed_special=\"all\".*"
            r'disallowed_special="text"; or remove it'
        )
        with pytest.raises(DataError, match=expected):
            tokenizer.encode(text, disallowed_special="error")
        with pytest.raises(DataError, match=expected):
            tokenizer.encode_with_offsets(text, disallowed_special="error")
        with pytest.raises(DataError, match=expected):
            list(tokenizer.encode_iterable(list(text), disallowed_special="error"))
        with pytest.raises(DataError, match="text 1: " + expected):
            tokenizer.encode_batch(["a", text], disallowed_special="error")
        allowed = tokenizer.encode(text, allowed_special="all", disallowed_special="error")
        assert allowed[-1] == tokenizer.special_tokens[END_OF_TEXT]

    def test_wrong_settings(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(UsageError, match=r"\"all\" or a collection .* got '<s>'; for"):
            tokenizer.encode("", allowed_special="<s>")
        with pytest.raises(UsageError, match=r'special tokens .* got "<x>"; .*<s>'):
            tokenizer.encode_batch([], allowed_special=["<x>"])
        with pytest.raises(UsageError, match='must be "text" or "error"'):
            tokenizer.encode_iterable([], disallowed_special="no")


class TestEncodeBatch:
    TEXTS = ("the other", "", "é 😀 <|end|>", "x")

    def test_equal_to_encode(self, tokenizer: Tokenizer) -> None:
        for allowed in ((), "all"):
            expected = [tokenizer.encode(text, allowed_special=allowed) for text in self.TEXTS]
            arrow = pa.array(self.TEXTS, pa.large_string())
            padded = pa.array(["zzz", *self.TEXTS, "zzz"], pa.string())
            padded_large = padded.cast(pa.large_string())
            for texts in (
                self.TEXTS,
                list(self.TEXTS),
                arrow,
                arrow.cast(pa.string()),
                arrow.cast(pa.string_view()),
                padded.slice(1, len(self.TEXTS)),
                padded_large.slice(1, len(self.TEXTS)),
                pa.chunked_array([arrow[:1], arrow[1:1], arrow[1:]]),
                pa.chunked_array([padded.slice(1, 2), padded.slice(3, 2)]),
            ):
                found = tokenizer.encode_batch(texts, allowed_special=allowed)
                assert found == expected

    def test_type(self, tokenizer: Tokenizer) -> None:
        found = tokenizer.encode_batch(["a b"], output="arrow")
        assert isinstance(found, pa.LargeListArray)
        assert found.type == pa.large_list(pa.uint32())
        found.validate(full=True)

    def test_empty_arrays(self, tokenizer: Tokenizer) -> None:
        for texts in (
            pa.array([], pa.string()),
            pa.chunked_array([], pa.large_string()),
            pa.array(["a"], pa.string())[:0],
        ):
            assert tokenizer.encode_batch(texts) == []
        assert tokenizer.encode_batch(pa.array(["", ""])) == [[], []]

    def test_nulls_are_refused(self, tokenizer: Tokenizer) -> None:
        for texts in (pa.array(["a", None, "b"]), pa.chunked_array([["a"], [None]])):
            with pytest.raises(DataError, match="text 1: null; 1 of"):
                tokenizer.encode_batch(texts)

    def test_broken_utf8_is_refused(self, tokenizer: Tokenizer) -> None:
        broken = pa.array([b"ab", b"\xff"]).view(pa.string())
        with pytest.raises(DataError, match="texts: broken Arrow strings"):
            tokenizer.encode_batch(broken)

    def test_other_types_are_refused(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(UsageError, match="an Arrow array of int64; must be string"):
            tokenizer.encode_batch(pa.array([1]))
        with pytest.raises(UsageError, match="texts: str; must be a sequence of str"):
            tokenizer.encode_batch("ab")
        with pytest.raises(UsageError, match="text 1: the text is of type NoneType"):
            tokenizer.encode_batch(["a", None])

    def test_threads_share_a_tokenizer(self, tokenizer: Tokenizer, sample: str) -> None:
        texts = sample.split() * 20
        expected = tokenizer.encode_batch(texts)
        found: list[list[list[int]]] = []
        threads = [
            threading.Thread(target=lambda: found.append(tokenizer.encode_batch(texts)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(one == expected for one in found)
        assert len(found) == 4


class TestOffsets:
    def test_a_shared_character_is_in_both(self) -> None:
        """`éé` with its two middle bytes merged."""
        symbols = list(byte_level.to_chars("é".encode()))
        vocab = [*sorted(byte_level.BYTE_TO_CHAR), symbols[1] + symbols[0]]
        tokenizer = Tokenizer.from_learned(vocab, [(symbols[1], symbols[0])])
        tokens, ids, offsets = tokenizer.encode_with_offsets("éé")
        assert tokens == [symbols[0], symbols[1] + symbols[0], symbols[1]]
        assert ids == [tokenizer.token_to_id(token) for token in tokens]
        assert offsets == [(0, 1), (0, 2), (1, 2)]

    def test_special_tokens(self, tokenizer: Tokenizer) -> None:
        text = "é" + END + "é"
        tokens, _, offsets = tokenizer.encode_with_offsets(text, allowed_special="all")
        place = tokens.index(END)
        assert offsets[place] == (1, 1 + len(END))
        assert offsets[-1] == (len(text) - 1, len(text))


class TestMissingBytes:
    """A vocabulary of the bytes seen only (section 3: an error, not silence)."""

    def test_named_with_the_place(self, seen_tokenizer: Tokenizer) -> None:
        message = r"character 'ў' \(U\+045E\) at 7: one of its bytes is not in the vocabulary"
        text = "Привет ў"
        for encode in (
            seen_tokenizer.encode,
            seen_tokenizer.encode_with_offsets,
            lambda text: list(seen_tokenizer.encode_iterable(list(text))),
        ):
            with pytest.raises(DataError, match="^" + message):
                encode(text)
        with pytest.raises(DataError, match="^text 1: " + message):
            seen_tokenizer.encode_batch(["x", text])

    def test_the_place_counts_from_the_first_chunk(self, seen_tokenizer: Tokenizer) -> None:
        chunks = ["мир мир " * 1000] * 10 + ["ў"]
        with pytest.raises(DataError, match=r"\(U\+045E\) at 80000: "):
            list(seen_tokenizer.encode_iterable(chunks))

    def test_a_special_token_needs_no_bytes(self, seen_tokenizer: Tokenizer) -> None:
        assert "Z" not in seen_tokenizer.vocab
        number = seen_tokenizer.special_tokens["<|Z|>"]
        assert seen_tokenizer.encode("<|Z|>", allowed_special="all") == [number]
        with pytest.raises(DataError, match="character 'Z'"):
            seen_tokenizer.encode("<|Z|>")


class TestLookingAtIt:
    def test_vocabulary(self, tokenizer: Tokenizer) -> None:
        vocab = tokenizer.vocab
        assert tokenizer.vocab_size == len(vocab) == 256 + 6 + 150
        assert tokenizer.max_id == len(vocab) - 1
        assert list(vocab.values()) == list(range(len(vocab)))
        assert len(tokenizer.merges) == 150
        for token in ("Ġ", END, "Ġthe"):
            number = tokenizer.token_to_id(token)
            assert number == vocab[token]
            assert tokenizer.id_to_token(number) == token
        assert tokenizer.token_to_id("no such") is None
        assert tokenizer.id_to_token(10**6) is None

    def test_copies(self, tokenizer: Tokenizer) -> None:
        before = tokenizer.fingerprint
        tokenizer.vocab.clear()
        tokenizer.merges.clear()
        tokenizer.special_tokens.clear()
        assert Tokenizer.from_json(tokenizer.to_json()).fingerprint == before
        assert tokenizer.vocab_size > 0

    def test_repr(self, tokenizer: Tokenizer) -> None:
        assert repr(tokenizer).startswith("<Tokenizer: byte-level BPE, 412 tokens, 6 special,")

    def test_html_of_notebooks_escapes_tokens(self, tokenizer: Tokenizer) -> None:
        html = tokenizer._repr_html_()
        assert html.startswith("<table>")
        assert "412 tokens" in html
        assert tokenizer.fingerprint[:12] in html
        vocab = [*map(byte_level.to_chars, (bytes([b]) for b in range(256))), "<script>"]
        hostile = Tokenizer.from_learned(vocab, [], ["<script>"])._repr_html_()
        assert "&lt;script&gt;" in hostile
        assert "<script>" not in hostile


class TestComparing:
    def test_equal_tokenizers(self, tokenizer: Tokenizer) -> None:
        again = Tokenizer.from_json(tokenizer.to_json())
        assert again == tokenizer
        assert {again: 1}[tokenizer] == 1

    def test_other_tokenizers_and_things(self, tokenizer: Tokenizer) -> None:
        other = Tokenizer.from_learned([byte_level.to_chars(bytes([b])) for b in range(256)], [])
        assert other != tokenizer
        assert tokenizer != tokenizer.to_json()

    def test_length(self, tokenizer: Tokenizer) -> None:
        assert len(tokenizer) == tokenizer.vocab_size == len(tokenizer.vocab)


class TestKeeping:
    def test_pickle(self, tokenizer: Tokenizer, sample: str) -> None:
        tokenizer.encode("x")  # the native encoder is there and stays behind
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again.fingerprint == tokenizer.fingerprint
        assert again.encode(sample, allowed_special="all") == tokenizer.encode(
            sample, allowed_special="all"
        )

    def test_copies_are_the_tokenizer_which_never_changes(self, tokenizer: Tokenizer) -> None:
        assert copy.copy(tokenizer) is tokenizer
        assert copy.deepcopy([tokenizer])[0] is tokenizer

    def test_save_and_read(self, tokenizer: Tokenizer, tmp_path: Path) -> None:
        path = tmp_path / "tok #1%.json"
        tokenizer.save(str(path))
        assert path.read_bytes() == tokenizer.to_json().encode()
        again = Tokenizer.from_file(str(path))
        assert again.to_json() == tokenizer.to_json()
        assert again.fingerprint == tokenizer.fingerprint

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"nothing\.json: no such file"):
            Tokenizer.from_file(str(tmp_path / "nothing.json"))

    def test_a_file_of_absurd_size_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "huge.json"
        with path.open("wb") as file:
            file.truncate((1 << 30) + 1)
        with pytest.raises(UsageError, match=r"huge\.json: 1073741825 bytes; a tokenizer has at "):
            Tokenizer.from_file(str(path))

    def test_fingerprint_tells_tokenizers_apart(self, tokenizer: Tokenizer) -> None:
        vocab, merges = list(tokenizer.vocab), tokenizer.merges
        fewer = Tokenizer.from_learned(vocab, merges[:-1], list(tokenizer.special_tokens))
        assert fewer.fingerprint != tokenizer.fingerprint
        assert len(fewer.fingerprint) == 64

    def test_from_learned_refuses_what_does_not_fit(self) -> None:
        with pytest.raises(UsageError, match=r'vocab\[2\]: "a" is listed twice'):
            Tokenizer.from_learned(["a", "b", "a"], [])
        with pytest.raises(UsageError, match=r'merges\[0\]: "ab" of \["a", "b"\] is not in the v'):
            Tokenizer.from_learned(["a", "b"], [("a", "b")])
        with pytest.raises(UsageError, match='special_tokens: "<s>" is not in the vocabulary'):
            Tokenizer.from_learned(["a"], [], ["<s>"])
        with pytest.raises(UsageError, match='vocab: "a b": neither an added token nor'):
            Tokenizer.from_learned(["a b"], [])
        with pytest.raises(UsageError, match='special_tokens: "é" is also how the model writes'):
            Tokenizer.from_learned(["é"], [], ["é"])


def test_a_folder_is_read_by_its_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.from_file(str(tmp_path)) == tokenizer
    with pytest.raises(ValueError, match="has no file of a tokenizer") as caught:
        Tokenizer.from_file(str(tmp_path.parent))
    assert isinstance(caught.value, UsageError)


def test_ids_with_holes() -> None:
    vocab = {"a": 5, "b": 2**31 - 1, "ab": 70_000}
    entries = ", ".join(f'"{token}": {number}' for token, number in vocab.items())
    tokenizer = Tokenizer.from_json(
        '{"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, '
        '"trim_offsets": true}, "decoder": {"type": "ByteLevel", "add_prefix_space": true, '
        '"trim_offsets": true}, "model": {"vocab": {' + entries + '}, "merges": ["a b"]}}'
    )
    assert tokenizer.encode("abba") == [70_000, 2**31 - 1, 5]
    assert tokenizer.encode_batch(["b"]) == [[2**31 - 1]]
    assert tokenizer.decode([70_000, 5]) == "aba"
    assert (tokenizer.vocab_size, tokenizer.max_id) == (3, 2**31 - 1)
    assert list(tokenizer.vocab) == ["a", "ab", "b"]
    with pytest.raises(DataError, match="id 6 "):
        tokenizer.decode([6])
