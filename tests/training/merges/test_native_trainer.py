"""The native learner equals the reference, with every option, on corpora at random."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from native_learning import native_learn
from reference_bpe import (
    CountedWord,
    Rules,
    Symbol,
    continue_bpe,
    number,
    split_words,
)

from bpe_beam.training.recipe import TIE_BREAKS

pytestmark = pytest.mark.quick

ALPHABETS = ["a", "ab", "ab#", "#", "#_", "_ab", "aé#語", "abcdefgh"]
COUNTS = [1, 1, 1, 2, 3, 5, 2**31, 2**33 + 1, 2**53 + 1]


@dataclass(frozen=True)
class Case:
    """What the learner gets."""

    counted: list[CountedWord]
    ids: dict[str, int]
    rules: Rules
    with_spans: bool


def random_case(made: random.Random, likelihood: bool, tie_break: str) -> Case:
    letters = made.choice(ALPHABETS)
    counts = made.choice([COUNTS[:6], COUNTS])
    words = [
        ("".join(made.choices(letters, k=made.randint(1, 10))), made.choice(counts))
        for _ in range(made.randint(1, 9))
    ]
    prefix = made.choice(["", "", "#", "##", "_"])
    suffix = made.choice(["", "", "_", "</w>", "a"])
    counted = split_words(words, made.choice([letters, letters, letters[1:] + "#"]), prefix, suffix)
    with_spans = made.random() < 0.25
    if with_spans:
        counted = [(joined_at_random(made, word, prefix), count) for word, count in counted]
    specials = {"".join(made.choices(letters, k=made.randint(1, 4))) for _ in range(2)}
    ids = dict.fromkeys(sorted(specials), 0) if made.random() < 0.4 else {}
    ids = {token: 2 * place for place, token in enumerate(ids)}  # with holes
    symbols = {symbol.text for word, _ in counted for symbol in word}
    ids = number(ids, sorted({*letters, *symbols}))
    rules = Rules(
        vocab_size=len(ids) + made.randint(0, 30),
        min_frequency=made.choice([0, 0, 1, 2, 3, 2**31]),
        tie_break=tie_break,
        max_token_length=made.choice([None, None, 0, 1, 2, 3, 4, 6]),
        prefix=prefix,
        likelihood=likelihood,
    )
    return Case(counted, ids, rules, with_spans)


def joined_at_random(made: random.Random, word: list[Symbol], prefix: str) -> list[Symbol]:
    """A word as another tokenizer may have split it."""
    joined: list[Symbol] = []
    for symbol in word:
        if joined and made.random() < 0.4:
            last = joined.pop()
            text = last.text + symbol.text.removeprefix(prefix)
            joined.append(Symbol(text, last.length + symbol.length))
        else:
            joined.append(symbol)
    return joined


def check(case: Case) -> int:
    expected = continue_bpe(case.counted, case.ids, case.rules)
    found = native_learn(case.counted, case.ids, case.rules, case.with_spans)
    assert found == expected, case
    return len(expected[1])


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("likelihood", [False, True])
def test_random_corpora(likelihood: bool, tie_break: str) -> None:
    made = random.Random(f"{likelihood} {tie_break}")
    learned = [check(random_case(made, likelihood, tie_break)) for _ in range(500)]
    assert sum(learned) > 1500


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("likelihood", [False, True])
def test_more_words(likelihood: bool, tie_break: str) -> None:
    """So many pairs that heaps are emptied and rebuilt."""
    made = random.Random(f"more {likelihood} {tie_break}")
    for prefix, min_frequency in itertools.product(["", "##"], [0, 3]):
        words = {
            "".join(made.choices("abcdefghij", k=made.randint(1, 9))): made.randint(1, 4)
            for _ in range(60)
        }
        counted = split_words(words.items(), "abcdefghij", prefix)
        ids = number({}, sorted({symbol.text for word, _ in counted for symbol in word}))
        rules = Rules(len(ids) + 150, min_frequency, tie_break, None, prefix, likelihood)
        assert check(Case(counted, ids, rules, False)) > 10
