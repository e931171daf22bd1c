"""Pre-tokenizers: how text is cut into words before any merge is learned or applied.

Plain data; `steps()` describes a pre-tokenizer to the native code, which does the cutting for
counting and encoding alike. The named patterns have scanners of their own, any other runs on the
`regex` package.
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
    """Cuts text by GPT-2's pattern; the model works on the bytes of each word.

    Attributes:
        add_prefix_space: Put a space before a text that does not begin with one.
        trim_offsets: Stands in Hugging Face's file beside the settings that matter and is kept
            for it; as there, it has no effect in a pre-tokenizer.
        use_regex: Whether to cut at all.
    """

    JSON_TYPE: ClassVar[str] = "ByteLevel"

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True

    def steps(self) -> Steps:
        """Its description for the native code, without the writing in the byte-level alphabet."""
        prefix: Steps = [("prepend", b" ", False)] if self.add_prefix_space else []
        return [*prefix, ("scan", "gpt2")] if self.use_regex else prefix


@record
class BertPreTokenizer:
    """Words between whitespace; every punctuation character is a word of its own."""

    JSON_TYPE: ClassVar[str] = "BertPreTokenizer"

    def steps(self) -> Steps:
        """Its description for the native code."""
        return [("scan", "bert")]


@record
class Whitespace:
    r"""The matches of `\w+|[^\w\s]+`."""

    JSON_TYPE: ClassVar[str] = "Whitespace"

    def steps(self) -> Steps:
        """Its description for the native code."""
        return [("scan", "whitespace")]


@record
class WhitespaceSplit:
    """What stands between whitespace."""

    JSON_TYPE: ClassVar[str] = "WhitespaceSplit"

    def steps(self) -> Steps:
        """Its description for the native code."""
        return [("scan", "whitespace_split")]


@record
class CharDelimiterSplit:
    """What stands between the matches of one character.

    Attributes:
        delimiter: That character.
    """

    JSON_TYPE: ClassVar[str] = "CharDelimiterSplit"

    delimiter: str

    def __post_init__(self) -> None:
        """Refuses what is not one character."""
        if len(self.delimiter) != 1:
            raise UsageError(f"delimiter {self.delimiter[:40]!r}: give one character")

    def steps(self) -> Steps:
        """Its description for the native code."""
        return [("split", ("literal", self.delimiter.encode()), "removed", False)]


@record
class Metaspace:
    """Writes blanks as a visible character, and cuts before each.

    Attributes:
        replacement: That character.
        prepend_scheme: Where to put one before a piece of text that does not begin with it:
            `always`, `never`, or only `first` in the whole text.
        split: Whether to cut.
    """

    JSON_TYPE: ClassVar[str] = "Metaspace"

    replacement: str = "\u2581"
    prepend_scheme: PrependScheme = "always"
    split: bool = True

    def steps(self) -> Steps:
        """Its description for the native code."""
        symbol = self.replacement.encode()
        steps: Steps = [("rewrite", ("replace", ("literal", b" "), symbol))]
        if self.prepend_scheme != "never":
            steps.append(("prepend", symbol, self.prepend_scheme == "first"))
        if self.split:
            steps.append(("split", ("literal", symbol), "merged_with_next", False))
        return steps


@record
class Digits:
    """Cuts numbers off.

    Attributes:
        individual_digits: Cut them into digits, too.
    """

    JSON_TYPE: ClassVar[str] = "Digits"

    individual_digits: bool

    def steps(self) -> Steps:
        """Its description for the native code."""
        return [("scan", "digits_individual" if self.individual_digits else "digits")]


@record
class Punctuation:
    """Cuts at punctuation.

    Attributes:
        behavior: What becomes of each punctuation character.
    """

    JSON_TYPE: ClassVar[str] = "Punctuation"

    behavior: Behavior = "Isolated"

    def steps(self) -> Steps:
        """Its description for the native code."""
        if self.behavior == "Isolated":
            return [("scan", "punctuation")]
        return [("split", ("punctuation",), _NATIVE_BEHAVIOR[self.behavior], False)]


@record
class Split:
    """Cuts at the matches of a pattern.

    Attributes:
        pattern: What is looked for.
        behavior: What becomes of the matches.
        invert: Take what stands between the matches for the matches.
    """

    JSON_TYPE: ClassVar[str] = "Split"

    pattern: Pattern
    behavior: Behavior
    invert: bool

    def steps(self) -> Steps:
        """Its description for the native code."""
        scanner = scanner_of(self.pattern)
        # These patterns match all of a text, so to keep the matches is to cut between them.
        kept = self.behavior == ("Removed" if self.invert else "Isolated")
        if scanner is not None and kept:
            return [("scan", scanner)]
        behavior = _NATIVE_BEHAVIOR[self.behavior]
        return [("split", self.pattern.native(), behavior, self.invert)]


@record
class PreTokenizerSequence:
    """One pre-tokenizer after another, each on the pieces that the one before has left.

    Attributes:
        pretokenizers: In the order in which they are applied.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    pretokenizers: tuple[PreTokenizer, ...]

    def steps(self) -> Steps:
        """Its description for the native code; see `steps_of` for the byte-level alphabet."""
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


def flat(part: PreTokenizer | None) -> list[PreTokenizer]:
    """The pre-tokenizers of a sequence, of sequences in it too, in order."""
    if part is None:
        return []
    if isinstance(part, PreTokenizerSequence):
        return [one for inner in part.pretokenizers for one in flat(inner)]
    return [part]


def ends_in_bytes(part: PreTokenizer | None) -> bool:
    """Tells whether the last step is byte-level, so that the model works on bytes."""
    parts = flat(part)
    return bool(parts) and isinstance(parts[-1], ByteLevelPreTokenizer)


def steps_of(part: PreTokenizer | None, *, last_as_bytes: bool = False) -> Steps:
    """Describes a pre-tokenizer to the native code.

    Args:
        part: The pre-tokenizer; None leaves text whole.
        last_as_bytes: Leave the bytes of a last byte-level step as they are: for a model that
            works on bytes, and for counting. Otherwise they are written in the alphabet.
    """
    parts = flat(part)
    steps: Steps = []
    for place, one in enumerate(parts):
        steps += one.steps()
        plain = last_as_bytes and place == len(parts) - 1
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
    """Tells whether BPE works on bytes with this pre-tokenizer unless told otherwise."""
    return name in NAMED_PATTERNS or name.startswith(_REGEX)


def check_pretokenizer_name(name: str) -> None:
    """Refuses a name that is none.

    Raises:
        UsageError: Lists the names there are, or says what is wrong with the pattern.
    """
    if name.startswith(_REGEX):
        Pattern.from_regex(name.removeprefix(_REGEX))
    elif name not in PRETOKENIZERS:
        raise UsageError(
            f"must be one of {', '.join(PRETOKENIZERS)}, or regex:PATTERN, got {name!r}",
            ("pretokenizer",),
        )


def pretokenizer_from_name(name: str, *, byte_level: bool) -> PreTokenizer | None:
    """Makes a pre-tokenizer from its name on the command line.

    Args:
        name: One of `PRETOKENIZERS`, or `regex:PATTERN`.
        byte_level: Whether the model works on bytes.

    Returns:
        The pre-tokenizer; None leaves text whole.

    Raises:
        UsageError: A name that is none.
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
