"""Where merge learning starts: the vocabulary before the first merge, and any words written in it.

In three steps, so that words may stand anywhere: their symbols are seen part by part and added up
(unless the recipe alone says which there are), the vocabulary is begun, and each part is spelled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.json_node import Node, parse
from bpe_beam.tokenizer.models import BPE, MAX_ID
from bpe_beam.tokenizer.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.native_trainer import Symbols, number
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.seen_symbols import SeenSymbols, read_spelling, see
from bpe_beam.training.symbols import NO_ID, Spelling, id_table, spell
from bpe_beam.training.words import Words

BYTE_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The tokens of `byte_fallback`."""


@dataclass(frozen=True)
class InitialVocabulary:
    """The vocabulary before learning, and how words are written in it.

    Attributes:
        spelling: How words are written as symbols.
        ids: Id by token. Holes between ids stay holes.
        kept: The characters whose symbols stay in the words.
        cut: Others are left out of the words; else there must be none.
        with_spans: A learner must be told how many characters each symbol covers.
        old: The tokenizer that is continued: it encodes the words.
    """

    spelling: Spelling
    ids: Mapping[str, int]
    kept: frozenset[str]
    cut: bool = False
    with_spans: bool = False
    old: Tokenizer | None = None

    @property
    def decorated(self) -> bool:
        """Whether the same token may be made of other symbols elsewhere."""
        return bool(self.spelling.prefix or self.spelling.suffix or self.old)

    @cached_property
    def widths(self) -> npt.NDArray[np.uint32] | None:
        """How many characters (or bytes) of its word each id covers where words begin; by id.

        A token that a merge makes covers what its parts cover. None: that depends on the place, as
        it does where a tokenizer with decorated symbols is continued.
        """
        if not (self.spelling.prefix or self.spelling.suffix):
            return self._lengths
        if self.old is not None:
            return None
        widths: npt.NDArray[np.uint32] = self._lengths.copy()
        widths[self._table[self._table != NO_ID]] = 1
        return widths

    def symbols(self, words: Words) -> Symbols:
        """Spells words: all of them or a part, each by itself.

        Args:
            words: Words whose symbols were seen.

        Raises:
            DataError: A word holds a character that was not seen.
        """
        if self.old is None:
            written, offsets = spell(words, self.spelling, self._table, self.cut)
            size = words.total_bytes
            return Symbols(written, offsets, words.counts, size, decorated=self.decorated)
        try:
            written, offsets = self._encoder.encode_batch(words.data, words.offsets)
        except _native.MissingSymbolError as error:
            raise DataError(
                f"a word holds what no word held when the vocabulary was begun ({error}): the "
                "counts have changed since; begin anew"
            ) from None
        spans = self._spans(written, offsets) if self.with_spans else None
        return Symbols(written, offsets, words.counts, words.total_bytes, spans, decorated=True)

    def to_bytes(self) -> bytes:
        """As JSON; equal starts give equal bytes."""
        tokens: list[str | None] = [None] * (max(self.ids.values(), default=-1) + 1)
        for token, token_id in self.ids.items():
            tokens[token_id] = token
        value = {
            "in_bytes": self.spelling.in_bytes,
            "prefix": self.spelling.prefix,
            "suffix": self.spelling.suffix,
            "end_symbol": self.spelling.end_symbol,
            "tokens": tokens,
            "kept": "".join(sorted(self.kept)),
            "cut": self.cut,
            "with_spans": self.with_spans,
            "old": None if self.old is None else self.old.to_json(),
        }
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "start") -> InitialVocabulary:
        """Reads what `to_bytes` wrote.

        Args:
            data: Possibly hostile bytes.
            source: How messages name them.

        Raises:
            DataError: They are something else; names the place.
        """
        try:
            return _read(Node(source, "", parse(data, source)))
        except UsageError as error:
            raise DataError(str(error)) from None

    @cached_property
    def _table(self) -> npt.NDArray[np.uint32]:
        return id_table(self.spelling, self.ids, self.kept)

    @cached_property
    def _encoder(self) -> _native.Encoder:
        assert self.old is not None
        spec = self.old.spec
        assert isinstance(spec.model, BPE)
        extended = replace(spec, model=replace(spec.model, vocab=self.ids))
        return _native.Encoder(_native.Pipeline([], None, []), make_model(extended))

    @cached_property
    def _lengths(self) -> npt.NDArray[np.uint32]:
        """Each token's own characters, or bytes, by id."""
        lengths = np.ones(max(self.ids.values(), default=-1) + 1, np.uint32)
        for token, token_id in self.ids.items():
            is_bytes = self.spelling.in_bytes and byte_level.is_byte_level(token)
            lengths[token_id] = len(byte_level.to_bytes(token)) if is_bytes else len(token)
        return lengths

    def _spans(
        self, written: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint32]:
        """How many characters, or bytes, of its word each token covers at its place."""
        spans = self._lengths[written].astype(np.int64)
        starts, ends = offsets[:-1], offsets[1:]
        full = ends > starts
        if self.spelling.prefix:
            begins = np.zeros(len(written), np.bool_)
            begins[starts[full]] = True
            spans[~begins] -= len(self.spelling.prefix)
        if self.spelling.suffix:
            spans[ends[full] - 1] -= len(self.spelling.suffix)
        return spans.astype(np.uint32)


def merges_of(old: Tokenizer) -> tuple[tuple[str, str], ...]:
    """The merges of a tokenizer that is continued."""
    assert isinstance(old.spec.model, BPE)
    return tuple((left, right) for left, right in old.spec.model.merges)


def needs_seen(recipe: BpeRecipe | WordPieceRecipe, old: Tokenizer | None = None) -> bool:
    """Whether the words decide what the vocabulary begins with.

    They do not where all 256 bytes stand in it anyway: by the recipe, or in the tokenizer that is
    continued.
    """
    if not isinstance(recipe, BpeRecipe) or recipe.symbols != "bytes":
        return True
    return not (recipe.all_bytes or (old and old.vocab.keys() >= byte_level.CHAR_TO_BYTE.keys()))


def see_for(words: Words, recipe: BpeRecipe | WordPieceRecipe) -> SeenSymbols:
    """Return the symbols of words, for `begin_vocabulary`; those of several parts can be `merged`.

    Args:
        words: Unique words.
        recipe: The settings; where a tokenizer is continued, as `recipe_like` gave them.

    Raises:
        UsageError: A word holds the end-of-word symbol.
    """
    return see(words, _spelling_of(recipe), recipe.limit_alphabet is not None)


def begin_vocabulary(
    recipe: BpeRecipe | WordPieceRecipe, seen: SeenSymbols | None, old: Tokenizer | None = None
) -> InitialVocabulary:
    """Begins the vocabulary.

    Args:
        recipe: The settings; where a tokenizer is continued, as `recipe_like` gave them.
        seen: The symbols of all words; None where `needs_seen` says no.
        old: The tokenizer that is continued, which must be BPE.
    """
    spelling = _spelling_of(recipe)
    if seen is None:
        assert not needs_seen(recipe, old)
        seen = SeenSymbols(spelling, np.zeros((4, 0), np.bool_), {})
    assert seen.spelling == spelling
    cut = recipe.limit_alphabet is not None
    if isinstance(recipe, WordPieceRecipe):
        return _wordpiece_start(recipe, seen, cut)
    if old is not None:
        first = number(old.vocab, recipe.specials)
    else:
        first = number({}, [*recipe.specials, *(BYTE_TOKENS if recipe.byte_fallback else ())])
    ids = _with_alphabet(first, seen, recipe)
    kept = frozenset(filter(spelling.has_code, ids))
    return InitialVocabulary(spelling, ids, kept, cut, old is not None and _limits(recipe), old)


def check_distributed(recipe: Recipe) -> None:
    """Refuses what cannot be learned in rounds over words that stand on workers.

    Raises:
        UsageError: Says why, and what to do instead.
    """
    if isinstance(recipe, WordLevelRecipe):
        raise UsageError(
            "merge_rounds cannot be 'distributed': a word-level vocabulary has no merges, its "
            "words are sorted; give --merge-rounds local, with as much --driver-memory as the "
            "words take"
        )
    if recipe.tie_break == "first_seen":
        raise UsageError(
            "merge_rounds cannot be 'distributed': tie_break 'first_seen' needs to know where each "
            "pair stands first among all words after every merge; give --merge-rounds local, with "
            "as much --driver-memory as the words take, or another --tie-break"
        )
    if isinstance(recipe, BpeRecipe) and _limits(recipe):
        for name in ("continuing_subword_prefix", "end_of_word_suffix"):
            if getattr(recipe, name):
                # In text that holds the decoration itself.
                raise UsageError(
                    "merge_rounds cannot be 'distributed': max_token_length counts the characters "
                    f"that a token covers, and with {name} {getattr(recipe, name)!r} the same "
                    "token can cover more here than there; give --merge-rounds local, with as much "
                    "--driver-memory as the words take, or no max_token_length"
                )


def _limits(recipe: BpeRecipe) -> bool:
    return recipe.max_token_length is not None


def _spelling_of(recipe: BpeRecipe | WordPieceRecipe) -> Spelling:
    """How the recipe has words written."""
    if isinstance(recipe, WordPieceRecipe):
        return Spelling(False, recipe.continuing_subword_prefix)
    return Spelling(
        recipe.symbols == "bytes",
        recipe.continuing_subword_prefix,
        recipe.end_of_word_suffix,
        recipe.end_of_word_symbol,
    )


def _with_alphabet(first: dict[str, int], seen: SeenSymbols, recipe: BpeRecipe) -> dict[str, int]:
    """Appends the characters by code point, then the decorated symbols as strings."""
    initial = {*recipe.initial_alphabet, *recipe.end_of_word_symbol}
    if recipe.all_bytes:
        initial.update(byte_level.BYTE_TO_CHAR)
    ids = number(first, seen.alphabet(initial, recipe.limit_alphabet))
    return number(ids, sorted(seen.symbols(seen.spelling.kinds, ids)))


def _wordpiece_start(recipe: WordPieceRecipe, seen: SeenSymbols, cut: bool) -> InitialVocabulary:
    """The special tokens, then the whole alphabet, decorated or not, as strings."""
    first = number({}, recipe.specials)
    alphabet = seen.alphabet(recipe.initial_alphabet, recipe.limit_alphabet)
    kept = frozenset(filter(seen.spelling.has_code, {*alphabet, *first}))
    symbols = seen.symbols(seen.spelling.kinds, kept)
    for character in set(recipe.initial_alphabet).intersection(alphabet):
        symbols |= {character, recipe.continuing_subword_prefix + character}
    return InitialVocabulary(seen.spelling, number(first, sorted(symbols)), kept, cut)


def _read(node: Node) -> InitialVocabulary:
    fields = node.fields(
        "in_bytes", "prefix", "suffix", "end_symbol", "tokens", "kept", "cut", "with_spans", "old"
    )
    spelling = read_spelling(fields)
    ids: dict[str, int] = {}
    tokens = [*fields["tokens"].items()]
    if len(tokens) > MAX_ID + 1:
        fields["tokens"].refuse(f"{len(tokens)} ids; there are at most {MAX_ID + 1}")
    for token_id, token in enumerate(tokens):
        if token.value is not None and ids.setdefault(token.string(), token_id) != token_id:
            token.refuse("the token stands there twice")
    kept = frozenset(fields["kept"].string())
    if not all(map(spelling.has_code, kept)):
        fields["kept"].refuse("not all of it is in the byte-level alphabet")
    old = None
    if fields["old"].value is not None:
        old = _read_old(fields["old"], ids, spelling)
    cut, with_spans = fields["cut"].boolean(), fields["with_spans"].boolean()
    return InitialVocabulary(spelling, ids, kept, cut, with_spans, old)


def _read_old(node: Node, ids: Mapping[str, int], spelling: Spelling) -> Tokenizer:
    old = Tokenizer.from_json(node.string())
    if not isinstance(old.spec.model, BPE) or old.spec.model_reads_bytes != spelling.in_bytes:
        node.refuse("this tokenizer cannot be continued")
    if any(ids.get(token) != token_id for token, token_id in old.vocab.items()):
        node.refuse("its ids are not those of the tokens")
    return old
