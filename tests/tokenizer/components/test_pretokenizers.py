"""Names of pre-tokenizers and normalizers, and the words they give."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from bpe_beam import _native
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.byte_level import to_chars
from bpe_beam.tokenizer.components.normalizers import (
    NFKC,
    Lowercase,
    NormalizerSequence,
    normalizer_from_name,
)
from bpe_beam.tokenizer.components.pretokenizers import (
    PRETOKENIZERS,
    ByteLevelPreTokenizer,
    Digits,
    FixedLength,
    PreTokenizerSequence,
    flat,
    pretokenizer_from_name,
    steps_of,
)

pytestmark = pytest.mark.quick


def test_names() -> None:
    assert pretokenizer_from_name("gpt2", byte_level=True) == ByteLevelPreTokenizer()
    assert pretokenizer_from_name("none", byte_level=False) is None
    assert normalizer_from_name("none") is None
    assert normalizer_from_name("nfkc+lowercase") == NormalizerSequence((NFKC(), Lowercase()))
    with pytest.raises(UsageError, match="pretokenizer must be one of gpt2, cl100k, "):
        pretokenizer_from_name("gpt3", byte_level=True)
    with pytest.raises(UsageError, match=r"pattern '\(': missing \)"):
        pretokenizer_from_name("regex:(", byte_level=True)
    for name in ("nfx", "nfc+", "nfc+none", ""):
        with pytest.raises(UsageError, match="normalizer must be one of none, nfc, nfd, nfkc, "):
            normalizer_from_name(name)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("gpt2 digits_gpt2", 6),
        ("cl100k llama3 qwen2 nanochat", 4),
        ("o200k tekken kimi qwen35 deepseek_v3 gemma", 1),
    ],
)
def test_the_patterns_that_divide_words_at_vowel_signs(names: str, words: int) -> None:
    """As docs/tokenizers.md lists them."""
    for name in names.split():
        part = pretokenizer_from_name(name, byte_level=True)
        pipeline = _native.Pipeline([], None, steps_of(part, last_as_bytes=True))
        assert len(pipeline.words("हिन्दी".encode())) == words


@pytest.mark.parametrize("name", [*PRETOKENIZERS, r"regex:\w+|\W"])
def test_counting_and_encoding_see_the_same_words(name: str) -> None:
    """Words counted are those that a model gets, as text or as bytes."""
    text = "It's  a test: 1234, caf\u00e9 \u8bed\u8a00!\n\n  end"
    counted = WordCounter(WordRules(pretokenizer=name))
    counted.add_texts(pa.array([text]))
    words = {w for _, block in counted.blocks(1) for w in block.column("word").to_pylist()}
    assert words
    for byte_level in (False, True):
        part = pretokenizer_from_name(name, byte_level=byte_level)
        pipeline = _native.Pipeline([], None, steps_of(part, last_as_bytes=True))
        assert {word.decode() for word in pipeline.words(text.encode())} == words
        # And in the byte-level alphabet, where the model does not work on bytes.
        written = _native.Pipeline([], None, steps_of(part)).words(text.encode())
        chars = {to_chars(word.encode()) if byte_level else word for word in words}
        assert {word.decode() for word in written} == chars


def test_isspace_holds_for_all_that_the_scanner_takes_for_a_space() -> None:
    """`safe_cuts` relies on it. Of two spaces before a letter, only the first is a word."""
    spaces = []
    for code_point in (*range(0xD800), *range(0xE000, 0x110000)):
        character = chr(code_point)
        data = character.encode()
        if _native.scan_words(data + data + b"x", "gpt2")[:, 1][0] == len(data):
            spaces.append(character)
    assert len(spaces) >= 25
    assert all(character.isspace() for character in spaces)


def test_several_pre_tokenizers_that_one_scanner_replaces() -> None:
    """New tokenizers get the components of published files."""
    deepseek = pretokenizer_from_name("deepseek_v3", byte_level=True)
    assert [one.json_type for one in flat(deepseek)] == ["Split", "Split", "Split", "ByteLevel"]
    assert steps_of(deepseek, last_as_bytes=True) == [("scan", "deepseek_v3")]
    assert steps_of(deepseek) == [("scan", "deepseek_v3"), ("rewrite", ("ByteLevel",))]
    assert len(steps_of(PreTokenizerSequence(tuple(flat(deepseek)[1:])))) == 3
    for byte_level in (False, True):
        digits = pretokenizer_from_name("digits_gpt2", byte_level=byte_level)
        assert flat(digits)[0] == Digits(individual_digits=True)
        assert steps_of(digits, last_as_bytes=True) == [("scan", "digits_gpt2")]
    runs = PreTokenizerSequence((Digits(individual_digits=False), ByteLevelPreTokenizer()))
    assert steps_of(runs, last_as_bytes=True) == [("scan", "digits"), ("scan", "gpt2")]
    prefixed = PreTokenizerSequence((Digits(True), ByteLevelPreTokenizer(add_prefix_space=True)))
    assert len(steps_of(prefixed, last_as_bytes=True)) == 3


def test_a_length_must_be_at_least_1() -> None:
    data = '{"type": "FixedLength", "length": 0}'
    with pytest.raises(msgspec.ValidationError, match="Expected `int` >= 1"):
        msgspec.json.decode(data, type=FixedLength)
