"""Words whose symbols are seen in parts, and which are spelled in parts, as if they were one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest
from counted_words import random_words, words_of

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.initial_vocabulary import (
    InitialVocabulary,
    begin_vocabulary,
    check_distributed,
    needs_seen,
)
from bpe_beam.training.merges.native_trainer import (
    TrainingResult,
    Vocabulary,
    find_merges,
    make_learner,
)
from bpe_beam.training.merges.symbols import SeenSymbols, WordSymbols, find_symbols
from bpe_beam.training.recipe import BpeRecipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.tokenizer_parts import recipe_like, tokenizer_of

pytestmark = pytest.mark.quick

Counted = list[tuple[str, int]]
SIZE = 10_000

RECIPES: list[BpeRecipe | WordPieceRecipe] = [
    BpeRecipe(SIZE),
    BpeRecipe(SIZE, limit_alphabet=200, special_tokens=("<s>",)),
    BpeRecipe(SIZE, alphabet="seen"),
    BpeRecipe(SIZE, alphabet="seen", limit_alphabet=3, initial_alphabet=("z",)),
    BpeRecipe(SIZE, symbols="characters", limit_alphabet=3, special_tokens=("##a", "語")),
    BpeRecipe(SIZE, symbols="characters", end_of_word_symbol="_", byte_fallback=True),
    BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="</w>", limit_alphabet=4),
    BpeRecipe(SIZE, symbols="characters", continuing_subword_prefix="#", end_of_word_suffix="b"),
    WordPieceRecipe(SIZE, initial_alphabet=("a", "x")),
    WordPieceRecipe(SIZE, limit_alphabet=3, special_tokens=("##a", "語")),
]


def some_words(made: random.Random) -> Counted:
    letters = made.choice(["ab", "abc#", "aé語😀"])
    return random_words(made, letters, lengths=(0, 7), counts=(1, 2, 3, 2**42 + 1))


def parts_of(words: Counted, number: int) -> list[Counted]:
    return [words[i::number] for i in range(number)]


def lists(symbols: WordSymbols) -> list[tuple[list[int], int]]:
    ends = symbols.offsets.tolist()
    assert ends[0] == 0
    assert ends[-1] == len(symbols.ids)
    ids = symbols.ids.tolist()
    bounds = zip(ends[:-1], ends[1:], symbols.counts.tolist(), strict=True)
    return [(ids[begin:end], count) for begin, end, count in bounds]


def learned_from(
    start: InitialVocabulary, symbols: WordSymbols, recipe: BpeRecipe | WordPieceRecipe
) -> TrainingResult:
    vocabulary = Vocabulary(start, recipe)
    found = find_merges(make_learner(vocabulary, symbols, recipe.min_frequency))
    vocabulary.add(found.rows, found.counts)
    return vocabulary.result()


def begun_in_parts(
    parts: list[Counted], recipe: BpeRecipe | WordPieceRecipe, old: Tokenizer | None = None
) -> InitialVocabulary:
    """Everything that travels does so as bytes."""
    seen = None
    if needs_seen(recipe, old):
        written = [find_symbols(words_of(part), recipe).to_bytes() for part in parts]
        seen = reduce(SeenSymbols.merged, map(SeenSymbols.from_bytes, written))
    start = begin_vocabulary(recipe, seen, old)
    data = start.to_bytes()
    read = InitialVocabulary.from_bytes(data)
    assert read.to_bytes() == data
    assert read.ids == start.ids
    return read


@pytest.mark.sampled(3)
@pytest.mark.parametrize("recipe", RECIPES, ids=range(len(RECIPES)))
def test_in_parts_as_at_once(recipe: BpeRecipe | WordPieceRecipe) -> None:
    made = random.Random(str(recipe))
    for _ in range(20):
        words = some_words(made)
        parts = parts_of(words, made.choice([1, 2, 5]))
        start = begun_in_parts(parts, recipe)
        at_once = begin_vocabulary(recipe, find_symbols(words_of(words), recipe))
        assert start.to_bytes() == at_once.to_bytes()
        spelled = [lists(start.symbols(words_of(part))) for part in parts]
        assert spelled == [
            lists(at_once.symbols(words_of(words)))[i :: len(parts)] for i in range(len(parts))
        ]
        learned = learned_from(start, start.symbols(words_of(words)), recipe)
        expected = learn(words_of(words), recipe)
        assert (learned.vocab, learned.merges) == (expected.vocab, expected.merges)


OLD: list[dict[str, Any]] = [
    {"symbols": "bytes"},
    {"symbols": "bytes", "alphabet": "seen"},
    {"symbols": "characters", "unk_token": "<unk>", "byte_fallback": True},
    {"symbols": "characters", "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>"},
]


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("options", OLD, ids=range(len(OLD)))
def test_a_tokenizer_that_is_continued(options: dict[str, Any], limit: int | None) -> None:
    made = random.Random(f"{options} {limit}")
    for _ in range(15):
        few = BpeRecipe(SIZE, min_frequency=5, **options)
        old = tokenizer_of(learn(words_of(some_words(made)), few), few, "none", "none")
        recipe = recipe_like(old, BpeRecipe(SIZE, special_tokens=("<n>",), max_token_length=limit))
        words = some_words(made)
        parts = parts_of(words, made.choice([1, 3]))
        start = begun_in_parts(parts, recipe, old)
        whole = start.symbols(words_of(words))
        spelled = [lists(start.symbols(words_of(part))) for part in parts]
        assert spelled == [lists(whole)[i :: len(parts)] for i in range(len(parts))]
        expected = learn(words_of(words), recipe, base_tokenizer=old)
        learned = learned_from(start, whole, recipe)
        assert (learned.vocab, learned.merges) == (expected.vocab, expected.merges)
        if start.prefix:
            assert start.widths is None
        elif limit is not None:
            assert start.widths is not None
            assert whole.spans is not None
            assert (start.widths[whole.ids] == whole.spans).all()
        assert (whole.spans is None) == (limit is None)


def test_all_bytes_need_no_look_at_the_words() -> None:
    words = words_of([("é", 3), ("ab", 2)])
    for recipe in (BpeRecipe(300), BpeRecipe(300, limit_alphabet=100)):
        assert not needs_seen(recipe)
        unseen = begin_vocabulary(recipe, None)
        seen = begin_vocabulary(recipe, find_symbols(words, recipe))
        assert unseen.to_bytes() == seen.to_bytes()
    assert needs_seen(BpeRecipe(300, alphabet="seen"))
    assert needs_seen(WordPieceRecipe(300))
    for tokens, seen in ((list(byte_level.BYTE_TO_CHAR), False), (["a", "b"], True)):
        old = Tokenizer.from_learned(tokens, [])
        assert needs_seen(recipe_like(old, BpeRecipe(300)), old) == seen


def test_holes_between_ids_stay() -> None:
    start = InitialVocabulary.from_bytes(
        changed(start_bytes(), tokens=["a", None, None, "b"], kept="ab")
    )
    assert start.ids == {"a": 0, "b": 3}
    assert lists(start.symbols(words_of([("abb", 2)]))) == [([0, 3, 3], 2)]


def test_what_a_symbol_covers() -> None:
    """One each where words begin; a special token of more characters what it reads like."""
    words = words_of([("ab", 1), ("é", 1)])
    recipe = BpeRecipe(SIZE, special_tokens=("<s>", "語"))
    start = begin_vocabulary(recipe, None)
    assert start.widths is not None
    assert start.widths.tolist() == [3, 1, *[1] * 256]
    piece = WordPieceRecipe(SIZE)
    start = begin_vocabulary(piece, find_symbols(words, piece))
    assert start.widths is not None
    assert (start.widths[start.symbols(words).ids] == 1).all()


def test_a_word_that_was_not_seen() -> None:
    for recipe in (BpeRecipe(SIZE, alphabet="seen"), BpeRecipe(SIZE, symbols="characters")):
        start = begin_vocabulary(recipe, find_symbols(words_of([("ab", 1)]), recipe))
        with pytest.raises(DataError, match="a word has 'c', which no word had"):
            start.symbols(words_of([("ab", 1), ("abc", 1)]))
        old = Tokenizer.from_learned(["a", "b"], [])
        like = recipe_like(old, recipe)
        start = begin_vocabulary(like, find_symbols(words_of([("ab", 1)]), like), old)
        with pytest.raises(DataError, match="a word has a symbol that no word had"):
            start.symbols(words_of([("ab", 1), ("abc", 1)]))
    decorated = BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="_")
    start = begin_vocabulary(decorated, find_symbols(words_of([("ab", 1)]), decorated))
    with pytest.raises(DataError, match="a word has 'a'"):
        start.symbols(words_of([("ba", 1)]))


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}).encode()


def seen_bytes() -> bytes:
    recipe = BpeRecipe(SIZE, symbols="characters", end_of_word_suffix="_", limit_alphabet=9)
    return find_symbols(words_of([("abc", 1), ("é", 2)]), recipe).to_bytes()


def start_bytes() -> bytes:
    recipe = BpeRecipe(SIZE, symbols="characters", special_tokens=("<s>",))
    seen = find_symbols(words_of([("abc", 1), ("é", 2)]), recipe)
    return begin_vocabulary(recipe, seen).to_bytes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tokens": ["a", "b", "a"]}, r"a token is repeated - at `\$.tokens`"),
        ({"tokens": ["a", 1]}, r"Expected `str . null`, got `int` - at `\$.tokens\[1\]`"),
        ({"tokens": ["\ud800"]}, "JSON is malformed: .* surrogate"),
        ({"in_bytes": True, "kept": "語"}, "a character is not in the byte-level"),
        ({"cut": None}, r"Expected `bool`, got `null` - at `\$.cut`"),
        ({"old": "{}"}, "tokenizer.json: "),
        ({"old": ["{}"]}, r"must be a text, got \[.*\] - at `\$.old`"),
        ({"old": Tokenizer.from_learned(["x"], []).to_json()}, "the tokenizer cannot be continued"),
        (
            {"old": Tokenizer.from_learned(["x"], []).to_json(), "in_bytes": True},
            "the ids differ from the ids of the tokens",
        ),
    ],
)
def test_a_start_that_is_something_else(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        InitialVocabulary.from_bytes(changed(start_bytes(), **fields), "here")


def mutations(data: bytes) -> Iterator[bytes]:
    made = random.Random(7)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(made.randint(1, 3)):
            damaged[made.randrange(len(damaged))] = made.choice(b'[]{},:"0129aE\\\xff\x00')
        yield bytes(damaged[: made.choice([len(data), made.randrange(len(data))])])


@pytest.mark.parametrize(
    ("read", "data"),
    [(SeenSymbols.from_bytes, seen_bytes()), (InitialVocabulary.from_bytes, start_bytes())],
)
def test_damaged_bytes(
    read: Callable[[bytes], SeenSymbols | InitialVocabulary], data: bytes
) -> None:
    refused = 0
    for damaged in mutations(data):
        try:
            value = read(damaged)
        except DataError:
            refused += 1
        else:
            assert read(value.to_bytes()).to_bytes() == value.to_bytes()
    assert refused > 200


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (WordLevelRecipe(9), "no merges"),
        (BpeRecipe(9, tie_break="first_seen"), "first_seen needs to know where"),
        (WordPieceRecipe(9, tie_break="first_seen"), "first_seen needs to know where"),
        (
            BpeRecipe(9, symbols="characters", end_of_word_suffix="_", max_token_length=3),
            "max_token_length .* end_of_word_suffix '_'",
        ),
        (
            BpeRecipe(9, symbols="characters", continuing_subword_prefix="#", max_token_length=3),
            "max_token_length .* continuing_subword_prefix '#'",
        ),
    ],
)
def test_what_is_learned_on_one_machine_only(recipe: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"{message}.*set merge_rounds to local"):
        check_distributed(recipe)


def test_what_may_be_learned_in_rounds() -> None:
    for recipe in RECIPES:
        check_distributed(recipe)
    check_distributed(BpeRecipe(9, max_token_length=3))
    check_distributed(WordPieceRecipe(9, max_token_length=3, tie_break="greatest_bytes"))


def test_empty_words() -> None:
    for recipe in RECIPES:
        start = begin_vocabulary(recipe, find_symbols(words_of([]), recipe))
        symbols = start.symbols(words_of([]))
        assert len(symbols.ids) == 0
        assert symbols.offsets.tolist() == [0]
        assert symbols.ids.dtype == np.uint32
