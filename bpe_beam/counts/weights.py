"""Weights of sources: the factors of their counts, as integers over 2^20.

A weight is rounded once; from then on all numbers are integers. The counts of a source are
multiplied by its numerator, and thresholds by the denominator, both divided by the power of two
that all of them have in common.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct

from bpe_beam.errors import UsageError
from bpe_beam.messages import list_few

if TYPE_CHECKING:
    from bpe_beam.counts.manifest import SourceTotals

DENOMINATOR = 1 << 20
MAX_TOTAL = 2**63 - 1
_SHOWN_SOURCES = 10

_DECIMAL = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,40}))?")
# The sums of 1,000 sources lose 3 of its digits; a numerator has at most 20.
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6)


class Weights(Struct, frozen=True):
    """The weight of each source: a numerator over `DENOMINATOR`; 0 drops the source."""

    numerators: Mapping[str, int]

    @property
    def unit(self) -> int:
        """The weighted count of one occurrence: a power of two."""
        return DENOMINATOR // self._shared

    @property
    def factors(self) -> dict[str, int]:
        """The factor of the counts of each source: its numerator over the common divisor."""
        return {name: value // self._shared for name, value in self.numerators.items()}

    @property
    def _shared(self) -> int:
        return math.gcd(DENOMINATOR, *self.numerators.values())

    def summary(self, sizes: Mapping[str, int]) -> dict[str, dict[str, object]]:
        """Return the weights for a summary, with the share of each source after weighting."""
        total = sum(size * self.numerators[name] for name, size in sizes.items())
        return {
            name: {
                "weight": _shortest(value),
                "weighted_share": sizes[name] * value / total if total else None,
                "numerator": value,
                "denominator": DENOMINATOR,
                "decimal": str(_exactly(value)),
            }
            for name, value in self.numerators.items()
        }

    def check_words(self, words: Mapping[str, int]) -> None:
        """Refuse weights with which the sum of all counts is beyond 64 bits, or 0."""
        factors = self.factors
        total = sum(count * factors[name] for name, count in words.items())
        if total > MAX_TOTAL:
            raise UsageError(
                f"the weighted counts must be at most {MAX_TOTAL:,} together, got {total:,}; "
                "give smaller weights, or weights with fewer binary digits, such as 0.5 and 0.25"
            )
        if total == 0:
            raise UsageError("the weights leave no words to train on: all their sources are empty")


def parse_weight(name: str, text: str) -> int:
    """Return the numerator of a weight: the nearest integer over `DENOMINATOR`, halves up."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise UsageError(
            "must be decimal numbers such as 0.3, 2 or 0, without sign and exponent, of at most 18 "
            f"digits and 40 after the point, got {text!r} for {name}",
            ("weights",),
        )
    places = match[2] or ""
    digits, scale = int(match[1] + places), int("1" + "0" * len(places))
    numerator = (2 * digits * DENOMINATOR + scale) // (2 * scale)
    if numerator == 0 and digits:
        raise UsageError(
            f"the weight of {name} must be 0 or at least 2^-20, got {text}: multiply all weights, "
            "or give 0 to leave it out"
        )
    return numerator


def parse_temperature(text: str) -> Decimal:
    """Return a temperature: a decimal number from 0 to 1."""
    if _DECIMAL.fullmatch(text) is None or Decimal(text) > 1:
        raise UsageError(
            "must be a decimal number from 0 (equal shares) to 1 (the shares as they are), such as "
            f"0.7, without exponent and of at most 40 digits after the point, got {text!r}",
            ("temperature",),
        )
    # 0.70 is 0.7: they are one setting.
    return Decimal(text).normalize(_CONTEXT)


def explicit_weights(numerators: Mapping[str, int], sources: Mapping[str, int]) -> Weights:
    """Return the weights of all sources; a source that is not named has the weight 1."""
    unknown = [name for name in numerators if name not in sources]
    if unknown:
        shown = list_few([repr(name) for name in sources], _SHOWN_SOURCES)
        raise UsageError(
            f"weights name {', '.join(map(repr, unknown))}, but the sources are {shown}"
        )
    return Weights({name: numerators.get(name, DENOMINATOR) for name in sources})


def tempered_weights(temperature: Decimal, sizes: Mapping[str, int]) -> Weights:
    """Return weights with which each source's share of the text is proportional to its size^T.

    A source of n of the N bytes has the weight (n^T / the sum of all n^T) / (n / N). `decimal`
    computes it with 60 digits, the same everywhere; then it is rounded as any weight.
    """
    whole = sum(sizes.values())
    numerators = {}
    with localcontext(_CONTEXT):
        # By logarithm and exponential, which `decimal` rounds correctly.
        powers = {
            name: Decimal(size) if temperature == 1 else (temperature * Decimal(size).ln()).exp()
            for name, size in sizes.items()
            if size
        }
        total = sum(powers.values())
        for name, size in sizes.items():
            # An empty source has no words: any weight will do.
            weight = powers[name] / total * whole / size if size else Decimal(1)
            numerators[name] = math.floor(weight * DENOMINATOR + Decimal("0.5"))
            if numerators[name] == 0:
                raise UsageError(f"temperature {temperature} gives {name} a weight below 2^-20")
    return Weights(numerators)


def weights_of_shares(
    shares: Mapping[str, Fraction], totals: Mapping[str, SourceTotals]
) -> Weights:
    """Return weights with which each source has a share of the text; other sources have none.

    A source of n of the N bytes has the weight share / (n / N), rounded as any weight.

    Raises:
        UsageError: A source with a share has no text, or a weight is too small or too great.
    """
    whole = sum(each.text_bytes for each in totals.values())
    numerators = dict.fromkeys(totals, 0)
    for name, share in shares.items():
        size = totals[name].text_bytes
        if not size:
            raise UsageError(f"the mixture has a share of {name}, which has no text", ("weights",))
        numerators[name] = math.floor(share * whole / size * DENOMINATOR + Fraction(1, 2))
        if not numerators[name]:
            raise UsageError(f"the mixture gives {name} a weight below 2^-20", ("weights",))
    weights = Weights(numerators)
    weights.check_words({name: each.words for name, each in totals.items()})
    return weights


def weights_of(
    numerators: Mapping[str, int], temperature: Decimal | None, totals: Mapping[str, SourceTotals]
) -> Weights:
    """Return the weights of all sources, by numerators or by a temperature.

    Raises:
        UsageError: Numerators of other sources, or weights that are too great or leave no words.
    """
    if temperature is None:
        weights = explicit_weights(numerators, dict.fromkeys(totals, 1))
    else:
        weights = tempered_weights(temperature, {n: each.text_bytes for n, each in totals.items()})
    weights.check_words({name: each.words for name, each in totals.items()})
    return weights


def _shortest(numerator: int) -> str:
    """Return the decimal number of the fewest digits that `parse_weight` reads as a numerator."""
    # Halves are never reached: 2^20 parts need at most 7 decimal places to be told apart.
    texts = (f"{_exactly(numerator):.{places}f}" for places in itertools.count())
    return next(text for text in texts if parse_weight("", text) == numerator)


def _exactly(numerator: int) -> Decimal:
    value = _CONTEXT.divide(Decimal(numerator), Decimal(DENOMINATOR))
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value
