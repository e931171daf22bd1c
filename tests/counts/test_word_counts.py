"""Counts in memory: of texts, and of the words of a counts folder."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

from counts_folders import STORAGE, some_counts, write_folder

import bpe_beam
from bpe_beam import WordCounts

TEXTS = ["the cat the cat", "the größe", "", "cat"]


def test_totals_are_those_of_the_texts() -> None:
    counts = bpe_beam.count(TEXTS, pretokenizer="whitespace_split")
    expected = Counter(" ".join(TEXTS).split())
    assert len(counts) == len(expected)
    assert dict(counts.most_common(99)) == expected
    assert counts.most_common(2) == [("cat", 3), ("the", 3)]
    manifest = counts.manifest
    assert (manifest.documents, manifest.words) == (4, sum(expected.values()))
    assert manifest.text_bytes == sum(len(text.encode()) for text in TEXTS)
    assert manifest.word_bytes == sum(len(word.encode()) for word in expected)
    assert "3 words" in repr(counts)
    assert "whitespace_split" in repr(counts)


def test_sources_share_words() -> None:
    counts = bpe_beam.count({"b": TEXTS[:2], "a": TEXTS[2:]}, pretokenizer="whitespace_split")
    assert counts.sources == ("a", "b")
    totals = counts.manifest.sources
    assert totals is not None
    assert [totals[name].words for name in counts.sources] == [1, 6]
    assert len(counts) == 3
    assert counts.manifest.word_bytes == 13
    assert dict(counts.most_common()) == {"the": 3, "cat": 3, "größe": 1}


def test_counts_of_a_folder(tmp_path: Path) -> None:
    manifest = write_folder(tmp_path)
    counts = WordCounts.read(STORAGE, str(tmp_path))
    whole = next(iter(some_counts().drain()))
    assert counts.words.sort_by("word").to_pylist() == whole.to_pylist()
    assert len(counts) == manifest.unique_words


def test_counts_can_be_pickled() -> None:
    counts = bpe_beam.count(TEXTS, tie_break="first_seen")
    copy = pickle.loads(pickle.dumps(counts))
    assert copy.words.equals(counts.words)
    train = {"vocab_size": 260, "tie_break": "first_seen"}
    assert bpe_beam.train(copy, **train) == bpe_beam.train(counts, **train)


def test_equal_counts_compare_equal() -> None:
    sources = {"a": TEXTS[:2], "b": TEXTS[2:]}
    counts = bpe_beam.count(sources)
    for same in (pickle.loads(pickle.dumps(counts)), bpe_beam.count(sources, workers=1)):
        assert same == counts
        assert hash(same) == hash(counts)
    assert len({counts, bpe_beam.count(sources)}) == 1
    others = (
        bpe_beam.count(TEXTS),
        bpe_beam.count({"a": TEXTS[:1], "b": TEXTS[1:]}),
        bpe_beam.count({"a": TEXTS[:2], "c": TEXTS[2:]}),
        bpe_beam.count(sources, pretokenizer="whitespace_split"),
        # The same totals: one word is another.
        bpe_beam.count({"a": TEXTS[:2], "b": [*TEXTS[2:-1], "dog"]}),
    )
    for other in (*others, "counts", None):
        assert counts != other
