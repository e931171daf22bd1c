"""Texts whose tokens the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from html_pages import tokenizers

from bpe_beam.errors import UsageError
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report.page import MAX_SAMPLE, SAMPLES, read_samples, tokens_of
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer


def test_files_replace_the_own_samples(tmp_path: Path) -> None:
    assert read_samples(Storage(), ()) is SAMPLES
    path = tmp_path / "a.txt"
    path.write_text("größe", "utf-8")
    assert read_samples(Storage(), (str(path),)) == {str(path): "größe"}


def test_a_long_text_is_cut_between_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" + "\u20ac" * 2 * MAX_SAMPLE, "utf-8")
    (text,) = read_samples(Storage(), (str(path),)).values()
    assert text == "x" + "\u20ac" * (MAX_SAMPLE - 1)


def test_files_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(UsageError, match="no such file"):
        read_samples(Storage(), (str(path),))
    path.write_bytes(b"a\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_samples(Storage(), (str(path),))


def test_tokens_of_a_text() -> None:
    vocabulary, _ = tokenizers()
    text = SAMPLES["German"]
    assert tokens_of(vocabulary, text) == vocabulary.tokenizer.encode(text)
    lacking = Vocabulary(Tokenizer.from_learned(["a"], []))
    assert tokens_of(lacking, "b") is None
