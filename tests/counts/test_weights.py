"""Weights of sources: fixed once, exactly, the same everywhere."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from bpe_beam.counts.manifest import SourceTotals
from bpe_beam.counts.weights import (
    DENOMINATOR,
    MAX_TOTAL,
    Weights,
    explicit_weights,
    parse_temperature,
    parse_weight,
    tempered_weights,
    weights_of_shares,
)
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick

SOURCES = {"en": 1, "zh": 1, "code": 1}


@pytest.mark.parametrize(
    ("text", "numerator"),
    [
        ("0", 0), ("0.0", 0), ("1", 1 << 20), ("1.000", 1 << 20), ("2", 1 << 21),
        ("0.5", 1 << 19), ("0.3", 314573), ("0.1", 104858), ("0.7", 734003),
        # 2^-21 is half of the least there is: from there it goes up.
        ("0.000000476837158203124", 0), ("0.000000476837158203125", 1),
        ("3.000000476837158203124999", 3 << 20), ("3.000000476837158203125", (3 << 20) + 1),
        ("999999999999999999", 999999999999999999 << 20),
    ],
)  # fmt: skip
def test_it_is_the_nearest_fraction(text: str, numerator: int) -> None:
    if numerator == 0 and Decimal(text) > 0:
        with pytest.raises(
            UsageError, match=f"the weight of en must be 0 or at least 2\\^-20, got {text}"
        ):
            parse_weight("en", text)
        return
    assert parse_weight("en", text) == numerator
    assert abs(Fraction(numerator, DENOMINATOR) - Fraction(text)) <= Fraction(1, 2 * DENOMINATOR)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1e3", ".5", "5.", "nan", "inf", "1,5", " 1", "1 ", "0x1", "1_0",
             "\u0661", "1" * 19, "0." + "1" * 41],
)  # fmt: skip
def test_what_is_no_weight(text: str) -> None:
    with pytest.raises(UsageError, match=r"weights must be decimal numbers such as .* for en"):
        parse_weight("en", text)


def test_a_source_that_is_not_named_keeps_1() -> None:
    weights = explicit_weights({"zh": 5}, SOURCES)
    assert weights.numerators == {"en": DENOMINATOR, "zh": 5, "code": DENOMINATOR}
    with pytest.raises(
        UsageError, match="weights name 'fr', 'de', but the sources are 'en', 'zh', 'code'"
    ):
        explicit_weights({"fr": 1, "zh": 1, "de": 1}, SOURCES)


@pytest.mark.parametrize(
    ("numerators", "factors", "unit"),
    [
        ([1 << 20, 3 << 20], [1, 3], 1),
        ([1 << 19, 1 << 19], [1, 1], 2),
        ([1 << 18, 3 << 19], [1, 6], 4),
        ([314573, 1 << 20], [314573, 1 << 20], 1 << 20),
        ([0, 1 << 21], [0, 2], 1),
        ([0, 3], [0, 3], 1 << 20),
    ],
)
def test_what_all_share_is_taken_out(numerators: list[int], factors: list[int], unit: int) -> None:
    weights = Weights(dict(zip("ab", numerators, strict=True)))
    assert list(weights.factors.values()) == factors
    assert weights.unit == unit
    for name, numerator in weights.numerators.items():
        assert Fraction(weights.factors[name], unit) == Fraction(numerator, DENOMINATOR)


def test_the_decimal_is_exact() -> None:
    figures = Weights({"a": 314573, "b": 1 << 20, "c": 0, "d": 1, "e": 10 << 20}).summary(
        {"a": 50, "b": 85, "c": 7, "d": 0, "e": 0}
    )
    assert figures["a"] == {
        "weight": "0.3", "weighted_share": 0.15000008106230917,
        "numerator": 314573, "denominator": 1 << 20, "decimal": "0.30000019073486328125",
    }  # fmt: skip
    for row in figures.values():
        assert Fraction(str(row["decimal"])) == Fraction(int(str(row["numerator"])), 1 << 20)
    assert [row["decimal"] for row in figures.values()][1:3] == ["1", "0"]
    assert figures["e"]["decimal"] == "10"
    assert [row["weight"] for row in figures.values()] == ["0.3", "1", "0", "0.000001", "10"]
    assert figures["c"]["weighted_share"] == 0


@pytest.mark.parametrize("typed", ["0.3", "2", "0.55", "0.333333", "12.5", "0.00001", "0.999999"])
def test_the_weight_of_a_summary_is_what_was_typed(typed: str) -> None:
    (row,) = Weights({"a": parse_weight("a", typed)}).summary({"a": 1}).values()
    assert row["weight"] == typed


def test_counts_beyond_64_bits() -> None:
    weights = Weights({"a": 3, "b": DENOMINATOR})
    fits = (MAX_TOTAL - 3 * 7) // DENOMINATOR
    weights.check_words({"a": 7, "b": fits})
    with pytest.raises(
        UsageError,
        match="the weighted counts must be at most 9,223,372,036,854,775,807 together, got 9,22",
    ):
        weights.check_words({"a": 7, "b": fits + 1})
    with pytest.raises(UsageError, match="leave no words to train on"):
        Weights({"a": 0, "b": 1}).check_words({"a": 5, "b": 0})


@pytest.mark.parametrize("text", ["-0.1", "1.1", "2", "x", "", "1e-1", "nan"])
def test_what_is_no_temperature(text: str) -> None:
    with pytest.raises(UsageError, match="temperature must be a decimal number from 0"):
        parse_temperature(text)


def test_a_temperature_is_one_setting_however_it_is_written() -> None:
    assert str(parse_temperature("0.70")) == str(parse_temperature("0.7")) == "0.7"


SIZES = {"a": 10**12, "b": 10**9, "c": 12345, "d": 1}


class TestTemperature:
    def test_1_changes_nothing(self) -> None:
        weights = tempered_weights(Decimal(1), SIZES)
        assert set(weights.numerators.values()) == {DENOMINATOR}

    def test_0_makes_all_alike(self) -> None:
        """To half of the least weight, times the size: what fixing it costs."""
        weights = tempered_weights(Decimal(0), SIZES).numerators
        share = Fraction(sum(SIZES.values()), len(SIZES))
        for name, size in SIZES.items():
            weight = Fraction(weights[name], DENOMINATOR)
            assert abs(weight - share / size) <= Fraction(1, 2 * DENOMINATOR)

    def test_a_half_by_hand(self) -> None:
        """Sizes 1, 4 and 16: roots 1, 2 and 4 of 7; weights (1/7) / (1/21) = 3, 3/2, 3/4."""
        weights = tempered_weights(Decimal("0.5"), {"a": 1, "b": 4, "c": 16})
        assert weights.numerators == {
            "a": 3 * DENOMINATOR, "b": DENOMINATOR * 3 // 2, "c": DENOMINATOR * 3 // 4,
        }  # fmt: skip

    def test_figures_of_every_machine(self) -> None:
        """As they came out once: any other library or precision that gives others is wrong."""
        weights = tempered_weights(Decimal("0.7"), SIZES)
        assert weights.numerators == GOLDEN

    def test_an_empty_source_is_left_as_it_is(self) -> None:
        weights = tempered_weights(Decimal("0.3"), {"a": 100, "b": 0, "c": 100})
        assert set(weights.numerators.values()) == {DENOMINATOR}


GOLDEN = {"a": 1041350, "b": 8271736, "c": 245555303, "d": 4145688295}


def test_weights_of_the_shares_of_a_mixture() -> None:
    """Each source has its share of the weighted text; others have none."""
    totals = {
        name: SourceTotals(documents=1, text_bytes=size, words=size, unique_words=1)
        for name, size in {"web": 700, "code": 200, "math": 100, "empty": 0}.items()
    }
    weights = weights_of_shares({"web": Fraction(1, 4), "code": Fraction(3, 4)}, totals)
    sizes = {name: each.text_bytes for name, each in totals.items()}
    shares = {name: row["weighted_share"] for name, row in weights.summary(sizes).items()}
    assert shares == pytest.approx({"web": 0.25, "code": 0.75, "math": 0, "empty": 0}, abs=1e-5)
    with pytest.raises(UsageError, match="a share of empty, which has no text"):
        weights_of_shares({"empty": Fraction(1)}, totals)
