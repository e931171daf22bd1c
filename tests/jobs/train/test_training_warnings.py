"""Warnings about added tokens of a base tokenizer that counting did not extract."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from msgspec.structs import replace

import bpe_beam
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.tokenizer import Tokenizer

TEXTS = ["xfoox xfoox afoo foob", "zy zy <s>"]


@pytest.fixture(name="base")
def base_fixture(tmp_path: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = bpe_beam.train(["ab ab"], vocab_size=260, special_tokens=["<s>"])
    added = AddedToken(300, "foo", lstrip=True, normalized=True, special=False)
    spec = replace(trained.spec, added_tokens=(*trained.spec.added_tokens, added))
    path = tmp_path / "base.json"
    path.write_text(Tokenizer(spec).to_json())
    return str(path)


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.filterwarnings("ignore:the vocabulary has")
def test_added_tokens_are_extracted(base: str, tmp_path: Path, as_file: bool) -> None:
    texts: object = TEXTS
    if as_file:
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
        texts = str(tmp_path / "texts.txt")
    trained = bpe_beam.train(texts, vocab_size=320, continue_from=base)
    joined = {left + right for left, right in trained.merges}
    assert "zy" in joined
    assert not any("fo" in token or "s>" in token for token in joined)


@pytest.mark.filterwarnings("ignore:the vocabulary has")
def test_counts_name_the_added_tokens_in_their_words(base: str) -> None:
    with pytest.warns(UserWarning, match=r'base\.json: "foo" 4 times\. They were counted as plain'):
        bpe_beam.train(bpe_beam.count(TEXTS), vocab_size=320, continue_from=base)
