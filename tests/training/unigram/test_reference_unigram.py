"""The definition of learning pieces, by worked examples."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from fractions import Fraction

import pytest
from reference_unigram import (
    UNIT,
    Segment,
    Settings,
    best_path,
    count_paths,
    cut_words,
    digamma,
    estimate,
    exact_counts,
    exp,
    expected_counts,
    find_seeds,
    kept_characters,
    log,
    merged_seeds,
    prune,
    reserved_score,
    token_scores,
    train_mingram,
    train_unigram,
    ways,
)

pytestmark = pytest.mark.quick

WORDS = {"▁hug": 10, "▁pug": 5, "▁pun": 12, "▁bun": 4, "▁hugs": 5}
ALL = Settings(11, coverage=Fraction(1))
CHARACTERS = "bghnpsu▁"

SEEDS = {
    "b": 4, "bun": 12, "g": 20, "gs": 10, "h": 15, "hug": 45, "hugs": 20, "n": 16, "p": 17,
    "pu": 34, "pug": 15, "pun": 36, "s": 5, "u": 36, "ug": 40, "ugs": 15, "un": 32, "▁": 36,
    "▁bun": 16, "▁hug": 60, "▁hugs": 25, "▁pu": 51, "▁pug": 20, "▁pun": 48,
}  # fmt: skip
EXPECTED = {
    "▁bun": (17259389714375808, 18014398240771196, -2.4201521833562856),
    "▁hug": (43544102203854720, 45211729187612230, -1.4204219873489632),
    "▁hugs": (21110744111320690, 22342264977050890, -2.1788256783073594),
    "▁pug": (19918619735947590, 22512561497427755, -2.1704193778388143),
    "▁pun": (50405792765130552, 54038396657373360, -1.2337007586078959),
}
ALTERNATIVES = {
    "▁bun": (-40603416, -378479220, "▁ b u n", 30.969608087263136),
    "▁hug": (-23830726, -378479220, "▁ h u g", 62.673447506674535),
    "▁hugs": (-36554629, -118450531, "▁hug s", 5.677874969251478),
    "▁pug": (-36413595, -378479220, "▁ p u g", 36.577349275694466),
    "▁pun": (-20698064, -378479220, "▁ p u n", 72.82110705892933),
}


def segments_of(words: Mapping[str, int], settings: Settings = ALL) -> list[Segment]:
    return cut_words(words, kept_characters(words, settings), settings)


def seeds_of(words: Mapping[str, int], settings: Settings = ALL) -> dict[str, int]:
    kept = kept_characters(words, settings)
    return find_seeds(cut_words(words, kept, settings), kept, settings)


class TestFiveWords:
    """hug 10, pug 5, pun 12, bun 4, hugs 5, each after a space."""

    def test_seeds(self) -> None:
        assert seeds_of(WORDS) == SEEDS
        assert sum(SEEDS.values()) == 628

    def test_expected_counts_and_scores(self) -> None:
        segments = segments_of(WORDS)
        first = expected_counts(segments, {t: w / 628.0 for t, w in SEEDS.items()})
        assert {t: first[t] for t in EXPECTED} == {t: n for t, (n, _, _) in EXPECTED.items()}
        assert first["▁pu"] == 2982082935574113
        assert first["▁"] == 6908855119134398
        assert all(first[t] < UNIT // 2 for t in {*SEEDS} - {*EXPECTED, "▁pu", "▁"})
        kept, scores = estimate(first)
        assert {*kept} == {*EXPECTED, "▁pu", *CHARACTERS}
        assert kept["b"] == UNIT // 2
        assert (scores["▁pun"], scores["b"]) == (-1.2936980698039608, -5.627099063283809)
        second = expected_counts(segments, {t: exp(score) for t, score in scores.items()})
        assert {t: second[t] for t in EXPECTED} == {t: n for t, (_, n, _) in EXPECTED.items()}
        assert (second["▁pu"], second["▁"]) == (10234972891655, 1052210775)
        _, scores = estimate(second)
        floor = dict.fromkeys(CHARACTERS, -5.639779860887542)
        assert scores == floor | {t: score for t, (_, _, score) in EXPECTED.items()}

    def test_pruning(self) -> None:
        scores = {t: round(score * 2**24) for t, (_, _, score) in EXPECTED.items()}
        units = scores | dict.fromkeys(CHARACTERS, round(-5.639779860887542 * 2**24))
        counts = count_paths(segments_of(WORDS), units)
        assert counts == dict.fromkeys(CHARACTERS, 0) | {
            "▁bun": 4, "▁hug": 10, "▁hugs": 5, "▁pug": 5, "▁pun": 12,
        }  # fmt: skip
        pruned = prune(units, counts, dict.fromkeys(units, 0), ALL)
        for piece, (score, alternative, parts, loss) in ALTERNATIVES.items():
            assert units[piece] == score
            assert pruned.alternatives[piece] == (alternative, tuple(parts.split()))
            assert pruned.losses[piece] == loss
        assert {*pruned.kept} == {*units} - {"▁hugs"}

    def test_unigram(self) -> None:
        low = [(character, -5.75) for character in "bghnpu▁"]
        expected = [("▁hug", -1.109375), ("▁pun", -1.34375), ("s", -2.28125), *low]
        assert train_unigram(WORDS, ALL) == expected
        assert reserved_score(expected, ("<unk>",)) == -54

    def test_mingram(self) -> None:
        settings = Settings(13, coverage=Fraction(1), overshoot=Fraction(3, 2))
        kept = kept_characters(WORDS, settings)
        counts = merged_seeds(segments_of(WORDS, settings), kept, settings)
        assert counts == {
            **kept, "ug": 20, "▁p": 17, "un": 16, "hug": 15, "▁hug": 15, "▁pun": 12,
        }  # fmt: skip
        assert sum(counts.values()) == 244
        assert token_scores(counts) == {
            "b": -8718, "g": -8512, "h": -8549, "hug": -8549, "n": -8541, "p": -8533, "s": -8690,
            "u": -8437, "ug": -8512, "un": -8541, "▁": -8437, "▁hug": -8549, "▁p": -8533,
            "▁pun": -8578,
        }  # fmt: skip
        used = count_paths(segments_of(WORDS, settings), token_scores(counts))
        assert {t: n for t, n in used.items() if n} == {
            "▁hug": 15, "▁pun": 12, "▁p": 5, "ug": 5, "s": 5, "b": 4, "un": 4, "▁": 4,
        }  # fmt: skip
        assert train_mingram(WORDS, settings) == [
            ("▁hug", -65.3515625), ("▁pun", -65.578125), ("s", -66.453125), ("ug", -66.453125),
            ("▁p", -66.453125), ("b", -66.671875), ("n", -66.671875), ("u", -66.671875),
            ("▁", -66.671875), ("g", -68.0625), ("h", -68.0625), ("p", -68.0625),
        ]  # fmt: skip


def test_followers_are_looked_up_in_the_word() -> None:
    words = {"▁it's": 3, "▁its": 2}
    assert {*segments_of(words)} == {
        Segment("▁it", 3, "'"), Segment("'", 3, "s"), Segment("s", 3, ""), Segment("▁its", 2, ""),
    }  # fmt: skip
    assert seeds_of(words) == {
        "'": 3, "i": 5, "it": 10, "its": 6, "s": 5, "t": 5, "ts": 4, "▁": 5, "▁it": 15, "▁its": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "segments"),
    [
        ("▁don't", "▁don ' t"),
        ("▁ab1c", "▁ab 1 c"),
        ("▁カー漢ひx", "▁カー漢ひ x"),
        ("▁e\u0301a", "▁e\u0301a"),
        ("▁\u03011", "▁\u03011"),
        ("▁aдa", "▁a д a"),
        ("a▁1", "a▁ 1"),
        ("▁a?\u0301b", "▁a ?\u0301 b"),
        ("a z", "a\u00a0z"),
        ("▁a~b", "▁a b"),
        ("~~", ""),
        ("a~\u0301b", "a \u0301b"),
    ],
)
def test_segments(word: str, segments: str) -> None:
    expected = [each.replace("\u00a0", " ") for each in segments.split(" ")] if segments else []
    kept = {*word} - {"~"}
    assert [each.text for each in cut_words({word: 1}, kept, ALL)] == expected


def test_long_words_are_cut() -> None:
    settings = Settings(11, max_segment=3)
    cut = cut_words({"aaaaaaa": 1, "aa1aaaa": 2}, {"a", "1"}, settings)
    assert cut == [
        Segment("aaa", 1, "a"), Segment("aaa", 1, "a"), Segment("a", 1, ""),
        Segment("aa", 2, "1"), Segment("1", 2, "a"), Segment("aaa", 2, "a"), Segment("a", 2, ""),
    ]  # fmt: skip


def test_kept_characters() -> None:
    words = {"aab": 5, "cab": 1, "dd": 1}  # a 11, b 6, d 2, c 1
    assert kept_characters(words, Settings(9, coverage=Fraction(17, 20))) == {"a": 11, "b": 6}
    more = Settings(9, coverage=Fraction(17, 20), initial_alphabet="cz")
    assert kept_characters(words, more) == {"a": 11, "b": 6, "c": 1, "z": 0}
    in_bytes = Settings(300, coverage=Fraction(1, 20), byte_fallback=True)
    assert {*kept_characters(words, in_bytes)} == {"a", *"<>x0123456789ABCDEF"}
    assert "d" not in kept_characters({"c": 1, "d": 1}, Settings(9, coverage=Fraction(1, 2)))


def test_doubles_are_near_those_of_the_library() -> None:
    chosen = random.Random(1)
    for _ in range(2_000):
        x = chosen.uniform(0.5, 100) * 10 ** chosen.randrange(18)
        assert abs(log(x) - math.log(x)) <= 2 * math.ulp(math.log(x))
        y = chosen.uniform(-60, 0)
        assert abs(exp(y) - math.exp(y)) <= math.ulp(math.exp(y))
    assert digamma(0.5) == pytest.approx(-1.9635100260214235, abs=6e-11)
    assert digamma(1.0) == pytest.approx(-0.5772156649015329, abs=6e-11)
    assert digamma(10.0) == pytest.approx(2.251752589066721, abs=6e-11)


def random_case(seed: int) -> tuple[list[Segment], dict[str, float]]:
    """Segments of at most nine letters, and the probabilities of pieces."""
    chosen = random.Random(seed)
    words = {
        "".join(chosen.choices("abc", k=chosen.randint(1, 9))): chosen.randint(1, 50)
        for _ in range(chosen.randint(1, 6))
    }
    weights = seeds_of(words)
    chosen_weights = {t: w * chosen.choice((1, 1, 1, 2**-40)) for t, w in weights.items()}
    return segments_of(words), {t: w / sum(weights.values()) for t, w in chosen_weights.items()}


@pytest.mark.parametrize("seed", range(20))
def test_expected_counts_are_near_exact_ones(seed: int) -> None:
    segments, probabilities = random_case(seed)
    exact = exact_counts(segments, probabilities)
    for piece, count in expected_counts(segments, probabilities).items():
        occurrences = sum(
            each.times * sum(each.text.startswith(piece, at) for at in range(len(each.text)))
            for each in segments
        )
        assert abs(count - exact[piece] * UNIT) <= 16 * occurrences


@pytest.mark.parametrize("seed", range(20))
def test_best_paths_are_the_best_of_all_ways(seed: int) -> None:
    segments, probabilities = random_case(seed)
    units = {piece: round(log(p) * 4) for piece, p in probabilities.items()}

    def rank(way: tuple[str, ...]) -> tuple[int, list[int]]:
        begins = [sum(map(len, way[:at])) for at in range(len(way))]
        return sum(units[piece] for piece in way), [-begin for begin in reversed(begins)]

    for text, _, _ in segments:
        best = max(ways(text, units), key=rank)
        assert best_path(text, units) == (rank(best)[0], best)


def test_rare_characters_do_not_vanish() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 60)))
    probabilities = dict.fromkeys(text, 2.0**-66) | {text[:2]: 2.0**-60}
    counts = expected_counts([Segment(text, 3, "")], probabilities)
    assert all(abs(counts[character] - 3 * UNIT) <= 48 for character in text[2:])
    assert sum(counts[piece] for piece in (text[0], text[:2])) == pytest.approx(3 * UNIT)


def test_likelihood_does_not_fall() -> None:
    """The textbook's property of the steps: with `log` for `digamma`."""
    segments, probabilities = random_case(3)
    before = -math.inf
    for _ in range(10):
        likelihood = sum(
            each.times * math.log(sum(math.prod(probabilities[t] for t in way)
                                      for way in ways(each.text, probabilities)))
            for each in segments
        )  # fmt: skip
        assert likelihood >= before - 1e-9
        before = likelihood
        counts = expected_counts(segments, probabilities)
        total = sum(counts.values())
        probabilities = {piece: count / total for piece, count in counts.items()}
