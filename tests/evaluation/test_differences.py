"""What differs between two tokenizers, against loops over their tokens, merges and words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from counts_folders import STORAGE, some_counts, write_folder
from msgspec.structs import replace
from small_tokenizers import learn

from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.evaluation.differences import Pair, differences, word_differences
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.tokenizer.components.models import BPE, Unigram, WordLevel
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

LARGE = learn("bytes", ("<s>",), 120)
SMALL = learn("bytes", ("<s>", "<pad>"), 60)
OF_WORDS = Tokenizer(TokenizerSpec(WordLevel({"<unk>": 0, " the": 1, " of": 2})))


def pair_of(a: Tokenizer, b: Tokenizer) -> Pair:
    return Pair(Vocabulary(a), Vocabulary(b))


def words_of_the_folder() -> Counter[str]:
    rows = [row for block in some_counts().drain() for row in block.to_pylist()]
    return Counter({row["word"]: row["count"] for row in rows})


def test_a_tokenizer_does_not_differ_from_itself(tmp_path: Path) -> None:
    again = Tokenizer.from_json(LARGE.to_json())
    found = differences(pair_of(LARGE, again))
    assert found.same
    assert found.tokens.common == LARGE.vocab_size
    assert found.merges.equal_first == found.merges.common == 120
    write_folder(tmp_path)
    words = word_differences(pair_of(LARGE, again), CountedParts.of_folder(STORAGE, str(tmp_path)))
    assert (words.other_words, words.other_unique_words, words.most_frequent) == (0, 0, [])
    assert words.tokens_a == words.tokens_b > words.words == words_of_the_folder().total()


def test_tokens_ids_and_merges() -> None:
    found = differences(pair_of(LARGE, SMALL))
    assert not found.same
    large, small = LARGE.vocab, SMALL.vocab
    assert [row.id for row in found.tokens.only_a] == sorted(
        large[token] for token in large.keys() - small.keys()
    )
    assert [row.token for row in found.tokens.only_b] == ['"<pad>"']
    assert found.tokens.compared_by == "token"
    assert {(row.a, row.b) for row in found.ids} == {
        (large[token], small[token])
        for token in large.keys() & small.keys()
        if large[token] != small[token]
    }
    assert (found.merges.equal_first, found.merges.common, found.merges.same_order) == (
        60,
        60,
        True,
    )
    assert [row.rank for row in found.merges.only_a] == list(range(60, 120))
    assert not found.merges.only_b
    assert [row.part for row in found.parts] == ['added token "<pad>"']
    assert (found.parts[0].a, found.parts[0].b) == ("none", "special")


def test_the_order_of_merges() -> None:
    model = LARGE.spec.model
    assert isinstance(model, BPE)
    # Two merges whose order does not matter for other merges: the last two.
    merges = [*model.merges[:-2], model.merges[-1], model.merges[-2]]
    found = differences(
        pair_of(LARGE, Tokenizer(replace(LARGE.spec, model=replace(model, merges=merges))))
    )
    assert not found.merges.same_order
    assert found.merges.equal_first == 118
    assert not found.same


def test_parts_and_settings() -> None:
    spec = replace(SMALL.spec, normalizer=normalizer_from_name("nfc"), decoder=None)
    first, *others = spec.added_tokens
    spec = replace(spec, added_tokens=(replace(first, lstrip=True), *others))
    found = differences(pair_of(SMALL, Tokenizer(spec)))
    rows = {row.part: (row.a, row.b) for row in found.parts}
    assert rows.pop("normalizer") == ("none", "NFC")
    assert rows.pop("decoder")[1] == "none"
    assert rows.pop('added token "<s>"') == ("special", "lstrip, special")
    assert not rows
    assert not any(map(len, (found.tokens.only_a, found.ids, found.merges.only_a)))


def test_scores() -> None:
    one = Unigram([("a", -1.0), ("b", -2.0), ("ab", -3.0)], unk_id=0)
    other = Unigram([("a", -1.0), ("b", -2.5), ("ab", -3.0)], unk_id=0)
    found = differences(pair_of(Tokenizer(TokenizerSpec(one)), Tokenizer(TokenizerSpec(other))))
    assert found.other_scores == 1
    assert not found.same


@pytest.mark.parametrize(
    ("a", "b"), [(LARGE, SMALL), (SMALL, LARGE), (LARGE, OF_WORDS)], ids=["ab", "ba", "kinds"]
)
@pytest.mark.parametrize("workers", [1, 3])
def test_words(tmp_path: Path, a: Tokenizer, b: Tokenizer, workers: int) -> None:
    write_folder(tmp_path)
    pair = pair_of(a, b)
    found = word_differences(pair, CountedParts.of_folder(STORAGE, str(tmp_path), workers), top=5)
    words = words_of_the_folder()

    def tokens(tokenizer: Tokenizer, word: str) -> list[bytes]:
        return [
            b"<unk>" if tokenizer is OF_WORDS and number == 0 else tokenizer.decode_bytes([number])
            for number in tokenizer.encode(word)
        ]

    other = {word: n for word, n in words.items() if tokens(a, word) != tokens(b, word)}
    assert 5 < len(other) < len(words)
    assert (found.words, found.unique_words) == (words.total(), len(words))
    assert (found.other_words, found.other_unique_words) == (sum(other.values()), len(other))
    assert found.tokens_a == sum(n * len(a.encode(word)) for word, n in words.items())
    assert found.tokens_b == sum(n * len(b.encode(word)) for word, n in words.items())
    most = sorted(other, key=lambda word: (-other[word], word.encode()))[:5]
    assert [(row.word, row.count) for row in found.most_frequent] == [(w, other[w]) for w in most]
    assert [len(row.a) for row in found.most_frequent] == [len(a.encode(word)) for word in most]
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_counts_beyond_32_bits_are_added_exactly(tmp_path: Path) -> None:
    import numpy as np
    import pyarrow as pa

    from bpe_beam.evaluation.differences import _tokens_of

    encoded = pa.array([[1, 2, 3], [1], []], pa.large_list(pa.uint32()))
    counts = np.array([2**61 + 1, 2**62 - 1, 5], np.int64)
    assert _tokens_of(encoded, counts) == 3 * (2**61 + 1) + 2**62 - 1


def test_a_vocabulary_that_lacks_a_symbol_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path)
    lacking = Tokenizer(TokenizerSpec(Unigram([("a", -1.0)])))
    with pytest.raises(DataError, match=r"^new: the word"):
        word_differences(
            Pair(Vocabulary(LARGE), Vocabulary(lacking), ("old", "new")),
            CountedParts.of_folder(STORAGE, str(tmp_path)),
        )
