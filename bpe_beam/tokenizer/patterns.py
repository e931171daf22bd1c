"""The patterns by which text is split into words: the named ones, and any other.

A pattern's text is what `tokenizer.json` files hold, in the syntax of Hugging Face's engine
(Oniguruma); `regex` runs the same pattern, translated by `regex/syntax.py`. A named pattern also
has a scanner in native/scan, which finds the same words faster. `NAMED_PATTERNS` registers them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from bpe_beam.errors import DataError, UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer.deadline import VARIABLE, search_within, seconds_left

if TYPE_CHECKING:
    import regex

_STEPS = 4e9  # of a search, some seconds
_REPETITION = re.compile(r"[*+]|\{\d*,\}")

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2_CONTRACTIONS = ("'(?:[sdmt]|ll|ve|re)", "'s|'t|'re|'ve|'m|'ll|'d", "'(?:s|t|re|ve|m|ll|d)")
_CL100K_CONTRACTIONS = (_CONTRACTION, "'(?i:[sdmt]|ll|ve|re)")
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_SIGNS = r" ?[^\s\p{L}\p{N}]"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


@record
class NamedPattern:
    """A pattern that has a name on the command line and a scanner in the native code.

    Attributes:
        name: The name on the command line.
        scanner: The scanner's name in native/scan/scanners.hpp. Patterns that match the same share
            one.
        spellings: The pattern as text, in the ways in which `tokenizer.json` files spell it. A new
            tokenizer gets the first.
        lookahead: How many characters after a cut must be known for the cut to be safe, at least 1;
            proved in safe_cuts.py.
        cuts_before_upper: Whether a cut before an upper-case letter can be safe; proved there too.
    """

    name: str
    scanner: str
    spellings: tuple[str, ...]
    lookahead: int
    cuts_before_upper: bool = True

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
    """Yield the known spellings of a pattern of cl100k's family.

    Args:
        numbers: The pattern of a word of digits, in which the family differs.
    """
    for contraction in _CL100K_CONTRACTIONS:
        start = rf"{contraction}|{_BEFORE}"
        yield rf"{start}\p{{L}}+|{numbers}|{_SIGNS}+[\r\n]*|{_SPACES}"
        yield rf"{start}+\p{{L}}+|{numbers}|{_SIGNS}++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"


_CL100K = tuple(_cl100k_spellings(r"\p{N}{1,3}"))
_O200K = (
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_CONTRACTION}?|{_BEFORE}{_UPPER}+{_LOWER}*{_CONTRACTION}?"
    rf"|\p{{N}}{{1,3}}|{_SIGNS}+[\r\n/]*|{_SPACES}"
)

NAMED_PATTERNS: dict[str, NamedPattern] = {
    pattern.name: pattern
    for pattern in (
        NamedPattern("gpt2", "gpt2", tuple(_gpt2_spellings()), lookahead=2),
        NamedPattern("cl100k", "cl100k", _CL100K, lookahead=2),
        NamedPattern("llama3", "cl100k", _CL100K, lookahead=2),
        NamedPattern("qwen2", "qwen2", tuple(_cl100k_spellings(r"\p{N}")), lookahead=2),
        NamedPattern("o200k", "o200k", (_O200K,), lookahead=3, cuts_before_upper=False),
    )
}
"""The named patterns, the one registry of them: names on the command line, pre-tokenizers, scanners
and safe cuts follow from it. Qwen 2's pattern serves Qwen 2.5 and 3 too."""

GPT2_PATTERN = NAMED_PATTERNS["gpt2"].expression

SCANNER_BY_SPELLING: dict[str, str] = {
    spelling: pattern.scanner
    for pattern in NAMED_PATTERNS.values()
    for spelling in pattern.spellings
}
"""The scanner of each known spelling; any other spelling runs on `regex`.

Not here: tiktoken's newest spelling of cl100k, with `\\s++$`. At a text's end it makes one word of
`"\\n "`, where all others make two. Nor spellings that write out both cases of the contractions:
the long s is an s to `(?i:...)` only.
"""


@record
class Pattern:
    """What is searched for: a text, or a regular expression.

    Attributes:
        kind: As in Hugging Face's files.
        value: The text, or the expression in the syntax of Hugging Face's engine.

    Raises:
        UsageError: A kind that there is not; an expression that cannot be run with the same
            meaning, with the construct's position and what to write instead.
    """

    kind: Literal["String", "Regex"]
    value: str

    def __post_init__(self) -> None:
        if self.kind not in ("String", "Regex"):
            raise UsageError(f'pattern kind {self.kind!r}: give "String" or "Regex"')
        if scanner_of(self) is not None:
            return  # known to be right, and `regex` takes a while to import
        _check_compiles(self.expression, self.value)

    @classmethod
    def from_regex(cls, expression: str) -> Pattern:
        """Return the pattern that means what an expression means to the `regex` package.

        Args:
            expression: As the `regex` package takes it (version 1; `^` and `$` are at the ends of
                lines).

        Returns:
            The pattern, spelled for Hugging Face's engine: in a file it means the same there.

        Raises:
            UsageError: `regex` does not take the expression, or it cannot be spelled so.
        """
        if expression in SCANNER_BY_SPELLING:
            return cls("Regex", expression)
        _check_compiles(expression, expression)
        from bpe_beam.tokenizer.regex.syntax import translate

        return cls("Regex", translate(expression, "regex").oniguruma)

    @property
    def expression(self) -> str:
        """The expression that `regex` runs; a text stands for itself in it."""
        if self.kind == "String":
            import regex

            return regex.escape(self.value)
        from bpe_beam.tokenizer.regex.syntax import translate

        return translate(self.value, "oniguruma").regex

    def compiled(self) -> regex.Pattern[str]:
        """Return the expression, compiled by `regex`."""
        return _compile(self.expression)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Find all matches, from the left, none inside another, as Hugging Face does.

        Args:
            text: Where to search.

        Returns:
            Start and end of each match, in characters. A match may be empty, but not where the
            one before it ended, and not in an empty text.

        Raises:
            DataError: The search takes more CPU time than the text has left.
        """
        if not text:
            return []
        patience = seconds_left(len(text))
        if patience <= 0:  # used up by earlier searches: it says nothing of this one
            from bpe_beam import _native

            _native.check_deadline()
        # A limit of time makes each search three times as long: only where it may be needed.
        limited = self.kind == "Regex" and len(text) > _most_characters(self.expression)
        try:
            if limited:
                found = search_within(patience, lambda timeout: self._find(text, timeout=timeout))
            else:
                found = self._find(text, concurrent=False)
            if any(start == end for start, end in found):
                found = search_within(patience, lambda timeout: self._find_empty(text, timeout))
            return found
        except (TimeoutError, MemoryError):
            raise DataError(
                f"the pattern {self.value[:100]!r} takes over {patience:.0f} seconds of CPU time "
                f"for {len(text):,} characters: it goes back over them again and again, as nested "
                f"repetitions such as (a+)+ do; {VARIABLE}=N in the environment allows N seconds"
            ) from None

    def _find(self, text: str, **limits: Any) -> list[tuple[int, int]]:
        return [match.span() for match in self.compiled().finditer(text, **limits)]

    def _find_empty(self, text: str, timeout: float) -> list[tuple[int, int]]:
        """Find the spans where some are empty: finditer gives more of these than Hugging Face."""
        found: list[tuple[int, int]] = []
        at, last = 0, -1
        start = time.thread_time()
        while at <= len(text):
            left = timeout - (time.thread_time() - start)
            if left <= 0:
                raise TimeoutError
            match = self.compiled().search(text, at, timeout=left)
            if match is None:
                break
            if match.start() == match.end() == last:
                at += 1
                continue
            at = last = match.end()
            found.append(match.span())
        return found

    def native(self) -> tuple[Any, ...]:
        """Its description for the native code: a text it finds by itself."""
        if self.kind == "String":
            return ("literal", self.value.encode())
        return ("regex", self.byte_spans)

    def byte_spans(self, data: bytes) -> list[tuple[int, int]]:
        """Find all matches in UTF-8; a byte that is not UTF-8 is a character of no class.

        Args:
            data: Where to search.

        Returns:
            Start and end of each match, in bytes.
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
        places = np.append(begins, len(data))[spans]
        return list(zip(places[:, 0].tolist(), places[:, 1].tolist(), strict=True))


def scanner_of(pattern: Pattern) -> str | None:
    """The name of the scanner that does what the pattern does; None if there is none."""
    return SCANNER_BY_SPELLING.get(pattern.value) if pattern.kind == "Regex" else None


@lru_cache(maxsize=256)
def _most_characters(expression: str) -> int:
    """How long a text may be that needs no limit of time to be searched.

    With q repetitions one after the other, a search may go over n characters in n to the power of
    q ways from each of n places; with repeated groups, in ways without number.
    """
    if re.search(r"\)\s*[*+{]|\\[1-9gk]|\(\?[R&P(]", expression):
        return 0
    repeated = max(len(_REPETITION.findall(part)) for part in expression.split("|"))
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
