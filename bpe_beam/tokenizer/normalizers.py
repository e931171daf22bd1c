"""Normalizers: how text is changed before it is split into words.

Plain data. `native()` describes a normalizer to the native code, which normalizes for counting and
encoding alike.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bpe_beam.errors import UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer.patterns import Pattern

WORD_END = r"(?<=\S)(?=\s|$)"
"""The pattern of a word's end, where whitespace or nothing follows; it runs natively."""


@record
class _Simple:
    """A normalizer without settings."""

    NATIVE: ClassVar[str]

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        return (self.NATIVE,)


@record
class NFC(_Simple):
    """Canonical composition."""

    JSON_TYPE: ClassVar[str] = "NFC"
    NATIVE: ClassVar[str] = "nfc"


@record
class NFD(_Simple):
    """Canonical decomposition."""

    JSON_TYPE: ClassVar[str] = "NFD"
    NATIVE: ClassVar[str] = "nfd"


@record
class NFKC(_Simple):
    """Compatibility decomposition, then canonical composition."""

    JSON_TYPE: ClassVar[str] = "NFKC"
    NATIVE: ClassVar[str] = "nfkc"


@record
class NFKD(_Simple):
    """Compatibility decomposition."""

    JSON_TYPE: ClassVar[str] = "NFKD"
    NATIVE: ClassVar[str] = "nfkd"


@record
class Lowercase(_Simple):
    """Every character in lower case, by itself: no final sigma."""

    JSON_TYPE: ClassVar[str] = "Lowercase"
    NATIVE: ClassVar[str] = "lowercase"


@record
class StripAccents(_Simple):
    """Drops combining marks; decomposes nothing, so it needs `NFD` before it."""

    JSON_TYPE: ClassVar[str] = "StripAccents"
    NATIVE: ClassVar[str] = "strip_accents"


@record
class ByteLevelNormalizer(_Simple):
    """Writes the text's bytes in the byte-level alphabet."""

    JSON_TYPE: ClassVar[str] = "ByteLevel"
    NATIVE: ClassVar[str] = "byte_level"


@record
class Strip:
    """Drops whitespace at the ends of the text.

    Attributes:
        strip_left: Whether to drop it at the beginning.
        strip_right: Whether to drop it at the end.
    """

    JSON_TYPE: ClassVar[str] = "Strip"

    strip_left: bool
    strip_right: bool

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        return ("strip", self.strip_left, self.strip_right)


@record
class Prepend:
    """Adds a prefix to every text that is not empty.

    Attributes:
        prepend: The prefix.
    """

    JSON_TYPE: ClassVar[str] = "Prepend"

    prepend: str

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        return ("prepend", self.prepend.encode())


@record
class Replace:
    """Replaces every match of a pattern.

    Attributes:
        pattern: The pattern.
        content: The replacement.
    """

    JSON_TYPE: ClassVar[str] = "Replace"

    pattern: Pattern
    content: str

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        if self.pattern == Pattern("Regex", WORD_END):
            return ("replace", ("word_end",), self.content.encode())
        return ("replace", self.pattern.native(), self.content.encode())


@record
class BertNormalizer:
    """BERT's cleaning.

    Attributes:
        clean_text: Whether to drop control characters and replace every whitespace by a space.
        handle_chinese_chars: Whether to add spaces around Chinese characters.
        strip_accents: Whether to drop accents; None: the same as `lowercase`.
        lowercase: Whether to convert the text to lower case.
    """

    JSON_TYPE: ClassVar[str] = "BertNormalizer"

    clean_text: bool = True
    handle_chinese_chars: bool = True
    strip_accents: bool | None = None
    lowercase: bool = True

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return ("bert", self.clean_text, self.handle_chinese_chars, accents, self.lowercase)


@record
class NormalizerSequence:
    """One normalizer after another.

    Attributes:
        normalizers: The normalizers in the order in which they are applied.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    normalizers: tuple[Normalizer, ...]

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code."""
        return ("sequence", [normalizer.native() for normalizer in self.normalizers])


Normalizer = (
    NFC
    | NFD
    | NFKC
    | NFKD
    | Lowercase
    | StripAccents
    | ByteLevelNormalizer
    | Strip
    | Prepend
    | Replace
    | BertNormalizer
    | NormalizerSequence
)

_BY_NAME: dict[str, Normalizer] = {
    "nfc": NFC(),
    "nfd": NFD(),
    "nfkc": NFKC(),
    "nfkd": NFKD(),
    "lowercase": Lowercase(),
    "strip_accents": StripAccents(),
    "bert": BertNormalizer(),
}

NORMALIZERS = ("none", *_BY_NAME)
"""The names on the command line; several are joined by `+`."""


def normalizer_from_name(name: str) -> Normalizer | None:
    """Return a normalizer from its name on the command line.

    Args:
        name: One of `NORMALIZERS`, or several joined by `+`, applied from the left.

    Returns:
        The normalizer; None for `none`, which leaves text unchanged.

    Raises:
        UsageError: An unknown name; the message lists the names.
    """
    if name == "none":
        return None
    names = name.split("+")
    for one in names:
        if one not in _BY_NAME:
            raise UsageError(
                f"must be one of {', '.join(NORMALIZERS)}, or several joined by + such as "
                f"nfkc+lowercase, got {name!r}",
                ("normalizer",),
            )
    if len(names) == 1:
        return _BY_NAME[name]
    return NormalizerSequence(tuple(_BY_NAME[one] for one in names))
