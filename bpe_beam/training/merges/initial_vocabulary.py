"""The vocabulary before the first merge, and words spelled in it.

Words may be on many workers: each collects the symbols of its words, unless the recipe
alone determines the symbols; then the vocabulary is made, and each part is spelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, NoReturn

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple, replace

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE, MAX_ID, byte_token
from bpe_beam.tokenizer.encoding.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.symbols import (
    KINDS,
    PLAIN,
    SeenSymbols,
    Spelling,
    WordSymbols,
    chunks,
    spelling_of,
    sums,
)
from bpe_beam.training.merges.words import Words
from bpe_beam.training.recipe import (
    BpeRecipe,
    MergingRecipe,
    PieceRecipe,
    Recipe,
    WordLevelRecipe,
)

_NO_ID = 0xFFFFFFFF


class InitialVocabulary(Spelling, frozen=True, dict=True, kw_only=True, forbid_unknown_fields=True):
    """The vocabulary before the first merge, and how words are spelled in it.

    Attributes:
        tokens: The tokens in the order of ids; None for an id without a token.
        kept: The characters whose symbols stay in the words, sorted; words may have other ones only
            if `drops`.
        with_spans: Whether a trainer needs the number of characters that each symbol covers.
        base_tokenizer: The tokenizer to continue, which spells the words; None: a new vocabulary.
    """

    tokens: Annotated[list[str | None], msgspec.Meta(max_length=MAX_ID + 1)]
    kept: str
    drops: bool = msgspec.field(name="cut")
    with_spans: bool
    base_tokenizer: Tokenizer | None = msgspec.field(name="old", default=None)

    def __post_init__(self) -> None:
        if len(self.ids) + self.tokens.count(None) < len(self.tokens):
            raise ValueError("a token is repeated - at `$.tokens`")
        if not all(map(self.has_code, self.kept)):
            raise ValueError("a character is not in the byte-level alphabet - at `$.kept`")
        base = self.base_tokenizer
        if base is None:
            return
        if not isinstance(base.spec.model, BPE) or base.spec.model_reads_bytes != self.in_bytes:
            raise ValueError("the tokenizer cannot be continued - at `$.old`")
        if any(self.ids.get(token) != number for token, number in base.vocab.items()):
            raise ValueError("the ids differ from the ids of the tokens - at `$.old`")

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Id by token, in the order of ids. Gaps between ids stay gaps."""
        return {token: number for number, token in enumerate(self.tokens) if token is not None}

    @cached_property
    def widths(self) -> npt.NDArray[np.uint32] | None:
        """The number of characters (or bytes) of its word that each id covers; uint32, by id.

        A token that a merge makes covers as many as its parts do. None: the number depends on the
        position, as it does where a tokenizer with decorated symbols is continued.
        """
        if not (self.prefix or self.suffix):
            return self._lengths
        if self.base_tokenizer is not None:
            return None
        widths: npt.NDArray[np.uint32] = self._lengths.copy()
        widths[self._table[self._table != _NO_ID]] = 1
        return widths

    def symbols(self, words: Words) -> WordSymbols:
        """Return the symbols of words."""
        if self.base_tokenizer is None:
            return self._spell(words)
        try:
            ids, offsets = self._encoder.encode_batch(words.data, words.offsets)
        except _native.MissingSymbolError as error:
            raise DataError(
                f"a word has a symbol that no word had when the vocabulary was begun ({error}): "
                "the counts have changed since; begin again"
            ) from None
        spans = self._spans(ids, offsets) if self.with_spans else None
        return WordSymbols(ids, offsets, words.counts, spans)

    @cached_property
    def _table(self) -> npt.NDArray[np.uint32]:
        """The ids of the symbols of the characters that are kept, uint32[kinds, codes]."""
        table = np.full((KINDS, self.codes), _NO_ID, np.uint32)
        for character in self.kept:
            code = self.code(character)
            for kind in self.kinds:
                table[kind, code] = self.ids.get(self.symbol(character, kind), _NO_ID)
        return table

    def _spell(self, words: Words) -> WordSymbols:
        """Return the symbols of words without a base tokenizer; errors as `symbols`.

        The first and the last character of a word are determined before any symbol is dropped.
        """
        if self.in_bytes:
            plain = self._table[PLAIN][words.data]
            if plain.max(initial=0) != _NO_ID:
                return WordSymbols(plain, words.offsets, words.counts)
            del plain
        ids, offsets = [np.zeros(0, np.uint32)], [np.zeros(1, np.int64)]
        end = 0
        for chunk in chunks(words, self):
            table_ids = self._table[chunk.kinds, chunk.codes]
            known = table_ids != _NO_ID
            if not (self.drops or known.all()):
                strange = self.character(int(chunk.codes[~known][0]))
                raise DataError(
                    f"a word has {strange!r}, which no word had when the vocabulary was begun: the "
                    "counts have changed since; begin again"
                )
            ids.append(table_ids[known])
            offsets.append(end + sums(known)[chunk.offsets[1:]])
            end += len(ids[-1])
        return WordSymbols(np.concatenate(ids), np.concatenate(offsets), words.counts)

    @cached_property
    def _encoder(self) -> _native.Encoder:
        assert self.base_tokenizer is not None
        spec = self.base_tokenizer.spec
        assert isinstance(spec.model, BPE)
        extended = replace(spec, model=replace(spec.model, vocab=self.ids))
        return _native.Encoder(_native.Pipeline([], None, []), make_model(extended))

    @cached_property
    def _lengths(self) -> npt.NDArray[np.uint32]:
        """The number of characters, or bytes, of each token itself, by id."""
        lengths = np.ones(len(self.tokens), np.uint32)
        for token, token_id in self.ids.items():
            is_bytes = self.in_bytes and byte_level.is_byte_level(token)
            lengths[token_id] = len(byte_level.to_bytes(token)) if is_bytes else len(token)
        return lengths

    def _spans(
        self, ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint32]:
        """Return how many characters, or bytes, of its word each token covers at its position."""
        spans = self._lengths[ids].astype(np.int64)
        starts, ends = offsets[:-1], offsets[1:]
        full = ends > starts
        if self.prefix:
            begins = np.zeros(len(ids), np.bool_)
            begins[starts[full]] = True
            spans[~begins] -= len(self.prefix)
        if self.suffix:
            spans[ends[full] - 1] -= len(self.suffix)
        return spans.astype(np.uint32)


def assign_ids(ids: Mapping[str, int], tokens: Iterable[str]) -> dict[str, int]:
    """Return a vocabulary with more tokens, whose ids follow the greatest."""
    assigned = dict(ids)
    next_id = max(assigned.values(), default=-1) + 1
    for token in tokens:
        if assigned.setdefault(token, next_id) == next_id:
            next_id += 1
    return assigned


def require_room(vocab_size: int, entries: int) -> None:
    """Refuse a vocabulary that is too small for its first entries."""
    require(
        vocab_size >= entries,
        f"must be at least {entries:,} (the special tokens and the alphabet alone), got "
        f"{vocab_size:,}",
        "vocab_size",
        remedy="or keep fewer characters with {limit_alphabet}",
    )


def needs_seen(recipe: MergingRecipe, base_tokenizer: Tokenizer | None = None) -> bool:
    """Return whether the words determine the first entries; not if all 256 bytes are entries."""
    if not isinstance(recipe, BpeRecipe) or recipe.symbols != "bytes":
        return True
    base = {} if base_tokenizer is None else base_tokenizer.vocab
    return not (recipe.all_bytes or base.keys() >= byte_level.CHAR_TO_BYTE.keys())


def begin_vocabulary(
    recipe: MergingRecipe, seen: SeenSymbols | None, base_tokenizer: Tokenizer | None = None
) -> InitialVocabulary:
    """Return the vocabulary before the first merge."""
    spelling = spelling_of(recipe)
    seen = seen or SeenSymbols(spelling, {})
    required = set(recipe.initial_alphabet)  # even if they do not occur
    if isinstance(recipe, BpeRecipe):
        required.update(recipe.end_of_word_symbol)
        required.update(byte_level.BYTE_TO_CHAR if recipe.all_bytes else ())
    alphabet = seen.alphabet(required, recipe.limit_alphabet)
    if isinstance(recipe, BpeRecipe):
        base = {} if base_tokenizer is None else base_tokenizer.vocab
        fallback = recipe.byte_fallback and base_tokenizer is None
        byte_tokens = map(byte_token, range(256 if fallback else 0))
        ids = assign_ids(base, (*recipe.specials, *byte_tokens, *alphabet))
        kept = frozenset(filter(spelling.has_code, ids))
        ids = assign_ids(ids, sorted(seen.symbols(kept)))
    else:
        kept = frozenset(filter(spelling.has_code, {*alphabet, *recipe.specials}))
        symbols = seen.symbols(kept)
        for character in set(recipe.initial_alphabet).intersection(alphabet):
            symbols |= {character, recipe.continuing_subword_prefix + character}
        ids = assign_ids({}, (*recipe.specials, *sorted(symbols)))
    tokens: list[str | None] = [None] * (max(ids.values(), default=-1) + 1)
    for token, token_id in ids.items():
        tokens[token_id] = token
    return InitialVocabulary(
        *astuple(spelling),
        tokens=tokens,
        kept="".join(sorted(kept)),
        drops=recipe.limit_alphabet is not None,
        with_spans=base_tokenizer is not None and recipe.max_token_length is not None,
        base_tokenizer=base_tokenizer,
    )


def check_distributed(recipe: Recipe) -> None:
    """Refuse a recipe that cannot be trained in rounds, over words on workers."""
    if isinstance(recipe, WordLevelRecipe):
        _refuse_rounds("a word-level vocabulary has no merges, its words are sorted")
    if isinstance(recipe, PieceRecipe):
        return
    if recipe.tie_break == "first_seen":
        _refuse_rounds(
            "first_seen needs to know where each pair occurs first among all words after every "
            "merge",
            ", or choose another {tie_break}",
        )
    if recipe.max_token_length is None or not isinstance(recipe, BpeRecipe):
        return
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if decoration := getattr(recipe, name):
            _refuse_rounds(
                "max_token_length counts the characters that a token covers, and if the text "
                f"contains the {name} {decoration!r} itself, the same token covers more in one "
                "position than in another",
                ", or leave out {max_token_length}",
            )


def _refuse_rounds(why: str, other_remedy: str = "") -> NoReturn:
    raise UsageError(
        f"cannot be distributed: {why}",
        ("merge_rounds",),
        f"set {{merge_rounds}} to local, with as much {{driver_memory}} as the words take"
        f"{other_remedy}",
    )
