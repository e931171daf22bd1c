"""SentencePiece's `.model` files: what is read, and damaged ones refused by place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sentencepiece_models import (
    BPE,
    BYTES,
    CONTROL,
    NORMAL,
    SPECIAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Piece,
    Values,
    made_model,
    message,
    varint,
)

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.files import sentencepiece_file

pytestmark = pytest.mark.quick

LETTERS: list[Piece] = [(letter, -9, NORMAL) for letter in "▁abc"]
PIECES: list[Piece] = [*SPECIAL, *LETTERS, ("ab", -1, NORMAL), ("▁ab", -2, NORMAL)]


def tokenizer(data: bytes) -> Tokenizer:
    return Tokenizer(sentencepiece_file.read(data, "m.model"))


@pytest.mark.parametrize("model_type", [BPE, UNIGRAM])
def test_from_file_and_from_sentencepiece(tmp_path: Path, model_type: int) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(made_model(PIECES, model_type))
    read = Tokenizer.from_sentencepiece(str(path))
    assert read == Tokenizer.from_file(str(path)) == Tokenizer.from_sentencepiece(str(tmp_path))
    assert read.encode(" ab  ab c ") == [8, 8, 3, 6]
    assert read.decode([1, 8, 0, 8, 2]) == "ab \u2047  ab"
    assert read.special_tokens == {"<s>": 1, "</s>": 2}
    assert read.encode("</s>ab", allowed_special="all") == [2, 8]
    assert read.encode("</s>ab") == [3, 0, 7]
    assert read.vocab_size == len(PIECES)
    copy = tmp_path / "tokenizer.json"
    read.save(str(copy))
    assert Tokenizer.from_file(str(copy)) == read


def test_offsets() -> None:
    read = tokenizer(made_model([*PIECES, ("xyz", 0, USER_DEFINED)], UNIGRAM))
    tokens, _, offsets = read.encode_with_offsets(" ab  ab\u3000éé c")
    assert tokens == ["▁ab", "▁ab", "<unk>", "▁", "c"]
    assert offsets == [(1, 3), (3, 7), (7, 10), (10, 11), (11, 12)]


def test_a_plain_model_is_one_of_hugging_face() -> None:
    rules: Values = {4: 0}
    read = tokenizer(made_model([*PIECES, *BYTES], normalizer=rules, trainer={35: 1}))
    assert (read.spec.model.json_type, read.file_warning) == ("BPE", None)
    assert read.merges == [("a", "b"), ("▁", "ab")]
    # Of one score, or with what only SentencePiece does, it is not.
    for more in (("bc", -1, NORMAL), ("xyz", 0, USER_DEFINED)):
        read = tokenizer(made_model([*PIECES, more], normalizer=rules))
        assert read.spec.model.json_type == "SentencePiece"
        assert "for bpe-beam alone" in str(read.file_warning)


def refusal(data: bytes) -> str:
    with pytest.raises(UsageError) as caught:
        tokenizer(data)
    message = str(caught.value)
    assert message.startswith("m.model: ")
    return message.removeprefix("m.model: ")


GOOD = made_model(PIECES)
UNKNOWN_ONLY: list[Piece] = [("<unk>", 0, UNKNOWN)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty: get an intact copy"),
        (GOOD[:-1], f"byte {len(GOOD) - 1}: the message ends within a number"),
        (GOOD[:-1] + b"\1", f"byte {len(GOOD) - 2}: a value that does not end within its message"),
        (b"\x80" * 11, "byte 10: a number of more than ten bytes"),
        (b"\x0b", "byte 0: no kind of values has the number 3"),
        (b"\x02\x00", "byte 0: a field with the number 0"),
        (b"\x08\x00", "byte 0: pieces must have the kind 2, got 0"),
        (b"\x0a\x02\x08\x00", "byte 2: piece must have the kind 2, got 0"),
        (b"\x0a\x03\x0a\x01\xff", "byte 4: not UTF-8"),
        (b"\x0a\x02\x18\x07", "byte 2: no kind of pieces has the number 7"),
        (made_model([*PIECES, ("ab", 0, NORMAL)]), 'pieces[7]: the piece "ab" is also pieces[9]'),
        (made_model([*PIECES, ("", 0, NORMAL)]), "pieces[9]: a piece must have characters"),
        (made_model([*PIECES, ("a\0", 0, NORMAL)]), "pieces[9]: a piece must have characters"),
        (made_model([("a", float("nan"), NORMAL)]), 'pieces[0]: the score of "a" is nan'),
        (made_model([*PIECES, ("<x>", 0, UNKNOWN)]), "pieces must have one unknown piece, got 2"),
        (made_model([*PIECES, *BYTES]), "pieces must have the pieces of all bytes"),
        (made_model(PIECES, trainer={35: 1}), "pieces must have the pieces of all bytes"),
        (made_model(PIECES, 3), "trainer_spec.model_type must be unigram or bpe, got the number 3"),
        (made_model([*PIECES, ("bc", 0, UNUSED)]), "pieces[9]: BPE with the unused piece"),
        (made_model([*PIECES, ("!", 0, CONTROL)]), "pieces[9]: BPE with the control piece"),
        (made_model([*PIECES, ("xa", 0, NORMAL)]), 'pieces[9]: BPE with the piece "xa" but'),
        (made_model(PIECES, normalizer={2: b"abc"}), "precompiled_charsmap: it has no size"),
        (GOOD + message({5: message({2: b"abc"})}), "denormalizer_spec: replacements"),
    ],
)  # fmt: skip
def test_refused(data: bytes, said: str) -> None:
    assert refusal(data).find(said) >= 0, refusal(data)


def test_unknown_fields_are_skipped() -> None:
    more = message({4: b"self test", 200: 7, 201: 1.5}) + varint(202 << 3 | 1) + b"\0" * 8
    assert tokenizer(GOOD + more) == tokenizer(GOOD)


@pytest.mark.parametrize("model_type", [BPE, UNIGRAM])
def test_changed_bytes(model_type: int) -> None:
    """A changed model is refused, or encodes."""
    rng = random.Random(model_type)
    good = made_model([*PIECES, *BYTES], model_type, trainer={35: 1}, normalizer={3: 0})
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data)) if rng.random() < 0.3 else rng.randrange(130)
            data[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
        try:
            read = tokenizer(bytes(data))
            assert Tokenizer.from_json(read.to_json()) == read
            read.decode(read.encode("ab é\n cab"))
        except (UsageError, DataError):
            pass


def test_a_long_text_takes_no_square_of_time() -> None:
    runs: list[Piece] = [("a" * size, -size, NORMAL) for size in range(1, 200)]
    text = "a" * 100_000
    for model_type in (BPE, UNIGRAM):
        read = tokenizer(made_model([*SPECIAL, ("▁", 0, NORMAL), *runs], model_type))
        assert read.decode(read.encode(text)) == text
