"""The native scanner against the `regex` package, on whatever Hypothesis thinks of."""

from __future__ import annotations

import pytest
from gpt2_scanner_checks import REPRESENTATIVES, differs, left_out

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

LEFT_OUT = left_out()
CHARACTERS = st.one_of(
    st.sampled_from(REPRESENTATIVES),
    st.sampled_from(["'s", "'t", "'d", "'m", "'ll", "'ve", "'re", "  ", "abcdefgh", "\r\n"]),
    st.characters(codec="utf-8").filter(lambda character: ord(character) not in LEFT_OUT),
)


@pytest.mark.slow
@hypothesis.settings(max_examples=2000, deadline=None)
@hypothesis.given(st.lists(CHARACTERS, max_size=60).map("".join))
def test_text(text: str) -> None:
    assert not differs(text)
