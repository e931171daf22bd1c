"""The native module as Python sees it: what it takes, what it refuses, and that threads may share.

Nothing that a caller passes may reach a kernel unchecked: offsets, lengths and ids may come from
a file that somebody else wrote.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from bpe_beam import _native

pytestmark = pytest.mark.quick

NO_ID = 0xFFFFFFFF
BYTE_IDS = np.arange(256, dtype=np.uint32)
NO_IDS = np.zeros(0, np.uint32)
NO_MERGES = np.zeros((0, 3), np.uint32)
AB = np.array([[97, 98, 256]], np.uint32)
GPT2 = _native.Pipeline([], None, [("scan", "gpt2")])


def special(content: bytes, token_id: int) -> tuple[bytes, int, bool, bool, bool, bool, bool]:
    return (content, token_id, False, False, False, False, True)


def with_specials(*specials: tuple[bytes, int]) -> _native.Pipeline:
    return _native.Pipeline([special(*each) for each in specials], None, [("scan", "gpt2")])


def word_table(with_places: bool = False) -> _native.WordTable:
    return _native.WordTable(with_places)


def encoder_of(
    merges: np.ndarray = AB,
    byte_ids: np.ndarray = BYTE_IDS,
    pipeline: _native.Pipeline = GPT2,
    cache_bytes: int = 1 << 12,
) -> _native.Encoder:
    return _native.Encoder(pipeline, _native.byte_bpe(merges, byte_ids, []), cache_bytes)


def offsets(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# Each takes offsets into six bytes and should refuse what does not ascend within them.
TAKERS: dict[str, Callable[[np.ndarray], object]] = {
    "add_texts": lambda bounds: word_table().add_texts(GPT2, [], b"abcdef", bounds),
    "add_words": lambda bounds: word_table().add_words(
        b"abcdef", bounds, np.ones(max(0, len(bounds) - 1), np.int64)
    ),
    "encode_batch": lambda bounds: encoder_of().encode_batch(b"abcdef", bounds),
    "decode_batch": lambda bounds: _native.TokenBytes({0: "a"}, {}).decode_batch(
        np.zeros(6, np.uint32), bounds
    ),
    "texts_are_utf8": lambda bounds: _native.texts_are_utf8(b"abcdef", bounds),
    "learner": lambda bounds: _native.BpeLearner(
        np.zeros(6, np.uint32), bounds, np.ones(max(0, len(bounds) - 1), np.int64),
        [b"a"], 9, 0, "lowest_id",
    ),
    "pack_symbols": lambda bounds: _native.pack_symbols(np.zeros(6, np.uint32), bounds),
    "unpack_symbols": lambda bounds: _native.unpack_symbols(b"abcdef", bounds),
    "pair_table": lambda bounds: _native.PairTable().add_words(
        b"abcdef", bounds, np.ones(max(0, len(bounds) - 1), np.int64)
    ),
    "rewriter": lambda bounds: _native.Rewriter([AB]).rewrite(
        b"abcdef", bounds, np.ones(max(0, len(bounds) - 1), np.int64)
    ),
    "frequent_pairs": lambda bounds: _native.FrequentPairs(NO_IDS, NO_IDS).segments(
        b"abcdef", bounds, np.ones(max(0, len(bounds) - 1), np.int64), True
    ),
}  # fmt: skip


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize(
    "bounds", [(), (0, 7), (3, 2), (0, 3, 2), (-1, 3), (0, 2**62), (-(2**63), 0), (7, 7)]
)
def test_offsets_that_do_not_ascend_within_the_data(taker: str, bounds: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        TAKERS[taker](offsets(*bounds))


@pytest.mark.parametrize("taker", TAKERS)
def test_offsets_that_do(taker: str) -> None:
    for bounds in ((0, 6), (0, 1, 6), (2, 4), (6,)):
        TAKERS[taker](offsets(*bounds))


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", [np.float64, np.uint64, object])
def test_offsets_of_another_type(taker: str, kind: type) -> None:
    with pytest.raises(TypeError):
        TAKERS[taker](np.array([0, 6], kind))


@pytest.mark.parametrize("data", [b"it's", bytearray(b"it's"), memoryview(b"it's")])
def test_any_buffer(data: Any) -> None:
    table = word_table()
    assert table.add_texts(GPT2, [], data, offsets(0, 4)) == 2
    assert encoder_of().encode(data).tolist() == [105, 116, 39, 115]


def test_buffers_with_gaps() -> None:
    for data in (memoryview(b"abcdef")[::2], memoryview(b"abcdef")[::-1], np.zeros((2, 3), "u1")):
        with pytest.raises(ValueError, match="one contiguous"):
            word_table().add_texts(GPT2, [], data, offsets(0, 3))


@pytest.mark.parametrize(
    ("texts", "ascend"),
    [
        ([], True),
        (["a"], True),
        (["a", "ab", "b", "é"], True),
        (["", "a"], False),
        (["a", "a"], False),
        (["b", "a"], False),
        (["é", "a"], False),  # by unsigned bytes
    ],
)
def test_texts_ascend(texts: list[str], ascend: bool) -> None:
    parts = [text.encode() for text in texts]
    bounds = offsets(*itertools.accumulate(map(len, parts), initial=0))
    assert _native.texts_ascend(b"".join(parts), bounds) is ascend


def within_model(value: Any) -> bytes:
    """A value as it is written within the model of `tokenizer.json`."""
    whole = msgspec.json.format(msgspec.json.encode({"model": {"vocab": value}}), indent=2)
    return whole.removeprefix(b'{\n  "model": {\n    "vocab": ').removesuffix(b"\n  }\n}")


def test_vocabularies_as_json() -> None:
    tokens = [chr(i) for i in (*range(300), 0x2028, 0xFFFF, 0x1F600)]
    vocab = {f"{token}a{token}": 7**i % (2**32 - 1) for i, token in enumerate(tokens)}
    assert _native.join_json([vocab]) == within_model(vocab)
    escaped = {"\1" * 500: 1, '"' * 500: 2}  # more bytes than expected
    assert _native.join_json([b"<", escaped, b">"]) == b"<" + within_model(escaped) + b">"
    assert _native.join_json([{}]) == b"{}"
    assert _native.join_json([]) == b""
    with pytest.raises(UnicodeEncodeError):
        _native.join_json([{"\ud800": 1}])
    with pytest.raises(ValueError, match="a token must be a str"):
        _native.join_json([{1: 1}])  # type: ignore[dict-item]


def test_merges_as_json() -> None:
    merges = [("".join(map(chr, range(i, i + 8))), 'é"\\\u2028😀') for i in range(0, 136, 8)]
    assert _native.join_json([_native.Merges(merges)]) == within_model(merges)
    assert _native.join_json([_native.Merges([])]) == b"[]"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("kind", [str, Text])
def test_str_is_read_in_place_and_by_python_alike(kind: type[str]) -> None:
    """In place is the normal way in every supported Python; the other is for what comes later."""
    random_characters = random.Random(1)
    texts = [""]
    for end in (0x80, 0x100, 0x10000, 0x110000):  # one, one, two and four bytes a character
        for size in (1, 2, 7, 33, 1000):
            points = [random_characters.randrange(end) for _ in range(size)]
            text = "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
            texts.append(text + chr(end - 1))

    def results() -> list[Any]:
        made = [kind(text) for text in texts]  # Python keeps the UTF-8 of a str that it has made
        encoder = encoder_of(NO_MERGES)
        ids, ends = encoder.encode_texts(made)
        table = word_table()
        counted = table.add_text_list(GPT2, [], made, 0, 1 << 20, 1, None)
        merges = list(_native.Merges([(made[-1], text) for text in made[1:]]))
        with pytest.raises(UnicodeEncodeError):
            encoder.encode_texts([kind("a\ud800")])
        model = {text: i for i, text in enumerate(made)}
        return [ids.tolist(), ends.tolist(), counted, merges, _native.join_json([model])]

    assert _native.read_str_in_place(False)
    try:
        by_python = results()
    finally:
        assert not _native.read_str_in_place(True)
    assert results() == by_python
    assert by_python[0] == [byte for text in texts for byte in text.encode()]


def test_partition_of_is_fixed_for_ever() -> None:
    """The same as tests/native/test_hash.cpp: counts of other years are added to these."""
    words = [b"", b"a", b" the", b"Hello!!", b"fifteen letters", b"sixteen letters.", b"t" * 33]
    assert [_native.partition_of(word, 32) for word in words] == [28, 7, 26, 4, 10, 5, 12]
    assert [_native.partition_of(word, 1000) for word in words] == [
        876,
        229,
        818,
        131,
        342,
        179,
        380,
    ]


class TestWordTable:
    def test_split(self) -> None:
        table = _native.WordTable(True)
        table.add_texts(
            with_specials((b"<s>", 0)),
            [0],
            "b<s>é b".encode(),
            offsets(0, 8),
            np.array([5], np.uint64),
        )
        ((bounds, data, counts, documents, words),) = table.split(1)
        assert bytes(data) == " bbé".encode()
        assert bounds.tolist() == [0, 2, 3, 5]
        assert counts.tolist() == [1, 1, 1]
        assert documents.tolist() == [5, 5, 5]
        assert words.tolist() == [2, 0, 1]
        assert [array.dtype for array in (bounds, counts, documents, words)] == [
            np.int64, np.int64, np.uint64, np.uint64,
        ]  # fmt: skip

    def test_lists_of_texts_in_every_form_of_python_count_as_their_utf8(self) -> None:
        texts = ["", "a b", "\xe9\xff a", "\u8a9e \u0431", "\U0001f600 a", "a\0b"]
        data = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, data)])
        expected = word_table(True)
        documents = np.arange(7, 7 + len(texts), dtype=np.uint64)
        words = expected.add_texts(GPT2, [], b"".join(data), ends, documents)
        for form in (texts, data):
            table = word_table(True)
            assert table.add_text_list(GPT2, [], form, 7) == (words, ends[-1], len(texts))
            for ours, theirs in zip(table.split(1)[0], expected.split(1)[0], strict=True):
                assert np.array_equal(ours, theirs)

    @pytest.mark.parametrize("bad", ["\ud800", "a\udfff", b"\xff", b"a\xc3", 3, None, ["a"]])
    def test_a_list_stops_before_what_is_no_text(self, bad: object) -> None:
        assert word_table().add_text_list(GPT2, [], ["a", "b c", bad, "d"])[2] == 2

    def test_split_outlives_the_table(self) -> None:
        table = word_table()
        table.add_texts(GPT2, [], b"word " * 3, offsets(0, 15))
        parts = table.split(1)
        table.clear()
        del table
        assert bytes(parts[0][1]) == b"  wordword"
        assert parts[0][2].tolist() == [1, 2, 1]

    def test_what_it_refuses(self) -> None:
        table = word_table()
        with pytest.raises(ValueError, match="counts must have 1 items, got 2"):
            table.add_words(b"ab", offsets(0, 2), np.ones(2, np.int64))
        with pytest.raises(ValueError, match="partitions must be at least 1"):
            table.split(0)
        with pytest.raises(TypeError):
            table.split(-1)
        with pytest.raises(ValueError, match="added to itself"):
            table.add_table(table)
        with pytest.raises(ValueError, match="must have positions"):
            word_table(True).add_table(table)
        placed = word_table(True)
        with pytest.raises(ValueError, match="documents must be set"):
            placed.add_words(b"ab", offsets(0, 2), np.ones(1, np.int64))
        with pytest.raises(ValueError, match="positions must have 2 items, got 1"):
            placed.add_texts(GPT2, [], b"ab", offsets(0, 1, 2), np.ones(1, np.uint64))

    @pytest.mark.parametrize(("add", "times"), [("add_texts", 20), ("add_table", 3000)])
    def test_threads_that_share_one(self, add: str, times: int) -> None:
        """They wait for each other: nothing is lost."""
        text = " ".join("w" * (i % 40) + "abcdef"[i % 6] * (i // 240) for i in range(5000)).encode()
        other = word_table()
        words = other.add_texts(GPT2, [], text, offsets(0, len(text)))
        table = word_table()

        def work() -> None:
            for _ in range(times):
                if add == "add_texts":
                    table.add_texts(GPT2, [], text, offsets(0, len(text)))
                else:
                    table.add_table(other)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(part[2].sum() for part in table.split(5)) == 4 * times * words
        assert len(table) == len(other) > 800


class TestBpeLearner:
    def test_what_it_gives(self) -> None:
        learner = _native.BpeLearner(
            np.array([0, 1, 0, 1], np.uint32), offsets(0, 2, 4), offsets(2**40, 3),
            [b"a", b"b"], 9, 0, "first_seen",
        )  # fmt: skip
        merges, counts = learner.learn(5)
        assert merges.dtype == np.uint32
        assert merges.tolist() == [[0, 1, 2]]
        assert counts.tolist() == [2**40 + 3]
        assert learner.tokens() == [b"a", b"b", b"ab"]
        merges, counts = learner.learn(5)
        assert merges.shape == (0, 3)
        assert counts.tolist() == []
        assert not learner.stopped

    @pytest.mark.parametrize("stop", [True, False])
    def test_a_token_it_knows(self, stop: bool) -> None:
        learner = _native.BpeLearner(
            np.array([0, 1, 2], np.uint32), offsets(0, 3), offsets(5),
            [b"a", b"b", b"c", b"ab"], 9, 0, "lowest_id", stop_at_known=stop,
        )  # fmt: skip
        expected = [[0, 1, 3]] if stop else [[0, 1, 3], [3, 2, 4]]
        assert learner.learn(9)[0].tolist() == expected
        assert learner.stopped is stop
        assert learner.learn(9)[0].tolist() == []

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"tie_break": "best"}, "lowest_id, first_seen or greatest_bytes, got best"),
            ({"counts": offsets(1, 2)}, "one item more than counts"),
            ({"counts": offsets(0)}, "count must be at least 1"),
            ({"tokens": [b"a"]}, "a symbol has no token"),
            ({"tokens": [b"a", b""]}, "a symbol has no token"),
            ({"tokens": [b"a", b"a"]}, "two ids have the same token"),
        ],
    )
    def test_what_it_refuses(self, change: dict[str, Any], message: str) -> None:
        settings: dict[str, Any] = {
            "symbols": np.array([0, 1], np.uint32), "offsets": offsets(0, 2),
            "counts": offsets(1), "tokens": [b"a", b"b"], "vocab_size": 9, "min_frequency": 0,
            "tie_break": "lowest_id",
        }  # fmt: skip
        _native.BpeLearner(**settings)
        with pytest.raises(ValueError, match=message):
            _native.BpeLearner(**{**settings, **change})

    def test_counts_beyond_64_bits(self) -> None:
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            _native.BpeLearner(
                np.array([0, 0], np.uint32), offsets(0, 2), offsets(2**62), [b"a"], 9, 0,
                "lowest_id",
            )  # fmt: skip


class TestPipeline:
    def test_words(self) -> None:
        """All parts at once; what is not special is cut out always."""
        added = [
            (b"<S>", 1, False, False, False, False, True),
            (b"XY", 2, False, False, False, True, False),
            (b"cat", 3, True, False, False, False, False),
            (b"<l>", 4, False, True, True, False, False),
        ]
        pipeline = _native.Pipeline(
            added, ("Lowercase",), [("scan", "whitespace_split"), ("prepend", b"_", False)]
        )
        text = b"A<S>b XY cat cats  <l>  C"
        assert pipeline.words(text) == [b"_a<s>b", b"_cats", b"_c"]
        assert pipeline.words(text, [1]) == [b"_a", b"_b", b"_cats", b"_c"]

    @pytest.mark.parametrize(
        ("behavior", "words"),
        [
            ("Removed", [b"a", b"b"]),
            ("Isolated", [b"a", b"-", b"-", b"b"]),
            ("MergedWithPrevious", [b"a-", b"-", b"b"]),
            ("MergedWithNext", [b"a", b"-", b"-b"]),
            ("Contiguous", [b"a", b"--", b"b"]),
        ],
    )
    def test_behaviors(self, behavior: str, words: list[bytes]) -> None:
        step = ("split", ("literal", b"-"), behavior, False)
        assert _native.Pipeline([], None, [step]).words(b"a--b") == words

    def test_first_only_and_rewritten(self) -> None:
        steps: list[tuple[Any, ...]] = [
            ("scan", "whitespace_split"), ("prepend", b"_", True), ("rewrite", ("Lowercase",)),
        ]  # fmt: skip
        assert _native.Pipeline([], None, steps).words(b"A B") == [b"_a", b"b"]

    def test_an_added_token_of_which_nothing_is_left(self) -> None:
        added = [(b"  ", 1, False, False, False, True, False)]
        pipeline = _native.Pipeline(added, ("Strip", True, True), [("scan", "gpt2")])
        assert pipeline.words(b" a  b ") == [b"a", b" ", b" b"]

    @pytest.mark.parametrize(
        ("added", "steps", "message"),
        [
            ([special(b"", 0)], [], "an added token is empty"),
            ([], [("scan", "nonesuch")], "scanner must be one of SCANNERS, got nonesuch"),
            ([], [("cut",)], "step must be scan, fixed_length, split, rewrite or prepend, got cut"),
            (
                [],
                [("split", ("literal", b"-"), "kept", False)],
                "behavior must be a SplitDelimiterBehavior, got kept",
            ),
        ],
    )
    def test_what_it_refuses(self, added: list[Any], steps: list[Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            _native.Pipeline(added, None, steps)


class TestModels:
    def encode(self, model: _native.Model, text: str) -> list[tuple[int, int, int]]:
        pipeline = _native.Pipeline([], None, [("scan", "whitespace_split")])
        encoder = _native.Encoder(pipeline, model)
        ids, begins, ends, added = encoder.encode_with_offsets(text.encode())
        assert added.tolist() == []
        assert [array.dtype for array in (ids, begins, ends)] == [np.uint32, np.uint64, np.uint64]
        assert encoder.encode(text.encode()).tolist() == ids.tolist()
        return list(zip(ids.tolist(), begins.tolist(), ends.tolist(), strict=True))

    def test_byte_bpe(self) -> None:
        model = _native.byte_bpe(AB, BYTE_IDS, [(b"ba", 300)])
        assert self.encode(model, "ab ba") == [(256, 0, 2), (300, 3, 5)]

    @pytest.mark.parametrize(
        ("change", "text", "expected"),
        [
            ({}, "ab", [(3, 0, 2)]),
            ({}, "éxa", [(0, 0, 2), (0, 2, 3), (1, 3, 4)]),
            ({"fuse_unk": True}, "éxa", [(0, 0, 3), (1, 3, 4)]),
            ({"ignore_merges": True}, "ba", [(4, 0, 2)]),
            ({"ignore_merges": False}, "ba", [(2, 0, 1), (1, 1, 2)]),
            ({"prefix": b"##"}, "ab", [(1, 0, 1), (5, 1, 2)]),
            ({"suffix": b"</w>"}, "ab", [(1, 0, 1), (6, 1, 2)]),
            ({"byte_fallback": range(1000, 1256)}, "é", [(1195, 0, 2), (1169, 0, 2)]),
            (
                {"byte_fallback": range(1000, 1256), "prefix": b"#", "suffix": b"$"},
                "ax",
                [(1, 0, 1), (1035, 1, 1), (1120, 1, 2), (1036, 1, 2)],
            ),
        ],
    )
    def test_char_bpe(
        self, change: dict[str, Any], text: str, expected: list[tuple[int, int, int]]
    ) -> None:
        settings: dict[str, Any] = {
            "merges": np.array([[1, 2, 3]], np.uint32),
            "tokens": [(b"a", 1), (b"b", 2), (b"ab", 3), (b"ba", 4), (b"##b", 5), (b"b</w>", 6)],
            "prefix": b"", "suffix": b"", "unk": 0, "fuse_unk": False, "ignore_merges": False,
            "byte_fallback": [],
        }  # fmt: skip
        assert self.encode(_native.char_bpe(**{**settings, **change}), text) == expected

    def test_wordpiece(self) -> None:
        tokens = [(b"ty", 1), (b"##m", 2)]
        model = _native.wordpiece(tokens, b"##", 0, 3)
        expected = [(1, 0, 2), (2, 2, 3), (0, 4, 8), (0, 9, 10)]
        assert self.encode(model, "tym tymm x") == expected
        with pytest.raises(_native.MissingSymbolError) as caught:
            self.encode(_native.wordpiece(tokens, b"##", None, 3), "ty éx")
        assert caught.value.args == (0, 3, 6)

    def test_word_level(self) -> None:
        assert self.encode(_native.word_level([("é".encode(), 4)], 0), "é x") == [
            (4, 0, 2), (0, 3, 4),
        ]  # fmt: skip
        with pytest.raises(_native.MissingSymbolError):
            self.encode(_native.word_level([(b"a", 4)], None), "x")

    def test_rank_merges(self) -> None:
        rows = _native.rank_merges([b"a", b"b", b"ab", b"abb"])
        assert (rows.dtype, rows.tolist()) == (np.uint32, [[0, 1, 2], [2, 1, 3]])
        rows = _native.rank_merges([b"a", b"b", b"abb", b"ab"])
        assert rows.tolist() == [[3, 1, 2], [0, 1, 3]]
        assert _native.rank_merges([b"a"]).shape == (0, 3)

    @pytest.mark.parametrize(
        ("merges", "byte_ids", "message"),
        [
            (np.zeros((2, 2), np.uint32), BYTE_IDS, "left, right, joined"),
            (np.zeros(3, np.uint32), BYTE_IDS, "left, right, joined"),
            (NO_MERGES, BYTE_IDS[:255], "byte_ids must have 256 items, got 255"),
            (np.array([[1, 2, NO_ID]], np.uint32), BYTE_IDS, "an id that is none"),
        ],
    )
    def test_what_they_refuse(self, merges: np.ndarray, byte_ids: np.ndarray, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            _native.byte_bpe(merges, byte_ids, [])

    def test_byte_fallback_of_another_length(self) -> None:
        with pytest.raises(ValueError, match="byte_fallback must have 256 items, got 3"):
            _native.char_bpe(NO_MERGES, [], b"", b"", 0, False, False, [1, 2, 3])


class TestEncoder:
    def test_batch_equals_one_by_one(self) -> None:
        encoder = encoder_of(pipeline=with_specials((b"<s>", 500)))
        texts = [b"ab ab", b"", b"<s>ab", b"x" * 100, b"abab<s>"]
        bounds = np.cumsum([0, *map(len, texts)])
        for allowed in ([], [500]):
            ids, id_bounds = encoder.encode_batch(b"".join(texts), bounds, allowed)
            assert ids.dtype == np.uint32
            assert id_bounds.dtype == np.int64
            assert [ids[begin:end].tolist() for begin, end in itertools.pairwise(id_bounds)] == [
                encoder.encode(text, allowed).tolist() for text in texts
            ]

    def test_allowed_in_any_order(self) -> None:
        pipeline = with_specials((b"<a>", 502), (b"<b>", 500), (b"<c>", 501))
        encoder = encoder_of(pipeline=pipeline)
        for allowed in ([502, 500, 501], [501, 502, 500, 500]):
            assert encoder.encode(b"<a><b><c>", allowed).tolist() == [502, 500, 501]

    def test_places(self) -> None:
        encoder = encoder_of(pipeline=with_specials((b"<s>", 500)))
        ids, begins, ends, added = encoder.encode_with_offsets("é<s>ab".encode(), [500])
        assert ids.tolist() == [0xC3, 0xA9, 500, 256]
        assert begins.tolist() == [0, 0, 2, 5]
        assert ends.tolist() == [2, 2, 5, 7]
        assert added.tolist() == [2]

    def test_missing_symbol(self) -> None:
        byte_ids = BYTE_IDS.copy()
        byte_ids[ord("z")] = NO_ID
        encoder = encoder_of(byte_ids=byte_ids)
        for encode in (encoder.encode, encoder.encode_with_offsets):
            with pytest.raises(_native.MissingSymbolError) as caught:
                encode(b"ab abz")
            assert caught.value.args == (0, 5, 6)
        with pytest.raises(_native.MissingSymbolError) as caught:
            encoder.encode_batch(b"abababz", offsets(0, 2, 4, 7))
        assert caught.value.args == (2, 2, 3)
        assert isinstance(caught.value, ValueError)
        assert encoder.encode(b"ab").tolist() == [256]

    def test_merges_with_gaps_between_rows(self) -> None:
        spread = np.zeros((2, 6), np.uint32)
        spread[:, ::2] = [[97, 98, 256], [256, 99, 257]]
        assert encoder_of(spread[:, ::2]).encode(b"abc").tolist() == [257]

    def test_threads_that_share_one(self) -> None:
        encoder = encoder_of(cache_bytes=100)
        texts = [
            bytes(made) for made in np.random.default_rng(1).integers(97, 101, (50, 300), "u1")
        ]
        expected = [encoder.encode(text).tolist() for text in texts]
        wrong: list[bytes] = []

        def work() -> None:
            for _ in range(10):
                for text, ids in zip(texts, expected, strict=True):
                    if encoder.encode(text).tolist() != ids:
                        wrong.append(text)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_separators_of_records_are_text() -> None:
    """A byte out of a character would cut others in two, and what is good would be rejected."""
    with pytest.raises(ValueError, match="separator must be UTF-8"):
        _native.text_records(b"a\xc3\xa9b", b"\xc3", 0, 0, 4, True, 10, 100, "", 0)
    found = _native.text_records(b"a\xc3\xa9b", b"\xc3\xa9", 0, 0, 4, True, 10, 100, "", 0)
    assert len(found[7]) == 2


def test_the_longest_token_that_counts_is_found_leftmost_first() -> None:
    """Against a slow definition."""
    draw = random.Random(5)
    for _ in range(1000):
        lengths = [draw.randrange(1, 6) for _ in range(draw.randrange(1, 12))]
        texts = [bytes(draw.choice(b"ab\xff\x00") for _ in range(length)) for length in lengths]
        ids = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        special = {text for text in ids if draw.random() < 0.5}
        allowed = [ids[text] for text in special if draw.random() < 0.5]
        data = bytes(draw.choice(b"abc\xff\x00") for _ in range(30))
        expected: list[tuple[int | None, int, int]] = []
        at = plain_until = 0
        while at < len(data):
            there = sorted((text for text in ids if data.startswith(text, at)), key=len)
            counting = [text for text in there if text in special and ids[text] in allowed]
            if at >= plain_until and there:
                if there[-1] not in special:
                    counting = there
                elif ids[there[-1]] not in allowed:
                    plain_until = at + len(there[-1])
                    expected.append((None, at, plain_until))
            if counting:
                expected.append((ids[counting[-1]], at, at + len(counting[-1])))
            at += len(counting[-1]) if counting else 1
        finder = _native.TokenFinder([(text, n, text in special) for text, n in ids.items()])
        found = finder.find(data, allowed)
        assert found == ([] if special == {*ids} and not allowed else expected)
