"""The same ids, offsets, files as Hugging Face's tokenizers; the same ids as tiktoken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe_beam import _native
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.patterns import GPT2_PATTERN
from bpe_beam.tokenizer.encoding import text_chunks
from bpe_beam.tokenizer.tokenizer import Tokenizer

# The scanner follows Unicode 18.0, the engine in `tokenizers` 0.20 to 0.23 Unicode 15.1 to 16.0.
# So these, and no others, are letters or numbers to us and unassigned to it: the letters and
# numbers that Unicode added since 16.0. In all assigned by 16.0 the versions agree.
LETTERS_AND_NUMBERS_OF_UNICODE_17 = (
    (0x88F, 0x88F), (0xC5C, 0xC5C), (0xCDC, 0xCDC), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D2),
    (0xA7D4, 0xA7D4), (0xA7F1, 0xA7F1), (0x10940, 0x10959), (0x10EC5, 0x10EC7),
    (0x11DB0, 0x11DDB), (0x11DE0, 0x11DE9), (0x16EA0, 0x16EB8), (0x16EBB, 0x16ED3),
    (0x16FF2, 0x16FF6), (0x187F8, 0x187FF), (0x18D09, 0x18D1E), (0x18D80, 0x18DF2),
    (0x1E6C0, 0x1E6DE), (0x1E6E0, 0x1E6E2), (0x1E6E4, 0x1E6E5), (0x1E6E7, 0x1E6ED),
    (0x1E6F0, 0x1E6F4), (0x1E6FE, 0x1E6FF), (0x2B73A, 0x2B73F), (0x2CEA2, 0x2CEAD),
    (0x323B0, 0x33479),
)  # fmt: skip
LETTERS_AND_NUMBERS_OF_UNICODE_18 = (
    (0x558, 0x558), (0x58B, 0x58C), (0x208F, 0x208F), (0x209D, 0x209F), (0xA7DD, 0xA7DD),
    (0xA7E2, 0xA7E2), (0xAB6C, 0xAB6D), (0x107BB, 0x107BF), (0x10ED9, 0x10EEE),
    (0x11B0A, 0x11B0A), (0x11DF1, 0x11DF1), (0x1246F, 0x1246F), (0x12475, 0x1247F),
    (0x12550, 0x12686), (0x18CD6, 0x18CDA), (0x18D1F, 0x18D20), (0x18E00, 0x19191),
    (0x191A0, 0x191D2), (0x1B123, 0x1B128), (0x1B168, 0x1B168), (0x1D6A6, 0x1D6A6),
    (0x1DF1F, 0x1DF24), (0x1DF2B, 0x1DF81), (0x1DF90, 0x1DF96), (0x1DFCD, 0x1DFFF),
    (0x2B81E, 0x2B81E), (0x3D000, 0x3FC3F),
)  # fmt: skip
NEWER = frozenset(
    code_point
    for first, last in LETTERS_AND_NUMBERS_OF_UNICODE_17 + LETTERS_AND_NUMBERS_OF_UNICODE_18
    for code_point in range(first, last + 1)
)

FRAGMENTS = (
    *"'''   \n\tsdmtlrveaA19½!.<>|語é\u3000\x1c\0",
    "'ll", "'re", "<|end|>", "<|endoftext|>", "<s>", "<|end", "语 x",
    "\u3000<pad>\n", "the", "----", "    ",
)  # fmt: skip
KNOWN = st.characters(codec="utf-8").filter(lambda character: ord(character) not in NEWER)
TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), KNOWN)).map("".join)


def with_post_processor(tokenizer: Tokenizer, post_processor: object) -> str:
    file = json.loads(tokenizer.to_json())
    file["post_processor"] = post_processor
    return json.dumps(file)


@pytest.fixture(scope="module")
def theirs(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """Ours, read by Hugging Face."""
    return tokenizers.Tokenizer.from_str(tokenizer.to_json())


@pytest.fixture(scope="module")
def theirs_plain(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    """The same, taking special tokens as plain text."""
    plain = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    plain.encode_special_tokens = True
    return plain


@pytest.fixture(scope="module")
def tiktokens(tokenizer: Tokenizer) -> tiktoken.Encoding:
    """The same for tiktoken, which merges by the rank of the joined bytes."""
    specials = tokenizer.special_tokens
    return tiktoken.Encoding(
        "ours",
        pat_str=GPT2_PATTERN,
        mergeable_ranks={
            byte_level.to_bytes(token): number
            for token, number in tokenizer.vocab.items()
            if token not in specials
        },
        special_tokens=specials,
    )


def test_the_alphabet() -> None:
    assert set(byte_level.BYTE_TO_CHAR) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def test_a_saved_file_is_the_same_to_the_byte(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = str(tmp_path / "tokenizer.json")
    tokenizer.save(path)
    theirs = str(tmp_path / "theirs.json")
    tokenizers.Tokenizer.from_file(path).save(theirs)
    assert Path(theirs).read_bytes() == Path(path).read_bytes()


def test_a_file_of_theirs_is_read(sample: str) -> None:
    """As their trainer and save make it; with a decoder and without."""
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<|end|>", "<pad>"], show_progress=False
    )
    theirs.train_from_iterator(sample.split("\n"), trainer)
    for decoder in (None, tokenizers.decoders.ByteLevel()):
        if decoder is not None:
            theirs.decoder = decoder
        ours = Tokenizer.from_json(theirs.to_str())
        assert ours.to_json() == theirs.to_str(pretty=True)
        assert ours.vocab == theirs.get_vocab()
        ids = ours.encode("the other <|end|> weather", allowed_special="all")
        assert ids == theirs.encode("the other <|end|> weather").ids
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
        assert ours.decode(ids, skip_special_tokens=True) == theirs.decode(ids)


def test_exports_are_the_same_to_the_byte(
    tokenizer: Tokenizer, theirs: tokenizers.Tokenizer, tmp_path: Path
) -> None:
    theirs.model.save(str(tmp_path))
    assert (tmp_path / "vocab.json").read_bytes() == tokenizer.vocab_json()
    assert (tmp_path / "merges.txt").read_bytes() == tokenizer.merges_txt()


def test_vocabulary_size_with_holes() -> None:
    file = json.loads(Tokenizer.from_learned(["a", "b", "ab"], [("a", "b")]).to_json())
    file["model"]["vocab"] = {"a": 3, "b": 70, "ab": 9}
    ours = Tokenizer.from_json(json.dumps(file))
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    assert ours.vocab_size == theirs.get_vocab_size() == 3
    assert ours.encode("abba") == theirs.encode("abba").ids == [9, 70, 3]
    assert ours.vocab == theirs.get_vocab()


def test_a_pair_listed_twice_has_its_last_rank() -> None:
    file = json.loads(
        Tokenizer.from_learned(
            ["a", "b", "c", "ab", "bc"], [("a", "b"), ("b", "c"), ("a", "b")]
        ).to_json()
    )
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    assert Tokenizer.from_json(json.dumps(file)).encode("abc") == theirs.encode("abc").ids == [0, 4]


@given(text=TEXTS)
@settings(max_examples=400, deadline=None)
def test_ids_and_offsets(
    tokenizer: Tokenizer,
    theirs: tokenizers.Tokenizer,
    theirs_plain: tokenizers.Tokenizer,
    text: str,
) -> None:
    expected = theirs.encode(text)
    assert tokenizer.encode_with_offsets(text, allowed_special="all") == (
        expected.tokens,
        expected.ids,
        expected.offsets,
    )
    assert tokenizer.encode(text) == theirs_plain.encode(text).ids


@pytest.mark.parametrize("add_prefix_space", [False, True])
@pytest.mark.parametrize("trim_offsets", [False, True])
def test_trimmed_offsets(tokenizer: Tokenizer, add_prefix_space: bool, trim_offsets: bool) -> None:
    file = with_post_processor(
        tokenizer,
        {
            "type": "ByteLevel",
            "add_prefix_space": add_prefix_space,
            "trim_offsets": trim_offsets,
            "use_regex": True,
        },
    )
    ours, theirs = Tokenizer.from_json(file), tokenizers.Tokenizer.from_str(file)

    @given(text=TEXTS)
    @settings(max_examples=150, deadline=None)
    def check(text: str) -> None:
        expected = theirs.encode(text)
        assert ours.encode_with_offsets(text, allowed_special="all") == (
            expected.tokens,
            expected.ids,
            expected.offsets,
        )

    check()


@given(text=TEXTS)
@settings(max_examples=200, deadline=None)
def test_decoding(tokenizer: Tokenizer, theirs: tokenizers.Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text, allowed_special="all")
    for part in (ids, ids[1:], ids[::2]):
        assert tokenizer.decode(part) == theirs.decode(part, skip_special_tokens=False)
        assert tokenizer.decode(part, skip_special_tokens=True) == theirs.decode(part)


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_tiktoken(tokenizer: Tokenizer, tiktokens: tiktoken.Encoding, text: str) -> None:
    assert tokenizer.encode(text) == tiktokens.encode_ordinary(text)


SPECIAL = st.text("<s>é", min_size=2, max_size=5)


@pytest.mark.slow
@given(
    specials=st.lists(SPECIAL, min_size=1, max_size=6, unique=True),
    allowed=st.lists(st.booleans(), min_size=6, max_size=6),
    text=st.text("<s>é x", max_size=40),
)
@example(specials=["<s><s>", "<s>"], allowed=[False, True] * 3, text="a<s><s>b")
@settings(max_examples=400, deadline=None)
def test_allowed_special_tokens_are_those_of_tiktoken(
    specials: list[str], allowed: list[bool], text: str
) -> None:
    """Whatever special tokens there are besides, and in chunks of any size.

    tiktoken looks for all special tokens by one pattern, whose order is that of a table of hashes.
    Of two that begin alike any may be found, so the expected ids are from one with the allowed ones
    alone where none is the beginning of another.
    """
    chosen = [token for token, one in zip(specials, allowed, strict=False) if one]
    letters = sorted(byte_level.CHAR_TO_BYTE)
    ours = Tokenizer.from_learned([*letters, *specials], [], specials)
    ids = ours.encode(text, allowed_special=chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_chunks, "_CHUNK_BYTES", 1)  # cut as soon as possible
        assert [*ours.encode_iterable([*text], allowed_special=chosen)] == ids
    assert ours.decode(ids) == text

    def theirs(known: list[str]) -> list[int]:
        encoding = tiktoken.Encoding(
            "ours",
            pat_str=GPT2_PATTERN,
            mergeable_ranks={byte_level.to_bytes(one): n for n, one in enumerate(letters)},
            special_tokens={token: ours.vocab[token] for token in known},
        )
        return encoding.encode(text, allowed_special={*chosen}, disallowed_special=())

    if not any(a != b and a.startswith(b) for a in chosen for b in chosen):
        assert ids == theirs(chosen)
    if not any(a != b and a.startswith(b) for a in specials for b in specials):
        assert ids == theirs(specials)


@pytest.mark.scheduled
def test_every_code_point() -> None:
    """Cut alike in six surroundings, but for what is newer than their Unicode."""
    theirs = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    different = set()
    for code_point in (*range(0xD800), *range(0xE000, 0x110000)):
        c = chr(code_point)
        for text in (f"a{c}b", f" {c}", c + c, f"1{c}1", f"!{c}!", f"{c}\n\n{c} x"):
            ends = [end for _, (_, end) in theirs.pre_tokenize_str(text)]
            data = text.encode()
            found = _native.scan_words(data, "gpt2")[:, 1].tolist()
            if [len(data[:end].decode()) for end in found] != ends:
                different.add(code_point)
    assert different <= NEWER, sorted(map(hex, different - NEWER))


@pytest.mark.parametrize(
    "step", [37, pytest.param(1, marks=pytest.mark.scheduled)], ids=["some", "every"]
)
def test_ids_of_code_points(step: int, tokenizer: Tokenizer, theirs: tokenizers.Tokenizer) -> None:
    every = (*range(0xD800), *range(0xE000, 0x110000))
    points = [point for point in every[::step] if point not in NEWER]
    for first in range(0, len(points), 65536):
        characters = [chr(point) for point in points[first : first + 65536]]
        texts = [form.format(c) for c in characters for form in ("a{0}b", " {0}", "{0}{0}")]
        expected = [encoding.ids for encoding in theirs.encode_batch_fast(texts)]
        assert tokenizer.encode_batch(texts) == expected
