"""Parts of messages."""

from __future__ import annotations

import pytest

from bpe_beam.messages import and_more, did_you_mean, first_few, list_few, shortened

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("items", "kept", "line"),
    [
        ([], [], ""),
        (["a", "b"], ["a", "b"], "a, b"),
        (["a", "b", "c"], ["a", "b", "and 1 more"], "a, b and 1 more"),
        (["a"] * 2002, ["a", "a", "and 2,000 more"], "a, a and 2,000 more"),
    ],
)
def test_long_lists_name_the_first_and_count_the_others(
    items: list[str], kept: list[str], line: str
) -> None:
    assert first_few(items, 2) == kept
    assert list_few(items, 2) == line
    assert and_more(1) == "and 1 more"


def test_a_near_name_is_offered() -> None:
    assert did_you_mean("vocab_sise", ["vocab_size", "output"]) == "; did you mean vocab_size?"
    assert did_you_mean("zzz", ["vocab_size", "output"]) == ""
    assert did_you_mean("s4", ["s3", "gs"]) == ""
    assert did_you_mean("s4", ["s3", "gs"], cutoff=0.5) == "; did you mean s3?"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("é\n", '"é\\n"'),
        ("\ud800", '"\\ud800"'),
        (["a", 1, None], '["a", 1, null]'),
        ("x" * 10**6, f'"{"x" * 76}...'),
        ({1}, "a set"),
    ],
)
def test_a_value_in_a_message_has_at_most_80_characters(value: object, shown: str) -> None:
    assert shortened(value) == shown
