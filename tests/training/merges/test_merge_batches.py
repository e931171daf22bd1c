"""Plain batches: exactly the merges of one at a time, and no rule is there for nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from reference_bpe import (
    CountedWord,
    Pair,
    Rules,
    Symbol,
    count_pairs,
    learn,
    merge_pair,
    number,
)

from bpe_beam.training.merges.rounds import plain_batch
from bpe_beam.training.recipe import TieBreak

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

RULES = frozenset({"conflict", "equal", "known", "known first", "made", "level", "cut level"})
ALL_PAIRS = 1 << 30


class Listed(NamedTuple):
    """The best pairs and their counts, in the order of the rule."""

    pairs: list[tuple[Pair, int]]
    complete: bool


def conflict(pair: Pair, other: Pair) -> bool:
    return pair[0] == other[1] or pair[1] == other[0]


def batch_by_rules(
    listed: Listed, ids: dict[str, int], rules: Rules, kept: Collection[str] = RULES
) -> list[Pair]:
    """As the docstring of batches.py says it, with those of its rules that are kept."""
    taken: list[Pair] = []
    for place, (pair, count) in enumerate(listed.pairs):
        level = [one for one, its_count in listed.pairs[place:] if its_count == count]
        in_last_level = count == listed.pairs[-1][1]
        made = [rules.joined(*one) for one in taken]
        ends = {
            "conflict": any(conflict(pair, one) for one in taken),
            "equal": any(left == right for left, right in taken),
            "known": rules.joined(*pair) in ids,
            "known first": any(token in ids for token in made),
            "made": rules.joined(*pair) in made,
            "level": any(conflict(one, other) for one in level[1:] for other in taken),
            "cut level": in_last_level and not listed.complete,
        }
        if rules.tie_break != "greatest_bytes":
            ends["level"] = ends["cut level"] = False
        if taken and any(ends[rule] for rule in kept):
            break
        taken.append(pair)
    return taken


def fast_batch(listed: Listed, ids: dict[str, int], rules: Rules) -> list[Pair]:
    """By `plain_batch`."""
    strings = {token_id: token for token, token_id in ids.items()}
    pairs = [pair for pair, _ in listed.pairs]
    tie_break: Any = rules.tie_break
    size = plain_batch(
        np.array([ids[left] for left, _ in pairs], np.uint32),
        np.array([ids[right] for _, right in pairs], np.uint32),
        np.array([count for _, count in listed.pairs], np.int64),
        tie_break=tie_break,
        joined=lambda left, right: rules.joined(strings[left], strings[right]).encode(),
        known={token.encode() for token in ids},
        complete=listed.complete,
    )
    return pairs[:size]


def best_pairs(counted: list[CountedWord], ids: dict[str, int], rules: Rules, limit: int) -> Listed:
    counts = [
        (pair, count)
        for pair, count in count_pairs(counted, rules.may_join).items()
        if count >= max(1, rules.min_frequency)
    ]
    if rules.tie_break == "lowest_id":
        counts.sort(key=lambda entry: (ids[entry[0][0]], ids[entry[0][1]]))
    else:
        counts.sort(key=lambda entry: (entry[0][0].encode(), entry[0][1].encode()), reverse=True)
    counts.sort(key=lambda entry: -entry[1])
    return Listed(counts[:limit], limit >= len(counts))


def learn_in_batches(
    counted: Sequence[CountedWord],
    ids: dict[str, int],
    rules: Rules,
    limit: int,
    batch: Any = fast_batch,
) -> list[list[Pair]]:
    """A batch, all its merges, the next batch; at most `limit` pairs are looked at for each."""
    words = list(counted)
    ids = dict(ids)
    batches = []  # type: ignore[var-annotated]
    while len(ids) < rules.vocab_size:
        listed = best_pairs(words, ids, rules, limit)
        if not listed.pairs:
            break
        batches.append([])
        for pair in batch(listed, ids, rules):
            if len(ids) == rules.vocab_size:
                break
            words = [(merge_pair(word, pair, rules), count) for word, count in words]
            batches[-1].append(pair)
            ids.setdefault(rules.joined(*pair), max(ids.values()) + 1)
    return batches


def flat(batches: list[list[Pair]]) -> list[Pair]:
    return [pair for merges in batches for pair in merges]


@st.composite
def corpora(
    draw: st.DrawFn,  # type: ignore[name-defined]
) -> tuple[list[CountedWord], dict[str, int], Rules, int]:
    """A few words over a few letters, some already joined; special tokens that merges make."""
    letters = draw(st.sampled_from(["a", "ab", "abc", "ab#", "abcdef"]))
    prefix = draw(st.sampled_from(["", "", "#"]))
    text = st.lists(st.sampled_from(letters), min_size=1, max_size=3).map("".join)
    long_symbols = draw(st.booleans())

    def word(pieces: list[str]) -> list[Symbol]:
        return [
            Symbol((prefix if place else "") + piece, len(piece))
            for place, piece in enumerate(pieces)
        ]

    piece = text if long_symbols else st.sampled_from(letters)
    words = st.lists(piece, min_size=1, max_size=8).map(word)
    counted = draw(st.lists(st.tuples(words, st.sampled_from([1, 1, 2, 3, 7])), max_size=5))
    symbols = sorted({symbol.text for word, _ in counted for symbol in word})
    specials = draw(st.lists(text, max_size=3))
    ids = number({}, [*specials, *draw(st.permutations(symbols)), "<s>"])
    rules = Rules(
        len(ids) + draw(st.integers(1, 30)),
        draw(st.sampled_from([0, 1, 2, 4])),
        draw(st.sampled_from(["lowest_id", "greatest_bytes"])),
        draw(st.sampled_from([None, None, 1, 2, 3, 4])),
        prefix,
    )
    return counted, ids, rules, draw(st.sampled_from([1, 2, 3, 5, ALL_PAIRS]))


@pytest.mark.slow
@hypothesis.settings(max_examples=600, deadline=None)
@hypothesis.given(corpora())
def test_the_merges_of_one_at_a_time(
    corpus: tuple[list[CountedWord], dict[str, int], Rules, int],
) -> None:
    counted, ids, rules, limit = corpus
    batches = learn_in_batches(counted, ids, rules, limit)
    assert flat(batches) == learn(counted, dict(ids), rules)
    by_rules = learn_in_batches(counted, ids, rules, limit, batch_by_rules)
    assert batches == by_rules


def whole(text: str) -> list[CountedWord]:
    """From `a b x3, b c`: symbols between blanks, words between commas."""
    counted = []
    for word in text.split(", "):
        *symbols, times = word.split() if " x" in word else (*word.split(), "x1")
        counted.append(([Symbol(symbol) for symbol in symbols], int(times[1:])))
    return counted  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("dropped", "tie_break", "words", "ids", "limit", "batch"),
    [
        ("conflict", "lowest_id", "a b d", "a b d", ALL_PAIRS, "ab"),
        ("conflict", "lowest_id", "f f c", "c f", ALL_PAIRS, "fc"),
        ("equal", "lowest_id", "a a a x7, b b c", "a b c", ALL_PAIRS, "aa"),
        ("known first", "lowest_id", "a e c e x2", "ae a c e", ALL_PAIRS, "ae"),
        (
            "known first",
            "greatest_bytes",
            "p ab x3, p a b x3, a b x5, y z x4",
            "a ab b p y z",
            ALL_PAIRS,
            "ab",
        ),
        (
            "known",
            "lowest_id",
            "p ab x3, p a b x3, a b x5, y z x4, q r x9",
            "a ab b p q r y z",
            ALL_PAIRS,
            "qr",
        ),
        (
            "made",
            "lowest_id",
            "p a bc x3, p ab c x3, a bc x5, ab c x5, y z x4",
            "a ab b bc c p y z",
            ALL_PAIRS,
            "abc",
        ),
        (
            "made",
            "greatest_bytes",
            "p a bc x3, p ab c x3, a bc x5, ab c x5, y z x4",
            "a ab b bc c p y z",
            ALL_PAIRS,
            "abc",
        ),
        ("level", "greatest_bytes", "f a c c", "a c f", ALL_PAIRS, "fa"),
        ("cut level", "greatest_bytes", "d a b a", "a b d", 2, "da"),
    ],
)
def test_no_rule_can_be_left_out(
    dropped: str, tie_break: TieBreak, words: str, ids: str, limit: int, batch: str
) -> None:
    """The examples of the docstring: wrong without the rule, right with all of them."""
    counted, numbered = whole(words), number({}, ids.split())
    rules = Rules(len(numbered) + 20, tie_break=tie_break)
    expected = learn(counted, dict(numbered), rules)
    batches = learn_in_batches(counted, numbered, rules, limit)
    assert flat(batches) == expected
    assert ["".join(pair) for pair in batches[0]] == [batch]

    def without(listed: Listed, ids: dict[str, int], rules: Rules) -> list[Pair]:
        kept = RULES - {dropped}
        if dropped == "known":  # it would be taken, and nothing after it
            kept -= {"known first"}
        return batch_by_rules(listed, ids, rules, kept)

    assert flat(learn_in_batches(counted, numbered, rules, limit, without)) != expected


def batch_of(pairs: list[tuple[int, int, int]], **settings: Any) -> int:
    lefts, rights, counts = zip(*pairs, strict=True) if pairs else ((), (), ())
    return plain_batch(
        np.array(lefts, np.uint32),
        np.array(rights, np.uint32),
        np.array(counts, np.int64),
        **{
            "tie_break": "lowest_id",
            "joined": lambda left, right: bytes([left, right]),
            "known": (),
            "complete": True,
            **settings,
        },
    )


def test_how_many() -> None:
    assert batch_of([]) == 0
    assert batch_of([(1, 1, 5)]) == 1
    assert batch_of([(1, 2, 5), (3, 3, 5), (4, 5, 5)]) == 2
    assert batch_of([(1, 2, 5), (3, 4, 5), (2, 6, 4), (7, 8, 4)]) == 2
    assert batch_of([(1, 2, 5), (1, 3, 5), (4, 2, 5)]) == 3
    assert batch_of([(1, 2, 5), (3, 4, 5), (5, 6, 4)], known={b"\3\4"}) == 1
    assert batch_of([(1, 2, 5), (3, 4, 5), (5, 6, 4)], known={b"\1\2"}) == 1


def test_how_many_of_levels_in_the_order_of_bytes() -> None:
    levels = [(5, 6, 9), (7, 8, 9), (9, 10, 4), (3, 4, 4), (1, 2, 4)]
    assert batch_of(levels, tie_break="greatest_bytes") == 5
    assert batch_of(levels, tie_break="greatest_bytes", complete=False) == 2
    assert batch_of(levels[2:], tie_break="greatest_bytes", complete=False) == 1
    assert batch_of(levels, complete=False) == 5
    conflicting = [*levels, (6, 11, 4)]
    assert batch_of(conflicting, tie_break="greatest_bytes") == 2
    assert batch_of([*levels, (10, 11, 4)], tie_break="greatest_bytes") == 3


def test_the_cost() -> None:
    """A list without end is no more than its length."""
    pairs = [(2 * i, 2 * i + 1, 9) for i in range(20_000)]
    for tie_break in ("lowest_id", "greatest_bytes"):
        begin = time.thread_time()
        taken = batch_of(
            pairs, tie_break=tie_break, joined=lambda left, right: b"%d %d" % (left, right)
        )
        assert taken == len(pairs)
        assert time.thread_time() - begin < 2
