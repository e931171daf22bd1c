"""The parts that a trained tokenizer gets."""

from __future__ import annotations

from typing import Any

import pytest
from counted_words import words_of

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.decoders import (
    BPEDecoder,
    ByteFallback,
    ByteLevelDecoder,
    Fuse,
    MetaspaceDecoder,
    ReplaceDecoder,
    SequenceDecoder,
    StripDecoder,
    WordPieceDecoder,
)
from bpe_beam.tokenizer.components.models import BPE, WordLevel, WordPiece
from bpe_beam.tokenizer.components.normalizers import NFC, NormalizerSequence, Replace
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import (
    BertPreTokenizer,
    ByteLevelPreTokenizer,
    Digits,
    Metaspace,
    PreTokenizerSequence,
    WhitespaceSplit,
)
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import learn
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import tokenizer_of

pytestmark = pytest.mark.quick

WORDS = [("ab", 3), ("b", 1), ("abc", 2)]
ENDING = Replace(Pattern(regex=r"(?<=\S)(?=\s|$)"), "_")


def trained(recipe: Recipe, normalizer: str = "none", pretokenizer: str = "gpt2") -> Tokenizer:
    return tokenizer_of(learn(words_of(WORDS), recipe), recipe, normalizer, pretokenizer)


def characters(**options: Any) -> BpeRecipe:
    return BpeRecipe(300, symbols="characters", **options)


@pytest.mark.parametrize(
    ("recipe", "names", "parts"),
    [
        (BpeRecipe(300), ("none", "gpt2"), (None, ByteLevelPreTokenizer(), ByteLevelDecoder())),
        (
            BpeRecipe(300),
            ("nfc", "digits"),
            (
                NFC(),
                PreTokenizerSequence(
                    (Digits(individual_digits=False), ByteLevelPreTokenizer(use_regex=False))
                ),
                ByteLevelDecoder(),
            ),
        ),
        (characters(), ("none", WS := "whitespace_split"), (None, WhitespaceSplit(), None)),
        (
            characters(end_of_word_suffix="</w>"),
            ("none", WS),
            (None, WhitespaceSplit(), BPEDecoder("</w>")),
        ),
        (
            characters(end_of_word_symbol="_"),
            ("none", WS),
            (ENDING, WhitespaceSplit(), BPEDecoder("_")),
        ),
        (
            characters(end_of_word_symbol="_"),
            ("nfc", WS),
            (NormalizerSequence((NFC(), ENDING)), WhitespaceSplit(), BPEDecoder("_")),
        ),
        (
            characters(continuing_subword_prefix="@@"),
            ("none", WS),
            (None, WhitespaceSplit(), WordPieceDecoder("@@", cleanup=False)),
        ),
        (characters(), ("none", "metaspace"), (None, Metaspace(), MetaspaceDecoder())),
        (
            characters(byte_fallback=True),
            ("none", WS),
            (
                None,
                WhitespaceSplit(),
                SequenceDecoder(
                    (
                        ByteFallback(),
                        ReplaceDecoder(Pattern(regex=r"(?![\s\S])"), " "),
                        Fuse(),
                        StripDecoder(" ", 0, 1),
                    )
                ),
            ),
        ),
        (
            characters(byte_fallback=True),
            ("none", "metaspace"),
            (
                None,
                Metaspace(),
                SequenceDecoder(
                    (
                        ByteFallback(),
                        ReplaceDecoder(Pattern(regex="(?<=[\\s\\S])\u2581"), " "),
                        MetaspaceDecoder(),
                    )
                ),
            ),
        ),
        (
            WordPieceRecipe(99),
            ("none", "bert"),
            (None, BertPreTokenizer(), WordPieceDecoder("##")),
        ),
        (WordLevelRecipe(99), ("none", WS), (None, WhitespaceSplit(), None)),
    ],
)
def test_parts(recipe: Recipe, names: tuple[str, str], parts: tuple[object, ...]) -> None:
    tokenizer = trained(recipe, *names)
    found = tokenizer.spec
    assert (found.normalizer, found.pre_tokenizer, found.decoder) == parts
    assert found.post_processor is None
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()


def test_models() -> None:
    options: dict[str, Any] = {"unk_token": "<?>", "continuing_subword_prefix": "@@"}
    bpe = trained(characters(**options, end_of_word_suffix="$", byte_fallback=True)).spec.model
    assert isinstance(bpe, BPE)
    assert (bpe.unk_token, bpe.continuing_subword_prefix) == ("<?>", "@@")
    assert (bpe.end_of_word_suffix, bpe.byte_fallback) == ("$", True)
    plain = trained(BpeRecipe(300)).spec.model
    assert isinstance(plain, BPE)
    assert (plain.unk_token, plain.continuing_subword_prefix) == (None, None)
    for recipe in (characters(**options, for_wordpiece=True), WordPieceRecipe(99, **options)):
        wordpiece = trained(recipe).spec.model
        assert isinstance(wordpiece, WordPiece)
        assert (wordpiece.unk_token, wordpiece.continuing_subword_prefix) == ("<?>", "@@")
    word_level = trained(WordLevelRecipe(99, unk_token="<?>")).spec.model
    assert isinstance(word_level, WordLevel)
    assert (word_level.unk_token, list(word_level.vocab)) == ("<?>", ["<?>", "ab", "abc", "b"])


def test_special_tokens_are_added_tokens() -> None:
    recipe = WordPieceRecipe(99, special_tokens=("[PAD]", "ab"))
    added = trained(recipe).spec.added_tokens
    assert [(token.id, token.content) for token in added] == [(0, "[UNK]"), (1, "[PAD]"), (2, "ab")]
    assert all(token.special and not token.normalized for token in added)


def test_an_end_of_word_symbol_wants_whitespace() -> None:
    with pytest.raises(UsageError, match="needs the pre-tokenizer whitespace_split, got gpt2"):
        trained(characters(end_of_word_symbol="_"))
