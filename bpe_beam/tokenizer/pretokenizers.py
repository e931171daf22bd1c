"""Pre-tokenizers: how text is split into words before merges are trained or applied.

Plain data. `steps()` describes a pre-tokenizer to the native code, which splits text for counting
and encoding alike. The named patterns have native scanners; other patterns run on the `regex`
package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from bpe_beam.errors import UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer.patterns import NAMED_PATTERNS, Pattern, scanner_of

Behavior = Literal["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PrependScheme = Literal["first", "never", "always"]
Steps = list[tuple[Any, ...]]

_NATIVE_BEHAVIOR: dict[Behavior, str] = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}


@record
class ByteLevelPreTokenizer:
    """Splits text by GPT-2's pattern; the model encodes the bytes of each word.

    Attributes:
        add_prefix_space: Whether to add a space before a text that does not begin with one.
        trim_offsets: Only stored; it has no effect in a pre-tokenizer, as in Hugging Face.
        use_regex: Whether to split at all.
    """

    JSON_TYPE: ClassVar[str] = "ByteLevel"

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True

    def steps(self) -> Steps:
        """Return the description for the native code, without the byte-level alphabet."""
        prefix: Steps = [("prepend", b" ", False)] if self.add_prefix_space else []
        return [*prefix, ("scan", "gpt2")] if self.use_regex else prefix


@record
class BertPreTokenizer:
    """Words between whitespace; every punctuation character is a word of its own."""

    JSON_TYPE: ClassVar[str] = "BertPreTokenizer"

    def steps(self) -> Steps:
        """Return the description for the native code."""
        return [("scan", "bert")]


@record
class Whitespace:
    r"""The matches of `\w+|[^\w\s]+`."""

    JSON_TYPE: ClassVar[str] = "Whitespace"

    def steps(self) -> Steps:
        """Return the description for the native code."""
        return [("scan", "whitespace")]


@record
class WhitespaceSplit:
    """The texts between whitespace."""

    JSON_TYPE: ClassVar[str] = "WhitespaceSplit"

    def steps(self) -> Steps:
        """Return the description for the native code."""
        return [("scan", "whitespace_split")]


@record
class CharDelimiterSplit:
    """The texts between the occurrences of one character.

    Attributes:
        delimiter: The character.
    """

    JSON_TYPE: ClassVar[str] = "CharDelimiterSplit"

    delimiter: str

    def __post_init__(self) -> None:
        """Check that the delimiter is one character."""
        if len(self.delimiter) != 1:
            raise UsageError(f"delimiter must be one character, got {self.delimiter[:40]!r}")

    def steps(self) -> Steps:
        """Return the description for the native code."""
        return [("split", ("literal", self.delimiter.encode()), "removed", False)]


@record
class Metaspace:
    """Replaces spaces by a visible character, and splits before each.

    Attributes:
        replacement: The visible character.
        prepend_scheme: Which stretches of text get the character in front, if they do not begin
            with it: `always` all, `never` none, `first` only the first of the whole text.
        split: Whether to split.
    """

    JSON_TYPE: ClassVar[str] = "Metaspace"

    replacement: str = "\u2581"
    prepend_scheme: PrependScheme = "always"
    split: bool = True

    def steps(self) -> Steps:
        """Return the description for the native code."""
        symbol = self.replacement.encode()
        steps: Steps = [("rewrite", ("replace", ("literal", b" "), symbol))]
        if self.prepend_scheme != "never":
            steps.append(("prepend", symbol, self.prepend_scheme == "first"))
        if self.split:
            steps.append(("split", ("literal", symbol), "merged_with_next", False))
        return steps


@record
class Digits:
    """Separates numbers from other text.

    Attributes:
        individual_digits: Whether to split numbers into digits.
    """

    JSON_TYPE: ClassVar[str] = "Digits"

    individual_digits: bool

    def steps(self) -> Steps:
        """Return the description for the native code."""
        return [("scan", "digits_individual" if self.individual_digits else "digits")]


@record
class Punctuation:
    """Splits at punctuation.

    Attributes:
        behavior: How each punctuation character is kept.
    """

    JSON_TYPE: ClassVar[str] = "Punctuation"

    behavior: Behavior = "Isolated"

    def steps(self) -> Steps:
        """Return the description for the native code."""
        if self.behavior == "Isolated":
            return [("scan", "punctuation")]
        return [("split", ("punctuation",), _NATIVE_BEHAVIOR[self.behavior], False)]


@record
class Split:
    """Splits at the matches of a pattern.

    Attributes:
        pattern: The pattern.
        behavior: How the matches are kept.
        invert: Whether the texts between the matches are the matches.
    """

    JSON_TYPE: ClassVar[str] = "Split"

    pattern: Pattern
    behavior: Behavior
    invert: bool

    def steps(self) -> Steps:
        """Return the description for the native code."""
        scanner = scanner_of(self.pattern)
        # These patterns match all of a text, so keeping the matches is splitting between them.
        kept = self.behavior == ("Removed" if self.invert else "Isolated")
        if scanner is not None and kept:
            return [("scan", scanner)]
        behavior = _NATIVE_BEHAVIOR[self.behavior]
        return [("split", self.pattern.native(), behavior, self.invert)]


@record
class PreTokenizerSequence:
    """Pre-tokenizers one after the other, each on the texts of the one before.

    Attributes:
        pretokenizers: The pre-tokenizers in the order in which they are applied.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    pretokenizers: tuple[PreTokenizer, ...]

    def steps(self) -> Steps:
        """Return the description for the native code; see `steps_of`."""
        return steps_of(self)


PreTokenizer = (
    ByteLevelPreTokenizer
    | BertPreTokenizer
    | Whitespace
    | WhitespaceSplit
    | CharDelimiterSplit
    | Metaspace
    | Digits
    | Punctuation
    | Split
    | PreTokenizerSequence
)


def flat(pre_tokenizer: PreTokenizer | None) -> list[PreTokenizer]:
    """Return the pre-tokenizers of a sequence, and of sequences in it, in order."""
    if pre_tokenizer is None:
        return []
    if isinstance(pre_tokenizer, PreTokenizerSequence):
        return [one for inner in pre_tokenizer.pretokenizers for one in flat(inner)]
    return [pre_tokenizer]


def ends_in_bytes(pre_tokenizer: PreTokenizer | None) -> bool:
    """Whether the last step is byte-level, so that the model encodes bytes."""
    return any(isinstance(one, ByteLevelPreTokenizer) for one in flat(pre_tokenizer)[-1:])


def steps_of(pre_tokenizer: PreTokenizer | None, *, last_as_bytes: bool = False) -> Steps:
    """Return the description of a pre-tokenizer for the native code.

    Args:
        pre_tokenizer: The pre-tokenizer; None does not split the text.
        last_as_bytes: Whether a last byte-level step gives bytes: for a model that encodes bytes,
            and for counting. Otherwise it gives characters of the byte-level alphabet.
    """
    every = flat(pre_tokenizer)
    steps: Steps = []
    for number, one in enumerate(every, start=1):
        steps += one.steps()
        plain = last_as_bytes and number == len(every)
        if isinstance(one, ByteLevelPreTokenizer) and not plain:
            steps.append(("rewrite", ("byte_level",)))
    return steps


_BY_NAME: dict[str, PreTokenizer] = {
    "bert": BertPreTokenizer(),
    "whitespace": Whitespace(),
    "whitespace_split": WhitespaceSplit(),
    "metaspace": Metaspace(),
    "digits": Digits(individual_digits=False),
    "punctuation": Punctuation(),
}

PRETOKENIZERS = (*NAMED_PATTERNS, *_BY_NAME, "none")
"""The names on the command line; besides them, `regex:PATTERN`."""

_REGEX = "regex:"


def is_byte_level_name(name: str) -> bool:
    """Whether BPE encodes bytes by default with this pre-tokenizer."""
    return name in NAMED_PATTERNS or name.startswith(_REGEX)


def check_pretokenizer_name(name: str) -> None:
    """Check the name of a pre-tokenizer.

    Raises:
        UsageError: An unknown name, or an invalid pattern.
    """
    if name.startswith(_REGEX):
        Pattern.from_regex(name.removeprefix(_REGEX))
    elif name not in PRETOKENIZERS:
        raise UsageError(
            f"must be one of {', '.join(PRETOKENIZERS)}, or regex:PATTERN, got {name!r}",
            ("pretokenizer",),
        )


def pretokenizer_from_name(name: str, *, byte_level: bool) -> PreTokenizer | None:
    """Return a pre-tokenizer from its name on the command line.

    Args:
        name: One of `PRETOKENIZERS`, or `regex:PATTERN`.
        byte_level: Whether the model encodes bytes.

    Returns:
        The pre-tokenizer; None does not split the text.

    Raises:
        UsageError: An unknown name, or an invalid pattern.
    """
    check_pretokenizer_name(name)
    if name == "gpt2" and byte_level:
        return ByteLevelPreTokenizer()
    cutting: Sequence[PreTokenizer] = ()
    if name in NAMED_PATTERNS:
        cutting = [
            Split(Pattern("Regex", NAMED_PATTERNS[name].expression), "Isolated", invert=False)
        ]
    elif name.startswith(_REGEX):
        pattern = Pattern.from_regex(name.removeprefix(_REGEX))
        cutting = [Split(pattern, "Isolated", invert=False)]
    elif name != "none":
        cutting = [_BY_NAME[name]]
    if byte_level:
        cutting = [*cutting, ByteLevelPreTokenizer(use_regex=False)]
    if len(cutting) > 1:
        return PreTokenizerSequence(tuple(cutting))
    return cutting[0] if cutting else None
