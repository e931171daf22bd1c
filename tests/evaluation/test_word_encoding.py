"""The ids of counted words, against those of the text that the words are from."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from msgspec.structs import replace
from small_tokenizers import SAMPLE, learn

from bpe_beam import _native
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.errors import TextError
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, WordPiece
from bpe_beam.tokenizer.components.normalizers import (
    BertNormalizer,
    Lowercase,
    NormalizerSequence,
    Prepend,
    Replace,
    normalizer_from_name,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import (
    ByteLevelPreTokenizer,
    Metaspace,
    PreTokenizerSequence,
    WhitespaceSplit,
    pretokenizer_from_name,
)
from bpe_beam.tokenizer.encoding import native_encoder
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

LETTERS = sorted(set(SAMPLE) | {"\u2581"})
BYTES = learn("bytes", ("<s>",), 120)
SPACED = [("t", "h"), ("th", "e"), ("\u2581", "the"), ("\u2581", "o"), ("\u2581o", "f")]
MARKED = BPE({token: i for i, token in enumerate([*LETTERS, *map("".join, SPACED)])}, SPACED)
PIECES = WordPiece(
    {
        token: i
        for i, token in enumerate(
            [
                "[UNK]",
                *"abcdefghijklmnopqrstuvwxyz'.,",
                *(f"##{c}" for c in "aeiounrsthe"[:9]),
                "the",
            ]
        )
    }
)


def words_of(text: str, normalizer: str, pretokenizer: str) -> Counter[str]:
    counter = WordCounter(WordRules(normalizer, pretokenizer))
    counter.add_texts(pa.array([text]))
    found: Counter[str] = Counter()
    for block in counter.drain():
        for row in block.to_pylist():
            found[row["word"]] += row["count"]
    return found


def ids_of(encoder: WordEncoder, words: Counter[str]) -> Counter[int]:
    found: Counter[int] = Counter()
    encoded = encoder.encode(pa.array(list(words), pa.large_string())).to_pylist()
    for ids, times in zip(encoded, words.values(), strict=True):
        found.update({token_id: number * times for token_id, number in Counter(ids).items()})
    return found


@pytest.mark.parametrize(
    ("normalizer", "pretokenizer", "spec"),
    [
        ("none", "gpt2", BYTES.spec),
        ("lowercase", "gpt2", replace(BYTES.spec, normalizer=Lowercase())),
        *(
            (
                "none",
                name,
                replace(BYTES.spec, pre_tokenizer=pretokenizer_from_name(name, byte_level=True)),
            )
            for name in ("cl100k", "o200k", "whitespace", "regex:[a-z]+|[^a-z]+")
        ),
        ("none", "metaspace", TokenizerSpec(MARKED, pre_tokenizer=Metaspace())),
        (
            "bert",
            "bert",
            TokenizerSpec(
                PIECES,
                normalizer=normalizer_from_name("bert"),
                pre_tokenizer=pretokenizer_from_name("bert"),
            ),
        ),
    ],
)
def test_the_words_of_the_same_pre_tokenizer_are_exact(
    normalizer: str, pretokenizer: str, spec: TokenizerSpec
) -> None:
    tokenizer = Tokenizer(spec)
    encoder = WordEncoder(tokenizer, normalizer, pretokenizer)
    assert encoder.exact
    found = ids_of(encoder, words_of(SAMPLE, normalizer, pretokenizer))
    assert found == Counter(tokenizer.encode(SAMPLE))


def test_a_word_that_lacks_a_symbol_is_named_and_none_is_empty() -> None:
    spec = TokenizerSpec(MARKED, pre_tokenizer=Metaspace())
    encoder = WordEncoder(Tokenizer(spec), "none", "metaspace")
    assert encoder.exact
    with pytest.raises(TextError, match="at 2 is not") as caught:
        encoder.encode(pa.array(["\u2581the", "th\u2603e"], pa.large_string()))
    assert caught.value.number == 1
    with pytest.raises(ValueError, match="must not be empty"):
        encoder.encode(pa.array(["the", ""], pa.large_string()))


def test_another_pre_tokenizer_encodes_each_word_as_a_text() -> None:
    spec = replace(BYTES.spec, pre_tokenizer=pretokenizer_from_name("cl100k", byte_level=True))
    tokenizer = Tokenizer(spec)
    encoder = WordEncoder(tokenizer, "none", "gpt2")
    assert not encoder.exact
    words = words_of(SAMPLE, "none", "gpt2")
    expected = Counter(token_id for word in words.elements() for token_id in tokenizer.encode(word))
    assert ids_of(encoder, words) == expected


@pytest.mark.parametrize(
    "spec",
    [
        TokenizerSpec(MARKED, pre_tokenizer=Metaspace(prepend_scheme="first")),
        TokenizerSpec(
            MARKED,
            normalizer=NormalizerSequence(
                (Prepend("\u2581"), Replace(Pattern(text=" "), "\u2581"))
            ),
        ),
    ],
)
@pytest.mark.parametrize("pretokenizer", ["gpt2", "metaspace"])
def test_words_get_no_space_that_the_text_lacks(spec: TokenizerSpec, pretokenizer: str) -> None:
    text = "\nof the other, 'the' of\nthe  the"
    tokenizer = Tokenizer(spec)
    encoder = WordEncoder(tokenizer, "none", pretokenizer)
    assert not encoder.exact
    space = tokenizer.token_to_id("\u2581")
    found = ids_of(encoder, words_of(text, "none", pretokenizer))
    before = 0 if pretokenizer == "metaspace" else 1  # the one before the text
    assert found + Counter({space: before}) == Counter(tokenizer.encode(text))


def test_words_without_blanks_keep_their_mark() -> None:
    spec = TokenizerSpec(
        MARKED, pre_tokenizer=PreTokenizerSequence((WhitespaceSplit(), Metaspace()))
    )
    tokenizer = Tokenizer(spec)
    found = ids_of(WordEncoder(tokenizer, "none", "gpt2"), Counter({" the": 2}))
    assert found == {tokenizer.token_to_id("\u2581the"): 2}


def test_a_byte_level_prefix_is_left_out() -> None:
    spec = replace(BYTES.spec, pre_tokenizer=ByteLevelPreTokenizer(add_prefix_space=True))
    found = ids_of(WordEncoder(Tokenizer(spec), "none", "gpt2"), Counter({"x": 1}))
    assert found == Counter(BYTES.encode("x"))


@pytest.mark.parametrize(
    "spec",
    [
        replace(BYTES.spec, normalizer=BertNormalizer()),
        replace(BYTES.spec, added_tokens=(AddedToken(500, "xy", special=False),)),
    ],
)
def test_what_changes_the_words_is_not_exact(spec: TokenizerSpec) -> None:
    assert not WordEncoder(Tokenizer(spec), "none", "gpt2").exact


def test_words_are_encoded_by_the_model_of_the_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of 200,000 tokens takes time and memory."""
    made = []
    make_model = native_encoder.make_model

    def noted(spec: TokenizerSpec) -> _native.Model:
        made.append(spec)
        return make_model(spec)

    monkeypatch.setattr(native_encoder, "make_model", noted)
    for specials in ((), ("<s>",)):
        made.clear()
        tokenizer = learn("bytes", specials, 120)
        encoder = WordEncoder(tokenizer, "none", "gpt2")
        assert encoder.exact
        words = pa.array([" the", "<s>"], pa.large_string())
        found = encoder.encode(words).to_pylist()
        assert found[0] == tokenizer.encode(" the")
        assert len(found[1]) == 3, "no added token is found in words"
        assert len(made) == 1
    # Without a byte-level pre-tokenizer the same vocabulary is another model.
    spec = replace(tokenizer.spec, pre_tokenizer=None)
    assert tokenizer.words_encoder(spec).encode_words(pa.array(["b"], pa.large_string()))
    assert len(made) == 2
