"""Trained pieces in tokenizers, in sentencepiece and here: the same ids for every text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

import sentencepiece
from made_text import documents
from tokenizers import Tokenizer as HuggingFace

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.models import SentencePiece, Unigram
from bpe_beam.tokenizer.files import sentencepiece_file

HOSTILE = (
    "a", "aa", " ", "  ", "e", "é", "\u0301", "中", "𠀀", "<0x0A>", "<0xE4>", "\t", "\n", "the",
    "0", "1", ".", "..", "\u017f", "\u00a0", "ب", "▁", "\u2585", "<unk>x", "\ufeff", "ﬁ", "カ",
    "ー", "ひ", "한",
    "я", "ก็", "हिन्दी", "😀",
)  # fmt: skip
LONG = ("a" * 20_000, "ab" * 5_000 + " " * 3_000 + "the" * 4_000, "e\u0301" * 3_000, "𠀀" * 2_000)

SCRIPTS = (
    "abcdefghijklmnopqrstuvwxyzéüñß", "αβγδεζηθικλμνξοπρστυφχψως", "абвгдежзийклмнопрстуфхцчшыья",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "אבגדהוזחטיכלמנסעפצקרשתםןףץ", "कखगघचजटडतदनपबमयरलवशसहािीुेो्",
    "กขคงจชดตถทนบปผพมยรลวสหอะาิีเแโ", "".join(map(chr, range(0x4E00, 0x4F00))),
    "あいうえおかきくけこさしすせそたちつてとなにアイウエオカキク",
    "".join(map(chr, range(0xAC00, 0xAD00, 3))),
)  # fmt: skip


def texts_in_scripts(number: int, seed: int) -> list[str]:
    """Return texts of one script each, with frequent and rare words."""
    rng = random.Random(seed)
    stems = random.Random(0)
    vocabularies = [
        ["".join(stems.choices(letters, k=stems.randint(1, 4))) for _ in range(150)]
        for letters in SCRIPTS
    ]
    texts = []
    for i in range(number):
        words = vocabularies[i % len(SCRIPTS)]
        chosen = [
            "".join(words[int(len(words) ** rng.random()) - 1] for _ in range(rng.randint(1, 3)))
            for _ in range(rng.randint(1, 20))
        ]
        texts.append(rng.choice(["", " ", " ", " "]).join(chosen))
    return texts


def texts_of(pieces: list[str], number: int) -> list[str]:
    """Return texts of the corpus's kind, of ten scripts, of random pieces, and hostile ones."""
    rng = random.Random(5)
    texts = [*documents(number // 4, seed=99), *texts_in_scripts(number // 4, seed=99), *LONG]
    for _ in range(number // 4):
        joined = "".join(rng.choices(pieces, k=rng.randint(1, 30)))
        texts.append(joined.replace("▁", " "))
    for _ in range(number // 4):
        texts.append("".join(rng.choices(HOSTILE, k=rng.randint(0, 60))))
    return texts


def check(tokenizer: Tokenizer, folder: Path, number: int) -> None:
    """Compare the ids of four programs; the text of a special token is one of them only here."""
    model = tokenizer.spec.model
    assert isinstance(model, Unigram)
    path = folder / "tokenizer.model"
    path.write_bytes(sentencepiece_file.write(tokenizer.spec))
    theirs = HuggingFace.from_str(tokenizer.to_json())
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    read_back = Tokenizer.from_file(str(path))
    assert isinstance(read_back.spec.model, SentencePiece)
    special = {token.content for token in tokenizer.spec.added_tokens}
    pieces = [piece for piece, _ in model.pieces if piece not in special]
    texts = [
        text for text in texts_of(pieces, number) if not any(token in text for token in special)
    ]
    expected = tokenizer.encode_batch(texts)
    assert [one.ids for one in theirs.encode_batch(texts)] == expected
    assert processor.encode(texts) == expected
    assert read_back.encode_batch(texts) == expected
    if model.byte_fallback:
        for text, ids in zip(texts, expected, strict=True):
            if "\u2581" not in text:  # which is decoded as a space
                assert tokenizer.decode(ids) == processor.decode(ids) == text
                assert theirs.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_ids(model: str, byte_fallback: bool, tmp_path: Path) -> None:
    tokenizer = bpe_beam.train(
        documents(300, seed=3),
        model=model,
        vocab_size=520 + 256 * byte_fallback,
        byte_fallback=byte_fallback,
        character_coverage=0.999,
        special_tokens=["<pad>", "<a special token that is long>"],
    )
    check(tokenizer, tmp_path, 600)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ids_of_more_texts(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    tokenizer = bpe_beam.train(
        documents(rng.choice([30, 300, 1000]), seed),
        model=rng.choice(["unigram", "mingram"]),
        vocab_size=rng.choice([400, 700, 1000]),
        byte_fallback=rng.random() < 0.5,
        character_coverage=rng.choice([0.99, 0.9995, 1]),
        split_by_unicode_script=rng.random() < 0.5,
        max_piece_length=rng.choice([1, 3, 16, 40]),
    )
    check(tokenizer, tmp_path, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("model", ["unigram", "mingram"])
def test_ids_of_ten_scripts(model: str, byte_fallback: bool, tmp_path: Path) -> None:
    tokenizer = bpe_beam.train(
        texts_in_scripts(3_000, seed=1),
        model=model,
        vocab_size=4_000,
        byte_fallback=byte_fallback,
    )
    pieces = tokenizer.vocab
    assert all(any(letters[0] in piece for piece in pieces) for letters in SCRIPTS)
    check(tokenizer, tmp_path, 10_000)


def test_scores_are_exact_and_every_character_is_a_piece() -> None:
    tokenizer = bpe_beam.train(documents(100, seed=3), model="mingram", vocab_size=400)
    model = tokenizer.spec.model
    assert isinstance(model, Unigram)
    assert all(score * 128 == int(score * 128) for _, score in model.pieces)
    pieces = {piece for piece, _ in model.pieces[1:]}
    assert set("".join(pieces)) <= pieces
    assert model.pieces[0][1] < 8 * min(score for _, score in model.pieces[1:])
