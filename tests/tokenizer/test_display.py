"""Parts of tokenizers in words."""

from __future__ import annotations

import pytest

from bpe_beam.tokenizer.components.decoders import WordPieceDecoder
from bpe_beam.tokenizer.components.normalizers import (
    NFKC,
    BertNormalizer,
    NormalizerSequence,
    Precompiled,
    Replace,
    SentencePieceNormalizer,
)
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS, Pattern
from bpe_beam.tokenizer.components.postprocessors import BertProcessing
from bpe_beam.tokenizer.components.pretokenizers import (
    Metaspace,
    PreTokenizerSequence,
    Split,
    Whitespace,
)
from bpe_beam.tokenizer.display import describe, text_of

pytestmark = pytest.mark.quick

BERT = "clean_text yes, handle_chinese_chars yes, strip_accents default, lowercase yes"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (None, "none"),
        (NFKC(), "NFKC"),
        (Whitespace(), "Whitespace"),
        (WordPieceDecoder(), "WordPiece (prefix '##', cleanup yes)"),
        (NormalizerSequence(()), "nothing"),
        (
            NormalizerSequence((Replace(Pattern(text="a"), "b"), BertNormalizer())),
            f"Replace (pattern 'a', content 'b') then BertNormalizer ({BERT})",
        ),
        (
            PreTokenizerSequence(
                (
                    Split(Pattern(regex=NAMED_PATTERNS["o200k"].expression), "Isolated", False),
                    Metaspace(),
                )
            ),
            "Split (pattern o200k, behavior 'Isolated', invert no) then "
            "Metaspace (replacement '▁', prepend_scheme 'always', split yes)",
        ),
        (Precompiled("BAAAAAAAAAA="), "Precompiled (precompiled_charsmap of 8 bytes)"),
        (
            SentencePieceNormalizer("", True, False, True, False, ()),
            "SentencePiece (precompiled_charsmap '', add_dummy_prefix yes, "
            "remove_extra_whitespaces no, escape_whitespaces yes, treat_whitespace_as_suffix no, "
            "user_defined_symbols none)",
        ),
        (BertProcessing(), "BertProcessing (sep '[SEP]' 102, cls '[CLS]' 101)"),
    ],
)
def test_a_part_in_words(part: object, words: str) -> None:
    assert describe(part) == words


def test_a_token_as_text() -> None:
    assert text_of("Ġthe", True) == " the"
    assert text_of("ãĢĤ", True) == "。"
    assert text_of("ãĢ", True) == b"\xe3\x80"
    assert text_of("Ġthe", False) == "Ġthe"
    assert text_of("<|結束|>", True) == "<|結束|>"
