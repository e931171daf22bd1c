"""The words that cost most, against all words one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from counts_folders import STORAGE, some_counts, write_folder
from html_pages import tokenizers

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.html_report.words import costly_words


@pytest.mark.parametrize("workers", [1, 3])
def test_words_against_encoding_each(tmp_path: Path, workers: int) -> None:
    manifest = write_folder(tmp_path)
    first, second = tokenizers()
    words = {r["word"]: r["count"] for block in some_counts().drain() for r in block.to_pylist()}
    encoded = {word: tuple(first.tokenizer.encode(word)) for word in words}
    rows = [(-words[w] * (len(ids) - 1), w, words[w], ids) for w, ids in encoded.items()]
    expected = sorted(row for row in rows if len(row[3]) > 1)[:12]
    counted = CountedParts.of_folder(STORAGE, str(tmp_path), manifest, workers)
    found, of_words = costly_words(counted, (first, second), 12)
    assert found == expected
    assert of_words == []  # each word is one token
