"""Patterns by which text is split into words.

A pattern is spelled as in `tokenizer.json` files, in the syntax of Hugging Face's engine
(Oniguruma); the `regex` package runs it, translated by `regex/syntax.py`. A pattern of
`NAMED_PATTERNS` also has a scanner in native/scan, which finds the same words faster.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET, UnsetType

from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.component import OneKey
from bpe_beam.tokenizer.deadline import VARIABLE, search_within, seconds_left

if TYPE_CHECKING:
    import regex

_STEPS = 4e9  # of a search, some seconds

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2_CONTRACTIONS = ("'(?:[sdmt]|ll|ve|re)", "'s|'t|'re|'ve|'m|'ll|'d", "'(?:s|t|re|ve|m|ll|d)")
_CL100K_CONTRACTIONS = (_CONTRACTION, "'(?i:[sdmt]|ll|ve|re)")
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_NO_HAN = r"&&[^\p{Han}]]"
_GROUPS_OF_THREE = r"\p{N}{1,3}"
_FROM_RIGHT = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_SIGNS = r" ?[^\s\p{L}\p{N}]"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


_CJK = "一-龥\u3040-ゟ\u30a0-ヿ"
_ASCII_SIGNS = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]"""
DEEPSEEK_V3_PATTERNS = (
    _GROUPS_OF_THREE,
    f"[{_CJK}]+",
    rf"{_ASCII_SIGNS}[A-Za-z]+|[^\r\n\p{{L}}\p{{P}}\p{{S}}]?[\p{{L}}\p{{M}}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
)
"""The patterns of DeepSeek V3, which split one after the other, as its file spells them."""


class NamedPattern(NamedTuple):
    """A pattern that has a name on the command line and a scanner in the native code."""

    name: str
    # The scanner's name in native/scan/scanners.hpp. Patterns that match the same share one.
    scanner: str
    # The pattern as text, in the ways in which `tokenizer.json` files spell it. A new tokenizer
    # gets the first, except where files have several pre-tokenizers instead: then this is one
    # pattern for all of them.
    spellings: tuple[str, ...]
    # How many characters after a cut must be known for the cut to be safe, at least 1; proved in
    # docs/algorithm.md
    lookahead: int
    cuts_before_upper: bool = (
        True  # whether a cut before an upper-case letter can be safe; likewise
    )
    cuts_before_number: bool = True  # whether a cut before a number can be safe; likewise

    @property
    def expression(self) -> str:
        """The pattern as a new tokenizer's file spells it; `regex` runs the same text."""
        return self.spellings[0]


def _gpt2_spellings() -> Iterator[str]:
    """Yield the known spellings of GPT-2's pattern.

    Possessive quantifiers change nothing where what follows cannot match what they took. GPT-2's
    newest spelling takes the spaces before the text's end first, which `\\s+(?!\\S)` does anyway.
    """
    for contraction in _GPT2_CONTRACTIONS:
        yield rf"{contraction}| ?\p{{L}}+| ?\p{{N}}+|{_SIGNS}+|\s+(?!\S)|\s+"
        yield rf"{contraction}| ?[\p{{L}}]+| ?[\p{{N}}]+|{_SIGNS}+|\s+(?!\S)|\s+"
        yield rf"{contraction}| ?\p{{L}}++| ?\p{{N}}++|{_SIGNS}++|\s++$|\s+(?!\S)|\s"


def _cl100k_spellings(numbers: str) -> Iterator[str]:
    """Yield the known spellings of a pattern of cl100k's family, which differs in `numbers`."""
    for contraction in _CL100K_CONTRACTIONS:
        start = rf"{contraction}|{_BEFORE}"
        yield rf"{start}\p{{L}}+|{numbers}|{_SIGNS}+[\r\n]*|{_SPACES}"
        yield rf"{start}+\p{{L}}+|{numbers}|{_SIGNS}++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"


def _cased(upper: str, lower: str, contraction: str, numbers: str, lines: str) -> str:
    """Return a pattern of o200k's family."""
    return (
        rf"{_BEFORE}{upper}*{lower}+{contraction}|{_BEFORE}{upper}+{lower}*{contraction}"
        rf"|{numbers}|{_SIGNS}+{lines}*|{_SPACES}"
    )


def _end_spaces_spellings() -> Iterator[str]:
    """Yield the known spellings of tiktoken's newest pattern of cl100k.

    It makes one word of spaces and line breaks at a text's end, where the older spellings make two
    of `"\\n "`. In tiktoken it has `\\p{N}{1,3}+`, which means numbers of any length in a file.
    """
    for contraction in _CL100K_CONTRACTIONS[::-1]:
        for numbers in (_GROUPS_OF_THREE, rf"(?>{_GROUPS_OF_THREE})"):
            yield (
                rf"{contraction}|{_BEFORE}+\p{{L}}++|{numbers}|{_SIGNS}++[\r\n]*+"
                r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
            )


_CL100K = tuple(_cl100k_spellings(_GROUPS_OF_THREE))
_QWEN35 = tuple(  # marks are letters, except before a word
    rf"{contraction}|{_BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
    for contraction in _CL100K_CONTRACTIONS
)
_O200K = _cased(_UPPER, _LOWER, _CONTRACTION + "?", _GROUPS_OF_THREE, r"[\r\n/]")
_O200K_RIGHT = _cased(_UPPER, _LOWER, _CONTRACTION + "?", _FROM_RIGHT, r"[\r\n/]")
_TEKKEN = _cased(_UPPER, _LOWER, "", r"\p{N}", r"[\r\n/]")
_KIMI = r"[\p{Han}]+|" + _cased(
    _UPPER[:-1] + _NO_HAN, _LOWER[:-1] + _NO_HAN, _CONTRACTION + "?", _GROUPS_OF_THREE, r"[\r\n]"
)
_DIGITS_GPT2 = rf"{_GPT2_CONTRACTIONS[0]}| ?\p{{L}}+|\p{{N}}|{_SIGNS}+|\s+(?![^\s\p{{N}}])|\s+"
_CJK_SET = _CJK.replace("\u3040", r"\u3040")
_DEEPSEEK_V3 = (
    r"""\p{N}{1,3}|[""" + _CJK_SET + r"""]+|[!"\#$%\&'()*+,\-./:;<=>?@\[\\\]\^_`{\|}\~][A-Za-z]+"""
    rf"|[^\r\n\p{{L}}\p{{P}}\p{{S}}\p{{N}}{_CJK_SET}]?[\p{{L}}\p{{M}}&&[^{_CJK_SET}]]+"
    rf"| ?[\p{{P}}\p{{S}}&&[^{_CJK_SET}]]+[\r\n]*"
    rf"|(?:[^\s\p{{L}}\p{{M}}\p{{P}}\p{{S}}\p{{N}}{_CJK_SET}](?![\p{{L}}\p{{M}}&&[^{_CJK_SET}]]))+"
    rf"|\s*[\r\n]+|\s+(?![^\s\p{{N}}{_CJK_SET}])|\s+"
)
_GEMMA = r" *[^ \r\n]+| +|[\r\n]+"

NAMED_PATTERNS: dict[str, NamedPattern] = {
    pattern.name: pattern
    for pattern in (
        NamedPattern("gpt2", "gpt2", tuple(_gpt2_spellings()), lookahead=2),
        NamedPattern("cl100k", "cl100k", _CL100K, lookahead=2),
        NamedPattern("llama3", "cl100k", _CL100K, lookahead=2),
        NamedPattern("qwen2", "qwen2", tuple(_cl100k_spellings(r"\p{N}")), lookahead=2),
        NamedPattern("o200k", "o200k", (_O200K,), lookahead=3, cuts_before_upper=False),
        NamedPattern(
            "cl100k+digits_right",
            "cl100k_right",
            tuple(_cl100k_spellings(_FROM_RIGHT)),
            lookahead=2,
            cuts_before_number=False,
        ),
        NamedPattern(
            "o200k+digits_right",
            "o200k_right",
            (_O200K_RIGHT,),
            lookahead=3,
            cuts_before_upper=False,
            cuts_before_number=False,
        ),
        NamedPattern(
            "cl100k+end_spaces", "cl100k_end_spaces", tuple(_end_spaces_spellings()), lookahead=2
        ),
        NamedPattern("nanochat", "nanochat", tuple(_cl100k_spellings(r"\p{N}{1,2}")), lookahead=2),
        NamedPattern("qwen35", "qwen35", _QWEN35, lookahead=2),
        NamedPattern("tekken", "tekken", (_TEKKEN,), lookahead=3, cuts_before_upper=False),
        NamedPattern("kimi", "kimi", (_KIMI,), lookahead=3, cuts_before_upper=False),
        NamedPattern("deepseek_v3", "deepseek_v3", (_DEEPSEEK_V3,), lookahead=2),
        NamedPattern("digits_gpt2", "digits_gpt2", (_DIGITS_GPT2,), lookahead=2),
        NamedPattern("gemma", "gemma", (_GEMMA,), lookahead=2),
    )
}
"""The registry of named patterns: names on the command line, pre-tokenizers, scanners and safe cuts
follow from it. Qwen 2's pattern serves Qwen 2.5 and 3 too, Tekken's Mistral and Nemotron 3.
`+digits_right` groups the numbers of a pattern from the right: 12 and 345 of 12345,
`+end_spaces` makes one word of spaces and line breaks at a text's end."""

GPT2_PATTERN = NAMED_PATTERNS["gpt2"].expression

SCANNER_BY_SPELLING: dict[str, str] = {
    spelling: pattern.scanner
    for pattern in NAMED_PATTERNS.values()
    for spelling in pattern.spellings
}
"""The scanner of each known spelling; any other spelling runs on `regex`.

Not here: spellings that write out both cases of the contractions. The long s is an s to `(?i:...)`
only.
"""


class Pattern(OneKey, frozen=True, rename={"text": "String", "regex": "Regex"}):
    """A text to search for, or a regular expression in the syntax of Hugging Face's engine."""

    text: str | UnsetType = UNSET
    regex: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        # A pattern with a scanner is known to be valid, and `regex` takes a while to import.
        if self.regex is not UNSET and self.scanner is None:
            _check_compiles(self.expression, self.regex)

    @classmethod
    def from_regex(cls, expression: str) -> Pattern:
        """Return the pattern that means what an expression means to the `regex` package.

        It is spelled for Hugging Face's engine: in a file it means the same there.
        """
        if expression in SCANNER_BY_SPELLING:
            return cls(regex=expression)
        _check_compiles(expression, expression)
        from bpe_beam.tokenizer.regex.syntax import translate

        return cls(regex=translate(expression, "regex").oniguruma)

    @property
    def value(self) -> str:
        """The text, or the expression as files spell it."""
        return str(self.text if self.regex is UNSET else self.regex)

    @property
    def scanner(self) -> str | None:
        """The name of the native scanner that finds the same words; None if there is none."""
        return None if self.regex is UNSET else SCANNER_BY_SPELLING.get(self.regex)

    @property
    def expression(self) -> str:
        """The expression that `regex` runs; a text is escaped in it."""
        if self.regex is UNSET:
            import regex

            return regex.escape(self.value)
        from bpe_beam.tokenizer.regex.syntax import translate

        return translate(self.regex, "oniguruma").regex

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of all matches, in characters, as Hugging Face finds them.

        A match may be empty, but not where the match before it ended, and not in an empty text.
        """
        if not text:
            return []
        patience = seconds_left(len(text))
        if patience <= 0:  # used up by earlier searches
            from bpe_beam import _native

            _native.check_deadline()
        # A limit of time makes each search three times as long: only where it may be needed.
        limited = self.regex is not UNSET and len(text) > _most_characters(self.expression)
        try:
            if limited:
                spans = search_within(patience, lambda timeout: self._find(text, timeout=timeout))
            else:
                spans = self._find(text, concurrent=False)
            if any(start == end for start, end in spans):
                spans = search_within(patience, lambda timeout: self._find_empty(text, timeout))
            return spans
        except (TimeoutError, MemoryError):
            raise DataError(
                f"the pattern {self.value[:100]!r} takes over {patience:.0f} seconds of CPU time "
                f"for {len(text):,} characters: it goes back over them again and again, as nested "
                f"repetitions such as (a+)+ do; {VARIABLE}=N in the environment allows N seconds"
            ) from None

    def _find(self, text: str, **limits: Any) -> list[tuple[int, int]]:
        return [match.span() for match in _compile(self.expression).finditer(text, **limits)]

    def _find_empty(self, text: str, timeout: float) -> list[tuple[int, int]]:
        """Return the spans where some are empty: finditer finds more of these than Hugging Face."""
        spans: list[tuple[int, int]] = []
        at, last = 0, -1
        start = time.thread_time()
        while at <= len(text):
            left = timeout - (time.thread_time() - start)
            if left <= 0:
                raise TimeoutError
            match = _compile(self.expression).search(text, at, timeout=left)
            if match is None:
                break
            if match.start() == match.end() == last:
                at += 1
                continue
            at = last = match.end()
            spans.append(match.span())
        return spans

    def native(self) -> tuple[Any, ...]:
        """Return the description for the native code, which searches for a text by itself."""
        if self.text is not UNSET:
            return ("literal", self.text.encode())
        return ("regex", self.byte_spans)

    def byte_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Return (start, end) of all matches in UTF-8, in bytes; see `spans`.

        A byte that is not UTF-8 is a character of no class.
        """
        # A malformed byte becomes a lone surrogate, which is neither letter, number nor space.
        text = data.decode("utf-8", "surrogateescape")
        if len(text) == len(data):
            return self.spans(text)
        import numpy as np

        spans = np.array(self.spans(text), np.int64).reshape(-1, 2)
        # Where each character begins, and where the last one ends.
        begins = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
        if len(begins) != len(text):  # malformed
            sizes = [len(char.encode("utf-8", "surrogateescape")) for char in text]
            begins = np.cumsum([0, *sizes[:-1]])
        positions = np.append(begins, len(data))[spans]
        return list(zip(positions[:, 0].tolist(), positions[:, 1].tolist(), strict=True))


@lru_cache(maxsize=256)
def _most_characters(expression: str) -> int:
    """Return the length of the longest text, in characters, that is searched without a time limit.

    With q repetitions one after the other, a search may go over n characters in n to the power of
    q ways from each of n positions; with repeated groups, in even more ways.
    """
    if re.search(r"\)\s*[*+{]|\\[1-9gk]|\(\?[R&P(]", expression):
        return 0
    repeated = max(len(re.findall(r"[*+]|\{\d*,\}", part)) for part in expression.split("|"))
    return int(_STEPS ** (1 / (repeated + 1)))


def _check_compiles(expression: str, shown: str) -> None:
    """Refuse an expression that `regex` does not take; the message shows `shown`."""
    import regex

    try:
        _compile(expression)
    except (regex.error, ValueError, OverflowError, MemoryError, RecursionError) as error:
        raise UsageError(
            f"pattern {shown[:200]!r}: {error}; give an expression that the regex package takes"
        ) from None


@lru_cache(maxsize=256)
def _compile(expression: str) -> regex.Pattern[str]:
    # Version 1 has sets in sets and flags that end with their group, as Hugging Face's engine.
    import regex

    return regex.compile(expression, regex.VERSION1 | regex.MULTILINE)
