"""A weight is the nearest integer over 2^20, whatever decimal number it is."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_beam.counts.weights import DENOMINATOR, Weights, parse_weight, tempered_weights
from bpe_beam.errors import UsageError

DIGITS = st.text("0123456789", min_size=1)


@settings(deadline=None)
@given(whole=DIGITS.filter(lambda t: len(t) <= 18), rest=DIGITS.filter(lambda t: len(t) <= 40))
def test_any_decimal(whole: str, rest: str) -> None:
    text = f"{whole}.{rest}"
    exact = Fraction(text) * DENOMINATOR
    expected = (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)
    if expected == 0 and exact:
        try:
            parse_weight("a", text)
        except UsageError:
            return
    assert parse_weight("a", text) == expected


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=6))
def test_factors_are_the_numerators_in_other_units(numerators: list[int]) -> None:
    weights = Weights({f"{i}": value for i, value in enumerate(numerators)})
    for name, value in weights.numerators.items():
        assert Fraction(weights.factors[name], weights.unit) == Fraction(value, DENOMINATOR)
    assert weights.unit & (weights.unit - 1) == 0


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 10**15), min_size=1, max_size=8),
    hundredths=st.integers(0, 100),
)
def test_a_temperature_against_floats(sizes: list[int], hundredths: int) -> None:
    """To what doubles can tell; the whole stays the whole."""
    temperature = hundredths / 100
    weights = tempered_weights(
        Decimal(hundredths) / 100, {f"{i}": size for i, size in enumerate(sizes)}
    )
    power, whole = sum(size**temperature for size in sizes), sum(sizes)
    for size, numerator in zip(sizes, weights.numerators.values(), strict=True):
        weight = (size**temperature / power) / (size / whole)
        assert abs(numerator / DENOMINATOR - weight) <= 1e-9 * weight + 0.51 / DENOMINATOR
    total = sum(n * s for n, s in zip(weights.numerators.values(), sizes, strict=True))
    assert abs(Fraction(total, DENOMINATOR) - whole) <= Fraction(whole, 2 * DENOMINATOR)
