"""Settings of a training run: frozen, checked when they are made."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from bpe_beam.errors import UsageError
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.messages import shortened
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.models import MAX_TOKEN_CHARS

TieBreak = Literal["lowest_id", "first_seen", "greatest_bytes"]
Alphabet = Literal["bytes", "seen"]
Symbols = Literal["bytes", "characters"]

TIE_BREAKS: tuple[TieBreak, ...] = ("lowest_id", "first_seen", "greatest_bytes")
ALPHABETS: tuple[Alphabet, ...] = ("bytes", "seen")
SYMBOLS: tuple[Symbols, ...] = ("bytes", "characters")


@dataclass(frozen=True)
class _Entries:
    """What every recipe has.

    Attributes:
        vocab_size: Entries at which to stop: special tokens, alphabet and what is learned.
        min_frequency: The least count of what is learned; 0 is as 1.
        special_tokens: The first entries, in this order.
        unk_token: The token of what is not in the vocabulary; the very first entry unless it is
            one of the special tokens.
        template: What the tokenizer puts around a text where that is asked for: special tokens
            and `$A`, the text, between blanks, such as `[CLS] $A [SEP]`. Empty: nothing.
    """

    vocab_size: int
    _: KW_ONLY
    min_frequency: int = 0
    special_tokens: tuple[str, ...] = ()
    unk_token: str | None = None
    template: str = ""

    def __post_init__(self) -> None:
        """Checks each setting."""
        if not 1 <= self.vocab_size <= MAX_VOCAB_SIZE:
            raise UsageError(f"vocab_size is {self.vocab_size}: from 1 to {MAX_VOCAB_SIZE}")
        if self.min_frequency < 0:
            raise UsageError(f"min_frequency is {self.min_frequency}: 0 or more")
        if len(set(self.special_tokens)) < len(self.special_tokens):
            raise UsageError(f"special_tokens holds one twice: {', '.join(self.special_tokens)}")
        for name, tokens in (
            ("special_tokens", self.special_tokens),
            ("unk_token", () if self.unk_token is None else (self.unk_token,)),
        ):
            if "" in tokens:
                raise UsageError(f"{name} holds an empty token")
            _refuse_surrogates(name, tokens)
            for token in tokens:
                if len(token) > MAX_TOKEN_CHARS:
                    raise UsageError(
                        f"{name} must hold tokens of at most {MAX_TOKEN_CHARS:,} characters, got "
                        f"{shortened(token)} of {len(token):,}"
                    )
        self._check_template()

    def _check_template(self) -> None:
        pieces = self.template.split()
        if not pieces:
            return
        if pieces.count("$A") != 1:
            raise UsageError(f"template is {self.template!r}: it must hold $A, the text, once")
        unknown = [piece for piece in pieces if piece != "$A" and piece not in self.specials]
        if unknown:
            raise UsageError(
                f"template is {self.template!r}: {unknown[0]!r} is not one of the special tokens"
            )

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens with the unknown token, in the order of their ids."""
        if self.unk_token is None or self.unk_token in self.special_tokens:
            return self.special_tokens
        return (self.unk_token, *self.special_tokens)


@dataclass(frozen=True, kw_only=True)
class _Merging(_Entries):
    """What recipes have whose vocabulary is learned by merges.

    Attributes:
        tie_break: Which of the best pairs is taken.
        initial_alphabet: Characters that stand in the vocabulary even if they do not occur.
        limit_alphabet: How many characters are kept, `initial_alphabet` first, then the most
            frequent; the others are deleted from the words. None: all.
        max_token_length: No token of this many characters or more is made, but for those of two;
            None: no limit.
    """

    tie_break: TieBreak = "lowest_id"
    initial_alphabet: tuple[str, ...] = ()
    limit_alphabet: int | None = None
    max_token_length: int | None = None

    def __post_init__(self) -> None:
        """Checks each setting."""
        super().__post_init__()
        if self.tie_break not in TIE_BREAKS:
            raise UsageError(f"tie_break is {self.tie_break!r}: one of {', '.join(TIE_BREAKS)}")
        for character in self.initial_alphabet:
            if len(character) != 1:
                raise UsageError(f"initial_alphabet holds {character!r}: single characters only")
        _refuse_surrogates("initial_alphabet", self.initial_alphabet)
        if self.limit_alphabet is not None and self.limit_alphabet < 0:
            raise UsageError(f"limit_alphabet is {self.limit_alphabet}: 0 or more")
        if self.max_token_length is not None and self.max_token_length < 1:
            raise UsageError(f"max_token_length is {self.max_token_length}: 1 or more")


@dataclass(frozen=True, kw_only=True)
class BpeRecipe(_Merging):
    """How BPE is trained; see docs/algorithm.md.

    Attributes:
        symbols: What words are made of at first: `bytes`, written in the byte-level alphabet, or
            `characters`. `initial_alphabet` is written in the same.
        alphabet: `bytes`: all 256 bytes are in the vocabulary; `seen`: those symbols that occur.
            None: `bytes` where symbols are bytes, else `seen`.
        end_of_word_suffix: Added to the last character of every word.
        end_of_word_symbol: A character that stands after every word as a symbol of its own.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.
        byte_fallback: The tokens `<0x00>` to `<0xFF>` stand after the special tokens; they encode
            characters that are not in the vocabulary.
        for_wordpiece: The vocabulary is for a WordPiece model, as Hugging Face's trainer of that
            name makes it; needs an unknown token and a prefix.

    Raises:
        UsageError: A setting out of its range, or two that exclude each other.
    """

    symbols: Symbols = "bytes"
    alphabet: Alphabet | None = None
    end_of_word_suffix: str = ""
    end_of_word_symbol: str = ""
    continuing_subword_prefix: str = ""
    byte_fallback: bool = False
    for_wordpiece: bool = False

    def __post_init__(self) -> None:
        """Checks each setting, and what they are together."""
        super().__post_init__()
        if self.symbols not in SYMBOLS:
            raise UsageError(f"symbols is {self.symbols!r}: one of {', '.join(SYMBOLS)}")
        if self.alphabet is not None and self.alphabet not in ALPHABETS:
            raise UsageError(f"alphabet is {self.alphabet!r}: one of {', '.join(ALPHABETS)}")
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
            raise UsageError("alphabet is 'bytes', but symbols is 'characters': must be 'seen'")
        if len(self.end_of_word_symbol) > 1:
            raise UsageError(
                f"end_of_word_symbol is {self.end_of_word_symbol!r}: a single character"
            )
        if self.end_of_word_symbol.isspace():
            raise UsageError(
                f"end_of_word_symbol is {self.end_of_word_symbol!r}: words do not hold whitespace"
            )
        if self.end_of_word_symbol and self.end_of_word_suffix:
            raise UsageError("end_of_word_symbol and end_of_word_suffix: only one of them")
        if self.for_wordpiece and not (self.unk_token and self.continuing_subword_prefix):
            raise UsageError("for_wordpiece needs unk_token and continuing_subword_prefix")

    def _check_bytes(self, for_characters: dict[str, object]) -> None:
        for name, value in for_characters.items():
            if value:
                raise UsageError(f"{name} is {value!r}: needs symbols 'characters', not 'bytes'")
        for token in self.specials:
            # It would be one entry with two meanings: the token, and that byte.
            if len(token) == 1 and byte_level.is_ambiguous(token):
                raise UsageError(
                    f"special_tokens holds {token!r}, which is also how byte "
                    f"0x{byte_level.to_bytes(token)[0]:02X} is written: give another text"
                )
        for character in self.initial_alphabet:
            if not byte_level.is_byte_level(character):
                raise UsageError(
                    f"initial_alphabet holds {character!r}, which is not in the byte-level alphabet"
                )

    @property
    def all_bytes(self) -> bool:
        """Whether all 256 bytes stand in the vocabulary."""
        return self.symbols == "bytes" and self.alphabet != "seen"


@dataclass(frozen=True, kw_only=True)
class WordPieceRecipe(_Merging):
    """How WordPiece is trained by likelihood; see docs/algorithm.md.

    Attributes:
        unk_token: As in every recipe; WordPiece cannot do without.
        continuing_subword_prefix: Put before every character of a word but the first; dropped
            from the right part when two tokens are joined.

    Raises:
        UsageError: A setting out of its range.
    """

    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"

    def __post_init__(self) -> None:
        """Checks each setting."""
        super().__post_init__()
        _refuse_surrogates("continuing_subword_prefix", (self.continuing_subword_prefix,))


@dataclass(frozen=True, kw_only=True)
class WordLevelRecipe(_Entries):
    """How a word-level vocabulary is made: the most frequent words.

    Attributes:
        unk_token: As in every recipe; a word-level model cannot do without.

    Raises:
        UsageError: A setting out of its range.
    """

    unk_token: str = "<unk>"


Recipe = BpeRecipe | WordPieceRecipe | WordLevelRecipe


def _refuse_surrogates(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UsageError(f"{name} holds {text!r}: a lone surrogate is no text")
