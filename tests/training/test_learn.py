"""BPE over characters, WordPiece and word level equal their references, with every option."""

from __future__ import annotations

import random
from typing import Any

import pytest
import reference_bpe
import reference_wordpiece
from counted_words import random_words, words_of

from bpe_beam.errors import UsageError
from bpe_beam.training.learn import learn, share_of_time
from bpe_beam.training.merges import symbols
from bpe_beam.training.recipe import TIE_BREAKS, BpeRecipe, WordLevelRecipe, WordPieceRecipe

pytestmark = pytest.mark.quick

LETTERS = ["a", "ab", "ab#", "é語#", "aé語😀_", "abcdef"]


@pytest.fixture(autouse=True, params=[1 << 22, 40])
def piece_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are read in one piece, and in many."""
    monkeypatch.setattr(symbols, "CHUNK_BYTES", request.param)


def some_words(made: random.Random, letters: str) -> list[tuple[str, int]]:
    counts = made.choice([[1, 1, 2, 3], [1, 2**21, 2**42 + 1, 2**53 + 1]])
    return random_words(made, letters, counts=counts)


def merging_options(made: random.Random, letters: str) -> dict[str, Any]:
    specials = ["<s>", "".join(made.choices(letters, k=2)), letters[0], "#", "語"]
    return {
        "min_frequency": made.choice([0, 0, 1, 2, 5]),
        "tie_break": made.choice(TIE_BREAKS),
        "special_tokens": tuple(sorted(set(made.sample(specials, made.randint(0, 3))))),
        "initial_alphabet": tuple(made.sample("abxy語", made.choice([0, 0, 2]))),
        "limit_alphabet": made.choice([None, None, 0, 1, 2, 3]),
        "max_token_length": made.choice([None, None, 1, 2, 3, 5]),
    }


def larger(made: random.Random, reference: Any, options: dict[str, Any]) -> int:
    """A vocabulary size that is enough, from what the reference says when it is not."""
    with pytest.raises(UsageError, match="must be at least") as caught:
        reference(vocab_size=-1, **options)
    least = int(str(caught.value).partition("at least ")[2].split(",")[0])
    return max(1, least + made.randint(0, 25))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("letters", LETTERS)
def test_bpe_over_characters(letters: str) -> None:
    made = random.Random(letters)
    learned_merges = 0
    for _ in range(60):
        words = some_words(made, letters)
        options = merging_options(made, letters) | {
            "unk_token": made.choice([None, "<unk>", "<s>"]),
            "continuing_subword_prefix": made.choice(["", "", "#", "##"]),
            "byte_fallback": made.choice([False, False, True]),
        }
        ending = made.choice(["", "", "end_of_word_suffix", "end_of_word_symbol"])
        if ending:
            options[ending] = made.choice(["a", "_", "</w>"][: 2 if "symbol" in ending else 3])
        if options.get("end_of_word_symbol", "~") in letters:
            continue

        def reference(words: Any = words, **options: Any) -> Any:
            return reference_bpe.learn_bpe(
                words, alphabet="seen", symbol_bytes=str.encode, **options
            )

        size = larger(made, reference, options)
        vocab, merges = reference(vocab_size=size, **options)
        recipe = BpeRecipe(size, symbols="characters", **options)
        learned = learn(words_of(words), recipe)
        assert list(learned.vocab) == vocab, (words, recipe)
        assert learned.merges == tuple(merges)
        learned_merges += len(merges)
    assert learned_merges > 100


@pytest.mark.sampled(4)
@pytest.mark.parametrize("letters", LETTERS)
def test_wordpiece(letters: str) -> None:
    made = random.Random(f"wordpiece {letters}")
    learned_merges = 0
    for _ in range(60):
        words = some_words(made, letters)
        options = merging_options(made, letters) | {
            "unk_token": made.choice(["[UNK]", "<s>"]),
            "continuing_subword_prefix": made.choice(["##", "##", "#", ""]),
        }

        def reference(words: Any = words, **options: Any) -> Any:
            return reference_wordpiece.learn_wordpiece(words, **options)

        size = larger(made, reference, options)
        vocab, merges = reference(vocab_size=size, **options)
        learned = learn(words_of(words), WordPieceRecipe(size, **options))
        assert list(learned.vocab) == vocab, (words, options)
        assert learned.merges == tuple(merges)
        learned_merges += len(merges)
    assert learned_merges > 100


def test_word_level() -> None:
    made = random.Random("words")
    for _ in range(200):
        words = some_words(made, made.choice(LETTERS))
        specials = tuple(made.sample(["<s>", *(word for word, _ in words)], made.randint(0, 2)))
        options: dict[str, Any] = {
            "vocab_size": len(specials) + made.randint(1, 9),
            "special_tokens": specials,
            "unk_token": made.choice(["<unk>", *specials]),
            "min_frequency": made.choice([0, 1, 2, 3]),
        }
        vocab = reference_wordpiece.learn_word_level(words, **options)
        assert list(learn(words_of(words), WordLevelRecipe(**options)).vocab) == vocab


def test_a_word_that_holds_the_end_of_word_symbol() -> None:
    recipe = BpeRecipe(99, symbols="characters", end_of_word_symbol="_")
    with pytest.raises(UsageError, match="'_', which the word 'éa_b' has"):
        learn(words_of([("ab", 1), ("éa_b", 2), ("c", 1)]), recipe)


def test_most_frequent_characters_are_counted_exactly() -> None:
    """2^53 + 1 against 2^53, in characters that sort the other way."""
    recipe = BpeRecipe(9, symbols="characters", limit_alphabet=1)
    learned = learn(words_of([("a", 2**53), ("é", 2**53 + 1)]), recipe)
    assert list(learned.vocab) == ["é"]


def test_empty() -> None:
    assert not learn(words_of([]), BpeRecipe(9, symbols="characters")).vocab
    assert list(learn(words_of([]), WordPieceRecipe(9)).vocab) == ["[UNK]"]
    assert list(learn(words_of([]), WordLevelRecipe(9)).vocab) == ["<unk>"]


def test_the_first_merge_is_reported_alone() -> None:
    reported: list[int] = []
    words = [(f"{number:b}", 1) for number in range(1, 600)]
    recipe = BpeRecipe(700, symbols="characters")
    learned = learn(words_of(words), recipe, reported.append)
    assert reported[:3] == [1, 1, 1]
    assert max(reported) > 10
    assert sum(reported) == len(learned.merges)


@pytest.mark.parametrize("recipe", [BpeRecipe(300), WordPieceRecipe(300)])
def test_the_share_of_time_grows_with_the_merges(recipe: BpeRecipe | WordPieceRecipe) -> None:
    shares = [share_of_time(recipe, merges / 50) for merges in range(51)]
    assert shares[0] == 0
    assert shares == sorted(set(shares))
    assert 0.3 < shares[5] < 0.6
    assert 0.9 < shares[-1] < 1
