"""Words that are one token, found by their texts, against the encoding of each word."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from small_tokenizers import SAMPLE, SPECIAL_TOKENS, learn

import bpe_beam
from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.evaluation.counted import CountedParts, tallies_of_counts, whole_words
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, WordPiece
from bpe_beam.tokenizer.components.normalizers import Lowercase
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import (
    ByteLevelPreTokenizer,
    Digits,
    PreTokenizer,
    PreTokenizerSequence,
    Split,
    pretokenizer_from_name,
)
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer

BYTES = learn("bytes", SPECIAL_TOKENS, 120)
WHOLE = ByteLevelPreTokenizer(use_regex=False)


def with_pattern(name: str) -> TokenizerSpec:
    return replace(BYTES.spec, pre_tokenizer=pretokenizer_from_name(name, byte_level=True))


def after(*steps: PreTokenizer) -> TokenizerSpec:
    return replace(BYTES.spec, pre_tokenizer=PreTokenizerSequence((*steps, WHOLE)))


def split_at(pattern: str, behavior: str) -> Split:
    return Split(Pattern.from_regex(pattern), behavior, invert=False)


def with_added(token: AddedToken) -> TokenizerSpec:
    return replace(BYTES.spec, added_tokens=(*BYTES.spec.added_tokens, token))


def with_model(**changes: object) -> TokenizerSpec:
    return replace(BYTES.spec, model=replace(BYTES.spec.model, **changes))


def words_and_counts(pretokenizer: str) -> tuple[pa.Array, np.ndarray]:
    """Return the words of the sample, of the vocabulary and of chance, and how often they occur."""
    chance = random.Random(5)
    texts = [SAMPLE, *(text for text in Vocabulary(BYTES).texts if text)]
    texts += ["".join(chance.choices(SAMPLE, k=chance.randrange(1, 9))) for _ in range(3000)]
    counter = WordCounter(WordRules(pretokenizer=pretokenizer))
    counter.add_texts(pa.array(texts))
    (block,) = counter.drain()
    return block.column("word"), block.column("count").to_numpy()


@pytest.mark.parametrize("pretokenizer", ["gpt2", "whitespace_split", "metaspace", "none"])
@pytest.mark.parametrize(
    "spec",
    [
        with_pattern("cl100k"),
        with_pattern("o200k"),
        replace(with_pattern("o200k"), model=replace(BYTES.spec.model, ignore_merges=True)),
        after(),
        after(Digits(individual_digits=True), split_at("[aeiou]+", "MergedWithPrevious")),
        replace(
            BYTES.spec,
            pre_tokenizer=PreTokenizerSequence(
                (Digits(individual_digits=True), ByteLevelPreTokenizer(trim_offsets=False))
            ),
        ),
        with_added(AddedToken(10_000, "语 ÿ")),
    ],
)
def test_they_are_those_of_encoding(spec: TokenizerSpec, pretokenizer: str) -> None:
    vocabulary = Vocabulary(Tokenizer(spec))
    encoder = WordEncoder(vocabulary.tokenizer, "none", pretokenizer)
    words, counts = words_and_counts(pretokenizer)
    texts = encoder.texts_of(words)
    encoded = Tally.empty(len(vocabulary))
    encoded.add_words(vocabulary, texts, counts, encoder.encode(words), with_tokens=False)
    found = Tally.empty(len(vocabulary))
    whole = whole_words(vocabulary, encoder)
    assert whole is not None
    found.add_whole_words(whole.native, texts, counts)
    whole.settle([found])
    assert np.count_nonzero(found.whole) > 10
    assert found.continued > 1000
    for each in fields(Tally):
        if each.name != "_bound":
            assert np.array_equal(getattr(found, each.name), getattr(encoded, each.name)), each.name


@pytest.mark.parametrize(
    "spec",
    [
        replace(with_pattern("o200k"), normalizer=Lowercase()),
        after(split_at(" +", "Removed")),
        replace(BYTES.spec, pre_tokenizer=PreTokenizerSequence((WHOLE, WHOLE))),
        with_added(AddedToken(10_000, "the", special=False)),
        # As a token that merges make, it is of the byte 0xFF, which is no text.
        with_added(AddedToken(10_000, "ÿ")),
        with_model(unk_token="e"),
        with_model(
            vocab={token: i for token, i in BYTES.vocab.items() if token != "ÿ"},
            unk_token="e",
        ),
        TokenizerSpec(WordPiece({"[UNK]": 0, "the": 1})),
        TokenizerSpec(BPE({"a": 0}, []), pre_tokenizer=WHOLE),
    ],
)
def test_where_texts_do_not_tell(spec: TokenizerSpec) -> None:
    tokenizer = Tokenizer(spec)
    encoder = WordEncoder(tokenizer, "none", "none")
    assert whole_words(Vocabulary(tokenizer), encoder) is None


def test_a_prefix_is_left_out_of_words() -> None:
    spec = replace(BYTES.spec, pre_tokenizer=ByteLevelPreTokenizer(add_prefix_space=True))
    tokenizer = Tokenizer(spec)
    assert whole_words(Vocabulary(tokenizer), WordEncoder(tokenizer, "none", "o200k")) is not None


@pytest.mark.parametrize("texts", [1, 400])
def test_many_words_are_found_and_few_encoded(texts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tallies are the same."""
    numbers = " ".join(str(7919 * i % 100_003) for i in range(texts))
    counts = bpe_beam.count([f"{SAMPLE} {numbers}"], pretokenizer="gpt2")
    vocabulary = Vocabulary(Tokenizer(with_pattern("o200k")))
    words = CountedParts.in_memory(counts)
    encoded: list[int] = []
    encode = WordEncoder.encode

    def noted(encoder: WordEncoder, own: pa.Array) -> pa.LargeListArray:
        encoded.append(len(own))
        return encode(encoder, own)

    with monkeypatch.context() as patched:
        patched.setattr(WordEncoder, "encode", noted)
        ((_, found),) = tallies_of_counts(words, vocabulary, with_tokens=False)
    is_many = counts.manifest.unique_words > len(vocabulary)
    assert is_many == (texts == 400)
    assert (sum(encoded) == counts.manifest.unique_words) != is_many
    ((_, expected),) = tallies_of_counts(words, vocabulary)
    assert not found.tokens.any()
    assert np.array_equal(found.whole, expected.whole)
    assert (found.words, found.continued) == (expected.words, expected.continued)
    assert (found.bytes, found.characters) == (expected.bytes, expected.characters)
