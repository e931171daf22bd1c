"""What differs between two tokenizers: parts, tokens, ids, merges, and the encoding of words.

Cost: of the tokenizers, memory for two vocabularies. Of words, the encoding of each unique word by
both; memory for one part of the counts and the most frequent words for each thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, repeat, starmap
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa
from msgspec import Struct, structs, to_builtins

from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, encoded_words
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, SentencePiece, Unigram
from bpe_beam.tokenizer.display import describe, model_in_words, text_of
from bpe_beam.tokenizer.tokenizer import Tokenizer

VERSION = 1

Row = TypeVar("Row")

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class Rows(Sequence[Row]):
    """Rows that are made when they are used: of hundreds of thousands, people see a few."""

    def __init__(self, numbers: Sequence[Any], make: Callable[[Any], Row]) -> None:
        self._numbers = numbers
        self._make = make

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Rows[Row]:
        if isinstance(index, slice):
            return Rows(self._numbers[index], self._make)
        return self._make(self._numbers[index])


class Compared(Struct, frozen=True):
    """One of the two tokenizers.

    Attributes:
        name: Its name, such as the folder's.
        vocab_size: The number of its tokens.
        merges: The number of its merges.
        fingerprint: Its fingerprint.
    """

    name: str
    vocab_size: int
    merges: int
    fingerprint: str


class PartDifference(Struct, frozen=True):
    """A part that differs: its name, and what it is in each tokenizer, in words."""

    part: str
    a: str
    b: str


class TokenRow(Struct, frozen=True):
    """A token as people read it, and its id."""

    id: int
    token: str


class TokenDifferences(Struct, frozen=True):
    """Tokens that one of the tokenizers lacks, in the order of ids.

    Attributes:
        compared_by: Whether tokens are equal if they are written equally, or if their bytes of text
            are equal. Bytes are compared if only one of the models reads bytes, since then the two
            write the same token differently.
        common: The number of tokens of A that B has, too.
        only_a: The tokens that only A has.
        only_b: The tokens that only B has.
    """

    compared_by: Literal["token", "bytes"]
    common: int
    only_a: Rows[TokenRow]
    only_b: Rows[TokenRow]


class OtherId(Struct, frozen=True):
    """A token of both tokenizers that has two ids."""

    token: str
    a: int
    b: int


class MergeRow(Struct, frozen=True):
    """A merge as people read it, and its rank, from 0."""

    rank: int
    left: str
    right: str


class MergeDifferences(Struct, frozen=True):
    """Merges that one of the tokenizers lacks, in the order of ranks.

    Attributes:
        equal_first: The number of first merges that are equal, rank by rank.
        common: The number of merges that both have, whatever their ranks.
        same_order: Whether those are in the same order in both.
        only_a: The merges that only A has.
        only_b: The merges that only B has.
    """

    equal_first: int
    common: int
    same_order: bool
    only_a: Rows[MergeRow]
    only_b: Rows[MergeRow]


class Differences(Struct, frozen=True):
    """What differs between two tokenizers, apart from words; `as_json` has the values of JSON.

    Attributes:
        version: The version of this object.
        a: The first tokenizer.
        b: The second tokenizer.
        parts: The parts that differ, and the settings of added tokens that do.
        tokens: Tokens that only one of them has.
        ids: Tokens of both with two ids.
        other_scores: The number of common tokens whose scores differ, of Unigram.
        merges: The merges.
    """

    version: int
    a: Compared
    b: Compared
    parts: list[PartDifference]
    tokens: TokenDifferences
    ids: Rows[OtherId]
    other_scores: int
    merges: MergeDifferences

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        tokens, merges = self.tokens, self.merges
        missing = tokens.only_a or tokens.only_b or merges.only_a or merges.only_b
        return not (self.parts or missing or self.ids or self.other_scores) and merges.same_order

    def as_json(self) -> dict[str, Any]:
        """Return the differences as values of JSON, with all rows."""
        values: dict[str, Any] = to_builtins(self, enc_hook=list)
        return values


class WordDifference(Struct, frozen=True):
    """A word that the tokenizers encode otherwise.

    Attributes:
        word: The word.
        count: How often it occurs.
        a: Its tokens by A, as people read them.
        b: Its tokens by B.
    """

    word: str
    count: int
    a: list[str]
    b: list[str]


class WordDifferences(Struct, frozen=True):
    """How two tokenizers encode the words of counts.

    Words are encoded otherwise if their tokens differ; equal tokens with two ids are equal.

    Attributes:
        exact_a: Whether the ids of A are those of the corpus, see `WordEncoder.exact`.
        exact_b: The same of B.
        words: Words, each occurrence counted.
        unique_words: Words, each counted once.
        other_words: Occurrences of words that are encoded otherwise.
        other_unique_words: Words that are encoded otherwise, each counted once.
        tokens_a: Tokens of all words by A, each occurrence counted.
        tokens_b: The same by B.
        most_frequent: The most frequent words that are encoded otherwise; ties in the order of
            their bytes.
    """

    exact_a: bool
    exact_b: bool
    words: int
    unique_words: int
    other_words: int
    other_unique_words: int
    tokens_a: int
    tokens_b: int
    most_frequent: list[WordDifference]


class Pair:
    """Two tokenizers whose tokens have common numbers, by which they are compared."""

    def __init__(self, a: Vocabulary, b: Vocabulary, names: tuple[str, str] = ("A", "B")) -> None:
        self.names = names
        self.tokenizers = (a.tokenizer, b.tokenizer)
        self.vocabularies = (a, b)
        in_bytes = [one.spec.model_reads_bytes for one in self.tokenizers]
        self.compared_by: Literal["token", "bytes"] = (
            "token" if in_bytes[0] == in_bytes[1] else "bytes"
        )
        numbers: dict[str | bytes, int] = {}
        self.numbers: tuple[Integers, ...] = tuple(
            np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
            for keys in map(self._keys, self.vocabularies)
        )
        """The number of each token, by position; equal tokens of both have one number."""

    def _keys(self, vocabulary: Vocabulary) -> Sequence[str | bytes]:
        return vocabulary.tokens if self.compared_by == "token" else vocabulary.token_bytes


ADDED_TOKEN = "added token "
"""The beginning of the name of a part that is an added token."""


def differences(pair: Pair) -> Differences:
    """Return what differs between two tokenizers."""
    a, b = pair.tokenizers
    return Differences(
        version=VERSION,
        a=_facts(a, pair.names[0]),
        b=_facts(b, pair.names[1]),
        parts=[*_parts(a, b), *_added_tokens(a, b)],
        tokens=_tokens(pair),
        ids=_ids(pair),
        other_scores=_other_scores(a, b),
        merges=_merges(a, b),
    )


def _facts(tokenizer: Tokenizer, name: str) -> Compared:
    return Compared(name, tokenizer.vocab_size, len(_merges_of(tokenizer)), tokenizer.fingerprint)


def shown(token: str, in_bytes: bool) -> str:
    """Return a token as people read it: in quotes, or its bytes."""
    text = text_of(token, in_bytes)
    return repr(text) if isinstance(text, bytes) else shortened(text)


# ---- parts ----


def _parts(a: Tokenizer, b: Tokenizer) -> Iterator[PartDifference]:
    models = [model_in_words(one.spec) for one in (a, b)]
    if models[0] != models[1]:
        yield PartDifference("model", *models)
    for name in _PARTS:
        one, other = getattr(a.spec, name), getattr(b.spec, name)
        if one != other:
            words = _settings if name in ("truncation", "padding") else describe
            yield PartDifference(name, words(one), words(other))


def _settings(settings: Struct | None) -> str:
    if settings is None:
        return "none"
    return ", ".join(f"{name} {value}" for name, value in structs.asdict(settings).items())


def _added_tokens(a: Tokenizer, b: Tokenizer) -> Iterator[PartDifference]:
    """Yield the added tokens that only one tokenizer has, or whose settings differ."""
    one, other = ({t.content: t for t in each.spec.added_tokens} for each in (a, b))
    for content in dict.fromkeys((*one, *other)):
        words = [_added_in_words(each.get(content)) for each in (one, other)]
        if words[0] != words[1]:
            yield PartDifference(f"{ADDED_TOKEN}{shortened(content)}", *words)


def _added_in_words(token: AddedToken | None) -> str:
    """Return the settings of an added token in words; its id is compared as that of any token."""
    if token is None:
        return "none"
    return ", ".join(name for name in _FLAGS if getattr(token, name)) or "plain"


# ---- tokens and ids ----


def _tokens(pair: Pair) -> TokenDifferences:
    in_a, in_b = pair.numbers
    common: Flags = np.isin(in_a, in_b)
    return TokenDifferences(
        pair.compared_by,
        int(common.sum()),
        _rows(pair.vocabularies[0], np.flatnonzero(~common)),
        _rows(pair.vocabularies[1], np.flatnonzero(~np.isin(in_b, in_a))),
    )


def _rows(vocabulary: Vocabulary, positions: Integers) -> Rows[TokenRow]:
    in_bytes = vocabulary.tokenizer.spec.model_reads_bytes

    def row(at: int) -> TokenRow:
        return TokenRow(int(vocabulary.ids[at]), shown(vocabulary.tokens[at], in_bytes))

    return Rows(positions.tolist(), row)


def _ids(pair: Pair) -> Rows[OtherId]:
    """Return the common tokens with two ids; of several tokens of equal bytes, the first counts."""
    (in_a, in_b), (a, b) = pair.numbers, pair.vocabularies
    _, at_a, at_b = np.intersect1d(in_a, in_b, return_indices=True)
    other = a.ids[at_a] != b.ids[at_b]
    in_bytes = a.tokenizer.spec.model_reads_bytes

    def row(both: tuple[int, int]) -> OtherId:
        one, two = both
        return OtherId(shown(a.tokens[one], in_bytes), int(a.ids[one]), int(b.ids[two]))

    return Rows(sorted(zip(at_a[other].tolist(), at_b[other].tolist(), strict=True)), row)


def _other_scores(a: Tokenizer, b: Tokenizer) -> int:
    scores = [
        {piece[0]: piece[1:] for piece in each.spec.model.pieces}
        for each in (a, b)
        if isinstance(each.spec.model, Unigram | SentencePiece)
    ]
    if len(scores) < 2:
        return 0
    return sum(scores[1].get(token, score) != score for token, score in scores[0].items())


# ---- merges ----


def _merges(a: Tokenizer, b: Tokenizer) -> MergeDifferences:
    numbers: dict[str | bytes, int] = {}
    one, other = _numbered(a, numbers), _numbered(b, numbers)
    ranks_one = {merge: rank for rank, merge in enumerate(one)}
    ranks_other = {merge: rank for rank, merge in enumerate(other)}
    common = [merge for merge in ranks_one if merge in ranks_other]
    there = [ranks_other[merge] for merge in common]
    pairs = enumerate(zip(one, other, strict=False))
    equal = next((rank for rank, (x, y) in pairs if x != y), min(len(one), len(other)))
    return MergeDifferences(
        equal_first=equal,
        common=len(common),
        same_order=all(x < y for x, y in pairwise(there)),
        only_a=_merge_rows(a, [r for merge, r in ranks_one.items() if merge not in ranks_other]),
        only_b=_merge_rows(b, [r for merge, r in ranks_other.items() if merge not in ranks_one]),
    )


def _merges_of(tokenizer: Tokenizer) -> Sequence[tuple[str, str]]:
    """Return the merges by rank, which are not copied; empty if the model is not BPE."""
    model = tokenizer.spec.model
    return model.merges if isinstance(model, BPE) else ()


def _numbered(tokenizer: Tokenizer, numbers: dict[str | bytes, int]) -> list[tuple[int, int]]:
    """Return the merges as the numbers of their two tokens."""
    in_bytes = tokenizer.spec.model_reads_bytes
    merges = _merges_of(tokenizer)
    number_of = {
        token: numbers.setdefault(text_of(token, in_bytes), len(numbers))
        for token in set(chain.from_iterable(merges))
    }
    return [(number_of[left], number_of[right]) for left, right in merges]


def _merge_rows(tokenizer: Tokenizer, ranks: Sequence[int]) -> Rows[MergeRow]:
    in_bytes, merges = tokenizer.spec.model_reads_bytes, _merges_of(tokenizer)

    def row(rank: int) -> MergeRow:
        return MergeRow(rank, *(shown(token, in_bytes) for token in merges[rank]))

    return Rows(ranks, row)


# ---- words ----


class FoundWords(NamedTuple):
    """What some words add to `WordDifferences`; `most` are (-count, word)."""

    words: int = 0
    unique: int = 0
    other_words: int = 0
    other_unique: int = 0
    tokens_a: int = 0
    tokens_b: int = 0
    most: Sequence[tuple[int, str]] = ()

    def plus(self, other: FoundWords, top: int) -> FoundWords:
        """Return the sum of two."""
        return FoundWords(
            self.words + other.words,
            self.unique + other.unique,
            self.other_words + other.other_words,
            self.other_unique + other.other_unique,
            self.tokens_a + other.tokens_a,
            self.tokens_b + other.tokens_b,
            heapq.nsmallest(top, (*self.most, *other.most)),
        )


def word_differences(
    pair: Pair,
    counted: CountedParts,
    *,
    top: int = 20,
    on_part: Callable[[], None] = lambda: None,
) -> WordDifferences:
    """Return how two tokenizers encode counted words."""
    rules = counted.manifest.normalizer, counted.manifest.pretokenizer
    encoders = [WordEncoder(each, *rules) for each in pair.tokenizers]
    comparison = WordComparison(pair, encoders, top)

    def compare(read: Callable[[], pa.Table]) -> FoundWords:
        words = read()
        found = FoundWords()
        for own, counts, (by_a, by_b) in encoded_by_all(pair.names, encoders, words):
            found = found.plus(comparison.of_batch(own, counts, by_a, by_b), top)
        on_part()
        return found

    found = FoundWords()
    with ThreadPoolExecutor(counted.workers) as pool:
        for each in pool.map(compare, counted.added_up):
            found = found.plus(each, top)
    return comparison.result(found)


class WordComparison:
    """Compares how two tokenizers encode words, a batch at a time; threads may share it."""

    def __init__(self, pair: Pair, encoders: Sequence[WordEncoder], top: int) -> None:
        self._pair = pair
        self._encoders = encoders
        self._top = top

    def of_batch(
        self,
        words: pa.ChunkedArray,
        counts: Integers,
        by_a: pa.LargeListArray,
        by_b: pa.LargeListArray,
    ) -> FoundWords:
        """Return what a batch of words adds."""
        other = _unequal(self._pair, by_a, by_b)
        numbers = np.flatnonzero(other)
        if len(numbers) > self._top:
            least = np.partition(counts[numbers], -self._top)[-self._top]
            numbers = numbers[counts[numbers] >= least]
        own = words.take(pa.array(numbers)).to_pylist()
        return FoundWords(
            int(counts.sum()),
            len(counts),
            int(counts[other].sum()),
            int(other.sum()),
            _tokens_of(by_a, counts),
            _tokens_of(by_b, counts),
            list(zip((-counts[numbers]).tolist(), own, strict=True)),
        )

    def result(self, found: FoundWords) -> WordDifferences:
        """Return the differences of all words."""
        return WordDifferences(
            self._encoders[0].exact,
            self._encoders[1].exact,
            found.words,
            found.unique,
            found.other_words,
            found.other_unique,
            found.tokens_a,
            found.tokens_b,
            _encoded_both(self._pair, self._encoders, found),
        )


def encoded_by_all(
    names: Sequence[str], encoders: Sequence[WordEncoder], words: pa.Table
) -> Iterator[tuple[pa.ChunkedArray, Integers, list[pa.LargeListArray]]]:
    """Yield words, how often each occurs, and their ids by each tokenizer, some at a time."""
    begin = 0
    by_all = starmap(_naming_errors, zip(names, encoders, repeat(words), strict=False))
    for batch in zip(*by_all, strict=True):
        counts = batch[0][1]
        # The words of counts, not the texts that an encoder makes of them.
        yield words["word"].slice(begin, len(counts)), counts, [ids for _, _, ids in batch]
        begin += len(counts)


def _naming_errors(
    name: str, encoder: WordEncoder, words: pa.Table
) -> Iterator[tuple[pa.Array, Integers, pa.LargeListArray]]:
    try:
        yield from encoded_words(words, encoder)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def _unequal(pair: Pair, by_a: pa.LargeListArray, by_b: pa.LargeListArray) -> Flags:
    """Return which words have other tokens by A than by B."""
    lengths = [np.diff(each.offsets.to_numpy()) for each in (by_a, by_b)]
    equally_long = lengths[0] == lengths[1]
    numbers = [
        own[vocabulary.positions(each.values.to_numpy())][np.repeat(equally_long, length)]
        for own, vocabulary, each, length in zip(
            pair.numbers, pair.vocabularies, (by_a, by_b), lengths, strict=True
        )
    ]
    unequal = np.concatenate([[0], np.cumsum(numbers[0] != numbers[1])])
    ends = np.cumsum(np.where(equally_long, lengths[0], 0))
    starts = np.concatenate([[0], ends[:-1]])
    other: Flags = ~equally_long | (unequal[ends] > unequal[starts])
    return other


def _tokens_of(encoded: pa.LargeListArray, counts: Integers) -> int:
    """Return the number of tokens, each word's as often as it occurs; exact beyond 64 bits."""
    lengths = np.diff(encoded.offsets.to_numpy())
    high = int(np.dot(counts >> 32, lengths))
    return (high << 32) + int(np.dot(counts & 0xFFFFFFFF, lengths))


def _encoded_both(
    pair: Pair, encoders: Sequence[WordEncoder], found: FoundWords
) -> list[WordDifference]:
    """Return the most frequent words with their tokens."""
    words = pa.array([word for _, word in found.most], pa.large_string())
    tokens = [
        [[shown_of[number] for number in ids] for ids in encoder.encode(words).to_pylist()]
        for encoder, shown_of in zip(encoders, map(_ShownById, pair.tokenizers), strict=True)
    ]
    return [
        WordDifference(word, -count, a, b)
        for (count, word), a, b in zip(found.most, *tokens, strict=True)
    ]


class _ShownById(dict[int, str]):
    """The tokens of a tokenizer as people read them, by id; each is made when it is needed."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, number: int) -> str:
        in_bytes = self._tokenizer.spec.model_reads_bytes
        self[number] = shown(str(self._tokenizer.id_to_token(number)), in_bytes)
        return self[number]
