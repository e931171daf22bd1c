"""The fast learner equals the reference, on whatever Hypothesis thinks of."""

from __future__ import annotations

import pytest
from bpe_checks import check

from bpe_beam.tokenizer.components import byte_level
from bpe_beam.training.recipe import ALPHABETS, TIE_BREAKS, BpeRecipe

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

COUNTS = st.one_of(
    st.integers(1, 6), st.sampled_from([2**31 - 1, 2**31, 2**53 - 1, 2**53, 2**53 + 1])
)
LETTERS = st.sampled_from([b"a", b"ab", b"ab ", b"abcd", b"\x00\xff\n", b"a\xc3\xa9 "])


@st.composite
def corpora(draw: hypothesis.strategies.DrawFn) -> tuple[list[tuple[bytes, int]], BpeRecipe]:  # type: ignore[name-defined]
    """Counted words over a few letters, and a recipe."""
    letters = draw(LETTERS)
    word = st.lists(st.sampled_from(letters), min_size=1, max_size=16).map(bytes)
    counted = draw(st.lists(st.tuples(word, COUNTS), max_size=12))
    chars = [byte_level.to_chars(bytes([letter])) for letter in letters]
    special = st.one_of(
        st.lists(st.sampled_from(chars), min_size=1, max_size=5).map("".join),
        st.sampled_from(["<s>", "語", " ", "éé"]),
    )
    specials = draw(st.lists(special, max_size=4, unique=True))
    specials = [token for token in specials if len(token) > 1 or token in " 語<"]
    recipe = BpeRecipe(
        vocab_size=256 + len(specials) + draw(st.integers(0, 40)),
        min_frequency=draw(st.sampled_from([0, 1, 2, 3, 10, 2**31])),
        tie_break=draw(st.sampled_from(TIE_BREAKS)),
        alphabet=draw(st.sampled_from(ALPHABETS)),
        special_tokens=tuple(specials),
    )
    return counted, recipe


@pytest.mark.slow
@hypothesis.settings(max_examples=500, deadline=None)
@hypothesis.given(corpora())
def test_equal_to_the_reference(corpus: tuple[list[tuple[bytes, int]], BpeRecipe]) -> None:
    check(*corpus)
