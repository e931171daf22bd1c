"""Tokenizers put together at random, exported to each form: equal there, or refused.

Equal are ids of texts, the vocabulary, added tokens with their settings, and the roles of special
tokens. `.tiktoken` and `.model` files have no roles and no post-processor.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from random_tokenizers import ROLES, BytesFile, RandomFile, SpacesFile

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS

tokenizers = pytest.importorskip("tokenizers")

FLAGS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


class RefusedError(Exception):
    """The tokenizer cannot be exported to a form."""


def save(write: Callable[..., None], path: Path, **options: str) -> None:
    try:
        write(path, **options)
    except UsageError:
        raise RefusedError from None


def ids_of(ours: Tokenizer, texts: list[str], **options: Any) -> list[tuple[str, list[int]]]:
    """Return texts and their ids; without texts that need a symbol the vocabulary lacks."""
    pairs = []
    for text in texts:
        try:
            pairs.append((text, ours.encode(text, **options)))
        except DataError:
            continue
    return pairs


def settings_of(token: Any) -> tuple[Any, ...]:
    return tuple(getattr(token, flag) for flag in FLAGS)


def compare_backend(ours: Tokenizer, theirs: Any, texts: list[str]) -> None:
    """Compare with a tokenizer of `tokenizers`."""
    theirs.no_truncation()
    theirs.no_padding()
    decoder = theirs.get_added_tokens_decoder()
    added = {token_id: settings_of(token) for token_id, token in decoder.items()}
    assert added == {token.id: settings_of(token) for token in ours.spec.added_tokens}
    assert theirs.get_vocab(with_added_tokens=True) == ours.vocab
    for framed in (True, False):
        options: Any = {"allowed_special": "all", "add_special_tokens": framed}
        for text, ids in ids_of(ours, texts, **options):
            assert theirs.encode(text, add_special_tokens=framed).ids == ids, ascii(text)
    theirs.encode_special_tokens = True
    for text, ids in ids_of(ours, texts):
        assert theirs.encode(text, add_special_tokens=False).ids == ids, ascii(text)
    theirs.encode_special_tokens = False


def as_tokenizer_json(file: RandomFile, ours: Tokenizer, folder: Path) -> None:
    path = folder / "tokenizer.json"
    save(ours.save, path)
    compare_backend(ours, tokenizers.Tokenizer.from_file(str(path)), file.texts)
    assert Tokenizer.from_file(path) == ours


def as_transformers_folder(file: RandomFile, ours: Tokenizer, folder: Path) -> None:
    from transformers import AutoTokenizer

    save(ours.save_pretrained, folder, **file.roles)
    theirs = AutoTokenizer.from_pretrained(str(folder))
    compare_backend(ours, theirs.backend_tokenizer, file.texts)
    roles = dict(file.roles)
    if (unknown := getattr(ours.spec.model, "unk_token", None)) in ours.special_tokens:
        roles.setdefault("unk_token", unknown)
    padding = ours.spec.padding
    if padding is not None and padding.pad_token in ours.special_tokens:
        roles.setdefault("pad_token", padding.pad_token)
    assert {role: getattr(theirs, role) for role in ROLES} == {**dict.fromkeys(ROLES), **roles}
    assert set(theirs.all_special_tokens) == set(ours.special_tokens)
    assert len(theirs) == ours.vocab_size
    for framed in (True, False):
        options: Any = {"allowed_special": "all", "add_special_tokens": framed}
        for text, ids in ids_of(ours, file.texts, **options):
            assert theirs(text, add_special_tokens=framed)["input_ids"] == ids, ascii(text)


def as_tiktoken(file: BytesFile, ours: Tokenizer, folder: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    path = folder / "t.tiktoken"
    save(ours.save_tiktoken, path)
    back = Tokenizer.from_tiktoken(path, pretokenizer="gpt2", special_tokens=ours.special_tokens)
    rows = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    pattern = NAMED_PATTERNS["gpt2"].expression
    theirs = tiktoken.Encoding(
        "t", pat_str=pattern, mergeable_ranks=ranks, special_tokens=ours.special_tokens
    )
    assert back.vocab == ours.vocab
    for text, ids in ids_of(ours, file.texts):
        assert back.encode(text) == ids, ascii(text)
        assert theirs.encode_ordinary(text) == ids, ascii(text)
    # tiktoken takes any of two special tokens at one place, not the longer one.
    ambiguous = "<s><s>" in ours.special_tokens
    for text, ids in ids_of(ours, file.texts, allowed_special="all"):
        assert back.encode(text, allowed_special="all") == ids, ascii(text)
        assert ambiguous or theirs.encode(text, allowed_special="all") == ids, ascii(text)


def as_sentencepiece(file: SpacesFile, ours: Tokenizer, folder: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = folder / "t.model"
    save(ours.save_sentencepiece, path)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    back = Tokenizer.from_sentencepiece(path)
    unknown = {"<unk>": ours.token_to_id("<unk>")}
    assert back.special_tokens == {**unknown, **ours.special_tokens}
    assert back.vocab == ours.vocab
    assert [theirs.id_to_piece(number) for number in range(len(theirs))] == [*back.vocab]
    for text, ids in ids_of(ours, file.texts):
        assert back.encode(text) == theirs.encode(text) == ids, ascii(text)
    special: Any = {"allowed_special": [*ours.special_tokens]}
    for text, ids in ids_of(ours, file.texts, **special):
        assert back.encode(text, **special) == ids, ascii(text)


def export(
    maker: Any, compare: Callable[[Any, Tokenizer, Path], None], seeds: range, folder: Path
) -> Counter[str]:
    """Export a tokenizer of each seed, and return how many are equal, refused or never read."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        file = maker(seed)
        try:
            ours = Tokenizer.from_json(file.json)
        except UsageError:
            counts["not read"] += 1
            continue
        try:
            compare(file, ours, folder)
        except RefusedError:
            counts["refused"] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from None
        else:
            counts["equal"] += 1
    return counts


FORMS: list[Any] = [
    (RandomFile, as_tokenizer_json),
    (BytesFile, as_tiktoken),
    (SpacesFile, as_sentencepiece),
]


@pytest.mark.parametrize(("maker", "compare"), FORMS)
def test_some_exports(maker: Any, compare: Any, tmp_path: Path) -> None:
    counts = export(maker, compare, range(200), tmp_path)
    assert counts["equal"] >= 40
    assert counts["refused"] >= 20


@pytest.mark.slow
@pytest.mark.parametrize(("maker", "compare"), FORMS)
def test_more_exports(maker: Any, compare: Any, tmp_path: Path) -> None:
    counts = export(maker, compare, range(200, 3_000), tmp_path)
    assert counts["equal"] >= 600
    assert counts["refused"] >= 100


@pytest.mark.transformers
def test_folders(tmp_path: Path) -> None:
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    counts = export(RandomFile, as_transformers_folder, range(300), tmp_path)
    assert counts["equal"] >= 150
    assert counts["refused"] >= 30
