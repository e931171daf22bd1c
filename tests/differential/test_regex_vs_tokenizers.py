"""Patterns against Hugging Face's engine: written files load there, and cut the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import regex
import tokenizers
from regex_samples import FOR_HUGGING_FACE, FOR_REGEX

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.regex.fragment import Dialect
from bpe_beam.tokenizer.regex.syntax import translate

# What differs between the engines, and what is made of it.
ATOMS = (
    *("a", "b", "s", "i", "I", "k", " ", r"\n", "é", "語", "1", ".", "'", "ß", "\u017f", "{", "-"),
    *(r"\s", r"\S", r"\d", r"\w", r"\W", r"\h", r"\R", r"\p{L}", r"\P{L}", r"\p{N}", r"\pN"),
    *("[ab]", "[^a]", "[a-z]", "[sS]", "[i]", r"[\r\n]", r"[^\s\p{L}\p{N}]", r"[^\W\d]"),
    *(r"[\p{L}&&[^a]]", r"[\w--\d]", r"[\W_]", "[[:digit:]]", "[[:alnum:]]", "[a|b~]"),
)
POSITIONS = ("^", "$", r"\b", r"\B", r"\A", r"\z", r"\Z", r"\m", r"\M")
QUANTIFIERS = (
    *("*", "+", "?", "*?", "+?", "??", "*+", "++", "?+", "{2}", "{1,3}", "{,2}", "{2,}"),
    *("{1,3}+", "{2}?", "{1,2}?", "{0,1}+", "{0,}?", "{,2}+", "{2}+", "{2,2}?"),
)
GROUPS = (
    *("(?:", "(", "(?>", "(?i:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!", "(?s:", "(?m:"),
    *("(?x:", "(?ix:", "(?|", "(?i)(?:"),
)
CHARACTERS = (
    "aabbcsSkKiI 12\n\n\r-|~&{}'ß\u017f\u212aİ\u0131éςΣ²½٣\u200c\u200d\u0301語😀Ⓐﬁŉ_\x0b\x85\u3000"
)
KNOWN_TEXTS = (
    *(
        "a\n",
        "\n\n",
        "aa\nbb\n",
        "ss ß ẞ \u017fs",
        "i\u0307 İ i\u0131 I",
        "²²a b½",
        "a\u200db \u200c",
    ),
    *("\r\n\n\r\v\x85", "12٣٤3", "aaaaaa 123456", "Aa Kk Ss", "{,}{1,2}", "don't DON'T"),
)


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    branches = []
    for _ in range(rng.choice((1, 1, 2))):
        parts = []
        for _ in range(rng.choice((1, 2, 3))):
            kind = rng.random()
            if kind < 0.25 and depth < 3:
                atom = rng.choice(GROUPS) + random_pattern(rng, depth + 1) + ")"
            else:
                atom = rng.choice(POSITIONS if kind < 0.33 else ATOMS)
            parts.append(atom + (rng.choice(QUANTIFIERS) if rng.random() < 0.35 else ""))
        branches.append("".join(parts))
    return "|".join(branches)


def pieces(pattern: str, text: str) -> set[tuple[int, int]]:
    """What Hugging Face's engine cuts a text into."""
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    return {offsets for _, offsets in split.pre_tokenize_str(text)}


def our_pieces(pattern: Pattern, text: str) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    last = 0
    for start, end in [*pattern.spans(text), (len(text), len(text))]:
        found |= {(last, start), (start, end)}
        last = end
    return {(start, end) for start, end in found if start < end}


class AsItIs(Pattern):  # type: ignore[misc]
    """An expression that `regex` runs without translation."""

    def __post_init__(self) -> None:
        """Take any."""

    @property
    def expression(self) -> str:
        """The pattern itself."""
        return self.value


def trial(dialect: Dialect, seed: int, size: int) -> int:
    """Try random patterns; return how many were not refused."""
    rng = random.Random(seed)
    taken = 0
    for _ in range(size):
        expression = random_pattern(rng)
        texts = [*KNOWN_TEXTS, *("".join(rng.choices(CHARACTERS, k=8)) for _ in range(12))]
        try:
            if dialect == "regex":
                pattern = Pattern.from_regex(expression)
            else:
                pattern = Pattern(regex=expression)
        except UsageError:
            continue
        taken += 1
        for text in texts:
            note = (expression, pattern.value, text)
            assert our_pieces(pattern, text) == pieces(pattern.value, text), note
            if dialect == "regex":
                assert our_pieces(AsItIs("Regex", expression), text) == our_pieces(pattern, text), (
                    note
                )
    return taken


CASES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
HAN = r"&&[^\p{Han}]"
# Of models in use that have no scanner: nanochat, Qwen 3.5, Tekken, Kimi, DeepSeek, BLOOM.
PUBLISHED = (
    rf"{CASES}|{BEFORE}\p{{L}}+|\p{{N}}{{1,2}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",
    rf"{CASES}|{BEFORE}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}",
    rf"{BEFORE}[{UPPER}]*[{LOWER}]+|{BEFORE}[{UPPER}]+[{LOWER}]*|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}",
    rf"[\p{{Han}}]+|{BEFORE}[{UPPER}{HAN}]*[{LOWER}{HAN}]+{CASES}?"
    rf"|{BEFORE}[{UPPER}{HAN}]+[{LOWER}{HAN}]*{CASES}?|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",
    r"[一-龥\u3040-ゟ\u30a0-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" ?[^(\s|[.,!?…。\uff0c、।\u06d4،])]+",
)  # fmt: skip


@pytest.mark.parametrize("expression", PUBLISHED)
def test_published_patterns(expression: str) -> None:
    rng = random.Random(3)
    as_regex = Pattern.from_regex(expression)
    in_a_file = Pattern(regex=expression)
    for size in (4, 8, 16, 40) * 20:
        text = "".join(rng.choices([*CHARACTERS, *"/?(),.漢字かなアǅʰ"], k=size))
        assert our_pieces(in_a_file, text) == our_pieces(as_regex, text) == pieces(expression, text)
        assert pieces(as_regex.value, text) == pieces(expression, text)


@pytest.mark.parametrize("expression", [*FOR_HUGGING_FACE.values(), *FOR_REGEX])
def test_every_translation(expression: str) -> None:
    pattern = Pattern(regex=expression)
    for text in KNOWN_TEXTS:
        assert our_pieces(pattern, text) == pieces(expression, text)
        # Empty matches can be seen where they are replaced.
        replace = tokenizers.normalizers.Replace(tokenizers.Regex(expression), "<>")
        found, last = "", 0
        for start, end in pattern.spans(text):
            found += text[last:start] + "<>"
            last = end
        assert found + text[last:] == replace.normalize_str(text), text


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["regex", "oniguruma"])
def test_random_patterns(dialect: Dialect) -> None:
    assert trial(dialect, seed=1, size=500) > 150


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["regex", "oniguruma"])
def test_more_random_patterns(dialect: Dialect) -> None:
    trial(dialect, seed=2, size=3000)


@pytest.mark.scheduled
@pytest.mark.parametrize("dialect", ["regex", "oniguruma"])
def test_thousands_of_random_patterns(dialect: Dialect) -> None:
    for seed in range(3, 8):
        trial(dialect, seed, size=3000)


# Sets whose names or letters the engines know in different ways.
SETS = (
    *(r"\w", r"\W", r"[\w]", r"[^\w]", r"[\W_]", r"[^\W\d_]", r"\d", r"\s", r"\h"),
    *("[[:digit:]]", "[[:alnum:]]", "[[:word:]]", "[^[:xdigit:]]", "[[:alpha:]]", "[[:^alpha:]]"),
    *("(?i:i)", "(?i:I)", "(?i:k)", "(?i:[a-z])", "(?i:[^i])", "(?i:[sk])", "(?i:é)"),
    *(r"\p{L}", r"\P{^Lu}", r"\p{Greek}", r"\p{Emoji}", r"[\p{L}&&[^\p{Greek}]]"),
)


@pytest.mark.parametrize("dialect", ["regex", "oniguruma"])
def test_sets_hold_the_same_characters(dialect: Dialect) -> None:
    """Every character that both know; newer ones and those of no category are left out."""
    unknown = r"[\p{Cn}\p{Co}\u0295]"
    text = "".join(map(chr, (*range(0x2200), *range(0xFB00, 0xFB20))))
    known = pieces_of(unknown, text, negated=True) - set(regex.findall(unknown, text))
    for expression in SETS:
        spelled = translate(expression, dialect)
        here = set(regex.findall(spelled.regex, text, regex.V1 | regex.M)) & known
        assert here == pieces_of(spelled.oniguruma, text) & known, expression
        if dialect == "regex":
            assert here == set(regex.findall(expression, text, regex.V1 | regex.M)) & known
        else:
            assert here == pieces_of(expression, text) & known, expression


def pieces_of(pattern: str, text: str, *, negated: bool = False) -> set[str]:
    """The single characters that Hugging Face's engine finds."""
    behavior = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(pattern), "removed", invert=not negated
    )
    return set("".join(piece for piece, _ in behavior.pre_tokenize_str(text)))


def test_a_trained_file_cuts_there_as_it_was_told(tmp_path: Path) -> None:
    """OpenAI's newest spelling of cl100k, with names that only `regex` knows."""
    expression = (
        r"'(?i:[sdmt]|ll|ve|re)|(?P<w>[^\r\n\pL\pN]?+\pL++)|\p{gc=N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    )
    text = "It's 12345 o'clock, 1234567 men²\n at\u200dnoon \u03a9mega ٣٤٥٦\n \n  "
    (tmp_path / "in.txt").write_text(text * 3, "utf-8")
    command = [
        *(sys.executable, "-m", "bpe_beam", "train", "--input", str(tmp_path / "in.txt")),
        *("--pretokenizer", f"regex:{expression}", "--vocab-size", "280"),
        *("--output", str(tmp_path / "tok"), "--workers", "1", "--quiet"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    file = tmp_path / "tok" / "tokenizer.json"
    written = json.loads(file.read_text("utf-8"))["pre_tokenizer"]["pretokenizers"][0]
    words = regex.findall(expression.replace("(?P<w>", "(?:"), text)
    cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(written["pattern"]["Regex"]), "isolated")
    assert [piece for piece, _ in cut.pre_tokenize_str(text)] == words
    theirs = tokenizers.Tokenizer.from_file(str(file))
    assert Tokenizer.from_file(str(file)).encode(text) == theirs.encode(text).ids
