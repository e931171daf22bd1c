"""Normalizers: how text is changed before it is split into words.

Plain data. `native()` describes a normalizer to the native code, which normalizes for counting and
encoding alike.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from msgspec import UNSET
from msgspec.structs import astuple, replace

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.tokenizer.components.component import Component
from bpe_beam.tokenizer.components.patterns import Pattern

WORD_END = r"(?<=\S)(?=\s|$)"  # the pattern of a word's end, where whitespace or nothing follows

_MATCHERS = {WORD_END: "word_end", " {2,}": "space_run"}
"""The native matchers of patterns; files made from SentencePiece models have the second one."""


class _Normalizer(Component, frozen=True):
    """A normalizer whose settings the native code takes in the order of the fields."""

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        return (self.json_type, *astuple(self))


class NFC(_Normalizer, frozen=True):
    """Canonical composition."""


class NFD(_Normalizer, frozen=True):
    """Canonical decomposition."""


class NFKC(_Normalizer, frozen=True):
    """Compatibility decomposition, then canonical composition."""


class NFKD(_Normalizer, frozen=True):
    """Compatibility decomposition."""


class Lowercase(_Normalizer, frozen=True):
    """Every character in lower case, by itself: no final sigma."""


class StripAccents(_Normalizer, frozen=True):
    """Drops combining marks; decomposes nothing, so it needs `NFD` before it."""


class ByteLevelNormalizer(_Normalizer, frozen=True, tag="ByteLevel"):
    """Writes the text's bytes in the byte-level alphabet."""


class Strip(_Normalizer, frozen=True):
    """Drops whitespace at the ends of the text."""

    strip_left: bool
    strip_right: bool


class Nmt(_Normalizer, frozen=True):
    """SentencePiece's cleaning: drops controls, and makes spaces of what is seen as one or not."""


class Precompiled(_Normalizer, frozen=True):
    """The replacements of a SentencePiece model, applied as Hugging Face applies them."""

    precompiled_charsmap: str  # in base64

    def __post_init__(self) -> None:
        _check_charsmap(self.precompiled_charsmap)

    def native(self) -> tuple[Any, ...]:
        return (self.json_type, b64decode(self.precompiled_charsmap))


class SentencePieceNormalizer(_Normalizer, frozen=True, tag="SentencePiece"):
    """The normalization of a SentencePiece model, applied as SentencePiece applies it.

    Hugging Face has no such normalizer, so its libraries refuse a file with this one.
    """

    precompiled_charsmap: str  # the replacements in base64, as the model has them; empty: none
    add_dummy_prefix: bool  # whether to add a space before a text that is not empty
    remove_extra_whitespaces: bool  # whether to drop spaces at both ends, and repeated ones
    escape_whitespaces: bool  # whether a space becomes U+2581
    treat_whitespace_as_suffix: bool  # whether the space of `add_dummy_prefix` is added at the end
    user_defined_symbols: tuple[str, ...]  # texts that are not changed

    def __post_init__(self) -> None:
        if self.precompiled_charsmap:
            _check_charsmap(self.precompiled_charsmap)

    def native(self) -> tuple[Any, ...]:
        charsmap, *settings = astuple(self)
        return (self.json_type, b64decode(charsmap), *settings)


class Prepend(_Normalizer, frozen=True):
    """Adds a prefix to every text that is not empty."""

    prepend: str


class Replace(_Normalizer, frozen=True):
    """Replaces every match of a pattern."""

    pattern: Pattern
    content: str

    def native(self) -> tuple[Any, ...]:
        matcher = _MATCHERS.get(self.pattern.value) if self.pattern.text is UNSET else None
        return (self.json_type, (matcher,) if matcher else self.pattern.native(), self.content)


class BertNormalizer(_Normalizer, frozen=True):
    """BERT's cleaning."""

    clean_text: bool = True  # whether to drop controls, and replace every whitespace by a space
    handle_chinese_chars: bool = True  # whether to add spaces around Chinese characters
    strip_accents: bool | None = None  # whether to drop accents; None: the same as `lowercase`
    lowercase: bool = True

    def native(self) -> tuple[Any, ...]:
        accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return (self.json_type, *astuple(replace(self, strip_accents=accents)))


class NormalizerSequence(_Normalizer, frozen=True, tag="Sequence"):
    """One normalizer after another."""

    normalizers: tuple[Normalizer, ...]

    def native(self) -> tuple[Any, ...]:
        return (self.json_type, [normalizer.native() for normalizer in self.normalizers])


Normalizer = (
    NFC | NFD | NFKC | NFKD | Lowercase | StripAccents | ByteLevelNormalizer | Strip | Nmt
    | Precompiled | SentencePieceNormalizer | Prepend | Replace | BertNormalizer
    | NormalizerSequence
)  # fmt: skip

_BY_NAME: dict[str, Normalizer] = {
    "nfc": NFC(),
    "nfd": NFD(),
    "nfkc": NFKC(),
    "nfkd": NFKD(),
    "lowercase": Lowercase(),
    "strip_accents": StripAccents(),
    "bert": BertNormalizer(),
    "dummy_prefix": Prepend("\u2581"),
}

NORMALIZERS = ("none", *_BY_NAME)  # the names on the command line; several are joined by `+`


def _check_charsmap(charsmap: str) -> None:
    """Refuse replacements that are not base64, or damaged."""
    from bpe_beam import _native  # the settings of `train` import this module

    try:
        _native.check_charsmap(b64decode(charsmap, validate=True))
    except ValueError as error:
        raise UsageError(f"precompiled_charsmap: {error}") from None


def normalizer_from_name(name: str) -> Normalizer | None:
    """Return a normalizer from its name on the command line."""
    names = [] if name == "none" else name.split("+")
    for one in names:
        if one not in _BY_NAME:
            raise UsageError(
                f"must be one of {', '.join(NORMALIZERS)}, or several joined by + such as "
                f"nfkc+lowercase, got {name!r}{did_you_mean(one, NORMALIZERS)}",
                ("normalizer",),
            )
    steps = tuple(_BY_NAME[one] for one in names)
    return NormalizerSequence(steps) if len(steps) > 1 else next(iter(steps), None)
