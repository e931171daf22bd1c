"""Decoders, by hand and against those of `tokenizers`."""

from __future__ import annotations

import json
import time

import pytest
from tokenizer_files import BPE, file

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.decoders import (
    BPEDecoder,
    ByteFallback,
    ByteLevelDecoder,
    Decoder,
    Fuse,
    MetaspaceDecoder,
    ReplaceDecoder,
    SequenceDecoder,
    StripDecoder,
    WordPieceDecoder,
)
from bpe_beam.tokenizer.components.patterns import Pattern

pytestmark = pytest.mark.quick

LLAMA2 = SequenceDecoder(
    [ReplaceDecoder(Pattern(text="▁"), " "), ByteFallback(), Fuse(), StripDecoder(" ", 1, 0)]
)


def decode(decoder: Decoder, *tokens: str, lossy: bool = True) -> str | bytes:
    data = b"".join(decoder.apply([token.encode() for token in tokens], lossy=lossy))
    return data.decode() if lossy else data


def test_byte_level() -> None:
    decoder = ByteLevelDecoder()
    tokens = [byte_level.to_chars("é".encode()[:1]), byte_level.to_chars("é b".encode()[1:])]
    assert decode(decoder, *tokens) == "é b"
    assert decode(decoder, tokens[0]) == "\ufffd"
    assert decode(decoder, tokens[0], lossy=False) == b"\xc3"
    # A character outside the alphabet: the token is its own text, the Ġ with it.
    assert decode(decoder, "Ġa", "Ġ語") == " aĠ語"
    assert decoder.apply([], lossy=True) == [b""]


def test_bpe() -> None:
    assert decode(BPEDecoder(), "lo", "w</w>", "est</w>") == "low est"
    assert decode(BPEDecoder("_"), "a_b_", "c_") == "a b c"
    assert decode(BPEDecoder("")) == ""
    assert decode(BPEDecoder(""), "éa", "b") == " é a b"


def test_word_piece() -> None:
    plain, clean = WordPieceDecoder(cleanup=False), WordPieceDecoder()
    assert decode(plain, "##un", "##aff", "able", "##") == "##unaff able"
    assert decode(plain, "do", "n't", ".") == "do n't ."
    assert decode(clean, "do", "n't", ".", "'", "s", "'s", "!") == "don't. ' s's!"
    assert decode(clean, "a ' b", "we do not", "x 've 're 'm ?") == "a'b we don't x've're'm?"
    assert decode(WordPieceDecoder(""), "a", "b") == "ab"
    assert decode(WordPieceDecoder("@@"), "a", "@@b", "##c") == "ab ##c"


def test_metaspace() -> None:
    assert decode(MetaspaceDecoder(), "▁▁a▁", "▁b") == "a b"
    assert decode(MetaspaceDecoder(prepend_scheme="first"), "▁a", "▁b") == "a b"
    assert decode(MetaspaceDecoder(prepend_scheme="never"), "▁a", "▁b") == " a b"
    assert decode(MetaspaceDecoder("_"), "_a", "▁_b") == "a▁ b"
    with pytest.raises(UsageError, match="replacement must be one character, got ''"):
        MetaspaceDecoder("")
    with pytest.raises(UsageError, match=r"prepend_scheme must be one of always, .*, got 'last'"):
        MetaspaceDecoder(prepend_scheme="last")


def test_byte_fallback() -> None:
    decoder = ByteFallback()
    assert decode(decoder, "<0xC3>", "<0xA9>", "a", "<0x62>") == "éab"
    assert decode(decoder, "<0xC3>", "<0x61>", "a") == "\ufffd\ufffda"
    assert decode(decoder, "<0xC3>", "<0x61>", "a", lossy=False) == b"\xc3aa"
    assert decode(decoder, "<0xGG>", "<0x6>", "<0x061>", "x<0x61>") == "<0xGG><0x6><0x061>x<0x61>"
    assert decode(decoder, "<0x+A>", "<0x-1>") == "\n<0x-1>"
    assert decoder.apply([b"<0xC3>", b"<0xC3>"], lossy=True) == ["\ufffd".encode()] * 2


def test_fuse_and_strip() -> None:
    assert Fuse().apply([b"a", b"b"], lossy=True) == [b"ab"]
    assert Fuse().apply([], lossy=True) == [b""]
    assert decode(StripDecoder(" ", 1, 0), "  a ", " b") == " a b"
    assert decode(StripDecoder("é", 2, 1), "éééaéé", "é") == "éaé"
    assert decode(StripDecoder(" ", 10**18, 10**18), "   ", "") == ""
    assert decode(StripDecoder(" ", 0, 2), "   ") == " "
    for bad in ("", "ab"):
        with pytest.raises(UsageError, match=r"^content must be"):
            StripDecoder(bad, 0, 0)
    for name in ("start", "stop"):
        values = {"type": "Strip", "content": " ", "start": 0, "stop": 0, name: -1}
        with pytest.raises(UsageError, match=rf"decoder\.{name}: .*>= 0"):
            Tokenizer.from_json(json.dumps(file(BPE, decoder=values)))


def test_replace() -> None:
    assert decode(ReplaceDecoder(Pattern(text="_"), "é"), "a__b", "_") == "aééb" + "é"
    assert decode(ReplaceDecoder(Pattern(regex=r"\d+"), r"\0"), "a12b3é4") == r"a\0b\0é\0"
    assert decode(ReplaceDecoder(Pattern(regex=r"$"), "."), "é", "") == "é."
    assert decode(ReplaceDecoder(Pattern(text=""), "-"), "ab") == "-a-b-"
    assert ReplaceDecoder(Pattern(regex="b"), "c").apply([b"\xffb\xff"], lossy=False) == [
        b"\xffc\xff"
    ]


def test_sequence() -> None:
    assert decode(LLAMA2, "▁Hello", "▁w", "<0xC3>", "<0xA9>", "▁") == "Hello wé "
    assert decode(LLAMA2, "▁▁a") == " a"
    assert decode(LLAMA2) == ""
    assert decode(SequenceDecoder([]), "a", "b") == "ab"


def test_a_text_does_not_grow_without_end() -> None:
    double = ReplaceDecoder(Pattern(text="a"), "aa")
    for decoder in (
        SequenceDecoder([double] * 100),
        SequenceDecoder([SequenceDecoder([double] * 50)] * 50),
        ReplaceDecoder(Pattern(text="a"), "b" * 10**6),
        ReplaceDecoder(Pattern(regex="[a]"), "b" * 10**6),
    ):
        with pytest.raises(DataError, match="over 100 times as long"):
            decode(decoder, "a" * 1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "decoder",
    [
        ByteLevelDecoder(),
        BPEDecoder(),
        WordPieceDecoder(),
        MetaspaceDecoder(),
        StripDecoder(" ", 10**9, 10**9),
        ReplaceDecoder(Pattern(regex=r"x|(?=a)"), "b"),
        LLAMA2,
    ],
)
def test_long_tokens_and_many_take_linear_time(decoder: Decoder) -> None:
    begin = time.process_time()
    decoder.apply([b" " * 300_000, b"a" * 300_000, "▁".encode() * 300_000], lossy=True)
    decoder.apply([b"<0xC3>", b"a "] * 20_000, lossy=True)
    assert time.process_time() - begin < 20
