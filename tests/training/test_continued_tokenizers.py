"""More merges for a tokenizer that exists."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
import reference_bpe
from counted_words import random_words, words_of
from msgspec import structs

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.decoders import BPEDecoder
from bpe_beam.tokenizer.components.models import BPE, WordLevel
from bpe_beam.tokenizer.components.pretokenizers import WhitespaceSplit
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import learn
from bpe_beam.training.recipe import TIE_BREAKS, BpeRecipe
from bpe_beam.training.tokenizer_parts import (
    check_same_words,
    continued,
    recipe_like,
    tokenizer_of,
)

pytestmark = pytest.mark.quick

SPLIT = "whitespace_split"


def go_on(tokenizer: Tokenizer, words: list[tuple[str, int]], recipe: BpeRecipe) -> Tokenizer:
    like = recipe_like(tokenizer, recipe)
    return continued(tokenizer, learn(words_of(words), like, base_tokenizer=tokenizer), like)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("symbols", ["bytes", "characters"])
def test_in_two_steps_as_in_one(symbols: Any, tie_break: Any) -> None:
    """On the same words, whatever the options."""
    made = random.Random(f"{symbols} {tie_break}")
    for _ in range(60):
        letters = made.choice(["ab", "abcd", "aé語"])
        words = random_words(made, letters)
        options: dict[str, Any] = {
            "symbols": symbols,
            "tie_break": tie_break,
            "special_tokens": ("<s>",),
            "max_token_length": made.choice([None, 2, 3, 5]),
        }
        decorations: dict[str, Any] = {}
        if symbols == "characters":
            decorations = {
                "continuing_subword_prefix": made.choice(["", "##"]),
                "end_of_word_suffix": made.choice(["", "</w>"]),
                "unk_token": made.choice([None, "<unk>"]),
            }
        few = BpeRecipe(300, **options, **decorations)
        least = len(learn(words_of(words), few).vocab) - made.randint(0, 8)
        try:
            few = msgspec.structs.replace(few, vocab_size=max(1, least))
            begun = tokenizer_of(learn(words_of(words), few), few, "none", SPLIT)
        except UsageError:  # below the alphabet
            continue
        many = msgspec.structs.replace(few, vocab_size=320)
        whole = tokenizer_of(learn(words_of(words), many), many, "none", SPLIT)
        assert go_on(begun, words, BpeRecipe(320, **options)).to_json() == whole.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "#"])
def test_on_other_words_as_the_reference(prefix: str) -> None:
    """Ids stay, also those with holes; new characters and special tokens come after them."""
    made = random.Random(f"other {prefix}")
    learned = 0
    for _ in range(150):
        recipe = BpeRecipe(
            300, symbols="characters", continuing_subword_prefix=prefix, special_tokens=("<s>",)
        )
        smaller = msgspec.structs.replace(recipe, vocab_size=12)
        learned_before = learn(words_of(random_words(made, "ab#")), smaller)
        old = tokenizer_of(learned_before, recipe, "none", SPLIT)
        model = old.spec.model
        assert isinstance(model, BPE)
        spread = {token: 3 * i for token, i in model.vocab.items()}
        outside = AddedToken(1000, "<added>", special=False)
        spec = old.spec
        added = (*(structs.replace(t, id=3 * t.id) for t in spec.added_tokens), outside)
        old = Tokenizer(
            structs.replace(spec, model=structs.replace(model, vocab=spread), added_tokens=added)
        )
        words = random_words(made, made.choice(["ab", "ab#", "abc", "é語a"]))
        size = made.randint(30, 60)
        new = go_on(old, words, BpeRecipe(size, symbols="characters", special_tokens=("<n>",)))

        ids = reference_bpe.number({**spread, "<added>": 1000}, ["<n>"])
        ids = reference_bpe.number(ids, sorted({*"".join(word for word, _ in words)}))
        first = [symbol.text for word, _ in reference_bpe.split_words(words, ids, prefix)
                 for symbol in word]  # fmt: skip
        ids = reference_bpe.number(ids, sorted(set(first)))
        ranks = {pair: rank for rank, pair in enumerate(model.merges)}
        counted = [
            (merged_by_rank(symbols, ranks, prefix), count)
            for symbols, count in reference_bpe.split_words(words, ids, prefix)
        ]
        rules = reference_bpe.Rules(size, prefix=prefix)
        vocab, merges = reference_bpe.continue_bpe(counted, ids, rules)
        assert new.vocab == vocab
        assert new.merges == [*model.merges, *merges]
        assert (new.token_to_id("<added>"), new.token_to_id("<n>")) == (1000, 1001)
        learned += len(merges)
    assert learned > 300


def merged_by_rank(
    symbols: Any, ranks: dict[tuple[str, str], int], prefix: str
) -> list[reference_bpe.Symbol]:
    """Section 3: the pair of the lowest rank, leftmost first, until none has one."""
    word = list(symbols)
    while True:
        places = [
            (ranks[pair], i)
            for i in range(len(word) - 1)
            if (pair := (word[i].text, word[i + 1].text)) in ranks
        ]
        if not places:
            return word
        _, i = min(places)
        joined = word[i].text + word[i + 1].text.removeprefix(prefix)
        length = word[i].length + word[i + 1].length
        word[i : i + 2] = [reference_bpe.Symbol(joined, length)]


def test_merges_in_no_order_that_training_gives() -> None:
    """`ab` is a symbol of one word and made of two in another: it stays one token."""
    vocab = {token: i for i, token in enumerate(["a", "b", "c", "bc", "ab", "abc"])}
    merges = [("b", "c"), ("a", "b"), ("a", "bc")]
    old = Tokenizer.from_learned(list(vocab), merges)
    words = [("abc", 3), ("ab", 2), ("abab", 2)]
    new = go_on(old, words, BpeRecipe(40))
    assert new.merges[:3] == merges
    assert new.merges[3] == ("ab", "ab")


def test_what_cannot_go_on() -> None:
    word_level = Tokenizer(TokenizerSpec(WordLevel({"<unk>": 0})))
    with pytest.raises(UsageError, match="must be a tokenizer of BPE, got WordLevel"):
        recipe_like(word_level, BpeRecipe(9))
    characters = Tokenizer(TokenizerSpec(BPE({"a": 0}, ()), pre_tokenizer=WhitespaceSplit()))
    with pytest.raises(UsageError, match="limit_alphabet"):
        recipe_like(characters, BpeRecipe(9, symbols="characters", limit_alphabet=3))
    check_same_words(characters, "none", SPLIT)
    for names, wrong in ((("nfc", SPLIT), "nfc"), (("none", "bert"), "bert")):
        with pytest.raises(UsageError, match=f"of the words, '{wrong}'"):
            check_same_words(characters, *names)
    words = words_of([("ab", 1)])
    recipe = recipe_like(characters, BpeRecipe(1, symbols="characters"))
    with pytest.raises(UsageError, match="must be at least 2 "):
        learn(words, recipe, base_tokenizer=characters)


def test_all_other_parts_stay() -> None:
    old = Tokenizer(
        TokenizerSpec(
            BPE({"a</w>": 0, "a": 1}, (), end_of_word_suffix="</w>"),
            pre_tokenizer=WhitespaceSplit(),
            decoder=BPEDecoder("</w>"),
        )
    )
    new = go_on(old, [("aa", 3), ("aé", 2)], BpeRecipe(9, symbols="characters"))
    assert list(new.vocab) == ["a</w>", "a", "é", "é</w>", "aa</w>", "aé</w>"]
    assert structs.replace(new.spec, model=old.spec.model) == old.spec


def test_bytes_of_new_characters() -> None:
    old = Tokenizer.from_learned(["a"], [])
    new = go_on(old, [("aé", 2)], BpeRecipe(9))
    assert list(new.vocab)[:3] == ["a", *sorted(byte_level.to_chars("é".encode()))]
    assert len(new.merges) == 2
