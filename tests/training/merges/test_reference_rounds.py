"""Rounds over segments learn what one learner over all words does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import reference_rounds
from reference_bpe import CountedWord, Pair, Rules, Symbol, learn, merge_pair, number
from reference_bpe import split_words as split
from reference_rounds import cut, learn_in_rounds

pytestmark = pytest.mark.quick

LETTERS = ["a", "ab", "abc", "ab#", "#a", "a_b", "#_ab", "abcd"]
THRESHOLDS: dict[str, Callable[[int], int]] = {
    "best": lambda best: best,
    "half": lambda best: -(-best // 2),
    "quarter": lambda best: -(-best // 4),
    "one": lambda best: 1,
    "too low": lambda best: -1,
    "too high": lambda best: best + 1,
}


def flat(rounds: list[list[Pair]]) -> list[Pair]:
    return [pair for merges in rounds for pair in merges]


class Case(NamedTuple):
    counted: list[CountedWord]
    ids: dict[str, int]
    rules: Rules

    def learn(self) -> tuple[list[Pair], dict[str, int]]:
        ids = dict(self.ids)
        return learn(self.counted, ids, self.rules), ids

    def rounds(self, threshold: Callable[[int], int]) -> tuple[list[list[Pair]], dict[str, int]]:
        ids = dict(self.ids)
        return learn_in_rounds(self.counted, ids, self.rules, threshold), ids


def test_the_example_of_the_docs() -> None:
    """Two rounds over five words, as docs/algorithm.md tells them."""
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    counted = [(tuple(map(Symbol, word)), count) for word, count in words.items()]
    frequent = {("h", "u"), ("u", "g"), ("p", "u"), ("u", "n")}
    segments = [
        ("".join(s.text for s in row), n) for row, n in cut(counted, frequent, singles=False)
    ]
    assert segments == [("hug", 15), ("pug", 5), ("pun", 12), ("un", 4)]
    case = Case(counted, number({}, sorted(set("".join(words)))), Rules(100))
    rounds, _ = case.rounds(lambda best: best // 2)
    assert rounds == [
        [("u", "g"), ("u", "n"), ("h", "ug"), ("p", "un")],
        [("p", "ug"), ("hug", "s"), ("b", "un")],
    ]
    assert flat(rounds) == case.learn()[0]


def random_case(made: random.Random, **fixed: Any) -> Case:
    """A few short words, ties everywhere; special tokens that merges make; joined symbols."""
    letters = made.choice(LETTERS)
    prefix = made.choice(["", "", "#", "##"])
    suffix = made.choice(["", "", "_", "b", "</w>"])
    most = made.choice([4, 9, 14])
    words = {
        "".join(made.choices(letters, k=made.randint(1, most))) for _ in range(made.choice([2, 8]))
    }
    counted = split(
        [(word, made.choice([1, 1, 2, 3, 7])) for word in sorted(words)], letters, prefix, suffix
    )
    if made.random() < 0.35:
        counted = [(some_joined(made, symbols, prefix), count) for symbols, count in counted]
    symbols = sorted({symbol.text for word, _ in counted for symbol in word})
    specials = [
        "".join(made.choices(letters, k=made.randint(2, 4))) for _ in range(made.choice([0, 1, 3]))
    ]
    specials.append(prefix + "".join(made.choices(letters, k=2)) + suffix)
    ids = number({}, [*specials, *made.sample(symbols, len(symbols))])
    settings = {
        "min_frequency": made.choice([0, 1, 2, 4]),
        "tie_break": made.choice(["lowest_id", "greatest_bytes"]),
        "max_token_length": made.choice([None, None, 1, 2, 3, 4, 5]),
        "likelihood": made.random() < 0.25,
    }
    return Case(
        counted,
        ids,
        Rules(len(ids) + made.randint(1, 25), prefix=prefix, **settings | fixed),
    )


def some_joined(made: random.Random, symbols: Sequence[Symbol], prefix: str) -> list[Symbol]:
    """As in a tokenizer that is continued: one token here, its parts there."""
    joined = list(symbols)
    place = 0
    while place + 1 < len(joined):
        left, right = joined[place : place + 2]
        if made.random() < 0.3:
            text = left.text + right.text.removeprefix(prefix)
            joined[place : place + 2] = [Symbol(text, left.length + right.length)]
        else:
            place += 1
    return joined


@pytest.mark.slow
def test_random_corpora() -> None:
    made = random.Random("rounds")
    merges = known = longer_rounds = 0
    for _ in range(4000):
        case = random_case(made)
        learned, ids = case.learn()
        rounds, its_ids = case.rounds(made.choice(list(THRESHOLDS.values())))
        assert flat(rounds) == learned, case
        assert its_ids == ids
        merges += len(learned)
        known += len(learned) - (len(ids) - len(case.ids))
        longer_rounds += sum(len(one) > 1 for one in rounds)
    assert merges > 10_000
    assert known > 1_000
    assert longer_rounds > 1_000


def merged_by_rank(word: Sequence[Symbol], merges: Sequence[Pair], rules: Rules) -> list[Symbol]:
    """The pair of lowest rank first, the leftmost of equals; as an encoder merges."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    symbols = list(word)
    while True:
        places = [
            (ranks[left.text, right.text], place)
            for place, (left, right) in enumerate(pairwise(symbols))
            if (left.text, right.text) in ranks and rules.may_join(left, right)
        ]
        if not places:
            return symbols
        _, at = min(places)
        left, right = symbols[at : at + 2]
        text = rules.joined(left.text, right.text)
        symbols[at : at + 2] = [Symbol(text, left.length + right.length)]


def rewritten(
    word: Sequence[Symbol], merges: list[Pair], known: set[str], rules: Rules
) -> list[Symbol]:
    """A round's merges by rank, that of a known token after all others."""
    *others, last = merges
    if rules.joined(*last) in {*known, *(rules.joined(*pair) for pair in others)}:
        word = merged_by_rank(word, others, rules)
        return merged_by_rank(word, [last], rules)
    return merged_by_rank(word, merges, rules)


def test_a_round_may_be_applied_by_rank() -> None:
    made = random.Random("ranks")
    ended_by_known = 0
    for _ in range(800):
        case = random_case(made)
        known = set(case.ids)
        words = [word for word, _ in case.counted]
        for merges in case.rounds(THRESHOLDS["half"])[0]:
            by_rank = [rewritten(word, merges, known, case.rules) for word in words]
            for pair in merges:
                words = [merge_pair(word, pair, case.rules) for word in words]
            assert by_rank == words, (case, merges)
            joined = [case.rules.joined(*pair) for pair in merges]
            ended_by_known += joined[-1] in {*known, *joined[:-1]}
            known.update(joined)
    assert ended_by_known > 200


def whole(*words: tuple[str, int]) -> list[CountedWord]:
    """Words whose symbols are written with blanks between them."""
    return [([Symbol(text) for text in word.split()], count) for word, count in words]


def test_a_known_token_in_one_batch_with_others() -> None:
    """Why it is applied by itself: `a_` of the last merge would meet `_b` of the first."""
    [(word, _)] = whole(("a_ _ b _ a _ _ b", 1))
    merges = [("_", "b"), ("a_", "_b"), ("a", "_")]
    rules = Rules(99)
    one_by_one: Sequence[Symbol] = word
    for pair in merges:
        one_by_one = merge_pair(one_by_one, pair, rules)
    assert [symbol.text for symbol in one_by_one] == ["a__b", "_", "a_", "_b"]
    assert rewritten(word, merges, {"a_"}, rules) == one_by_one
    assert merged_by_rank(word, merges, rules) != one_by_one


KNOWN = Case(
    whole(("a ##a ##ab", 1), ("a ##a ##a ##b ##ab", 2)),
    number({}, ["##a", "##ab", "##b", "a"]),
    Rules(30, min_frequency=2, prefix="##"),
)


def test_a_round_ends_with_a_known_token(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, _ = KNOWN.learn()
    rounds, _ = KNOWN.rounds(THRESHOLDS["half"])
    assert rounds == [[("a", "##a"), ("##a", "##b")], [("aa", "##ab"), ("aaab", "##ab")]]
    assert flat(rounds) == learned

    def on_and_on(counted: list[CountedWord], ids: dict[str, int], rules: Rules) -> list[Pair]:
        return learn(counted, ids, rules)

    monkeypatch.setattr(reference_rounds, "_learn_until_known", on_and_on)
    assert flat(KNOWN.rounds(THRESHOLDS["half"])[0]) != learned


def test_frequencies_want_segments_of_one_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    """`a` alone makes (a, b) less likely than (c, d)."""
    words = whole(("a", 9), ("a b", 2), ("c d", 3))
    case = Case(words, number({}, "abcd"), Rules(5, min_frequency=2, likelihood=True))
    assert flat(case.rounds(THRESHOLDS["one"])[0]) == case.learn()[0] == [("c", "d")]
    monkeypatch.setattr(
        reference_rounds,
        "cut",
        lambda counted, frequent, singles: cut(counted, frequent, singles=False),
    )
    assert flat(case.rounds(THRESHOLDS["one"])[0]) != case.learn()[0]


def test_segments() -> None:
    words = whole(("a b c a b", 2), ("a b", 3), ("c", 1), ("", 1))
    segments = cut(words, {("a", "b")}, singles=False)
    assert [("".join(s.text for s in word), count) for word, count in segments] == [("ab", 7)]
    segments = cut(words, {("a", "b")}, singles=True)
    assert [("".join(s.text for s in word), count) for word, count in segments] == [
        ("ab", 7),
        ("c", 3),
    ]


def test_one_frequent_pair_taken_for_infrequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes other merges: so the comparison can fail."""

    def harder(counted: Any, frequent: Any, *, singles: bool) -> list[CountedWord]:
        return cut(counted, sorted(frequent)[1:], singles=singles)

    monkeypatch.setattr(reference_rounds, "cut", harder)
    made = random.Random(5)
    cases = [random_case(made, likelihood=False) for _ in range(100)]
    wrong = sum(flat(case.rounds(THRESHOLDS["half"])[0]) != case.learn()[0] for case in cases)
    assert wrong > 30
