"""SentencePiece's `.model` files, written: what they have, and why a tokenizer is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sentencepiece_models import (
    BPE,
    BYTES,
    NORMAL,
    SPECIAL,
    UNIGRAM,
    USER_DEFINED,
    Piece,
    Values,
    made_model,
)

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import models
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.components.normalizers import (
    NFC,
    NormalizerSequence,
    Prepend,
    Replace,
    SentencePieceNormalizer,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer, Metaspace, Whitespace
from bpe_beam.tokenizer.files import sentencepiece_file
from bpe_beam.tokenizer.spec import TokenizerSpec

pytestmark = pytest.mark.quick

LETTERS: list[Piece] = [(letter, -4.0, NORMAL) for letter in "▁abc"]
MERGED: list[Piece] = [("ab", -1, NORMAL), ("▁ab", -2, NORMAL), ("ca", -3, NORMAL)]
PIECES: list[Piece] = [*SPECIAL, *BYTES, *LETTERS, *MERGED]
ESCAPE = Replace(Pattern(text=" "), "▁")


def trained(**changes: Any) -> TokenizerSpec:
    """Return a tokenizer as training makes it, with other settings of its model or other parts."""
    vocab = {text: token_id for token_id, (text, _, _) in enumerate(PIECES)}
    model = models.BPE(
        vocab, [("a", "b"), ("▁", "ab"), ("c", "a")], unk_token="<unk>", byte_fallback=True
    )
    of_model = {name: changes.pop(name) for name in [*changes] if hasattr(model, name)}
    return TokenizerSpec(
        replace(model, **of_model),
        tuple(AddedToken(vocab[text], text) for text, _, _ in SPECIAL),
        normalizer=changes.pop("normalizer", Prepend("▁")),
        pre_tokenizer=changes.pop("pre_tokenizer", Metaspace()),
        **changes,
    )


def test_every_byte() -> None:
    names: Values = {4: len(PIECES), 24: 0, 35: 1, 45: b"<unk>", 46: b"<s>", 47: b"</s>"}
    expected = made_model(PIECES, BPE, trainer=names, normalizer={3: 1, 4: 0, 5: 1})
    roles = {"bos_token": "<s>", "eos_token": "</s>"}
    assert sentencepiece_file.write(trained(), roles) == expected


@pytest.mark.parametrize(
    ("normalizer", "pre_tokenizer", "prefix"),
    [
        (Prepend("▁"), Metaspace(), True),
        (Prepend("▁"), Metaspace(prepend_scheme="never"), True),
        (NormalizerSequence((Prepend("▁"), ESCAPE)), None, True),
        (NormalizerSequence((Prepend("▁"), ESCAPE)), Metaspace(split=False), True),
        (ESCAPE, None, False),
        (None, Metaspace(prepend_scheme="never"), False),
    ],
)
def test_it_reads_the_same(normalizer: Any, pre_tokenizer: Any, prefix: bool) -> None:
    spec = trained(normalizer=normalizer, pre_tokenizer=pre_tokenizer)
    data = sentencepiece_file.write(spec)
    written, read = Tokenizer(spec), Tokenizer(sentencepiece_file.read(data, "m.model"))
    assert (read.vocab, read.merges) == (written.vocab, written.merges)
    assert isinstance(read.spec.normalizer, NormalizerSequence) == prefix
    for text in ("", " ", "ab", " ab", "  ab  cab", "▁▁ab", "é ab\n", "<s>ab</s> <0x41>"):
        assert read.encode(text) == written.encode(text), text
        assert (read.encode(text)[:1] == [len(SPECIAL) + 256]) <= prefix | (text[:1] in " ▁")


@pytest.mark.parametrize("model_type", [BPE, UNIGRAM])
def test_a_model_that_was_read(model_type: int, tmp_path: Path) -> None:
    """All that decides ids is written again, also after it was a tokenizer.json."""
    pieces: list[Piece] = [*PIECES, ("xyz", 0.5, USER_DEFINED), ("bc", -1, NORMAL)]
    rules: Values = {3: 0, 4: 1, 5: 0}
    trainer: Values = {24: 1, 35: 1, 44: b"?"}
    data = made_model(pieces, model_type, trainer=trainer, normalizer=rules)
    written = Tokenizer(sentencepiece_file.read(data, "m.model"))
    path = tmp_path / "tokenizer.model"
    Tokenizer.from_json(written.to_json()).save_sentencepiece(str(path), pad_token="</s>")
    assert Tokenizer.from_sentencepiece(str(path)) == written
    assert b"?" in path.read_bytes()


def test_runs_of_one_score() -> None:
    """Those of Llama 2: the leftmost first."""
    runs: list[Piece] = [("▁" * size, -1, NORMAL) for size in (2, 3, 4)]
    pieces: list[Piece] = [*PIECES[:-3], *runs, ("ab", -2, NORMAL)]
    written = Tokenizer(
        sentencepiece_file.read(made_model(pieces, normalizer={4: 0}, trainer={35: 1}), "m.model")
    )
    assert written.spec.model.json_type == "BPE"
    read = Tokenizer(sentencepiece_file.read(sentencepiece_file.write(written.spec), "m.model"))
    assert read.vocab == written.vocab
    for text in (" " * size + "ab" * (size % 3) + " " * 5 for size in range(20)):
        assert read.encode(text) == written.encode(text)


def test_merges_whose_parts_come_later() -> None:
    written = Tokenizer(trained(merges=[("▁", "ab"), ("c", "a"), ("a", "b")]))
    read = Tokenizer(sentencepiece_file.read(sentencepiece_file.write(written.spec), "m.model"))
    assert read.merges == written.merges
    for text in ("ab cab", "cabab ca b"):
        assert read.encode(text) == written.encode(text)


def refusal(spec: TokenizerSpec, **roles: str) -> str:
    with pytest.raises(UsageError) as caught:
        sentencepiece_file.write(spec, roles)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"unk_token": None}, "it has no unknown token"),
        ({"byte_fallback": False}, "it gives each unknown character a token"),
        ({"ignore_merges": True}, "SentencePiece has no ignore_merges"),
        ({"continuing_subword_prefix": "##"}, "SentencePiece has no continuing_subword_prefix"),
        ({"normalizer": None}, "train with the normalizer dummy_prefix"),
        ({"normalizer": NFC()}, "its normalizer must be dummy_prefix or none"),
        ({"normalizer": NormalizerSequence((Prepend("▁"),) * 2)}, "its normalizer must be"),
        ({"pre_tokenizer": None}, "its pre-tokenizer must be metaspace"),
        ({"pre_tokenizer": Whitespace()}, "its pre-tokenizer must be metaspace"),
        ({"pre_tokenizer": Metaspace(replacement="_")}, "its pre-tokenizer must be metaspace"),
        ({"pre_tokenizer": ByteLevelPreTokenizer()}, "its pre-tokenizer must be metaspace"),
        ({"merges": [("a", "b"), ("▁", "ab")]}, 'its token "ca" is made by no merge'),
    ],
)
def test_refused_with_the_reason(changes: dict[str, Any], why: str) -> None:
    assert why in refusal(trained(**changes))


def with_tokens(*tokens: str, merges: list[tuple[str, str]]) -> TokenizerSpec:
    """Return a tokenizer with more tokens and merges."""
    base = trained()
    vocab = base.model.vocab | {token: len(PIECES) + n for n, token in enumerate(tokens)}
    assert isinstance(base.model, models.BPE)
    return replace(
        base, model=replace(base.model, vocab=vocab, merges=[*base.model.merges, *merges])
    )


def test_tokens_that_it_cannot_represent() -> None:
    split = with_tokens("b▁", merges=[("b", "▁")])
    assert 'its pre-tokenizer splits "b▁"' in refusal(split)
    sentencepiece_file.write(replace(split, pre_tokenizer=Metaspace(split=False)))
    # The characters alone become `ab` and `c`, never `a` and `bc`.
    other = with_tokens("bc", "abc", merges=[("b", "c"), ("a", "bc")])
    assert 'by scores, "a" and "bc" would not be joined' in refusal(other)
    again = with_tokens("abc", "bc", merges=[("ab", "c"), ("b", "c"), ("a", "bc")])
    data = sentencepiece_file.write(again)
    assert Tokenizer(sentencepiece_file.read(data, "")).merges == Tokenizer(again).merges[:-1]
    special = replace(trained(), added_tokens=(*trained().added_tokens, AddedToken(263, "ab")))
    assert 'its control token "ab" is also made by a merge' in refusal(special)
    plain = (*trained().added_tokens, AddedToken(len(PIECES), "+", special=False))
    assert 'its added token "+" is not special' in refusal(replace(trained(), added_tokens=plain))
    holes = (*trained().added_tokens, AddedToken(len(PIECES) + 1, "<x>"))
    assert f"no token has the id {len(PIECES)}" in refusal(replace(trained(), added_tokens=holes))
    level = TokenizerSpec(WordLevel({"<unk>": 0}, "<unk>"))
    assert "its model is WordLevel" in refusal(level)
    assert "must be a special token, got 'ab'" in refusal(trained(), eos_token="ab")


def test_a_model_with_foreign_parts() -> None:
    read = sentencepiece_file.read(made_model([*PIECES[:3], *LETTERS], UNIGRAM), "m.model")
    assert isinstance(read.normalizer, SentencePieceNormalizer)
    for changes in (
        {"pre_tokenizer": Metaspace()},
        {"normalizer": None},
        {"added_tokens": read.added_tokens[:1]},
        {"normalizer": replace(read.normalizer, user_defined_symbols=("a",))},
    ):
        assert "but its other parts are not" in refusal(replace(read, **changes))
