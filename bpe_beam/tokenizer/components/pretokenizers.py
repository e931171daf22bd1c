"""Pre-tokenizers: how text is split into words before merges are trained or applied.

Plain data. `steps()` describes a pre-tokenizer to the native code, which splits text for counting
and encoding alike. The named patterns have native scanners; other patterns run on the `regex`
package.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.messages import did_you_mean
from bpe_beam.tokenizer.components.component import Component, MetaspaceComponent, check_character
from bpe_beam.tokenizer.components.patterns import DEEPSEEK_V3_PATTERNS, NAMED_PATTERNS, Pattern

Steps = list[tuple[Any, ...]]

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
"""The values of `behavior`: how the matches of a pattern are kept."""


class ByteLevelPreTokenizer(Component, frozen=True, tag="ByteLevel"):
    """Splits text by GPT-2's pattern; the model encodes the bytes of each word."""

    add_prefix_space: bool = False  # whether to add a space before a text without one
    trim_offsets: bool = True  # only stored: it has no effect in a pre-tokenizer
    use_regex: bool = True  # whether to split at all

    def steps(self) -> Steps:
        # Without the byte-level alphabet: see `steps_of`.
        prefix: Steps = [("prepend", b" ", False)] if self.add_prefix_space else []
        return [*prefix, ("scan", "gpt2")] if self.use_regex else prefix


class _Scanned(Component, frozen=True):
    """A pre-tokenizer without settings that is one native scanner."""

    SCANNER: ClassVar[str]

    def steps(self) -> Steps:
        return [("scan", self.SCANNER)]


class BertPreTokenizer(_Scanned, frozen=True):
    """Words between whitespace; every punctuation character is a word of its own."""

    SCANNER: ClassVar[str] = "bert"


class Whitespace(_Scanned, frozen=True):
    r"""The matches of `\w+|[^\w\s]+`."""

    SCANNER: ClassVar[str] = "whitespace"


class WhitespaceSplit(_Scanned, frozen=True):
    """The texts between whitespace."""

    SCANNER: ClassVar[str] = "whitespace_split"


class UnicodeScripts(_Scanned, frozen=True):
    """Splits where the script changes; kana is one script with Han.

    Blanks, and characters without a script, belong to the word before them.
    """

    SCANNER: ClassVar[str] = "unicode_scripts"


class FixedLength(Component, frozen=True):
    """Splits into words of a fixed length; the last may be shorter."""

    length: Annotated[int, Meta(ge=1, le=2**63 - 1)] = 5  # characters

    def steps(self) -> Steps:
        return [("fixed_length", self.length)]


class CharDelimiterSplit(Component, frozen=True):
    """The texts between the occurrences of one character."""

    delimiter: str

    def __post_init__(self) -> None:
        check_character("delimiter", self.delimiter)

    def steps(self) -> Steps:
        return [("split", ("literal", self.delimiter.encode()), "Removed", False)]


class Metaspace(MetaspaceComponent, frozen=True):
    """Replaces spaces by a visible character, and splits before each."""

    def steps(self) -> Steps:
        symbol = self.replacement.encode()
        steps: Steps = [("rewrite", ("Replace", ("literal", b" "), symbol))]
        if self.prepend_scheme != "never":
            steps.append(("prepend", symbol, self.prepend_scheme == "first"))
        if self.split:
            steps.append(("split", ("literal", symbol), "MergedWithNext", False))
        return steps


class Digits(Component, frozen=True):
    """Separates numbers from other text, and on request their digits."""

    individual_digits: bool

    def steps(self) -> Steps:
        return [("scan", "digits_individual" if self.individual_digits else "digits")]


class Punctuation(Component, frozen=True):
    """Splits at punctuation."""

    behavior: str = "Isolated"

    def __post_init__(self) -> None:
        require_choice("behavior", self.behavior, BEHAVIORS)

    def steps(self) -> Steps:
        if self.behavior == "Isolated":
            return [("scan", "punctuation")]
        return [("split", ("punctuation",), self.behavior, False)]


class Split(Component, frozen=True):
    """Splits at the matches of a pattern; with `invert`, at the texts between them."""

    pattern: Pattern
    behavior: str
    invert: bool

    def __post_init__(self) -> None:
        require_choice("behavior", self.behavior, BEHAVIORS)

    def steps(self) -> Steps:
        scanner = self.pattern.scanner
        # These patterns match all of a text, so keeping the matches is splitting between them.
        kept = self.behavior == ("Removed" if self.invert else "Isolated")
        if scanner is not None and kept:
            return [("scan", scanner)]
        return [("split", self.pattern.native(), self.behavior, self.invert)]


class PreTokenizerSequence(Component, frozen=True, tag="Sequence"):
    """Pre-tokenizers one after the other, each on the texts of the one before."""

    pretokenizers: tuple[PreTokenizer, ...]

    def steps(self) -> Steps:
        return steps_of(self)


PreTokenizer = (
    ByteLevelPreTokenizer | BertPreTokenizer | Whitespace | WhitespaceSplit | CharDelimiterSplit
    | Metaspace | Digits | Punctuation | Split | UnicodeScripts | FixedLength
    | PreTokenizerSequence
)  # fmt: skip


def flat(pre_tokenizer: PreTokenizer | None) -> list[PreTokenizer]:
    """Return the pre-tokenizers of a sequence, and of sequences in it, in order."""
    if isinstance(pre_tokenizer, PreTokenizerSequence):
        return [one for inner in pre_tokenizer.pretokenizers for one in flat(inner)]
    return [] if pre_tokenizer is None else [pre_tokenizer]


def ends_in_bytes(pre_tokenizer: PreTokenizer | None) -> bool:
    """Whether the last step is byte-level, so that the model encodes bytes."""
    return any(isinstance(one, ByteLevelPreTokenizer) for one in flat(pre_tokenizer)[-1:])


def steps_of(pre_tokenizer: PreTokenizer | None, *, last_as_bytes: bool = False) -> Steps:
    """Return the description of a pre-tokenizer for the native code."""
    every = flat(pre_tokenizer)
    steps: Steps = []
    done = 0
    while done < len(every):
        scanner, size = _scanner_of_first(every[done:])
        steps += every[done].steps() if scanner is None else [("scan", scanner)]
        done += size
        plain = last_as_bytes and done == len(every)
        if isinstance(every[done - 1], ByteLevelPreTokenizer) and not plain:
            steps.append(("rewrite", ("ByteLevel",)))
    return steps


@cache
def _deepseek_v3() -> tuple[PreTokenizer, ...]:
    """Return the parts of `deepseek_v3`; their patterns import the package `regex`."""
    patterns = (Pattern(regex=regex) for regex in DEEPSEEK_V3_PATTERNS)
    return tuple(Split(pattern, "Isolated", invert=False) for pattern in patterns)


def _scanner_of_first(parts: list[PreTokenizer]) -> tuple[str | None, int]:
    """Return the one scanner that does what the first pre-tokenizers do, and how many these are.

    Where there is none, it is None for the first one alone.
    """
    first = parts[0]
    if isinstance(first, Split) and first.pattern.regex == DEEPSEEK_V3_PATTERNS[0]:
        whole = _deepseek_v3()
        if tuple(parts[: len(whole)]) == whole:
            return "deepseek_v3", len(whole)
    digits_first = len(parts) > 1 and first == Digits(individual_digits=True)
    is_gpt2 = digits_first and parts[1].steps() == [("scan", "gpt2")]
    return ("digits_gpt2", 2) if is_gpt2 else (None, 1)


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

_OTHER_NAMES = {
    **dict.fromkeys(("bytelevel", "byte_level", "r50k_base", "p50k_base"), "gpt2"),
    **{"gpt4": "cl100k", "gpt4o": "o200k", "gpt5": "o200k"},
    **dict.fromkeys(("sentencepiece", "llama2"), "metaspace"),
}
"""What other libraries and people call some of them, for messages."""

_REGEX = "regex:"


def is_byte_level_name(name: str) -> bool:
    """Whether BPE encodes bytes by default with this pre-tokenizer."""
    return name in NAMED_PATTERNS or name.startswith(_REGEX)


def pretokenizer_from_name(name: str, *, byte_level: bool = False) -> PreTokenizer | None:
    """Return a pre-tokenizer from its name on the command line."""
    if byte_level and name in ("gpt2", "digits_gpt2"):
        gpt2 = ByteLevelPreTokenizer()
        return gpt2 if name == "gpt2" else PreTokenizerSequence((Digits(True), gpt2))
    splitting = _splitting(name)
    if not byte_level:
        return splitting
    whole = ByteLevelPreTokenizer(use_regex=False)
    return whole if splitting is None else PreTokenizerSequence((*flat(splitting), whole))


def _splitting(name: str) -> PreTokenizer | None:
    """Return what splits a text, by its name; None for `none`."""
    if name == "none" or name in _BY_NAME:
        return _BY_NAME.get(name)
    if name == "deepseek_v3":
        return PreTokenizerSequence(_deepseek_v3())
    if name == "digits_gpt2":
        gpt2 = Split(Pattern(regex=NAMED_PATTERNS["gpt2"].expression), "Isolated", invert=False)
        return PreTokenizerSequence((Digits(individual_digits=True), gpt2))
    if name in NAMED_PATTERNS:
        return Split(Pattern(regex=NAMED_PATTERNS[name].expression), "Isolated", invert=False)
    if name.startswith(_REGEX):
        return Split(Pattern.from_regex(name.removeprefix(_REGEX)), "Isolated", invert=False)
    near = did_you_mean(name.lower().replace("-", ""), (*PRETOKENIZERS, *_OTHER_NAMES))
    for other, own in _OTHER_NAMES.items():
        near = near.replace(f" {other}?", f" {own}?")
    raise UsageError(
        f"must be one of {', '.join(PRETOKENIZERS)}, or regex:PATTERN, got {name!r}{near}",
        ("pretokenizer",),
    )
