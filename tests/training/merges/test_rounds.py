"""Rounds by the native kernels, words and all in one place, learn what one learner does."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from counted_words import random_words, words_of

from bpe_beam import _native
from bpe_beam.counts.round_files import Columns, PackedCounts, columns_of
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.initial_vocabulary import (
    InitialVocabulary,
    begin_vocabulary,
    check_distributed,
    needs_seen,
)
from bpe_beam.training.merges.native_trainer import Row, TrainingResult, Vocabulary
from bpe_beam.training.merges.rounds import (
    ShardPairs,
    batches_of,
    gather,
    learn_round,
    plain_batch,
    threshold,
)
from bpe_beam.training.merges.symbols import find_symbols
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import recipe_like, tokenizer_of

pytestmark = pytest.mark.quick

Merges = tuple[list[Row], list[int], bool]
ALL_PAIRS = 1 << 30


def by_segments(
    vocabulary: Vocabulary, words: Columns, table: _native.PairTable, made: random.Random
) -> Merges:
    """A round over words that are split at infrequent pairs."""
    least = max(1, vocabulary.recipe.min_frequency)
    most = int(table.best(1, None)[2].max(initial=0))
    floor = threshold([ShardPairs(least, most)], made.choice([1, 2, 4, 64]))
    lefts, rights, _, _ = table.frequent(floor, ALL_PAIRS)
    counts = PackedCounts()
    counts.add(_native.FrequentPairs(lefts, rights).segments(*words, singles=False))
    segments = gather(columns_of(block) for _, block in counts.blocks(1))
    found = learn_round(vocabulary, segments, floor, cut=True)
    return found.rows, found.counts, found.at_end and floor <= least


def by_plain_batch(vocabulary: Vocabulary, table: _native.PairTable, made: random.Random) -> Merges:
    """A round over the best pairs alone."""
    limit = made.choice([1, 3, ALL_PAIRS])
    lefts, rights, counts = table.best(limit, vocabulary.ranks())
    least = max(1, vocabulary.recipe.min_frequency)
    often = counts >= least
    taken = plain_batch(
        lefts[often],
        rights[often],
        counts[often],
        tie_break=vocabulary.recipe.tie_break,
        joined=vocabulary.joined,
        known=vocabulary,
        complete=len(table) <= limit,
    )
    rows: list[Row] = []
    new = len(vocabulary.tokens)
    end = new + vocabulary.room
    for left, right in zip(lefts[:taken].tolist(), rights[:taken].tolist(), strict=True):
        if new == end:
            break
        known = vocabulary.find(left, right)
        rows.append((left, right, new if known is None else known))
        new += known is None
    return rows, counts[: len(rows)].tolist(), not rows


def learn_in_rounds(
    words: Words, start: InitialVocabulary, recipe: BpeRecipe, made: random.Random
) -> tuple[TrainingResult, int]:
    """Everything, and how many rounds it took."""
    symbols = start.symbols(words)
    counts = symbols.counts
    state = (*_native.pack_symbols(symbols.ids, symbols.offsets), counts)
    vocabulary = Vocabulary(start, recipe)
    rounds = 0
    while vocabulary.room:
        widths = np.array(vocabulary.widths, np.uint32) if vocabulary.widths else None
        table = _native.PairTable()
        table.add_words(*state, widths, recipe.max_token_length)
        known = len(vocabulary.tokens)
        rows, found, done = (
            by_segments(vocabulary, state, table, made)
            if made.random() < 0.7
            else by_plain_batch(vocabulary, table, made)
        )
        vocabulary.add(rows, found)
        state = _native.Rewriter(batches_of(rows, known)).rewrite(*state)
        rounds += 1
        if done:
            break
        assert rows
    return vocabulary.result(), rounds


def some_words(made: random.Random, letters: str) -> Words:
    number, counts = made.choice([2, 9]), (1, 1, 2, 3, 2**40)
    return words_of(random_words(made, letters, number=number, lengths=(1, 12), counts=counts))


def random_recipe(made: random.Random, letters: str, **settings: Any) -> BpeRecipe:
    specials = {"".join(made.choices(letters, k=made.randint(2, 3))) for _ in range(3)}
    if "prefix" in str(settings) and made.random() < 0.5:
        specials.add("##" + letters[0])
    return BpeRecipe(
        600,
        min_frequency=made.choice([0, 0, 2, 4]),
        tie_break=made.choice(["lowest_id", "greatest_bytes"]),
        special_tokens=tuple(sorted(specials)[: made.randint(0, 4)]),
        **settings,
    )


KINDS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "seen bytes": {"alphabet": "seen", "limit_alphabet": 3},
    "short tokens": {"max_token_length": 4},
    "characters": {"symbols": "characters", "end_of_word_symbol": "_"},
    "prefix": {"symbols": "characters", "continuing_subword_prefix": "##"},
    "suffix": {"symbols": "characters", "end_of_word_suffix": "b"},
    "both": {
        "symbols": "characters",
        "continuing_subword_prefix": "#",
        "end_of_word_suffix": "b",
    },
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_as_one_learner(kind: str) -> None:
    made = random.Random(kind)
    merges = known = rounds = 0
    for _ in range(80):
        letters = made.choice(["a", "ab", "ab#", "é語a#", "abcdef"])
        words = some_words(made, letters)
        recipe = random_recipe(made, letters, **KINDS[kind])
        check_distributed(recipe)
        seen = find_symbols(words, recipe) if needs_seen(recipe) else None
        start = begin_vocabulary(recipe, seen)
        learned, took = learn_in_rounds(words, start, recipe, made)
        expected = learn(words, recipe)
        assert learned.merges == expected.merges, (words, recipe)
        assert learned.vocab == expected.vocab
        assert learned.counts.tolist() == expected.counts.tolist()
        merges += len(learned.merges)
        known += len(learned.merges) - (len(learned.vocab) - len(start.ids))
        rounds += took
    assert merges > 300
    assert known > 0
    assert rounds < merges


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 5])
@pytest.mark.parametrize("kind", ["bytes", "characters", "prefix"])
def test_going_on(kind: str, limit: int | None) -> None:
    """Tokens that stand in the words, and are made once more of others."""
    made = random.Random(f"{kind} {limit}")
    if kind == "prefix" and limit is not None:
        return
    settings = {"symbols": KINDS[kind].get("symbols", "bytes")}
    decoration = {name: text for name, text in KINDS[kind].items() if "prefix" in name}
    known = 0
    for _ in range(80):
        letters = made.choice(["ab", "ab#", "abc"])
        few = random_recipe(made, letters, **settings, **decoration)
        before = learn(some_words(made, letters), few)
        old = tokenizer_of(before, few, "none", "none")
        recipe = recipe_like(old, random_recipe(made, letters, max_token_length=limit))
        check_distributed(recipe)
        words = some_words(made, letters)
        start = begin_vocabulary(recipe, find_symbols(words, recipe), old)
        learned, _ = learn_in_rounds(words, start, recipe, made)
        expected = learn(words, recipe, base_tokenizer=old)
        assert learned.merges == expected.merges, (words, recipe)
        assert learned.vocab == expected.vocab
        assert learned.counts.tolist() == expected.counts.tolist()
        new = len(learned.merges) - len(old.merges)
        known += new - (len(learned.vocab) - len(start.ids))
    assert known > 20


def test_likelihood_in_one_cut() -> None:
    """By min_frequency alone; where a token was made in two ways, as far as that."""
    made = random.Random("likelihood")
    merges = stopped = segments_of_words = 0
    for _ in range(120):
        letters = made.choice(["ab", "ab#", "abcdef"])
        words = some_words(made, letters)
        recipe = WordPieceRecipe(
            600,
            min_frequency=made.choice([2, 3, 4]),
            tie_break=made.choice(["lowest_id", "greatest_bytes"]),
            max_token_length=made.choice([None, 3]),
        )
        start = begin_vocabulary(recipe, find_symbols(words, recipe))
        symbols = start.symbols(words)
        state = (*_native.pack_symbols(symbols.ids, symbols.offsets), symbols.counts)
        vocabulary = Vocabulary(start, recipe)
        table = _native.PairTable()
        table.add_words(*state)
        lefts, rights, _, _ = table.frequent(recipe.min_frequency, ALL_PAIRS)
        counts = PackedCounts()
        counts.add(_native.FrequentPairs(lefts, rights).segments(*state, singles=True))
        segments = gather(columns_of(block) for _, block in counts.blocks(1))
        found = learn_round(vocabulary, segments, recipe.min_frequency, cut=True)
        vocabulary.add(found.rows, found.counts)
        learned, expected = vocabulary.result(), learn(words, recipe)
        assert learned.merges == expected.merges[: len(learned.merges)], (words, recipe)
        assert not found.at_end or learned.vocab == expected.vocab
        merges += len(learned.merges)
        stopped += not found.at_end
        segments_of_words += len(segments.counts) > len(words.counts)
    assert merges > 300
    assert 0 < stopped < 50
    assert segments_of_words > 20


def test_a_known_token_is_applied_after_the_others() -> None:
    """`a_` of the last merge must not meet `_b` of the first: that pair was merged before."""
    ids = {"_": 0, "a": 1, "a_": 2, "b": 3}
    word = [ids[symbol] for symbol in ["a_", "_", "b", "_", "a", "_", "_", "b"]]
    rows = [(ids["_"], ids["b"], 4), (ids["a_"], 4, 5), (ids["a"], ids["_"], ids["a_"])]
    batches = batches_of(rows, len(ids))
    assert [len(batch) for batch in batches] == [2, 1]
    one = np.ones(1, np.int64)
    packed = _native.pack_symbols(np.array(word, np.uint32), np.array([0, len(word)]))
    data, offsets, _ = _native.Rewriter(batches).rewrite(*packed, one)
    assert _native.unpack_symbols(data, offsets)[0].tolist() == [5, ids["_"], ids["a_"], 4]
