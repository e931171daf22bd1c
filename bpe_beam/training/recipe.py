"""A frozen recipe for each model that is trained, checked when it is made.

The enumerations of models, tie rules, alphabets and symbols are here too. Light to import, since
the command line needs them for its help: no NumPy, no Arrow.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal, get_args

import msgspec

from bpe_beam.errors import UsageError, require, require_between, require_choice
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import MAX_TOKEN_CHARS, byte_token, is_byte_token
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

Model = Literal["bpe", "wordpiece", "prefix_bpe", "word_level", "unigram", "mingram"]
TieBreak = Literal["lowest_id", "first_seen", "greatest_bytes"]
Alphabet = Literal["bytes", "seen"]
Symbols = Literal["bytes", "characters"]

DEFAULT_TIE_BREAK: TieBreak = "lowest_id"

# The choices of the command line and of every check; the native code takes the same names.
MODELS: tuple[Model, ...] = get_args(Model)
TIE_BREAKS: tuple[TieBreak, ...] = get_args(TieBreak)
ALPHABETS: tuple[Alphabet, ...] = get_args(Alphabet)
SYMBOLS: tuple[Symbols, ...] = get_args(Symbols)

MAX_PIECE_LENGTH = 512
"""The maximum of `max_piece_length`: the time of training grows with it."""

_MAX_INT64 = 2**63 - 1
_RANGES = {
    "vocab_size": (1, MAX_VOCAB_SIZE),
    "min_frequency": (0, _MAX_INT64),
    "limit_alphabet": (0, _MAX_INT64),
    "max_token_length": (1, _MAX_INT64),
    "max_piece_length": (1, MAX_PIECE_LENGTH),
    "seed_size": (1, MAX_VOCAB_SIZE),
    "sub_iterations": (1, 100),
}
# Decimal numbers: the minimum and the maximum.
_DECIMALS = {
    "character_coverage": ("0.9", "1"),
    "shrinking_factor": ("0.5", "0.95"),
    "overshoot_factor": ("1", "10"),
}
_CHOICES: dict[str, tuple[str, ...]] = {
    "tie_break": TIE_BREAKS,
    "symbols": SYMBOLS,
    "alphabet": ALPHABETS,
}
_DECORATIONS = ("end_of_word_suffix", "end_of_word_symbol", "continuing_subword_prefix")


class _Entries(msgspec.Struct, frozen=True):
    """The settings of every recipe.

    Attributes:
        vocab_size: Number of entries at which training stops, special tokens and alphabet
            included; 1 to `MAX_VOCAB_SIZE`.
        min_frequency: The minimum count of a pair that is merged, or of a word that is kept; 0
            means 1.
        special_tokens: The first entries of the vocabulary, in this order.
        unk_token: The token that encodes what is not in the vocabulary; the very first entry unless
            it is one of the special tokens.
        template: Special tokens that the tokenizer puts around a text, `$A`, on request: separated
            by blanks, such as `[CLS] $A [SEP]`. Each may have the type id `:0`. Empty: none.
    """

    vocab_size: int
    min_frequency: int = 0
    special_tokens: tuple[str, ...] = ()
    unk_token: str | None = None
    template: str = ""

    def __post_init__(self) -> None:
        for name, value in msgspec.structs.asdict(self).items():
            if name in _RANGES and value is not None:
                require_between(name, value, *_RANGES[name])
            elif name in _CHOICES and value is not None:
                require_choice(name, value, _CHOICES[name])
            elif name in _DECIMALS:
                check_decimal(name, value)
            elif isinstance(value, str | tuple):
                for text in (value,) if isinstance(value, str) else value:
                    require(
                        not any("\ud800" <= character <= "\udfff" for character in text),
                        f"must be valid Unicode, got a surrogate in {text!r}",
                        name,
                    )
        require(
            len(set(self.special_tokens)) == len(self.special_tokens),
            f"must not repeat a token, got {', '.join(self.special_tokens)}",
            "special_tokens",
        )
        for token in self.specials:
            name = "special_tokens" if token in self.special_tokens else "unk_token"
            require(token != "", "must not be empty", name)
            require(
                len(token) <= MAX_TOKEN_CHARS,
                f"must be at most {MAX_TOKEN_CHARS:,} characters long, got {shortened(token)} of "
                f"{len(token):,}",
                name,
            )
        parts = self.template_parts
        for part in parts:
            require(
                part == "$A" or part in self.specials,
                "must consist of $A and special tokens, each alone or with the type id :0, got "
                f"{part!r} in {self.template!r}",
                "template",
            )
        require(
            not parts or parts.count("$A") == 1,
            f"must contain $A, the text, once, got {self.template!r}",
            "template",
        )

    def _check_no_bytes(self) -> None:
        """Check that no special token is the token of a byte."""
        for token in self.specials:
            require(
                not is_byte_token(token),
                f"must not be the token of a byte with byte_fallback, got {token!r}",
                "special_tokens" if token in self.special_tokens else "unk_token",
            )

    @property
    def template_parts(self) -> list[str]:
        """`$A` and the special tokens of the template, without the type ids that they may have."""
        parts = self.template.split()
        return [part if part in self.specials else part.removesuffix(":0") for part in parts]

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens with the unknown token, in the order of their ids."""
        if self.unk_token is None or self.unk_token in self.special_tokens:
            return self.special_tokens
        return (self.unk_token, *self.special_tokens)


def check_decimal(name: str, text: str) -> str:
    """Return a setting that is a decimal number, without zeros at its end.

    Args:
        name: The name of the setting.
        text: The number as it was typed.

    Raises:
        UsageError: It is no such number, or out of its range.
    """
    minimum, maximum = _DECIMALS[name]
    plain = re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,18})?", text, re.ASCII)
    require(
        plain is not None and Decimal(minimum) <= Decimal(text) <= Decimal(maximum),
        f"must be a decimal number from {minimum} to {maximum}, with at most 18 digits after the "
        f"point, got {text!r}",
        name,
    )
    return f"{Decimal(text).normalize():f}"


class _Merging(_Entries, frozen=True):
    """The settings of recipes whose vocabulary is learned by merges.

    Attributes:
        tie_break: Which of the best pairs is merged.
        initial_alphabet: Characters that are in the vocabulary even if they do not occur.
        limit_alphabet: The maximum number of characters: `initial_alphabet`, then the most frequent
            ones. Others are deleted from the words. At least 0. None: no limit.
        max_token_length: Never make a token of this many or more characters (at least 1); tokens of
            two characters are always allowed. None: no limit.
    """

    tie_break: TieBreak = DEFAULT_TIE_BREAK
    initial_alphabet: tuple[str, ...] = ()
    limit_alphabet: int | None = None
    max_token_length: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for character in self.initial_alphabet:
            require(
                len(character) == 1,
                f"must be single characters, got {character!r}",
                "initial_alphabet",
            )


class BpeRecipe(_Merging, frozen=True):
    """The recipe of BPE; see docs/algorithm.md.

    Attributes:
        symbols: What words consist of before the first merge: `bytes`, written in the byte-level
            alphabet, or `characters`. `initial_alphabet` is written in the same way.
        alphabet: `bytes`: all 256 bytes are in the vocabulary; `seen`: the symbols that occur.
            None: `bytes` where symbols are bytes, else `seen`.
        end_of_word_suffix: Added to the last character of every word.
        end_of_word_symbol: A character that follows every word as a symbol of its own.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.
        byte_fallback: Whether the tokens `<0x00>` to `<0xFF>` follow the special tokens; they
            encode characters that are not in the vocabulary.
        for_wordpiece: Whether the vocabulary is for a WordPiece model, as Hugging Face's trainer of
            that name makes it; needs an unknown token and a prefix.

    Raises:
        UsageError: A setting is out of its range, or two exclude each other.
    """

    symbols: Symbols = "bytes"
    alphabet: Alphabet | None = None
    end_of_word_suffix: str = ""
    end_of_word_symbol: str = ""
    continuing_subword_prefix: str = ""
    byte_fallback: bool = False
    for_wordpiece: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.symbols == "bytes":
            self._check_bytes()
        require(
            self.symbols == "bytes" or self.alphabet != "bytes",
            "must be 'seen' where symbols is 'characters', got 'bytes'",
            "alphabet",
        )
        symbol = self.end_of_word_symbol
        require(
            len(symbol) <= 1 and not symbol.isspace(),
            f"must be a single character other than whitespace, got {symbol!r}",
            "end_of_word_symbol",
        )
        require(
            not (symbol and self.end_of_word_suffix),
            "exclude each other",
            "end_of_word_symbol",
            "end_of_word_suffix",
        )
        if self.byte_fallback:
            self._check_fallback()
        require(
            not self.for_wordpiece or bool(self.unk_token and self.continuing_subword_prefix),
            "for_wordpiece needs unk_token and continuing_subword_prefix",
        )

    def _check_fallback(self) -> None:
        """Check that tokens and decorations differ from the tokens of bytes."""
        self._check_no_bytes()
        marks = {name: getattr(self, name) for name in _DECORATIONS if getattr(self, name)}
        for name, mark in marks.items():
            require(
                not any(mark in byte_token(byte) for byte in range(256)),
                f"must not be part of a byte's token with byte_fallback, got {mark!r}",
                name,
                remedy="choose another text, such as ## or </w>",
            )
            for other, text in marks.items():
                require(
                    other == name or mark not in text,
                    f"must not contain each other with byte_fallback, got {mark!r} and {text!r}",
                    name,
                    other,
                )

    def _check_bytes(self) -> None:
        """Check what words of bytes exclude."""
        for name in (*_DECORATIONS, "byte_fallback"):
            value = getattr(self, name)
            require(not value, f"needs symbols 'characters', got {value!r} with 'bytes'", name)
        for token in self.specials:
            # It would be one entry with two meanings: the token, and that byte.
            if len(token) == 1 and byte_level.is_ambiguous(token):
                raise UsageError(
                    f"must not contain {token!r}, which is also how byte "
                    f"0x{byte_level.to_bytes(token)[0]:02X} is written",
                    ("special_tokens",),
                    "choose another text",
                )
        for character in self.initial_alphabet:
            require(
                byte_level.is_byte_level(character),
                f"must be characters of the byte-level alphabet, got {character!r}",
                "initial_alphabet",
            )

    @property
    def all_bytes(self) -> bool:
        """Return whether all 256 bytes are in the vocabulary."""
        return self.symbols == "bytes" and self.alphabet != "seen"


class WordPieceRecipe(_Merging, frozen=True):
    """The recipe of WordPiece by likelihood; see docs/algorithm.md.

    Attributes:
        unk_token: As in every recipe; WordPiece requires one.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.

    Raises:
        UsageError: A setting is out of its range.
    """

    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"


class WordLevelRecipe(_Entries, frozen=True):
    """The recipe of a word-level vocabulary: the most frequent words.

    Attributes:
        unk_token: As in every recipe; a word-level model requires one.

    Raises:
        UsageError: A setting is out of its range.
    """

    unk_token: str = "<unk>"


class _Pieces(_Entries, frozen=True):
    """The settings of recipes whose vocabulary has pieces with scores.

    Attributes:
        unk_token: As in every recipe; such a vocabulary requires one.
        initial_alphabet: Characters that are in the vocabulary even if they do not occur.
        character_coverage: The share of all characters of the words that the characters of the
            vocabulary have, the most frequent first; from "0.9" to "1".
        max_piece_length: The maximum number of characters of a piece; 1 to `MAX_PIECE_LENGTH`.
        split_by_unicode_script: Whether characters of different scripts are never in one piece.
        byte_fallback: Whether the tokens `<0x00>` to `<0xFF>` follow the special tokens; they
            encode characters that are not in the vocabulary.
    """

    unk_token: str = "<unk>"
    initial_alphabet: tuple[str, ...] = ()
    character_coverage: str = "0.9995"
    max_piece_length: int = 16
    split_by_unicode_script: bool = True
    byte_fallback: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.min_frequency == 0, "has no effect on pieces", "min_frequency")
        if self.byte_fallback:
            self._check_no_bytes()
        for token in self.specials:
            # It would be one entry with two meanings: the token, and that character.
            require(
                len(token) > 1,
                f"must have at least two characters, got {token!r}",
                "special_tokens" if token in self.special_tokens else "unk_token",
            )
        for character in self.initial_alphabet:
            require(
                len(character) == 1,
                f"must be single characters, got {character!r}",
                "initial_alphabet",
            )

    @property
    def reserved(self) -> tuple[str, ...]:
        """The entries before the pieces: special tokens, and the tokens of bytes."""
        return (*self.specials, *(map(byte_token, range(256)) if self.byte_fallback else ()))


class UnigramRecipe(_Pieces, frozen=True):
    """The recipe of Unigram by expectation maximization; see docs/algorithm.md.

    Attributes:
        seed_size: The maximum number of first pieces besides the characters.
        shrinking_factor: The share of the pieces that each pruning keeps; from "0.5" to "0.95".
        sub_iterations: The number of steps of expectation maximization before each pruning.

    Raises:
        UsageError: A setting is out of its range.
    """

    seed_size: int = 1_000_000
    shrinking_factor: str = "0.75"
    sub_iterations: int = 2


class MinGramRecipe(_Pieces, frozen=True):
    """The recipe of MinGram, which spells words with the fewest tokens; see docs/algorithm.md.

    Attributes:
        overshoot_factor: The number of tokens that BPE learns first, over the number of pieces
            that the vocabulary has room for; from "1" to "10".

    Raises:
        UsageError: A setting is out of its range.
    """

    overshoot_factor: str = "1.15"


MergingRecipe = BpeRecipe | WordPieceRecipe
PieceRecipe = UnigramRecipe | MinGramRecipe
Recipe = BpeRecipe | WordPieceRecipe | WordLevelRecipe | UnigramRecipe | MinGramRecipe
