"""Limits of unusable records and lost bytes: a number, or a share of all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bpe_beam.errors import UsageError


@dataclass(frozen=True)
class Limit:
    """The maximum of something in a run: a number, or a share of all in integers.

    Attributes:
        numerator: The number; the numerator of a share.
        denominator: 0 for a number; the denominator of a share.
    """

    numerator: int
    denominator: int = 0

    @staticmethod
    def parse(limit: str | int, name: str = "max_rejects") -> Limit:
        """Return the limit that "10" or "0.1%" means."""
        text = str(limit).strip()
        match = re.fullmatch(r"([0-9]{1,99})(?:(?:\.([0-9]{1,99}))?\s*(%))?", text)
        if match is None or isinstance(limit, bool | float):
            bound = ", and at least 0" if text.startswith("-") else ""
            raise UsageError(
                f"must be a whole number, or a share with a percent sign such as 0.1%{bound}, got "
                f"{limit!r}",
                (name,),
            )
        whole, decimals, percent = match[1], match[2] or "", match[3]
        if not percent:
            return Limit(int(whole))
        numerator, denominator = int(whole + decimals), 100 * 10 ** len(decimals)
        if numerator > denominator:
            raise UsageError(f"must be at most 100%, got {text}", (name,))
        return Limit(numerator, denominator)

    def exceeded(self, count: int, total: int) -> bool:
        """Return whether a number exceeds the limit."""
        if not self.denominator:
            return count > self.numerator
        return count * self.denominator > total * self.numerator
