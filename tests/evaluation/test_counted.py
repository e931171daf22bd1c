"""Tallies of a counts folder, against its words one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import reference_evaluation as reference
from counts_folders import STORAGE, some_counts, write_folder
from small_tokenizers import learn

from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts
from bpe_beam.evaluation.metrics import Tally, metrics_of
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import WordLevel
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer


def words_of_the_folder() -> Counter[str]:
    rows = [row for block in some_counts().drain() for row in block.to_pylist()]
    return Counter({row["word"]: row["count"] for row in rows})


@pytest.mark.parametrize("workers", [1, 3])
def test_metrics_against_the_reference(tmp_path: Path, workers: int) -> None:
    write_folder(tmp_path)
    tokenizer = learn("bytes", ("<s>",), 120)
    vocabulary = Vocabulary(tokenizer)
    words = CountedParts.of_folder(STORAGE, str(tmp_path), workers)
    found = tallies_of_counts(words, vocabulary)
    tally = dict(found)[None]

    def encode(word: str) -> list[str]:
        return reference.tokens_made(byte_level.to_chars(word.encode()), tokenizer.merges)[0]

    expected = reference.metrics(
        words_of_the_folder(), encode, len(vocabulary), byte_level.to_bytes
    )
    figures = metrics_of(
        tally, len(vocabulary), vocabulary.single_byte, vocabulary.partial, vocabulary.unknown
    )
    for name, value in expected.items():
        assert getattr(figures, name) == pytest.approx(value, rel=1e-12, abs=1e-15), name


def test_unknown_words_are_not_whole(tmp_path: Path) -> None:
    write_folder(tmp_path)
    vocab = {"<unk>": 0, " the": 1, " 12": 2}
    vocabulary = Vocabulary(Tokenizer(TokenizerSpec(WordLevel(vocab))))
    counted = CountedParts.of_folder(STORAGE, str(tmp_path))
    tally = dict(tallies_of_counts(counted, vocabulary))[None]
    words = words_of_the_folder()
    known = [words[" the"], words[" 12"]]
    assert tally.tokens.tolist() == [words.total() - sum(known), *known]
    assert tally.whole.tolist() == [0, *known]
    expected = reference.metrics(
        words, lambda word: [word if word in vocab else "<unk>"], 3, str.encode, "<unk>"
    )
    flags = np.zeros(3, np.bool_)
    figures = metrics_of(tally, 3, flags, flags, vocabulary.unknown)
    assert figures.unknown_tokens == expected["unknown_tokens"]
    assert figures.words_kept_whole == expected["words_kept_whole"]
    assert figures.continued_words == expected["continued_words"] == 0


def test_a_symbol_that_the_vocabulary_lacks_is_named_with_its_word(tmp_path: Path) -> None:
    write_folder(tmp_path)
    vocabulary = Vocabulary(Tokenizer.from_learned(["a", "b"], []))
    words = CountedParts.of_folder(STORAGE, str(tmp_path))
    with pytest.raises(DataError, match=r"the word '.*': .*not in the vocabulary"):
        list(tallies_of_counts(words, vocabulary))


def test_sums_beyond_64_bits_are_refused() -> None:
    vocabulary = Vocabulary(Tokenizer.from_learned(["a"], []))
    texts = pa.array(["a"], pa.large_string())
    encoded = vocabulary.tokenizer.encode_batch(texts, output="arrow")
    tally = Tally.empty(1)
    for _ in range(2):
        tally.add_words(vocabulary, texts, np.array([2**59]), encoded)
    with pytest.raises(DataError, match="need 64 bits"):
        tally.add_words(vocabulary, texts, np.array([2**60]), encoded)
    with pytest.raises(DataError, match="need 64 bits"):
        for _ in range(3):
            tally.add(tally)
