"""The characters and the segments of words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from piece_checks import words_of

from bpe_beam.training.recipe import UnigramRecipe
from bpe_beam.training.unigram.segments import kept_characters, segments_of

pytestmark = pytest.mark.quick

NO_FOLLOWER = 0xFFFFFFFE


def test_characters_are_in_order_and_counted() -> None:
    recipe = UnigramRecipe(9, character_coverage="0.9", initial_alphabet=("z", "c"))
    alphabet = kept_characters(words_of({"ba": 50, "b語": 5, "c": 1}), recipe)
    assert alphabet.characters == {"a": 50, "b": 55, "c": 1, "z": 0}
    assert alphabet.points.tolist() == [97, 98, 99, 122]
    assert alphabet.counts.tolist() == [50, 55, 1, 0]


def test_segments_are_sorted_and_joined() -> None:
    words = words_of({"▁it's": 3, "▁its": 2, "s": 4, "▁it?": 1})
    recipe = UnigramRecipe(30, character_coverage="1")
    data, offsets, counts, followers = segments_of(
        words, kept_characters(words, recipe), recipe
    ).columns()
    texts = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
    assert texts == ["'", "?", "s", "▁it", "▁its"]
    assert counts.tolist() == [3, 1, 7, 4, 2]
    assert followers.tolist() == [ord("s"), NO_FOLLOWER, NO_FOLLOWER, NO_FOLLOWER, NO_FOLLOWER]
    assert data.dtype == np.uint8
