"""A tokenizer of the report."""

from __future__ import annotations

from typing import NamedTuple

from bpe_beam.evaluation.tally import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary


class Evaluated(NamedTuple):
    """A tokenizer of the report.

    Attributes:
        vocabulary: Its tokens.
        total: The tally of all sources.
    """

    vocabulary: Vocabulary
    total: Tally
