"""From pieces to a vocabulary."""

from __future__ import annotations

import pytest

from bpe_beam.training.recipe import UnigramRecipe
from bpe_beam.training.unigram.result import chosen_pieces, result_of

pytestmark = pytest.mark.quick


def test_characters_stay_and_the_most_frequent_others() -> None:
    texts = [b"a", b"ab", b"abc", "é".encode(), "éa".encode()]
    counts = [0, 5, 7, 1, 5]
    assert set(chosen_pieces(texts, counts, UnigramRecipe(5))) == {0, 1, 2, 3}
    assert set(chosen_pieces(texts, counts, UnigramRecipe(3))) == {0, 3}
    assert len(chosen_pieces(texts, counts, UnigramRecipe(50))) == 5


def test_entries_before_the_pieces_have_a_lower_score_than_their_characters() -> None:
    recipe = UnigramRecipe(9, special_tokens=("<a long special token>",))
    learned = result_of({b"b": (3, -256), b"a": (3, -128), b"c": (4, -384)}, recipe)
    assert list(learned.vocab) == ["<unk>", "<a long special token>", "c", "a", "b"]
    assert learned.scores == [-74.0, -74.0, -3.0, -1.0, -2.0]
    assert learned.vocab["c"] == 2
