"""The words that cost most, against all words one by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import run
from counts_folders import STORAGE, some_counts, write_folder
from html_pages import tokenizers
from small_tokenizers import learn

from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import Pair, word_differences
from bpe_beam.html_report.costly_words import word_lists


@pytest.mark.parametrize("workers", [1, 3])
def test_words_against_encoding_each(tmp_path: Path, workers: int) -> None:
    write_folder(tmp_path)
    first, second = tokenizers()
    words = {r["word"]: r["count"] for block in some_counts().drain() for r in block.to_pylist()}
    encoded = {word: tuple(first.tokenizer.encode(word)) for word in words}
    rows = [(-words[w] * (len(ids) - 1), w, words[w], ids) for w, ids in encoded.items()]
    expected = sorted(row for row in rows if len(row[3]) > 1)[:12]
    counted = CountedParts.of_folder(STORAGE, str(tmp_path), workers)
    found, of_words = word_lists(counted, (first, second), "ab", 12).costly
    assert found == expected
    assert of_words == []  # each word is one token


def test_words_encoded_otherwise_are_those_of_each_pair(tmp_path: Path) -> None:
    manifest = write_folder(tmp_path)
    first, second = tokenizers()
    counted = CountedParts.of_folder(STORAGE, str(tmp_path), 2)
    pairs = [Pair(first, second, ("a", "b")), Pair(first, first, ("a", "c"))]
    steps: list[None] = []
    found = word_lists(
        counted,
        (first, second, first),
        "abc",
        7,
        pairs=pairs,
        on_part=lambda: steps.append(None),
    )
    assert found.differences == [word_differences(pair, counted, top=7) for pair in pairs]
    assert found.differences[0].other_words > 0 == found.differences[1].other_words
    assert found.costly[0] == found.costly[2] != found.costly[1]
    assert len(steps) == len(manifest.parts)


def test_the_page_has_the_first_tokens_of_a_long_word(tmp_path: Path) -> None:
    """Words of megabytes, such as images in base64, are words of most patterns."""
    text, page = tmp_path / "text.txt", tmp_path / "page.html"
    text.write_text("".join(f"{chr(0x4E00 + n) * 20_000}\n" for n in range(60)) + "word\n")
    paths = []
    for name, merges in (("a", 0), ("b", 1)):
        paths.append(tmp_path / f"{name}.json")
        learn("bytes", (), merges).save(str(paths[-1]))
    assert run("evaluate", "--tokenizer", *paths, "--input", text, "--output", page).code == 0
    made = page.read_text("utf-8")
    assert page.stat().st_size < 600_000
    assert "一" * 100 + "…" in made
    assert not re.search(r"([一-鿿])\1{100}", made)
    assert '<td class="number">60,000</td>' in made  # the number of all tokens of a word
    assert "… 59,950 more" in made
    assert re.search('"first_word": *"word"', made)
