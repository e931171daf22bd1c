"""Learning pieces, slow and readable: the definition that the fast trainers are tested against.

docs/algorithm.md describes it. `unigram` is expectation maximization with pruning, as in
SentencePiece, and `mingram` a vocabulary that spells words with the fewest tokens. Counts are
integers; probabilities and scores are doubles whose operations have one order, so that another
program can compute the same bits. For small corpora only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import regex
from reference_bpe import Rules, count_pairs, learn_bpe, merge_pair, split_words

SPACE = "\u2581"
BYTE_CHARACTERS = "<>x0123456789ABCDEF"
"""The characters of the tokens of bytes, which are kept with `byte_fallback`."""

UNIT = 2**52  # expected counts are integers in this part of one
SCORE_UNIT = 2**24  # scores of paths are integers in this part of one
FINAL_UNIT = 128  # scores in files are multiples of this part of one
TOKEN_COST = 64  # what each token of a path costs in `mingram`, in natural logarithms
MAX_SEGMENT = 4096

Scores = Mapping[str, int]


@dataclass(frozen=True)
class Settings:
    """The settings of both models.

    Attributes:
        vocab_size: Entries of the vocabulary, special tokens and bytes included.
        specials: The unknown token and the special tokens, in the order of their ids.
        coverage: The least share of all characters that the kept ones have.
        shrinking: The share of the pieces that a pruning leaves.
        overshoot: How many more pieces `mingram` begins with.
    """

    vocab_size: int
    specials: tuple[str, ...] = ("<unk>",)
    byte_fallback: bool = False
    initial_alphabet: str = ""
    coverage: Fraction = Fraction(9995, 10000)
    max_piece_length: int = 16
    by_script: bool = True
    seed_size: int = 1_000_000
    shrinking: Fraction = Fraction(3, 4)
    sub_iterations: int = 2
    overshoot: Fraction = Fraction(115, 100)
    max_segment: int = MAX_SEGMENT

    @property
    def reserved(self) -> tuple[str, ...]:
        """The entries that are no pieces."""
        in_bytes = [f"<0x{byte:02X}>" for byte in range(256)] if self.byte_fallback else []
        return (*self.specials, *in_bytes)

    @property
    def room(self) -> int:
        """How many pieces the vocabulary has room for."""
        return self.vocab_size - len(self.reserved)


# ---- doubles, by operations whose results IEEE 754 defines ----

_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_INVERSE_LN2 = float.fromhex("0x1.71547652b82fep+0")
_ROOT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")


def log(x: float) -> float:
    """The natural logarithm of x > 0."""
    m, e = math.frexp(x)
    if m < _ROOT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 21
    for k in range(9, -1, -1):
        p = p * z + 2.0 / (2 * k + 1)
    return e * _LN2_HIGH + (e * _LN2_LOW + s * p)


def exp(x: float) -> float:
    """The exponential of -700 < x <= 0."""
    k = round(x * _INVERSE_LN2)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / math.factorial(13)
    for n in range(12, -1, -1):
        p = p * r + 1.0 / math.factorial(n)
    return math.ldexp(p, k)


def digamma(x: float) -> float:
    """The logarithmic derivative of the gamma function at x >= 0.5."""
    r = 0.0
    while x < 7.0:
        r = r - 1.0 / x
        x = x + 1.0
    y = x - 0.5
    t = 1.0 / y
    t = t * t
    s = t * (1 / 24 + t * (-7 / 960 + t * (31 / 8064 + t * (-127 / 30720))))
    return (r + log(y)) + s


# ---- from words to segments, which no piece leaves ----


class Segment(NamedTuple):
    """A stretch of a word; `follower` is the character behind it in the word, empty at its end."""

    text: str
    times: int
    follower: str


_SCRIPTS = {
    name: regex.compile(rf"\p{{Script={name}}}")
    for name in ("Common", "Inherited", "Latin", "Han", "Hiragana", "Katakana", "Cyrillic", "Thai")
}


def script(character: str) -> str:
    """The script of a character; empty for a blank, U+2581, and what has none.

    Kana, and the mark of a long vowel, are of one script with Han. Scripts that the tests do not
    use are one script here.
    """
    if character in (" ", SPACE) or regex.match(r"\p{Script=Unknown}", character):
        return ""
    name = next((name for name, one in _SCRIPTS.items() if one.match(character)), "other")
    return "Han" if name in ("Hiragana", "Katakana") or character == "\u30fc" else name


def kept_characters(words: Mapping[str, int], settings: Settings) -> dict[str, int]:
    """The characters that become pieces, and how often each occurs."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    total, covered, kept = sum(counts.values()), 0, {}
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if covered >= settings.coverage * total:
            break
        covered += count
        kept[character] = count
    needed = settings.initial_alphabet + (BYTE_CHARACTERS if settings.byte_fallback else "")
    return kept | {character: counts[character] for character in needed}


def cut_words(words: Mapping[str, int], kept: Collection[str], settings: Settings) -> list[Segment]:
    """The segments of all words; equal ones may be listed several times."""
    return [
        Segment(word[begin:end], count, word[end : end + 1])
        for word, count in words.items()
        for begin, end in _segments(word, kept, settings)
    ]


def _segments(word: str, kept: Collection[str], settings: Settings) -> Iterator[tuple[int, int]]:
    begin, before = 0, ""
    for at, character in enumerate(word):
        if character not in kept:
            if begin < at:
                yield begin, at
            begin, before = at + 1, ""
            continue
        now = script(character) if settings.by_script else ""
        if now == "Inherited":
            now = before
        other_script = bool(before and now) and now != before
        if begin < at and (other_script or at - begin == settings.max_segment):
            yield begin, at
            begin = at
        before = now or before
    if begin < len(word):
        yield begin, len(word)


def find_seeds(
    segments: Iterable[Segment], kept: Mapping[str, int], settings: Settings
) -> dict[str, int]:
    """The first pieces, each with its weight: kept characters, and the best substrings.

    A substring that one and the same character follows wherever it occurs is left out.
    """
    counts: Counter[str] = Counter()
    followers: dict[str, set[str]] = {}
    for text, count, last in segments:
        for begin in range(len(text)):
            for end in range(begin + 2, min(len(text), begin + settings.max_piece_length) + 1):
                piece = text[begin:end]
                counts[piece] += count
                followers.setdefault(piece, set()).add(text[end : end + 1] or last)
    weights = {
        piece: count * len(piece)
        for piece, count in counts.items()
        if count >= 2
        and (len(followers[piece]) > 1 or "" in followers[piece])
        and piece not in settings.reserved
    }
    best = sorted(weights, key=lambda piece: (-weights[piece], piece.encode()))
    return in_bytes({**kept, **{piece: weights[piece] for piece in best[: settings.seed_size]}})


def in_bytes(pieces: Mapping[str, int]) -> dict[str, int]:
    """Pieces in the order of their bytes."""
    return dict(sorted(pieces.items(), key=lambda item: item[0].encode()))


# ---- expected counts ----


def ways(text: str, pieces: Collection[str]) -> Iterator[tuple[str, ...]]:
    """All ways to cut a text into pieces."""
    if not text:
        yield ()
    for end in range(1, len(text) + 1):
        if text[:end] in pieces:
            for rest in ways(text[end:], pieces):
                yield (text[:end], *rest)


def exact_counts(
    segments: Iterable[Segment], probabilities: Mapping[str, float]
) -> dict[str, Fraction]:
    """How often each piece is expected, over all ways to cut each segment."""
    expected = dict.fromkeys(probabilities, Fraction(0))
    exact = {piece: Fraction(p) for piece, p in probabilities.items()}
    for text, count, _ in segments:
        weight = {way: math.prod((exact[t] for t in way), start=Fraction(1))
                  for way in ways(text, exact)}  # fmt: skip
        total = sum(weight.values())
        for way, p in weight.items():
            for piece in way:
                expected[piece] += count * p / total
    return expected


def expected_counts(
    segments: Iterable[Segment], probabilities: Mapping[str, float]
) -> dict[str, int]:
    """The expected counts in `UNIT`, by doubles in a fixed order."""
    expected = dict.fromkeys(probabilities, 0)
    longest = max(map(len, probabilities))
    for text, count, _ in segments:
        n = len(text)
        alpha, shift = [1.0] + [0.0] * n, [0] * (n + 1)
        edges = [
            [(j, text[i:j]) for j in range(i + 1, min(n, i + longest) + 1)
             if text[i:j] in probabilities]
            for i in range(n)
        ]  # fmt: skip
        for i in range(n):
            if alpha[i] < 2.0**-200:
                alpha[i] *= 2.0**200
                shift[i] += 1
            for j, piece in edges[i]:
                least = min(shift[i], shift[j]) if alpha[j] else shift[i]
                more = alpha[i] * probabilities[piece]
                alpha[j] = math.ldexp(alpha[j], 200 * (least - shift[j])) + math.ldexp(
                    more, 200 * (least - shift[i])
                )
                shift[j] = least
        beta = [0.0] * n + [1.0 / alpha[n]]
        for i in range(n - 1, -1, -1):
            for j, piece in edges[i]:
                v = math.ldexp(probabilities[piece] * beta[j], 200 * (shift[j] - shift[i]))
                beta[i] = beta[i] + v
                expected[piece] += count * round((alpha[i] * v) * 2.0**52)
    return expected


def estimate(expected: Mapping[str, int]) -> tuple[dict[str, int], dict[str, float]]:
    """The pieces that are expected at least half a time, or are characters; and their scores."""
    kept = {
        piece: max(count, UNIT // 2)
        for piece, count in expected.items()
        if count >= UNIT // 2 or len(piece) == 1
    }
    total = digamma(float(sum(kept.values())) * 2.0**-52)
    return kept, {piece: digamma(float(n) * 2.0**-52) - total for piece, n in kept.items()}


# ---- best paths ----


def best_path(text: str, scores: Scores, without: str = "") -> tuple[int, tuple[str, ...]] | None:
    """The greatest sum of scores of all ways to cut a text, and that way; None without any.

    Of equal sums the last piece that begins first counts, then the piece before it, and so on.
    """
    sums: list[tuple[int, tuple[str, ...]] | None] = [(0, ())] + [None] * len(text)
    for begin in range(len(text)):
        before = sums[begin]
        for end in range(begin + 1, len(text) + 1):
            piece = text[begin:end]
            if before is None or piece == without or piece not in scores:
                continue
            known, total = sums[end], before[0] + scores[piece]
            if known is None or total > known[0]:
                sums[end] = total, (*before[1], piece)
    return sums[len(text)]


def count_paths(segments: Iterable[Segment], scores: Scores) -> dict[str, int]:
    """How often each piece is in the best paths of the segments."""
    counts = dict.fromkeys(scores, 0)
    for text, count, _ in segments:
        best = best_path(text, scores)
        assert best is not None
        for piece in best[1]:
            counts[piece] += count
    return counts


def loss_of(piece: str, parts: Sequence[str], counts: Mapping[str, int]) -> float:
    """How much less likely the words become if a piece is replaced by its parts."""
    f, w = float(counts[piece]), float(sum(counts.values()))
    alternative = 0.0
    for part in reversed(parts):
        term = log(float(counts[part]) + f) - log(w + f * float(len(parts) - 1))
        alternative = alternative + term
    return f * ((log(f) - log(w)) - alternative)


class Pruning(NamedTuple):
    """What a pruning decides by: the best way without each piece, and each loss."""

    alternatives: dict[str, tuple[int, tuple[str, ...]]]
    losses: dict[str, float]
    kept: list[str]


def prune(
    scores: Scores, counts: Mapping[str, int], expected: Mapping[str, int], settings: Settings
) -> Pruning:
    """The pieces that stay, in the order of bytes."""
    desired = settings.vocab_size * 11 // 10
    target = max(desired, math.floor(len(scores) * settings.shrinking))
    alternatives = {}
    losses = {}
    kept = [piece for piece in scores if len(piece) == 1]
    for piece in scores:
        if len(piece) > 1:
            other = best_path(piece, scores, without=piece)
            assert other is not None
            alternatives[piece] = other
            if counts[piece] > 0 and other[0] <= scores[piece]:
                losses[piece] = loss_of(piece, other[1], counts)
    kept += sorted(losses, key=lambda t: (-losses[t], t.encode()))[: max(0, target - len(kept))]
    dropped = [piece for piece in scores if piece not in kept]
    back = sorted(dropped, key=lambda t: (-expected[t], t.encode()))
    kept += back[: max(0, desired - len(kept))]
    return Pruning(alternatives, losses, sorted(kept, key=str.encode))


# ---- the two models ----


def train_unigram(words: Mapping[str, int], settings: Settings) -> list[tuple[str, float]]:
    """The pieces of `unigram` with their scores, in the order of their ids."""
    kept = kept_characters(words, settings)
    segments = cut_words(words, kept, settings)
    weights = find_seeds(segments, kept, settings)
    total = float(sum(weights.values()))
    probabilities = {piece: float(weight) / total for piece, weight in weights.items()}
    while True:
        for _ in range(settings.sub_iterations):
            expected, scores = estimate(expected_counts(segments, probabilities))
            probabilities = {piece: exp(score) for piece, score in scores.items()}
        if len(scores) <= settings.vocab_size * 11 // 10:
            break
        units = {piece: round(score * SCORE_UNIT) for piece, score in scores.items()}
        pruned = prune(units, count_paths(segments, units), expected, settings)
        probabilities = {piece: probabilities[piece] for piece in pruned.kept}
    final = {piece: round(scores[piece] * FINAL_UNIT) for piece in scores}
    return final_pieces(choose(expected, settings), expected, final)


def choose(counts: Mapping[str, int], settings: Settings) -> list[str]:
    """The characters, and the most frequent others that the vocabulary has room for."""
    order = sorted(counts, key=lambda t: (len(t) > 1, -counts[t], t.encode()))
    return order[: settings.room]


def final_pieces(
    chosen: Iterable[str], counts: Mapping[str, int], scores: Scores
) -> list[tuple[str, float]]:
    """Pieces by falling count, with their scores."""
    order = sorted(chosen, key=lambda t: (-counts[t], t.encode()))
    return [(piece, scores[piece] / FINAL_UNIT) for piece in order]


def merged_seeds(
    segments: Sequence[Segment], kept: Mapping[str, int], settings: Settings
) -> dict[str, int]:
    """The kept characters and the tokens of BPE, each with the count of its last merge."""
    words = [(text, count) for text, count, _ in segments]
    others = math.floor((settings.room - len(kept)) * settings.overshoot)
    _, merges = learn_bpe(
        words,
        vocab_size=len(kept) + others,
        alphabet="seen",
        symbol_bytes=str.encode,
        initial_alphabet=kept,
        max_token_length=settings.max_piece_length + 1,
    )
    counts = dict(kept)
    rules = Rules(len(kept) + others, max_token_length=settings.max_piece_length + 1)
    counted = split_words(words, kept)
    for pair in merges:
        if "".join(pair) not in settings.reserved:
            counts["".join(pair)] = count_pairs(counted, rules.may_join)[pair]
        counted = [(merge_pair(symbols, pair, rules), count) for symbols, count in counted]
    return in_bytes(counts)


def token_scores(counts: Mapping[str, int]) -> dict[str, int]:
    """The scores of `mingram` in `FINAL_UNIT`: the fewest tokens win, then the likeliest."""
    total = log(float(sum(counts.values())))
    return {
        piece: round(FINAL_UNIT * (log(float(max(count, 1))) - total)) - TOKEN_COST * FINAL_UNIT
        for piece, count in counts.items()
    }


def train_mingram(words: Mapping[str, int], settings: Settings) -> list[tuple[str, float]]:
    """The pieces of `mingram` with their scores, in the order of their ids."""
    kept = kept_characters(words, settings)
    segments = cut_words(words, kept, settings)
    counts = merged_seeds(segments, kept, settings)
    for again in (False, True):
        if again:
            counts = in_bytes({piece: counts[piece] for piece in choose(counts, settings)})
        scores = token_scores(counts)
        for _ in range(2):
            counts = count_paths(segments, scores)
            scores = token_scores(counts)
    return final_pieces(counts, counts, scores)


def reserved_score(pieces: Iterable[tuple[str, float]], reserved: Iterable[str]) -> float:
    """The score of entries that are no pieces, below any way to spell their texts."""
    lowest = min(score for _, score in pieces)
    return max(8, *map(len, reserved)) * lowest - 8
