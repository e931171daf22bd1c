"""Models: how the symbols of a word become tokens. Plain data; native code encodes with them."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec import Struct, field

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.component import Component, Count
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

if TYPE_CHECKING:
    from bpe_beam import _native

MAX_ID = MAX_VOCAB_SIZE - 1  # the greatest id: the formats of token ids have 31 bits for an id

MAX_TOKEN_CHARS = 4_096
"""The longest added token, in characters; a model's own tokens may be longer."""

MAX_CONTENT_CHARS = 1 << 23
"""The most characters of all added tokens together, and of a WordPiece vocabulary. Both are stored
as a tree of bytes, which takes 40 bytes of memory a character."""

PIECE_KINDS = ("normal", "unknown", "control", "user_defined", "unused", "byte")
"""The kinds of SentencePiece's pieces, from its number 1."""

_MAX_MERGED_CHARS = 500  # of a piece: the time to find its merges grows with the square

_MAX_SCORE = 3.4028234663852886e38  # of 32 bits


class ErrorLocation(Struct, frozen=True):
    """Functions that name values in messages; by default by their paths in `tokenizer.json`."""

    token: Callable[[str], str] = lambda token: f"model.vocab[{shortened(token)}]"
    merge: Callable[[int], str] = lambda rank: f"model.merges[{rank}]"
    added: Callable[[int], str] = lambda number: f"added_tokens[{number}]"
    setting: Callable[[str], str] = lambda name: f"model.{name}"


OF_ARGUMENTS = ErrorLocation(
    token=lambda token: f"vocab: {shortened(token)}",
    merge=lambda rank: f"merges[{rank}]",
    added=lambda _: "special_tokens",
    setting=lambda name: name,
)
"""The names where a caller passes the parts of a tokenizer."""


class BPE(Component, frozen=True, dict=True):
    """Byte-pair encoding."""

    vocab: dict[str, int]  # id by token, in the order of ids, which may have holes
    merges: Sequence[tuple[str, str]]  # by rank; a pair listed twice has its last rank
    unk_token: str | None = None  # of a symbol outside the vocabulary; None: such a text is refused
    continuing_subword_prefix: str | None = None  # before every symbol of a word but the first
    end_of_word_suffix: str | None = None  # added after a word's last symbol
    fuse_unk: bool = False  # whether adjacent unknown symbols of a word become one token
    # Whether a character outside the vocabulary becomes the tokens `<0x00>` to `<0xFF>` of its
    # bytes, if the vocabulary has them all
    byte_fallback: bool = False
    ignore_merges: bool = (
        False  # whether a word in the vocabulary is one token, whatever the merges
    )

    def check(self, location: ErrorLocation) -> None:
        """Check the vocabulary and the merges."""
        check_vocab(self.vocab, location)
        if self.unk_token is not None and self.unk_token not in self.vocab:
            raise UsageError(
                f"{location.setting('unk_token')}: {shortened(self.unk_token)} is not in the "
                "vocabulary"
            )
        rank = len(self.merge_ids)
        if rank < len(self.merges):
            left, right = self.merges[rank]
            parts = (left, right, self.joined(left, right))
            missing = next(token for token in parts if token not in self.vocab)
            raise UsageError(
                f"{location.merge(rank)}: {shortened(missing)} of {shortened([left, right])} is "
                "not in the vocabulary"
            )

    @cached_property
    def merge_ids(self) -> _native.MergeIds:
        """The merges as ids, up to the first one with a token outside the vocabulary."""
        from bpe_beam import _native  # the settings of `train` import this module

        prefix = self.continuing_subword_prefix or ""
        return _native.MergeIds(self.vocab, self.merges, prefix)

    def joined(self, left: str, right: str) -> str:
        """Return the token of a merge, without the prefix of the right token."""
        return left + right.removeprefix(self.continuing_subword_prefix or "")


class WordPiece(Component, frozen=True):
    """WordPiece: from the left of a word, the longest matching token."""

    vocab: dict[str, int]
    unk_token: str = "[UNK]"  # of a word that is not a sequence of tokens
    continuing_subword_prefix: str = "##"  # before every token of a word but the first
    max_input_chars_per_word: Count = 100  # a longer word is unknown

    def check(self, location: ErrorLocation) -> None:
        check_vocab(self.vocab, location)
        check_total_characters(location.setting("vocab"), self.vocab)
        most = self.max_input_chars_per_word
        # The time of a word is its length times the longest token that it can contain.
        longest = max(self.vocab, key=len, default="")
        if most > MAX_TOKEN_CHARS and len(longest) > MAX_TOKEN_CHARS:
            name = location.setting("max_input_chars_per_word")
            raise UsageError(
                f"{location.token(longest)}: a token of {len(longest):,} characters must be at "
                f"most {MAX_TOKEN_CHARS:,} where {name} is {most:,}: give a smaller one"
            )


class WordLevel(Component, frozen=True):
    """Word level: a word is one token, or outside the vocabulary `unk_token`."""

    vocab: dict[str, int]
    unk_token: str = "<unk>"

    def check(self, location: ErrorLocation) -> None:
        check_vocab(self.vocab, location)


class Unigram(Component, frozen=True, dict=True):
    """Unigram: of all ways to cut a word into pieces, one of the highest sum of scores."""

    # Pieces and their scores, by id. Of two equal pieces the last counts.
    pieces: list[tuple[str, float]] = field(name="vocab")
    unk_id: Count | None = None  # the id of an unknown character; None: a text with one is refused
    # Whether unknown characters become the pieces `<0x00>` to `<0xFF>` of their bytes, if the
    # vocabulary has all of them
    byte_fallback: bool = False

    @cached_property
    def vocab(self) -> dict[str, int]:
        """Id by piece, in the order of ids."""
        ids = {piece: number for number, (piece, _) in enumerate(self.pieces)}
        return ids if len(ids) == len(self.pieces) else in_order_of_ids(ids.items())

    def check(self, location: ErrorLocation) -> None:
        name = location.setting("vocab")
        if not self.pieces:
            raise UsageError(f"{name} must have a piece, got none")
        check_total_characters(name, (piece for piece, _ in self.pieces))
        for number, (piece, score) in enumerate(self.pieces):
            if not math.isfinite(score):
                raise UsageError(f"{name}[{number}]: the score of {shortened(piece)} is {score}")
        if self.unk_id is not None and self.unk_id >= len(self.pieces):
            raise UsageError(
                f"{location.setting('unk_id')} must be the id of a piece, below "
                f"{len(self.pieces):,}, got {self.unk_id:,}"
            )


class SentencePiece(Component, frozen=True, dict=True):
    """The model of a SentencePiece file; it encodes as SentencePiece does.

    Hugging Face has no such model, so its libraries refuse a file with this one. Of BPE, the score
    of a piece decides when two tokens become it. Of Unigram, sums of scores have 32 bits.
    """

    algorithm: str  # `bpe` or `unigram`
    pieces: list[tuple[str, float, str]] = field(name="vocab")  # text, score and kind, by id
    byte_fallback: bool  # whether an unknown character becomes the pieces of its bytes

    @cached_property
    def vocab(self) -> dict[str, int]:
        """Id by piece, in the order of ids."""
        return {piece: number for number, (piece, _, _) in enumerate(self.pieces)}

    def of_kind(self, *kinds: str) -> dict[str, int]:
        """Return the pieces of some kinds, and their ids."""
        return {
            piece: number for number, (piece, _, kind) in enumerate(self.pieces) if kind in kinds
        }

    def by_falling_score(self) -> list[str]:
        """Return the normal pieces of several characters, the highest score first."""
        scored = [(score, piece) for piece, score, kind in self.pieces if kind == "normal"]
        scored.sort(key=itemgetter(0), reverse=True)
        return [piece for _, piece in scored if len(piece) > 1]

    def check(self, location: ErrorLocation) -> None:
        require_choice(location.setting("algorithm"), self.algorithm, ("bpe", "unigram"))
        name = location.setting("vocab")
        check_total_characters(name, (piece for piece, _, _ in self.pieces))
        for number, (piece, score, kind) in enumerate(self.pieces):
            where = f"{name}[{number}]"
            require_choice(where, kind, PIECE_KINDS)
            if not piece or "\0" in piece:
                raise UsageError(f"{where}: a piece must have characters, none of them U+0000")
            if not math.isfinite(score) or abs(score) > _MAX_SCORE:
                raise UsageError(f"{where}: the score of {shortened(piece)} is {score}")
            if self.vocab[piece] != number:
                again = f"{name}[{self.vocab[piece]}]"
                raise UsageError(f"{where}: the piece {shortened(piece)} is also {again}")
        if (unknown := len(self.of_kind("unknown"))) != 1:
            raise UsageError(f"{name} must have one unknown piece, got {unknown}")
        wanted = {byte_token(byte) for byte in range(256)} if self.byte_fallback else set()
        if self.of_kind("byte").keys() != wanted:
            raise UsageError(
                f"{name} must have the pieces of all bytes with byte_fallback, and none without it"
            )
        if self.algorithm == "bpe":
            self._check_bpe(name)

    def _check_bpe(self, name: str) -> None:
        """Refuse what SentencePiece merges by the texts of tokens that have no ids."""
        for number, (piece, _, kind) in enumerate(self.pieces):
            if kind == "unused" or (kind == "control" and len(piece) == 1):
                raise UsageError(
                    f"{name}[{number}]: BPE with the {kind} piece {shortened(piece)} is not "
                    "supported"
                )
        known = self.of_kind("normal", "user_defined")
        for piece in self.by_falling_score():
            where = f"{name}[{self.vocab[piece]}]"
            if len(piece) > _MAX_MERGED_CHARS:
                raise UsageError(
                    f"{where}: a piece of BPE must have at most {_MAX_MERGED_CHARS:,} characters, "
                    f"got {len(piece):,}"
                )
            missing = next((character for character in piece if character not in known), None)
            if missing is not None:
                raise UsageError(
                    f"{where}: BPE with the piece {shortened(piece)} but without its character "
                    f"{shortened(missing)} is not supported"
                )

    def merge_rows(self) -> list[tuple[int, int, int, int]]:
        """Return all merges of BPE: the left id, the right id, what they become, and the rank."""
        ids = self.of_kind("normal")
        rows = []
        rank, last_score = -1, math.nan
        for piece in self.by_falling_score():
            score = self.pieces[ids[piece]][1]
            rank, last_score = rank + (score != last_score), score
            for at in range(1, len(piece)):
                left, right = ids.get(piece[:at]), ids.get(piece[at:])
                if left is not None and right is not None:
                    rows.append((left, right, ids[piece], rank))
        return rows


Model = BPE | WordPiece | WordLevel | Unigram | SentencePiece


def check_total_characters(name: str, texts: Iterable[str]) -> None:
    """Refuse texts with too many characters in total."""
    if (characters := sum(map(len, texts))) > MAX_CONTENT_CHARS:
        raise UsageError(
            f"{name} must have at most {MAX_CONTENT_CHARS:,} characters in total, got "
            f"{characters:,}"
        )


def check_vocab(vocab: dict[str, int], location: ErrorLocation) -> None:
    """Check that all ids are valid and different, and that no token is empty."""
    from bpe_beam import _native

    if _native.is_plain_vocab(vocab, MAX_ID):
        return
    tokens_by_id: dict[int, str] = {}
    for token, token_id in vocab.items():
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            check_id(token_id, location.token(token))
        other = tokens_by_id.setdefault(token_id, token)
        if other is not token:
            raise UsageError(
                f"{location.token(token)}: id {token_id} is taken by {shortened(other)}"
            )
        if not token:
            raise UsageError(f"{location.token(token)}: an empty token")


def byte_token(byte: int) -> str:
    """Return the token of a byte with `byte_fallback`: `<0x0A>` for a newline."""
    return f"<0x{byte:02X}>"


def is_byte_token(token: str) -> bool:
    """Whether decoders with byte fallback read a token as a byte: `<0x0a>` too, `<0x+a>` too."""
    return re.fullmatch(r"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>", token) is not None


def in_order_of_ids(vocab: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(vocab, key=itemgetter(1)))


def tokens_by_id(vocab: Mapping[str, int], ids: Iterable[int]) -> dict[int, str]:
    """Return the tokens of some ids, by id; ids without a token are left out."""
    tokens, known = list(vocab), list(vocab.values())
    positions = ((token_id, bisect_left(known, token_id)) for token_id in ids)
    return {i: tokens[at] for i, at in positions if at < len(known) and known[at] == i}


def check_id(token_id: object, name: str) -> None:
    """Refuse a token's id that is not an integer from 0 to MAX_ID."""
    if isinstance(token_id, bool) or not isinstance(token_id, int):
        raise UsageError(f"{name}: the id {shortened(token_id)} is not an integer")
    if not 0 <= token_id <= MAX_ID:
        raise UsageError(f"{name}: the id {shortened(token_id)} is not from 0 to {MAX_ID}")
