"""Figures of tallies, against their slow definitions."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import reference_evaluation as reference

from bpe_beam.evaluation.metrics import Tally, entropy, fairness, gini, metrics_of, renyi_entropy


@pytest.mark.parametrize("seed", range(20))
def test_gini_against_all_pairs(seed: int) -> None:
    made = random.Random(seed)
    values = [made.choice([0.0, 1.0, made.random()]) for _ in range(made.randint(1, 30))] + [0.5]
    assert gini(values) == pytest.approx(reference.gini(values), abs=1e-12)


def test_gini_of_known_costs() -> None:
    assert gini([3.0, 3.0, 3.0]) == 0
    assert gini([0.0, 0.0, 0.0, 8.0]) == 0.75


def test_fairness_names_the_worst_and_the_best() -> None:
    found = fairness({"de": 2.0, "en": 1.0, "zh": 3.0, "empty": None})
    assert found is not None
    assert (found.worst, found.best, found.worst_to_best) == ("zh", "en", 3.0)
    assert fairness({"en": 1.0, "empty": None}) is None


def test_entropies_of_known_counts() -> None:
    even = np.array([7] * 8 + [0] * 100)
    assert entropy(even) == pytest.approx(3)
    assert renyi_entropy(even) == pytest.approx(3)
    assert entropy(np.array([0, 5])) == renyi_entropy(np.array([0, 5])) == 0
    skewed = np.array([3, 1])
    expected = math.log2(0.75**2.5 + 0.25**2.5) / -1.5
    assert renyi_entropy(skewed) == pytest.approx(expected)
    assert entropy(skewed) == pytest.approx(0.75 * math.log2(4 / 3) + 0.25 * 2)


def test_nothing_to_divide_by() -> None:
    flags = np.zeros(3, np.bool_)
    found = metrics_of(Tally.empty(3), 3, flags, flags, None)
    assert found.tokens == found.vocabulary_used == 0
    assert found.tokens_per_word is found.entropy is found.renyi_efficiency is None
    assert found.vocabulary_used_share == 0


def test_counts_beyond_53_bits_are_exact() -> None:
    tally = Tally.empty(2)
    tally.tokens[:] = 2**60 + 1, 2**60
    flags = np.array([True, False])
    assert metrics_of(tally, 2, flags, flags, None).tokens == 2**61 + 1
