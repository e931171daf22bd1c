"""Every scanner against the `regex` package: what its name promises, as a pattern.

As in test_gpt2_scanner.py, code points that the table's Unicode version and that of `regex` may see
differently are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import import_module
from random import Random

import numpy as np
import pytest
import regex
from code_points import of_used_planes
from gpt2_scanner_checks import left_out

from bpe_beam import _native
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS

PATTERNS = {pattern.scanner: pattern.expression for pattern in NAMED_PATTERNS.values()}
PUNCTUATION = r"\p{P}$+<=>^`|~"


def script_words() -> Iterator[str]:
    """Yield a pattern of the words of each script, with kana as Han."""
    kana = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc"
    yield rf"[{kana}][{kana}\p{{Unknown}} ]*"
    names: dict[str, int] = import_module("regex._regex_core").PROPERTIES["SCRIPT"][1]
    for name in {number: name for name, number in names.items()}.values():
        if not regex.match(rf"\p{{Script={name}}}", "\u0378ひカ漢"):
            script = rf"\p{{Script={name}}}--[{kana}\p{{Unknown}} ]"
            yield rf"[{script}][\p{{Script={name}}}\p{{Unknown}} --\u30fc]*"


EXPRESSIONS = PATTERNS | {
    "bert": rf"[{PUNCTUATION}]|[^\s{PUNCTUATION}]+",
    "whitespace": r"\w+|[^\w\s]+",
    "whitespace_split": r"\S+",
    "digits": r"\p{N}+|\P{N}+",
    "digits_individual": r"\p{N}|\P{N}+",
    "punctuation": rf"[{PUNCTUATION}]|[^{PUNCTUATION}]+",
    "unicode_scripts": "|".join(script_words()),
    "none": r"(?s:.+)",
}
# The patterns of which others differ in a switch of the scanner; the others have shorter tests.
HEADS = ("gpt2", "cl100k", "qwen2", "o200k")
OTHERS = [name for name in EXPRESSIONS if name in {*PATTERNS, "unicode_scripts"} - {*HEADS}]
COMPILED = {name: regex.compile(text, regex.VERSION1) for name, text in EXPRESSIONS.items()}

# Of each set of properties that any pattern distinguishes at least one, of one to four bytes.
REPRESENTATIVES = (
    *"asltreA" + "\u017fÉǅʰª語\U00020000",  # Ll, Lu, Lt, Lm, Lo
    *"1½\U0001d7ce" + "\u0301\u0903\u20dd",  # N, Mn, Mc, Me
    *" \n\r\t\x85\u3000" + "'/_!$+,\u3002\u203f",  # spaces, punctuation
    *"€😀\0\x1c\u200b\u200d\ue000\uffff",  # symbols, controls, joiners
)
# Han that is no letter, and what DeepSeek V3 takes for it or not.
EAST_ASIAN = (*"⺀\u3007\U00016ff0々龥龦", *"あ゙\u3040ヿ・각", *"\x7f\u2028")


def expected_words(text: str, name: str) -> list[tuple[int, int]]:
    """The words by `regex`, in bytes."""
    size = [0, *itertools.accumulate(len(character.encode()) for character in text)]
    return [(size[m.start()], size[m.end()]) for m in COMPILED[name].finditer(text)]


def differs(text: str, name: str) -> bool:
    found = _native.scan_words(text.encode(), name)
    return [*map(tuple, found.tolist())] != expected_words(text, name)


def differing(strings: itertools.product[tuple[str, ...]], name: str) -> list[str]:
    return [text for text in map("".join, strings) if differs(text, name)]


@pytest.fixture(scope="module")
def characters() -> list[str]:
    """Every code point that is a character and that both know."""
    skipped = left_out().union(range(0xD800, 0xE000))
    return [chr(c) for c in range(0x110000) if c not in skipped]


@pytest.mark.quick
def test_every_scanner_is_tested() -> None:
    assert set(_native.SCANNERS) == set(EXPRESSIONS)


@pytest.mark.quick
def test_what_it_takes_and_gives() -> None:
    words = _native.scan_words(memoryview(b" it's  9 "), "bert")
    assert words.dtype == np.int64
    assert words.tolist() == [[1, 3], [3, 4], [4, 5], [7, 8]]
    assert _native.scan_words(b"", "cl100k").shape == (0, 2)
    assert _native.scan_words(b"  ", "bert").shape == (0, 2)
    with pytest.raises(ValueError, match="scanner must be one of SCANNERS, got gpt3"):
        _native.scan_words(b"", "gpt3")
    with pytest.raises(TypeError):
        _native.scan_words("text", "gpt2")
    with pytest.raises(ValueError, match="code_point"):
        _native.char_bits(0x110000)


@pytest.mark.sampled(3)
@pytest.mark.quick
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_all_short_strings_of_representatives(name: str, length: int) -> None:
    characters = REPRESENTATIVES
    if length < 3:
        characters += EAST_ASIAN
    elif name in OTHERS:
        characters = characters[::2]
    assert differing(itertools.product(characters, repeat=length), name) == []


@pytest.mark.quick
@pytest.mark.parametrize("name", ["kimi", "deepseek_v3", "unicode_scripts"])
def test_all_short_strings_of_east_asia(name: str) -> None:
    characters = (*EAST_ASIAN, *"aA1 \n!語\u0301")
    assert differing(itertools.product(characters, repeat=3), name) == []


# What contractions, runs of spaces and line breaks, and mixed case are made of.
CRITICAL = ["'slL\u017f ", "'vrEe\u212a", " \n\ra1!", "\t\n /!a", "Aaʰ\u0301'S", "語Aa\u0301 !"]


@pytest.mark.quick
@pytest.mark.parametrize("alphabet", CRITICAL)
@pytest.mark.parametrize("name", PATTERNS)
def test_all_strings_of_critical_characters(name: str, alphabet: str) -> None:
    for length in (1, 2, 3, 4):
        assert differing(itertools.product(alphabet, repeat=length), name) == []


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", CRITICAL)
@pytest.mark.parametrize("name", HEADS)
def test_all_longer_strings_of_critical_characters(name: str, alphabet: str) -> None:
    assert differing(itertools.product(alphabet, repeat=6), name) == []


@pytest.mark.scheduled
@pytest.mark.parametrize("name", PATTERNS)
def test_all_strings_of_all_critical_characters(name: str) -> None:
    alphabet = "'slA \n\r1!/\u0301\u017f語"
    assert differing(itertools.product(alphabet, repeat=5), name) == []


def check(text: str, name: str) -> None:
    """Fails at the first word of a long text that differs."""
    spans = np.array([m.span() for m in COMPILED[name].finditer(text)], np.int64).reshape(-1, 2)
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = 1 + (code_points >= 0x80) + (code_points >= 0x800) + (code_points >= 0x10000)
    expected = np.concatenate([[0], np.cumsum(widths)])[spans]
    data = text.encode()
    found = _native.scan_words(data, name)
    if np.array_equal(found, expected):
        return
    pairs = zip(found.tolist(), expected.tolist(), strict=False)
    at = next((a[0] for a, b in pairs if a != b), 0)
    pytest.fail(f"at byte {at} of {data[max(0, at - 20) : at + 50]!r}")


@pytest.mark.sampled(3)
@pytest.mark.quick
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_long_texts(name: str) -> None:
    # Of few kinds of parts each: among many, hardly any 64 bytes would be decided by masks alone.
    random = Random(5)
    parts = [*REPRESENTATIVES, "'s", "'LL", "  ", "\r\n", "abcdefgh", "12345", " the", "\n    "]
    for kinds in range(2, 16):
        for _ in range(4):
            check("".join(random.choices(random.sample(parts, kinds), k=4_000)), name)


@pytest.mark.sampled(2)
@pytest.mark.quick
@pytest.mark.parametrize("name", OTHERS)
def test_code_points_where_classes_change(name: str, characters: list[str]) -> None:
    bits = [_native.char_bits(ord(c)) for c in characters]
    some = [
        c for c, one, other in zip(characters[1:], bits, bits[1:], strict=False) if one != other
    ]
    in_texts_of(["'_B ", "A_ \n", " _1"], some, name)


def in_texts_of(contexts: list[str], characters: list[str], name: str) -> None:
    for start in range(0, len(characters), 20_000):
        some = characters[start : start + 20_000]
        check("".join(context.replace("_", c) for c in some for context in contexts), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPRESSIONS if name not in OTHERS])
def test_every_code_point_of_used_planes(name: str, characters: list[str]) -> None:
    in_texts_of(["'_B "], of_used_planes(characters), name)


@pytest.mark.scheduled
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_code_point(name: str, characters: list[str]) -> None:
    in_texts_of(["'_B "], characters, name)


@pytest.mark.scheduled
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("before", ["", "A", "x'", "\n", "1", "  "])
def test_every_code_point_between_all_kinds_of_neighbours(
    name: str, before: str, characters: list[str]
) -> None:
    afters = ("b", "B", "l ", " ", "\n!", "2 ", "'s", "\n\n-")
    in_texts_of([f"{before}_{after}" for after in afters], characters, name)


@pytest.mark.scheduled
@pytest.mark.parametrize("context", ["_", " _", "_ "])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_code_point_as_a_text(name: str, context: str, characters: list[str]) -> None:
    """What a pattern sees at a text's end is another thing than what follows in a text."""
    assert [c for c in characters if differs(context.replace("_", c), name)] == []


def random_text(size: int, seed: int, characters: list[str]) -> str:
    """Half of it any characters, half the representatives, mixed."""
    random = np.random.default_rng(seed)
    any_character = np.array(characters)[random.integers(0, len(characters), size)]
    known = np.array(REPRESENTATIVES)[random.integers(0, len(REPRESENTATIVES), size)]
    return "".join(np.where(random.random(size) < 0.5, any_character, known))


@pytest.mark.sampled(3)
@pytest.mark.quick
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_random_code_points(name: str, characters: list[str]) -> None:
    check(random_text(50_000, 1, characters), name)


@pytest.mark.scheduled
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_ten_million_random_code_points(name: str, characters: list[str]) -> None:
    for seed in range(10):
        check(random_text(1_000_000, seed, characters), name)


@pytest.mark.quick
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_malformed_bytes_are_characters_of_no_class(name: str) -> None:
    """As U+FFFF, which is of none either, with other lengths."""
    random = np.random.default_rng(3)
    for _ in range(300):
        parts = random.choice(np.array(["a", "B", "1", " ", "\n", "!", "'s", "?"]), 12)
        text = "".join(parts).replace("?", "\uffff")
        data = text.encode().replace(b"\xef\xbf\xbf", b"\xff")
        words = [data[a:b] for a, b in _native.scan_words(data, name).tolist()]
        expected = [m.group().encode() for m in COMPILED[name].finditer(text)]
        assert words == [word.replace(b"\xef\xbf\xbf", b"\xff") for word in expected]
