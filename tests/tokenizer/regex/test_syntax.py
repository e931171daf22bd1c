"""Expressions spelled for two engines: what is translated, and what is refused."""

from __future__ import annotations

from typing import get_args

import pytest
import regex
from regex_samples import FOR_HUGGING_FACE, FOR_REGEX

from bpe_beam.counts.word_table import WordCounter, WordRules
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS, SCANNER_BY_SPELLING, Pattern
from bpe_beam.tokenizer.regex.classes import known_property
from bpe_beam.tokenizer.regex.fragment import Dialect
from bpe_beam.tokenizer.regex.syntax import translate

pytestmark = pytest.mark.quick

NEWEST_CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)


# What neither can be told: the construct that the message names.
REFUSED = {
    r"(?i:ss)": "'ss'",
    r"(?i:o(?:f)f)": "'ff'",
    r"(?i:s+)": "'ss'",
    r"(?i:ß)": "ß",
    r"(?i:[^\p{Lu}])": r"\p{Lu}",
    r"(?i:\p{Lu})": r"\p{Lu}",
    r"(?i:[à-ý])": "à-ý",
    r"[a~~b-]": "[",
    r"[&&a]": "[&&",
    r"[^\s\S]": r"[^\s\S]",
    r"[^a[^\s]]": r"[^a[^\s]]",
    r"[a-b-c]": "-",
    r"[]a]": "[]",
    r"ab\X": r"\X",
    r"\K": r"\K",
    r"\G": r"\G",
    r"\N{DIGIT ONE}": r"\N",
    r"(?:foo){e<=1}": "{e<=1}",
    r"(a)\g<1>": r"\g<1>",
    r"(a)(?1)": "(?1",
    r"(?R)": "(?R)",
    r"(?r)a": "(?r)",
    r"a(?a:b)": "(?a:",
    r"a(?i)b|c": "(?i)",
    r"(a)?(?(1)b|c)": "(?(",
    r"(?=a)*": "(?=a)*",
    r"(?<=(?!b).)": "(?!",
    r"(?<=a++)b": "a++",
    r"\p{Bidi_Class=L}": r"\p{Bidi_Class=L}",
    r"\p{InGreek}": r"\p{InGreek}",
    r"[[:punct:]]": "[:punct:]",
    r"(a)\1(b)\2(c)(d)(e)(f)(g)(h)(i)(j)\10": r"\10",
    r"(?V1)a": "(?V",
    r"(?<a>x)(y)\1": "",
    r"a{100001}": "{100001}",
    "(" * 51 + "a" + ")" * 51: "a",
    r"(?i:[\x00-\uffff])": r"\x00-\uffff",
    "[[[a]]]": "[ at character 2",
    r"(?i:[a&&\p{L}])": "[a&&",
    r"(?<=a*)b": "a*",
    r"(?i:[\w]\M)": r"[\w]",
    r"(?i:[\S])": r"[\S]",
}


@pytest.mark.parametrize("expression", FOR_HUGGING_FACE)
def test_spelled_for_hugging_face(expression: str) -> None:
    spelled = translate(expression, "regex")
    assert spelled.oniguruma == FOR_HUGGING_FACE[expression]
    # The file is read again by the other engine's rules, and means what was asked for.
    pattern = Pattern.from_regex(expression)
    assert pattern.value == spelled.oniguruma
    for text in ("a\n", "ab", "aaa", "1234", "iİI", "\n", "", "é😀", "Ω", "a_", "  a", "a b  # c"):
        found = [m.span() for m in regex.finditer(expression, text, regex.V1 | regex.M)]
        assert [s for s in pattern.spans(text) if s[0] < s[1]] == [s for s in found if s[0] < s[1]]


@pytest.mark.parametrize("expression", [r"\w+|\W", r"[\w'-]+|[^\w\s]|[\W_]", r"\b\w+\B|\m.|.\M"])
def test_words_run_as_fast_as_they_did(expression: str) -> None:
    """What was written for Hugging Face's engine is `regex`'s own `\\w` again when it is read."""
    again = Pattern.from_regex(expression).expression
    assert r"\u200c" not in again
    assert "--" not in again


@pytest.mark.parametrize("expression", FOR_REGEX)
def test_spelled_for_regex(expression: str) -> None:
    assert translate(expression, "oniguruma").regex == FOR_REGEX[expression]
    assert Pattern(regex=expression).value == expression


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_by_name(expression: str) -> None:
    with pytest.raises(UsageError) as caught:
        Pattern.from_regex(expression)
    message = str(caught.value)
    assert message.startswith(f"pattern {expression[:200]!r}: ")
    assert REFUSED[expression] in message.removeprefix(f"pattern {expression[:200]!r}: ")
    with pytest.raises(UsageError, match="pattern"):
        WordCounter(WordRules(pretokenizer=f"regex:{expression}"))


@pytest.mark.parametrize(
    "expression",
    [
        r"\pL", r"\m", r"[a--b]", r"(?s:.)", r"(?P<n>a)", r"(?|a|b)", r"\p{Script=Greek}",
        r"\U00000061", r"\xc3\xa9", r"\M-a", r"\p{^Foo}", r"(?~a)", r"[^\h[\d]\D]",
    ],
)  # fmt: skip
def test_refused_in_a_file(expression: str) -> None:
    """What Hugging Face's engine does not load, or takes for other text than was meant."""
    with pytest.raises(UsageError, match=r"at character \d+ "):
        Pattern(regex=expression)


def test_a_pattern_that_is_too_long() -> None:
    with pytest.raises(UsageError, match="at most 50,000 characters, got 50,001"):
        Pattern(regex="a" * 50_001)


def test_messages_name_the_place_and_the_remedy() -> None:
    with pytest.raises(UsageError) as caught:
        Pattern.from_regex(r"a|\p{L}+|\X")
    assert str(caught.value) == (
        r"pattern 'a|\\p{L}+|\\X': \X at character 9 is not supported: Hugging Face's engine and "
        r"the regex package must agree on it; write the characters that it should match, such as "
        r".\p{M}*"
    )


@pytest.mark.parametrize("spelling", SCANNER_BY_SPELLING)
def test_known_spellings_stay_as_they_are(spelling: str) -> None:
    """Both engines read them alike, so that a file keeps its text and a name its scanner."""
    for dialect in get_args(Dialect):
        found = translate(spelling, dialect)
        assert (found.regex, found.oniguruma) == (spelling, spelling)


def test_spellings_of_a_named_pattern_get_its_scanner() -> None:
    spelled = (
        NAMED_PATTERNS["qwen2"].expression.replace(r"\p{L}", r"\pL").replace(r"\p{N}", r"\p{gc=N}")
    )
    assert Pattern.from_regex(spelled) == Pattern(regex=NAMED_PATTERNS["qwen2"].expression)


def test_the_newest_spelling_of_cl100k() -> None:
    pattern = Pattern.from_regex(NEWEST_CL100K)
    assert pattern.value == NEWEST_CL100K.replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})")
    text = "It's 12345 o'clock\n \r\n  12 \n "
    assert [text[a:b] for a, b in pattern.spans(text)] == regex.findall(NEWEST_CL100K, text)
    assert [*Pattern(regex=NEWEST_CL100K).spans("12345")] == [(0, 5)]


def test_properties() -> None:
    assert known_property("Lu", "regex") == known_property("Lu", "oniguruma") == "Lu"
    assert known_property("Uppercase_Letter", "oniguruma") == "Uppercase_Letter"
    assert known_property("sc=Han", "regex") == known_property("Script:Han", "regex") == "Han"
    assert known_property("sc=Han", "oniguruma") is known_property("sc=Lu", "regex") is None
    assert known_property("Block=Greek", "regex") is known_property("Foo", "regex") is None
