"""What is trained: a frozen recipe a model, checked when it is made.

The enumerations of models, tie rules, alphabets and symbols are here too. Light to import, since
the command line needs them for its help: no NumPy, no Arrow.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.messages import shortened
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.models import MAX_TOKEN_CHARS

Model = Literal["bpe", "wordpiece", "prefix_bpe", "word_level"]
TieBreak = Literal["lowest_id", "first_seen", "greatest_bytes"]
Alphabet = Literal["bytes", "seen"]
Symbols = Literal["bytes", "characters"]

# The choices of the command line and of every check; the native code takes the same names.
MODELS: tuple[Model, ...] = get_args(Model)
TIE_BREAKS: tuple[TieBreak, ...] = get_args(TieBreak)
ALPHABETS: tuple[Alphabet, ...] = get_args(Alphabet)
SYMBOLS: tuple[Symbols, ...] = get_args(Symbols)


@dataclass(frozen=True)
class _Entries:
    """The settings of every recipe.

    Attributes:
        vocab_size: Entries of the vocabulary at which training stops, special tokens and alphabet
            included; 1 to `MAX_VOCAB_SIZE`.
        min_frequency: The least count of a pair that is merged, or of a word that is kept; 0 is as
            1.
        special_tokens: The first entries of the vocabulary, in this order.
        unk_token: The token that encodes what is not in the vocabulary; the very first entry unless
            it is one of the special tokens.
        template: Special tokens that the tokenizer puts around a text, `$A`, on request: separated
            by blanks, such as `[CLS] $A [SEP]`. Empty: none.
    """

    vocab_size: int
    _: KW_ONLY
    min_frequency: int = 0
    special_tokens: tuple[str, ...] = ()
    unk_token: str | None = None
    template: str = ""

    def __post_init__(self) -> None:
        """Check each setting."""
        if not 1 <= self.vocab_size <= MAX_VOCAB_SIZE:
            raise UsageError(
                f"must be from 1 to {MAX_VOCAB_SIZE:,}, got {self.vocab_size:,}", ("vocab_size",)
            )
        if self.min_frequency < 0:
            raise UsageError(f"must be at least 0, got {self.min_frequency}", ("min_frequency",))
        if len(set(self.special_tokens)) < len(self.special_tokens):
            raise UsageError(
                f"must not repeat a token, got {', '.join(self.special_tokens)}",
                ("special_tokens",),
            )
        for name, tokens in (
            ("special_tokens", self.special_tokens),
            ("unk_token", () if self.unk_token is None else (self.unk_token,)),
        ):
            if "" in tokens:
                raise UsageError("must not be empty", (name,))
            _refuse_surrogates(name, tokens)
            for token in tokens:
                if len(token) > MAX_TOKEN_CHARS:
                    raise UsageError(
                        f"must be tokens of at most {MAX_TOKEN_CHARS:,} characters, got "
                        f"{shortened(token)} of {len(token):,}",
                        (name,),
                    )
        self._check_template()

    def _check_template(self) -> None:
        parts = self.template.split()
        if not parts:
            return
        if parts.count("$A") != 1:
            raise UsageError(
                f"must contain $A, the text, once, got {self.template!r}", ("template",)
            )
        unknown = [part for part in parts if part != "$A" and part not in self.specials]
        if unknown:
            raise UsageError(
                f"must consist of $A and special tokens, got {unknown[0]!r} in {self.template!r}",
                ("template",),
            )

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens with the unknown token, in the order of their ids."""
        if self.unk_token is None or self.unk_token in self.special_tokens:
            return self.special_tokens
        return (self.unk_token, *self.special_tokens)


@dataclass(frozen=True, kw_only=True)
class _Merging(_Entries):
    """The settings of recipes whose vocabulary is learned by merges.

    Attributes:
        tie_break: Which of the best pairs is merged.
        initial_alphabet: Characters that are in the vocabulary even if they do not occur.
        limit_alphabet: How many characters are kept, `initial_alphabet` first, then the most
            frequent; the others are deleted from the words. At least 0. None: all.
        max_token_length: Never make a token of this many or more characters (at least 1); tokens of
            two characters are always allowed. None: no limit.
    """

    tie_break: TieBreak = "lowest_id"
    initial_alphabet: tuple[str, ...] = ()
    limit_alphabet: int | None = None
    max_token_length: int | None = None

    def __post_init__(self) -> None:
        """Check each setting."""
        super().__post_init__()
        require_choice("tie_break", self.tie_break, TIE_BREAKS)
        for character in self.initial_alphabet:
            if len(character) != 1:
                raise UsageError(
                    f"must be single characters, got {character!r}", ("initial_alphabet",)
                )
        _refuse_surrogates("initial_alphabet", self.initial_alphabet)
        if self.limit_alphabet is not None and self.limit_alphabet < 0:
            raise UsageError(f"must be at least 0, got {self.limit_alphabet}", ("limit_alphabet",))
        if self.max_token_length is not None and self.max_token_length < 1:
            raise UsageError(
                f"must be at least 1, got {self.max_token_length}", ("max_token_length",)
            )


@dataclass(frozen=True, kw_only=True)
class BpeRecipe(_Merging):
    """How BPE is trained; see docs/algorithm.md.

    Attributes:
        symbols: What words consist of before the first merge: `bytes`, written in the byte-level
            alphabet, or `characters`. `initial_alphabet` is written in the same way.
        alphabet: `bytes`: all 256 bytes are in the vocabulary; `seen`: the symbols that occur.
            None: `bytes` where symbols are bytes, else `seen`.
        end_of_word_suffix: Added to the last character of every word.
        end_of_word_symbol: A character that follows every word as a symbol of its own.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.
        byte_fallback: The tokens `<0x00>` to `<0xFF>` follow the special tokens; they encode
            characters that are not in the vocabulary.
        for_wordpiece: The vocabulary is for a WordPiece model, as Hugging Face's trainer of that
            name makes it; needs an unknown token and a prefix.

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
        """Check each setting, and those that exclude each other."""
        super().__post_init__()
        require_choice("symbols", self.symbols, SYMBOLS)
        if self.alphabet is not None:
            require_choice("alphabet", self.alphabet, ALPHABETS)
        decorations = {
            "end_of_word_suffix": self.end_of_word_suffix,
            "end_of_word_symbol": self.end_of_word_symbol,
            "continuing_subword_prefix": self.continuing_subword_prefix,
        }
        for name, text in decorations.items():
            _refuse_surrogates(name, (text,))
        if self.symbols == "bytes":
            self._check_bytes({**decorations, "byte_fallback": self.byte_fallback})
        elif self.alphabet == "bytes":
            raise UsageError(
                "must be 'seen' where symbols is 'characters', got 'bytes'", ("alphabet",)
            )
        if len(self.end_of_word_symbol) > 1:
            raise UsageError(
                f"must be a single character, got {self.end_of_word_symbol!r}",
                ("end_of_word_symbol",),
            )
        if self.end_of_word_symbol.isspace():
            raise UsageError(
                f"must not be whitespace, got {self.end_of_word_symbol!r}", ("end_of_word_symbol",)
            )
        if self.end_of_word_symbol and self.end_of_word_suffix:
            raise UsageError("exclude each other", ("end_of_word_symbol", "end_of_word_suffix"))
        if self.for_wordpiece and not (self.unk_token and self.continuing_subword_prefix):
            raise UsageError("for_wordpiece needs unk_token and continuing_subword_prefix")

    def _check_bytes(self, for_characters: dict[str, object]) -> None:
        for name, value in for_characters.items():
            if value:
                raise UsageError(f"needs symbols 'characters', got {value!r} with 'bytes'", (name,))
        for token in self.specials:
            # It would be one entry with two meanings: the token, and that byte.
            if len(token) == 1 and byte_level.is_ambiguous(token):
                raise UsageError(
                    f"must not contain {token!r}, which is also how byte "
                    f"0x{byte_level.to_bytes(token)[0]:02X} is written: give another text",
                    ("special_tokens",),
                )
        for character in self.initial_alphabet:
            if not byte_level.is_byte_level(character):
                raise UsageError(
                    f"must be characters of the byte-level alphabet, got {character!r}",
                    ("initial_alphabet",),
                )

    @property
    def all_bytes(self) -> bool:
        """Whether all 256 bytes are in the vocabulary."""
        return self.symbols == "bytes" and self.alphabet != "seen"


@dataclass(frozen=True, kw_only=True)
class WordPieceRecipe(_Merging):
    """How WordPiece is trained by likelihood; see docs/algorithm.md.

    Attributes:
        unk_token: As in every recipe; WordPiece requires one.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.

    Raises:
        UsageError: A setting is out of its range.
    """

    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"

    def __post_init__(self) -> None:
        """Check each setting."""
        super().__post_init__()
        _refuse_surrogates("continuing_subword_prefix", (self.continuing_subword_prefix,))


@dataclass(frozen=True, kw_only=True)
class WordLevelRecipe(_Entries):
    """How a word-level vocabulary is made: the most frequent words.

    Attributes:
        unk_token: As in every recipe; a word-level model requires one.

    Raises:
        UsageError: A setting is out of its range.
    """

    unk_token: str = "<unk>"


Recipe = BpeRecipe | WordPieceRecipe | WordLevelRecipe


def _refuse_surrogates(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UsageError(f"must be valid Unicode, got the lone surrogate of {text!r}", (name,))
