"""Weights of sources: what each count is multiplied by, as an integer over 2^20.

A weight is fixed once. From then on all is integers, so that a tokenizer is the same on every
machine: the counts of a source are multiplied by its numerator, and what is compared with them by
the denominator. A power of two that all of them share is taken out of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

from bpe_beam.errors import UsageError
from bpe_beam.messages import list_few

DENOMINATOR = 1 << 20
MOST = 2**63 - 1
_SHOWN_SOURCES = 10

_DECIMAL = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,40}))?")
# The sums of 1,000 sources lose 3 of its digits; a numerator has 20 at most.
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6)


@dataclass(frozen=True)
class Weights:
    """What the counts of each source are multiplied by.

    Attributes:
        numerators: Of each source, over `DENOMINATOR`; 0 leaves it out.
    """

    numerators: Mapping[str, int]

    @property
    def unit(self) -> int:
        """The weighted count that stands for one occurrence: a power of two."""
        return DENOMINATOR // self._shared

    @property
    def factors(self) -> dict[str, int]:
        """What counts are multiplied by: the numerators without what they share."""
        return {name: value // self._shared for name, value in self.numerators.items()}

    @property
    def _shared(self) -> int:
        return math.gcd(DENOMINATOR, *self.numerators.values())

    def facts(self) -> dict[str, dict[str, object]]:
        """As a summary has them; the decimal is exact, as the denominator is a power of two."""
        return {
            name: {
                "numerator": value,
                "denominator": DENOMINATOR,
                "decimal": str(_exactly(value)),
            }
            for name, value in self.numerators.items()
        }

    def check_words(self, words: Mapping[str, int]) -> None:
        """Refuses weights by which the words counted are beyond 64 bits together.

        Args:
            words: Occurrences by source.

        Raises:
            UsageError: They are; tells what to do.
        """
        factors = self.factors
        total = sum(count * factors[name] for name, count in words.items())
        if total > MOST:
            raise UsageError(
                f"the weighted counts are beyond 64 bits: together {total:,}, at most {MOST:,}; "
                "give smaller weights, or such with fewer binary places, as 0.5 and 0.25 have"
            )
        if total == 0:
            raise UsageError("the weights leave no word to learn from: all their sources are empty")


def parse_weight(name: str, text: str) -> int:
    """Fixes a weight: the nearest integer over `DENOMINATOR`, halves up.

    Args:
        name: The source.
        text: A decimal number such as `0.3`, at most 18 digits before the point and
            40 after it.

    Raises:
        UsageError: Anything else, or a weight above 0 that is nearer to 0 than to 2^-20.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise UsageError(
            f"must be decimal numbers such as 0.3, 2 or 0, got {text!r} for {name}", ("weights",)
        )
    places = match[2] or ""
    digits, scale = int(match[1] + places), int("1" + "0" * len(places))
    numerator = (2 * digits * DENOMINATOR + scale) // (2 * scale)
    if numerator == 0 and digits:
        raise UsageError(
            f"the weight of {name} is {text}, which is nearer to 0 than to 2^-20, the least there "
            "is: multiply all weights, or give 0 to leave the source out"
        )
    return numerator


def parse_temperature(text: str) -> Decimal:
    """Reads a temperature: a decimal number from 0 to 1.

    Raises:
        UsageError: Anything else.
    """
    if _DECIMAL.fullmatch(text) is None or Decimal(text) > 1:
        raise UsageError(
            "must be a decimal number from 0 (equal shares) to 1 (the shares as they are), such as "
            f"0.7, got {text!r}",
            ("temperature",),
        )
    # 0.70 is 0.7: they are one setting.
    return Decimal(text).normalize(_CONTEXT)


def given_weights(given: Mapping[str, int], sources: Mapping[str, int]) -> Weights:
    """Weights by name; a source that is not named keeps 1.

    Args:
        given: Numerators by source.
        sources: What there is.

    Raises:
        UsageError: A source that there is not.
    """
    unknown = [name for name in given if name not in sources]
    if unknown:
        shown = list_few([repr(name) for name in sources], _SHOWN_SOURCES)
        raise UsageError(
            f"weights name {', '.join(map(repr, unknown))}, but the sources are {shown}"
        )
    return Weights({name: given.get(name, DENOMINATOR) for name in sources})


def tempered_weights(temperature: Decimal, sizes: Mapping[str, int]) -> Weights:
    """Weights by which a source's share of the text becomes proportional to its power.

    A source of n of the N bytes weighs (n^T / the sum of all n^T) / (n / N): with T below 1 small
    sources gain, with 1 all stay as they are, with 0 all get the same share. Computed with 60
    digits by `decimal`, whose results are the same everywhere, then fixed as any weight.

    Args:
        temperature: T, from 0 to 1.
        sizes: Bytes of text by source.

    Raises:
        UsageError: A weight that is nearer to 0 than to 2^-20.
    """
    powers = {name: _power(size, temperature) for name, size in sizes.items() if size}
    total = Decimal(0)
    for power in powers.values():
        total = _CONTEXT.add(total, power)
    whole = sum(sizes.values())
    numerators = {}
    for name, size in sizes.items():
        # An empty source has no words: its weight is as good as any.
        weight = Decimal(1)
        if size:
            share = _CONTEXT.divide(powers[name], total)
            weight = _CONTEXT.divide(_CONTEXT.multiply(share, Decimal(whole)), Decimal(size))
        scaled = _CONTEXT.add(_CONTEXT.multiply(weight, Decimal(DENOMINATOR)), Decimal("0.5"))
        numerators[name] = math.floor(scaled)
        if numerators[name] == 0:
            raise UsageError(f"temperature {temperature} gives {name} a weight below 2^-20")
    return Weights(numerators)


def _power(size: int, exponent: Decimal) -> Decimal:
    """By logarithm and exponential, which `decimal` rounds correctly."""
    if exponent == 1:
        return Decimal(size)
    return _CONTEXT.exp(_CONTEXT.multiply(exponent, _CONTEXT.ln(Decimal(size))))


def _exactly(numerator: int) -> Decimal:
    value = _CONTEXT.divide(Decimal(numerator), Decimal(DENOMINATOR))
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value
