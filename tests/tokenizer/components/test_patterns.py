"""Patterns: known spellings, and the spans that a pattern finds."""

from __future__ import annotations

import hashlib
import itertools
import random
import threading
import time

import pytest
import regex

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.components.patterns import (
    NAMED_PATTERNS,
    SCANNER_BY_SPELLING,
    Pattern,
    _compile,
)
from bpe_beam.tokenizer.components.pretokenizers import (
    PRETOKENIZERS,
    is_byte_level_name,
    pretokenizer_from_name,
)
from bpe_beam.tokenizer.deadline import search_within
from bpe_beam.tokenizer.encoding.text_chunks import safe_cuts

pytestmark = pytest.mark.quick

# As published: by tiktoken, and in tokenizer.json files of each family.
PUBLISHED = {
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""": "gpt2",
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""": "cl100k",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"""
    r"""|\s*[\r\n]|\s+(?!\S)|\s+""": "cl100k",
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+""": "qwen2",
    # nanochat
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"""
    r"""|\s*[\r\n]|\s+(?!\S)|\s+""": "nanochat",
    # Qwen 3.5
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"""
    r"""| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""": "qwen35",
    # Mistral Nemo, Nemotron 3
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""": "tekken",
    # Kimi K2
    r"""[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"""
    r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"""
    r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""": "kimi",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"""
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"""
    r"""[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"""
    r"""| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""": "o200k",
}
NEWEST_CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)


def test_names() -> None:
    assert {pattern.scanner for pattern in NAMED_PATTERNS.values()} <= set(_native.SCANNERS)
    assert [pattern.name for pattern in NAMED_PATTERNS.values()] == [*NAMED_PATTERNS]


def test_patterns_that_share_a_spelling_share_the_rest() -> None:
    """A file's spelling leads to one scanner, whichever of its names trained it."""
    for one, other in itertools.combinations(NAMED_PATTERNS.values(), 2):
        if set(one.spellings).intersection(other.spellings) or one.scanner == other.scanner:
            assert (one.scanner, one.spellings) == (other.scanner, other.spellings)
            assert one.lookahead == other.lookahead
            assert one.cuts_before_upper == other.cuts_before_upper
            assert one.cuts_before_number == other.cuts_before_number


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_a_line_of_the_registry_is_enough(name: str) -> None:
    """The command line, tokenizer files and safe cuts know each named pattern."""
    pattern = NAMED_PATTERNS[name]
    assert name in PRETOKENIZERS
    assert is_byte_level_name(name)
    pretokenizer = pretokenizer_from_name(name, byte_level=False)
    assert pretokenizer is not None
    assert pretokenizer.steps() == [("scan", pattern.scanner)]
    assert [*safe_cuts(pattern.scanner, b"ab cd ef")]


def test_published_spellings_have_their_scanner() -> None:
    assert {spelling: SCANNER_BY_SPELLING.get(spelling) for spelling in PUBLISHED} == PUBLISHED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("spelling", SCANNER_BY_SPELLING)
def test_spellings_mean_the_same(spelling: str) -> None:
    expression = regex.compile(spelling, regex.VERSION1)
    scanner = SCANNER_BY_SPELLING[spelling]
    for alphabet in ("a1! \n", "'lLs\u017f", " \n\ra/"):
        for characters in itertools.product(alphabet, repeat=5):
            text = "".join(characters)
            data = text.encode()
            words = [data[a:b].decode() for a, b in _native.scan_words(data, scanner).tolist()]
            assert expression.findall(text) == words


def test_the_newest_spelling_of_cl100k_is_another_pattern() -> None:
    assert NEWEST_CL100K not in SCANNER_BY_SPELLING  # in a file it has numbers of any length
    assert Pattern.from_regex(NEWEST_CL100K).scanner == "cl100k_end_spaces"
    assert regex.findall(NEWEST_CL100K, "a\n ") == ["a", "\n "]
    assert regex.findall(NAMED_PATTERNS["cl100k"].expression, "a\n ") == ["a", "\n", " "]


def test_spans() -> None:
    assert [*Pattern(regex=r"\d+").spans("a12b3")] == [(1, 3), (4, 5)]
    assert [*Pattern(text=".").spans("a.b")] == [(1, 2)]
    assert [*Pattern(text="aa").spans("aaaaa")] == [(0, 2), (2, 4)]
    assert [*Pattern(text="^ a").spans("x^ ab")] == [(1, 4)]
    assert [*Pattern(regex="a").spans("")] == []
    assert [*Pattern(regex=r"(?<=\S)(?=\s|$)").spans("ab c")] == [(2, 2), (4, 4)]
    assert [*Pattern(regex="a*").spans("baac")] == [(0, 0), (1, 3), (4, 4)]
    assert [*Pattern(regex="").spans("")] == []


def test_spans_in_bytes() -> None:
    assert [*Pattern(regex="b+").byte_spans("éb語bb".encode())] == [(2, 3), (6, 8)]
    assert [*Pattern(regex="b").byte_spans(b"abb")] == [(1, 2), (2, 3)]
    assert [*Pattern(regex="b").byte_spans(b"\xffb\xc3b")] == [(1, 2), (3, 4)]
    # A malformed byte is neither letter, number nor space.
    assert [*Pattern(regex=r"[^\s\p{L}\p{N}]").byte_spans(b"a\xff \x80")] == [(1, 2), (3, 4)]
    assert [*Pattern(regex=r"$").byte_spans("é".encode())] == [(2, 2)]


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match=r"pattern '\(': \( at character 0 has no \) at its end"):
        Pattern(regex="(")
    with pytest.raises(UsageError, match=r"pattern '\(': missing \).*give an expression"):
        Pattern.from_regex("(")
    for keys in ({}, {"text": "x", "regex": "x"}):
        with pytest.raises(UsageError, match=r'Pattern must be {"String": ...} or {"Regex": ...}'):
            Pattern(**keys)
    Pattern(text="(")


def test_spans_as_tokenizers_finds_them() -> None:
    """The piece of every match and of what lies between, by a Split that isolates them."""
    tokenizers = pytest.importorskip("tokenizers")
    rng = random.Random(1)
    expressions = ["a", "a*", "a+b?", r"\b", r"(?=a)", "b|", "|b", r"(?<=a)b", "é", "a??b?"]
    for value in expressions:
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(value), "isolated")
        for _ in range(200):
            text = "".join(rng.choices("aabé ", k=rng.randint(1, 8)))
            expected = {offsets for _, offsets in split.pre_tokenize_str(text)}
            pieces, last = set(), 0
            for start, end in [*Pattern(regex=value).spans(text), (len(text), len(text))]:
                pieces |= {(last, start), (start, end)}
                last = end
            assert {(a, b) for a, b in pieces if a < b} == expected, (value, text)


def test_a_deadline_that_is_over_says_nothing_of_the_next_search() -> None:
    pattern = Pattern(regex="[a-m](?=z?)")
    with _native.TextDeadline(0), pytest.raises(DataError, match="one text takes over 0 seconds"):
        pattern.spans("abc")


def test_a_search_has_its_time_while_other_threads_work() -> None:
    """The timeout of `regex` counts the work of all threads of the process."""
    pattern = Pattern(regex=r"(?:a|aa|aaa)+$|b")
    timeouts: list[float] = []
    stop = threading.Event()

    def work() -> None:
        data = bytes(1 << 20)
        while not stop.is_set():
            hashlib.sha256(data)

    def search(timeout: float) -> int:
        begin = time.process_time()
        found = _compile(pattern.expression).finditer("b" * 20_000, timeout=timeout)
        while not timeouts and time.process_time() - begin < timeout:
            stop.wait(0.01)
        timeouts.append(timeout)
        return len(list(found))

    other = threading.Thread(target=work)
    other.start()
    try:
        assert search_within(0.3, search) == 20_000
    finally:
        stop.set()
        other.join()
    assert timeouts[:2] == [0.3, 0.6]


def test_a_search_without_end_is_given_up() -> None:
    pattern = Pattern(regex=r"(?:a|aa|aaa)+$|b")
    begin = time.thread_time()
    with pytest.raises(TimeoutError):
        search_within(0.1, lambda timeout: pattern._find("a" * 2_000 + "c", timeout=timeout))
    assert time.thread_time() - begin >= 0.1


@pytest.mark.parametrize("expression", ["[a-m](?=z?)", "(?:a|b)*(?=z?)"], ids=["full", "empty"])
def test_a_text_may_wait(expression: str) -> None:
    """A deadline of the thread's CPU time passes by work, not by waiting."""
    pattern = Pattern(regex=expression)
    with _native.TextDeadline(0.2):
        time.sleep(0.3)
        assert pattern.spans("abc")
        begin = time.thread_time()
        while time.thread_time() - begin < 0.2:
            pass
        with pytest.raises(DataError, match="one text takes over 0 seconds of CPU time"):
            pattern.spans("abc")
