"""The fast learner equals the reference: cases, and corpora at random."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
import reference_bpe
from bpe_checks import check
from counted_words import random_words, words_of
from made_text import documents
from reference_encoding import pretokenize

from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import gather_words
from bpe_beam.training.recipe import ALPHABETS, TIE_BREAKS, Alphabet, BpeRecipe, TieBreak
from bpe_beam.training.tokenizer_parts import tokenizer_of


def words_of_bytes(made: random.Random, letters: bytes, most: int = 12) -> list[tuple[bytes, int]]:
    characters, number = letters.decode("latin-1"), made.randint(1, most)
    words = random_words(made, characters, number=number, lengths=(1, 14), counts=range(1, 6))
    words += made.choices(words, k=2)  # a word may be there twice
    return [(word.encode("latin-1"), count) for word, count in words]


@pytest.mark.sampled(3)
@pytest.mark.quick
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("letters", [b"a", b"ab", b"abcd", b" \n\xc3\xa9", bytes(range(250, 256))])
def test_random_corpora(letters: bytes, alphabet: Alphabet, tie_break: TieBreak) -> None:
    made = random.Random(f"{letters!r} {alphabet} {tie_break}")
    chars = [byte_level.to_chars(bytes([letter])) for letter in letters]
    for _ in range(40):
        # Some read like a byte or a joined token, some like nothing that merges make.
        specials = {"".join(made.choices(chars, k=made.randint(1, 4))) for _ in range(3)}
        specials = {token for token in sorted(specials) if len(token) > 1 or token.isascii()}
        specials |= {"<s>", "語", " "}
        chosen = tuple(made.sample(sorted(specials), made.randint(0, min(4, len(specials)))))
        recipe = BpeRecipe(
            vocab_size=257 + len(chosen) + made.randint(0, 40),
            min_frequency=made.choice([0, 0, 1, 2, 5]),
            tie_break=tie_break,
            alphabet=alphabet,
            special_tokens=chosen,
            unk_token=made.choice([None, None, "<s>", "<unk>"]),
            initial_alphabet=tuple(made.sample("abcxyzĠé", made.choice([0, 0, 3]))),
            limit_alphabet=made.choice([None, None, 0, 2, 3, 5, 256]),
            max_token_length=made.choice([None, None, 1, 2, 3, 5]),
        )
        check(words_of_bytes(made, letters), recipe)


@pytest.mark.quick
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
class TestCases:
    def test_runs_of_one_letter(self, tie_break: TieBreak) -> None:
        counted = [(b"a" * length, length % 3 + 1) for length in (1, 2, 3, 5, 8, 63, 64, 65, 200)]
        recipe = BpeRecipe(vocab_size=300, tie_break=tie_break)
        assert len(check(counted, recipe).merges) > 8

    def test_special_token_that_reads_like_a_merge(self, tie_break: TieBreak) -> None:
        """Learned and applied; it keeps its id, and the vocabulary grows by the others alone."""
        recipe = BpeRecipe(
            vocab_size=7, tie_break=tie_break, alphabet="seen", special_tokens=("ab", "Ġa"),
        )  # fmt: skip
        learned = check([(b"abc", 3), (b" ab", 2)], recipe)
        assert learned.merges[0] == ("a", "b")
        assert list(learned.vocab)[:6] == ["ab", "Ġa", "a", "b", "c", "Ġ"]

    @pytest.mark.parametrize("large", [2**31, 2**53])
    def test_counts_that_32_bits_or_a_float_cannot_tell_apart(
        self, large: int, tie_break: TieBreak
    ) -> None:
        for less, more in ((b"ab", b"cd"), (b"cd", b"ab")):
            recipe = BpeRecipe(vocab_size=257, tie_break=tie_break)
            learned = check([(less, large), (more, large + 1)], recipe)
            assert list(learned.vocab)[256] == more.decode()
            assert learned.counts.tolist() == [large + 1]

    def test_sums_of_large_counts(self, tie_break: TieBreak) -> None:
        counted = [(b"abab", 2**54), (b"ab", 2**31 + 1), (b"ba", 2**54 - 1), (b"bab", 2**53 + 1)]
        recipe = BpeRecipe(vocab_size=270, tie_break=tie_break)
        assert check(counted, recipe).counts[0] > 2**55

    def test_counts_beyond_64_bits(self, tie_break: TieBreak) -> None:
        recipe = BpeRecipe(vocab_size=270, tie_break=tie_break)
        with pytest.raises(OverflowError, match="beyond 64 bits"):
            learn(words_of([(b"ab", 2**62), (b"cd", 2**62)]), recipe)

    def test_nothing_to_learn(self, tie_break: TieBreak) -> None:
        for counted in ([], [(b"a", 5)], [(b"a", 1), (b"b", 1)]):
            recipe = BpeRecipe(vocab_size=300, tie_break=tie_break)
            assert len(check(counted, recipe).merges) == 0

    def test_vocabulary_too_small(self, tie_break: TieBreak) -> None:
        def recipe(vocab_size: int, alphabet: Alphabet) -> BpeRecipe:
            return BpeRecipe(
                vocab_size, tie_break=tie_break, alphabet=alphabet, special_tokens=("<s>", "a")
            )  # fmt: skip

        words = words_of([(b"abc", 3)])
        for least, alphabet in ((257, "bytes"), (4, "seen")):
            message = f"vocab_size must be at least {least} .*got {least - 1};"
            with pytest.raises(UsageError, match=message):
                learn(words, recipe(least - 1, alphabet))
            assert len(learn(words, recipe(least, alphabet)).merges) == 0
            assert len(learn(words, recipe(least + 1, alphabet)).merges) == 1

    def test_progress(self, tie_break: TieBreak) -> None:
        words = words_of(words_of_bytes(random.Random(1), bytes(range(97, 123)), 2000))
        steps: list[int] = []
        recipe = BpeRecipe(vocab_size=2000, tie_break=tie_break)
        learned = learn(words, recipe, steps.append)
        assert sum(steps) == len(learned.merges) > 600
        assert len(steps) > 1


@pytest.mark.quick
def test_the_order_of_words_matters_for_first_seen_alone() -> None:
    made = random.Random(2)
    counted = words_of_bytes(made, b"abc", 60)
    orders = [made.sample(counted, len(counted)) for _ in range(5)]
    for tie_break in TIE_BREAKS:
        recipe = BpeRecipe(vocab_size=320, tie_break=tie_break)
        merges = {learn(words_of(order), recipe).merges for order in orders}
        assert (len(merges) == 1) == (tie_break != "first_seen")


def counted_texts(texts: list[str], with_places: bool) -> list[pa.RecordBatch]:
    counts = WordCounter(WordRules(with_places=with_places))
    counts.add_texts(pa.array(texts), pa.array(range(len(texts)), pa.uint64()))
    return [block for _, block in counts.blocks(7, max_bytes=2000)]


@pytest.mark.quick
class TestGatherWords:
    def test_all_words_with_their_counts(self) -> None:
        batches = counted_texts(documents(50), False)
        words = gather_words(batches, False)
        rows = [row for batch in batches for row in batch.to_pylist()]
        data = words.data.tobytes()
        assert [
            (data[begin:end].decode(), count)
            for begin, end, count in zip(
                words.offsets, words.offsets[1:], words.counts, strict=False
            )
        ] == [(row["word"], row["count"]) for row in rows]

    def test_in_order_of_place(self) -> None:
        """That of the corpus, whatever partitions and blocks the words came in."""
        texts = documents(50)
        batches = counted_texts(texts, True)
        random.Random(3).shuffle(batches)
        words = gather_words(batches, True)
        first_seen = list(dict.fromkeys(word for text in texts for word in pretokenize(text)))
        assert words.data.tobytes().decode() == "".join(first_seen)
        assert len(words.counts) == len(first_seen)

    def test_tables_and_batches(self) -> None:
        batches = counted_texts(documents(50), True)
        for in_order in (False, True):
            from_batches = gather_words(batches, in_order)
            from_table = gather_words([pa.Table.from_batches(batches)], in_order)
            assert from_batches.data.tobytes() == from_table.data.tobytes()
            assert from_batches.counts.tolist() == from_table.counts.tolist()

    def test_no_places(self) -> None:
        with pytest.raises(UsageError, match="do not have the position where each word occurred"):
            gather_words(counted_texts(documents(5), False), True)

    def test_no_words(self) -> None:
        words = gather_words([], False)
        assert words.offsets.tolist() == [0]
        assert len(words.data) == len(words.counts) == 0


@pytest.mark.quick
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_from_texts(tie_break: TieBreak) -> None:
    """Count and learn, as a job does, against the reference on the same texts."""
    texts = documents(60, seed=4)
    recipe = BpeRecipe(vocab_size=330, tie_break=tie_break, special_tokens=("<s>",))
    in_order = tie_break == "first_seen"
    learned = learn(gather_words(counted_texts(texts, in_order), in_order), recipe)
    counts: dict[str, int] = {}
    for text in texts:
        for word in pretokenize(text):
            chars = byte_level.to_chars(word.encode())
            counts[chars] = counts.get(chars, 0) + 1
    vocab, merges = reference_bpe.learn_bpe(
        counts.items(), vocab_size=330, tie_break=tie_break, special_tokens=["<s>"]
    )
    assert list(learned.vocab) == vocab
    tokenizer = tokenizer_of(learned, recipe)
    assert list(tokenizer.vocab) == vocab
    assert [tuple(merge) for merge in tokenizer.merges] == merges


def test_equal_to_hugging_face() -> None:
    """Vocabulary and merges, at several sizes, on some thousand words that occur a few times."""
    import tokenizers

    made = random.Random(5)
    syllables = [*"aeiou", "st", "th", "an", "er", "ng", "é", "語", "語言", "12", "привет", "ß"]
    words = ["".join(made.choices(syllables, k=made.randint(1, 6))) for _ in range(5000)]
    texts = [" ".join(made.choices(words, k=40)) + ".\n" for _ in range(600)]
    texts += documents(300, seed=6)
    gathered = gather_words(counted_texts(texts, False), False)
    assert len(gathered.counts) > 4000
    for vocab_size, min_frequency in ((256, 0), (300, 0), (1000, 0), (4000, 2), (6000, 0)):
        theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        theirs.train_from_iterator(texts, trainer)
        model = json.loads(theirs.to_str())["model"]
        recipe = BpeRecipe(vocab_size=vocab_size, min_frequency=min_frequency)
        learned = learn(gathered, recipe)
        assert list(learned.vocab) == sorted(model["vocab"], key=model["vocab"].__getitem__)
        assert learned.merges == tuple(tuple(merge) for merge in model["merges"])
        assert len(learned.merges) >= (vocab_size - 256) * 0.9
