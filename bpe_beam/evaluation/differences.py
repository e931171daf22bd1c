"""What differs between two tokenizers: parts, tokens, ids, merges, and the encoding of words.

Cost: of the tokenizers, memory for two vocabularies. Of words, the encoding of each unique word by
both; memory for one part of the counts and the most frequent words for each thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import chain, pairwise, repeat, starmap
from operator import add
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa
from msgspec import Struct, structs, to_builtins

from bpe_beam.counts.word_table import weighted_total
from bpe_beam.errors import DataError
from bpe_beam.evaluation.counted import CountedParts, encoded_words
from bpe_beam.evaluation.vocabulary import Flags, Integers, Vocabulary
from bpe_beam.evaluation.word_encoding import WordEncoder
from bpe_beam.messages import shortened
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
    """One of the two tokenizers; its name may be its folder's."""

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

    Their bytes of text are compared if only one of the models reads bytes, since then the two write
    the same token differently. `common` is the number of tokens of A that B has, too.
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

    `equal_first` is the number of first merges that are equal, rank by rank, and `common` the
    number that both have; `same_order` says whether these are in the same order in both.
    """

    equal_first: int
    common: int
    same_order: bool
    only_a: Rows[MergeRow]
    only_b: Rows[MergeRow]


class Differences(Struct, frozen=True):
    """What differs between two tokenizers, apart from words; `as_json` has the values of JSON.

    Attributes:
        parts: The parts that differ, and the settings of added tokens that do.
        ids: Tokens of both with two ids.
        other_scores: The number of common tokens whose scores differ, of Unigram.
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
        both: list[Sequence[str | bytes]] = [
            one.tokens if self.compared_by == "token" else one.token_bytes
            for one in self.vocabularies
        ]
        numbers: dict[str | bytes, int] = {}
        self.numbers: tuple[Integers, ...] = tuple(
            np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
            for keys in both
        )
        """The number of each token, by position; equal tokens of both have one number."""


ADDED_TOKEN = "added token "
"""The beginning of the name of a part that is an added token."""


def differences(pair: Pair) -> Differences:
    """Return what differs between two tokenizers."""
    a, b = pair.tokenizers
    compared = [
        Compared(name, one.vocab_size, len(_merges_of(one)), one.fingerprint)
        for name, one in zip(pair.names, pair.tokenizers, strict=True)
    ]
    return Differences(
        version=VERSION,
        a=compared[0],
        b=compared[1],
        parts=[*_parts(a, b)],
        tokens=_tokens(pair),
        ids=_ids(pair),
        other_scores=_other_scores(a, b),
        merges=_merges(a, b),
    )


def shown(token: str, in_bytes: bool) -> str:
    """Return a token as people read it: in quotes, or its bytes."""
    text = text_of(token, in_bytes)
    return repr(text) if isinstance(text, bytes) else shortened(text)


# ---- parts ----


def _parts(a: Tokenizer, b: Tokenizer) -> Iterator[PartDifference]:
    """Yield the parts that differ, then the added tokens with other settings; ids do not count."""
    models = [model_in_words(one.spec) for one in (a, b)]
    if models[0] != models[1]:
        yield PartDifference("model", *models)
    for name in _PARTS:
        one, other = getattr(a.spec, name), getattr(b.spec, name)
        if one != other:
            words = _settings if name in ("truncation", "padding") else describe
            yield PartDifference(name, words(one), words(other))
    added = [{token.content: token for token in each.spec.added_tokens} for each in (a, b)]
    for content in dict.fromkeys((*added[0], *added[1])):
        in_words = [
            "none"
            if content not in each
            else ", ".join(name for name in _FLAGS if getattr(each[content], name)) or "plain"
            for each in added
        ]
        if in_words[0] != in_words[1]:
            yield PartDifference(f"{ADDED_TOKEN}{shortened(content)}", *in_words)


def _settings(settings: Struct | None) -> str:
    if settings is None:
        return "none"
    return ", ".join(f"{name} {value}" for name, value in structs.asdict(settings).items())


# ---- tokens and ids ----


def _tokens(pair: Pair) -> TokenDifferences:
    in_a, in_b = pair.numbers
    common: Flags = np.isin(in_a, in_b)
    return TokenDifferences(
        pair.compared_by,
        int(common.sum()),
        _token_rows(pair.vocabularies[0], np.flatnonzero(~common)),
        _token_rows(pair.vocabularies[1], np.flatnonzero(~np.isin(in_b, in_a))),
    )


def _token_rows(vocabulary: Vocabulary, positions: Integers) -> Rows[TokenRow]:
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
    common = [ranks_other[merge] for merge in ranks_one if merge in ranks_other]
    pairs = enumerate(zip(one, other, strict=False))
    equal = next((rank for rank, (x, y) in pairs if x != y), min(len(one), len(other)))
    return MergeDifferences(
        equal_first=equal,
        common=len(common),
        same_order=all(x < y for x, y in pairwise(common)),
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


class WordDifference(Struct, frozen=True):
    """A word that the tokenizers encode differently, and its tokens by both as people read them."""

    word: str
    count: int
    a: list[str]
    b: list[str]


class WordDifferences(Struct, frozen=True):
    """The encoding of the words of counts by two tokenizers.

    Words are encoded differently if their tokens differ; equal tokens with two ids are equal. Each
    occurrence counts, but in the numbers of unique words.

    Attributes:
        exact_a: Whether A gives these ids in the corpus too, see `WordEncoder.exact`.
        other_words: The number of words that are encoded differently.
        most_frequent: The most frequent of these; ties in the order of their bytes.
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


class ComparedWords(NamedTuple):
    """Sums of some words for `WordDifferences`; `most_frequent` are (-count, word)."""

    words: int = 0
    unique_words: int = 0
    other_words: int = 0
    other_unique_words: int = 0
    tokens_a: int = 0
    tokens_b: int = 0
    most_frequent: Sequence[tuple[int, str]] = ()

    def plus(self, other: ComparedWords, top: int) -> ComparedWords:
        """Return the sum of two."""
        most_frequent = heapq.nsmallest(top, (*self.most_frequent, *other.most_frequent))
        sums = map(add, self[:-1], other[:-1])
        return ComparedWords(*sums)._replace(most_frequent=most_frequent)


def word_differences(
    pair: Pair,
    counted: CountedParts,
    *,
    top: int = 20,
    on_part: Callable[[], None] = lambda: None,
) -> WordDifferences:
    """Return how two tokenizers encode counted words."""
    encoders = [counted.encoder(each) for each in pair.tokenizers]
    comparison = WordComparison(pair, encoders, top)

    def compare(read: Callable[[], pa.Table]) -> ComparedWords:
        total = ComparedWords()
        for words, counts, (by_a, by_b) in encoded_by_all(pair.names, encoders, read()):
            total = total.plus(comparison.of_batch(words, counts, by_a, by_b), top)
        on_part()
        return total

    parts = counted.on_threads(compare, counted.added_up)
    return comparison.result(reduce(lambda a, b: a.plus(b, top), parts, ComparedWords()))


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
    ) -> ComparedWords:
        """Return the sums of a batch of words."""
        other = _unequal(self._pair, by_a, by_b)
        numbers = np.flatnonzero(other)
        if len(numbers) > self._top:
            threshold = np.partition(counts[numbers], -self._top)[-self._top]
            numbers = numbers[counts[numbers] >= threshold]
        chosen = words.take(pa.array(numbers)).to_pylist()
        return ComparedWords(
            int(counts.sum()),
            len(counts),
            int(counts[other].sum()),
            int(other.sum()),
            _tokens_of(by_a, counts),
            _tokens_of(by_b, counts),
            list(zip((-counts[numbers]).tolist(), chosen, strict=True)),
        )

    def result(self, compared: ComparedWords) -> WordDifferences:
        """Return the differences of all words."""
        words = pa.array([word for _, word in compared.most_frequent], pa.large_string())
        tokens = [
            [
                [_shown_by_id(tokenizer, number) for number in ids]
                for ids in encoder.encode(words).to_pylist()
            ]
            for tokenizer, encoder in zip(self._pair.tokenizers, self._encoders, strict=True)
        ]
        return WordDifferences(
            self._encoders[0].exact,
            self._encoders[1].exact,
            *compared[:-1],
            [
                WordDifference(word, -count, a, b)
                for (count, word), a, b in zip(compared.most_frequent, *tokens, strict=True)
            ],
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
    """Return which words A and B encode to different tokens."""
    lengths = [np.diff(each.offsets.to_numpy()) for each in (by_a, by_b)]
    equally_long = lengths[0] == lengths[1]
    numbers = [
        of_tokens[vocabulary.positions(each.values.to_numpy())][np.repeat(equally_long, length)]
        for of_tokens, vocabulary, each, length in zip(
            pair.numbers, pair.vocabularies, (by_a, by_b), lengths, strict=True
        )
    ]
    unequal = np.concatenate([[0], np.cumsum(numbers[0] != numbers[1])])
    ends = np.cumsum(np.where(equally_long, lengths[0], 0))
    starts = np.concatenate([[0], ends[:-1]])
    other: Flags = ~equally_long | (unequal[ends] > unequal[starts])
    return other


def _tokens_of(encoded: pa.LargeListArray, counts: Integers) -> int:
    """Return the number of tokens of all occurrences."""
    return weighted_total(np.diff(encoded.offsets.to_numpy()), counts)


def _shown_by_id(tokenizer: Tokenizer, number: int) -> str:
    return shown(str(tokenizer.id_to_token(number)), tokenizer.spec.model_reads_bytes)
