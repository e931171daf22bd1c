"""Limits of rejects and losses: a number or a share."""

from __future__ import annotations

import pytest

from bpe_beam.corpus.reject_limits import Limit
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("limit", "rejects", "records", "exceeded"),
    [
        ("10", 10, 10, False),
        ("10", 11, 10**9, True),
        ("0", 0, 0, False),
        ("0", 1, 10**9, True),
        (10, 11, 11, True),
        ("0.1%", 0, 0, False),
        ("0.1%", 1, 999, True),
        ("0.1%", 1, 1000, False),
        ("0.1%", 2, 1999, True),
        ("0%", 1, 10**12, True),
        ("100%", 5, 5, False),
        (" 5 % ", 5, 100, False),
        (" 5 % ", 6, 100, True),
        # 3 in 10^18 and 10^19: no float tells these apart
        ("0.0000000000000003%", 3, 10**18, False),
        ("0.0000000000000003%", 4, 10**18, True),
        ("33.333333333333333333%", 333333333333333333, 10**18, False),
        ("33.333333333333333333%", 333333333333333334, 10**18, True),
    ],
)
def test_limits(limit: str | int, rejects: int, records: int, exceeded: bool) -> None:
    assert Limit.parse(limit).exceeded(rejects, records) is exceeded


@pytest.mark.parametrize(
    "limit", ["", "%", "-1", "1.5", "0.1", "1e3", "101%", "100.1%", "5%%", "٣"]
)
def test_what_is_no_limit(limit: str) -> None:
    with pytest.raises(UsageError, match="max_rejects must be"):
        Limit.parse(limit)


def test_messages_show_no_sound_number() -> None:
    with pytest.raises(UsageError, match=r"such as 0.1%, and at least 0, got '-5%'"):
        Limit.parse("-5%")
    with pytest.raises(UsageError, match=r"must be at most 100%, got 9+%"):
        Limit.parse("9" * 20 + "%")
    assert not Limit.parse("0." + "0" * 30 + "1%").exceeded(0, 1)


def test_other_types_are_no_limit() -> None:
    for limit in (True, 0.1, None):
        with pytest.raises(UsageError, match="max_rejects must be"):
            Limit.parse(limit)
