"""SentencePiece's replacements, in the texts and offsets that Hugging Face makes with them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

import sentencepiece
from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as HuggingFace

from bpe_beam import Tokenizer

CHARSMAPS = sorted((Path(sentencepiece.__file__).parent / "package_data").glob("*.bin"))
# Of every class that decides where a grapheme ends, and what the maps replace or drop.
PARTS = [
    *"ae1<z é©®가각ﬁ½ⅧｱﾞかאاÅ👩🇻🇳क\u094dष😀",
    *"\u0301\u0308\u200d\u200c\ufe0f\u20e3\u0903\u093e\u0600\u1161\u11a8\u1100\u0958\u00ad\u200b",
    *"\r\n\t\u3000\x01\x7f\x85\u2028\u3099\u05b0\u064b\u212b\ufeff\x00\u0f77\u0e33\U0001d165",
    *("\r\n", "  ", "\U000110bd"),
]


def texts() -> list[str]:
    rng = random.Random(1)
    blocks = [(0x20, 0x250), (0x300, 0x700), (0x900, 0xE80), (0x1E00, 0x3000), (0xF900, 0xFFFE)]
    mixed = ["".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(700)]
    others = [
        "".join(chr(rng.randrange(*rng.choice(blocks))) for _ in range(rng.randint(1, 12)))
        for _ in range(500)
    ]
    return mixed + others


@pytest.mark.parametrize("path", CHARSMAPS, ids=lambda path: path.stem)
def test_charsmaps_of_sentencepiece(path: Path) -> None:
    theirs = HuggingFace(models.WordLevel({"x": 0}, "x"))
    replace = normalizers.Precompiled(path.read_bytes())
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    theirs.normalizer = normalizers.Sequence([replace, spaces, normalizers.Nmt()])
    theirs.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    ours = Tokenizer.from_json(theirs.to_str(pretty=True))
    assert ours.to_json() == theirs.to_str(pretty=True)
    for text in texts():
        _, _, offsets = ours.encode_with_offsets(text)
        assert offsets == theirs.encode(text).offsets, ascii(text)
        assert ours.encode(text) == [0] * len(theirs.normalizer.normalize_str(text))


def test_there_are_charsmaps() -> None:
    assert len(CHARSMAPS) >= 4
