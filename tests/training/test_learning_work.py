"""The estimate of the work of learning, by the steps of real trainings that are played again.

A step is the CPU seconds since a training began, its merges, the count of the last one, and what
the learner had done then. The trainings are of 60 MB of English, of four collections of other
languages and of Chinese, and of 300 MB of code, with 32,000 and 128,000 entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from bpe_beam.training.learn import learn
from bpe_beam.training.learning_work import LearnerState, LearningWork
from bpe_beam.training.recipe import BpeRecipe, WordPieceRecipe
from bpe_beam.training.words import Words

pytestmark = pytest.mark.quick


class Training(NamedTuple):
    """A training that was recorded.

    Attributes:
        symbols: The symbols of its words.
        merges: How many merges were asked for.
        begun: When words were laid out, in CPU seconds.
        ended: When it ended.
        steps: Its steps.
    """

    symbols: int
    merges: int
    begun: float
    ended: float
    steps: list[tuple[float, ...]]


# fmt: off
ENGLISH = Training(
    symbols=2701445, merges=31744, begun=0.046, ended=0.640, steps=[
        (0.069, 1, 2959852, 10124, 7, 1, 2913587, 118, 504775, 92495),
        (0.069, 2, 970474, 15060, 13, 1, 2913587, 118, 504775, 92495),
        (0.07, 4, 778282, 15246, 19, 1, 2913587, 118, 504775, 92495),
        (0.071, 8, 556330, 48634, 304, 1, 2913587, 118, 504775, 92495),
        (0.076, 16, 369400, 102078, 1055, 1, 2913587, 118, 504775, 92495),
        (0.081, 33, 196351, 181126, 2500, 1, 2913587, 118, 504775, 92495),
        (0.117, 72, 84194, 310226, 5880, 2, 2665348, 1564, 1071117, 2877),
        (0.123, 144, 43115, 417079, 12251, 2, 2665348, 1564, 1071117, 2877),
        (0.134, 289, 20195, 575968, 22435, 2, 2665348, 1564, 1071117, 2877),
        (0.144, 582, 8979, 729516, 36397, 2, 2665348, 1564, 1071117, 2877),
        (0.163, 1175, 3940, 1033269, 61469, 2, 2665348, 1564, 1071117, 2877),
        (0.252, 1671, 2611, 1186799, 78996, 3, 1918161, 18712, 1225426, 89),
        (0.285, 3384, 1055, 1509384, 137622, 3, 1918161, 18712, 1225426, 89),
        (0.326, 6282, 434, 1797142, 225928, 3, 1918161, 18712, 1225426, 89),
        (0.365, 10782, 191, 1983064, 308174, 3, 1918161, 18712, 1225426, 89),
        (0.503, 17782, 85, 2135390, 393672, 4, 1011984, 225969, 598272, 2),
        (0.543, 25782, 41, 2224442, 462312, 4, 1011984, 225969, 598272, 2),
        (0.582, 31282, 28, 2266276, 495801, 4, 1011984, 225969, 598272, 2),
        (0.584, 31744, 27, 2269331, 498052, 4, 1011984, 225969, 598272, 2),
    ],
)
LANGUAGES = Training(
    symbols=10126069, merges=31744, begun=0.160, ended=2.001, steps=[
        (0.266, 1, 559096, 2928, 6, 1, 10818464, 491, 5461048, 17471),
        (0.27, 2, 509024, 63088, 147, 1, 10818464, 491, 5461048, 17471),
        (0.275, 4, 469656, 144405, 309, 1, 10818464, 491, 5461048, 17471),
        (0.281, 8, 330698, 277734, 662, 1, 10818464, 491, 5461048, 17471),
        (0.299, 16, 254318, 728445, 1395, 1, 10818464, 491, 5461048, 17471),
        (0.319, 33, 164238, 1141567, 2694, 1, 10818464, 491, 5461048, 17471),
        (0.358, 72, 87198, 1940704, 6638, 1, 10818464, 491, 5461048, 17471),
        (0.397, 144, 46271, 2683869, 14439, 1, 10818464, 491, 5461048, 17471),
        (0.453, 289, 21786, 3632727, 28695, 1, 10818464, 491, 5461048, 17471),
        (0.658, 365, 17349, 3979824, 36254, 2, 7477840, 9025, 5080203, 544),
        (0.732, 735, 7733, 4796779, 73462, 2, 7477840, 9025, 5080203, 544),
        (0.812, 1486, 3569, 5649870, 142903, 2, 7477840, 9025, 5080203, 544),
        (0.908, 3008, 1632, 6550153, 257684, 2, 7477840, 9025, 5080203, 544),
        (1.009, 6282, 653, 7402119, 441408, 2, 7477840, 9025, 5080203, 544),
        (1.553, 7282, 543, 7571094, 488918, 3, 4350280, 140586, 2321701, 16),
        (1.679, 14282, 241, 8057407, 708074, 3, 4350280, 140586, 2321701, 16),
        (1.806, 25782, 111, 8462339, 931421, 3, 4350280, 140586, 2321701, 16),
        (1.917, 31744, 84, 8596202, 1011771, 3, 4350280, 140586, 2321701, 16),
    ],
)
CHINESE = Training(
    symbols=43366024, merges=31744, begun=0.641, ended=7.670, steps=[
        (1.138, 1, 1124221, 271, 51, 1, 45729857, 354, 21490876, 35131),
        (1.138, 2, 1116692, 393, 85, 1, 45729857, 354, 21490876, 35131),
        (1.139, 4, 1112981, 733, 179, 1, 45729857, 354, 21490876, 35131),
        (1.224, 8, 299797, 1328035, 599, 1, 45729857, 354, 21490876, 35131),
        (1.354, 16, 192234, 2841502, 1434, 1, 45729857, 354, 21490876, 35131),
        (1.521, 33, 123244, 4949078, 3113, 1, 45729857, 354, 21490876, 35131),
        (1.837, 72, 79792, 8331310, 7258, 1, 45729857, 354, 21490876, 35131),
        (2.199, 144, 46858, 12108002, 17931, 1, 45729857, 354, 21490876, 35131),
        (3.109, 229, 32455, 15051898, 35750, 2, 31382141, 4811, 18750360, 1092),
        (3.538, 461, 16569, 19788029, 127415, 2, 31382141, 4811, 18750360, 1092),
        (3.949, 929, 6282, 23791428, 488480, 2, 31382141, 4811, 18750360, 1092),
        (4.295, 1879, 2335, 26747823, 1312879, 2, 31382141, 4811, 18750360, 1092),
        (6.567, 3008, 1091, 28224730, 2034898, 3, 17532725, 102766, 6717692, 34),
        (6.859, 6282, 378, 29907954, 3201662, 3, 17532725, 102766, 6717692, 34),
        (7.135, 12782, 157, 31276604, 4409408, 3, 17532725, 102766, 6717692, 34),
        (7.464, 25782, 68, 32547838, 5619379, 3, 17532725, 102766, 6717692, 34),
        (7.577, 31744, 53, 32913107, 5971712, 3, 17532725, 102766, 6717692, 34),
    ],
)
CODE = Training(
    symbols=2151977, merges=127744, begun=0.044, ended=1.020, steps=[
        (0.067, 1, 23380882, 17115, 8, 1, 2449777, 38, 279321, 730652),
        (0.067, 2, 10994888, 24728, 17, 1, 2449777, 38, 279321, 730652),
        (0.068, 4, 3072911, 43092, 128, 1, 2449777, 38, 279321, 730652),
        (0.07, 8, 2092860, 119282, 355, 1, 2449777, 38, 279321, 730652),
        (0.072, 16, 1164195, 155989, 761, 1, 2449777, 38, 279321, 730652),
        (0.099, 30, 730646, 201066, 1746, 2, 2293371, 1000, 1319651, 22832),
        (0.107, 64, 432120, 328977, 4588, 2, 2293371, 1000, 1319651, 22832),
        (0.114, 128, 233280, 483512, 10192, 2, 2293371, 1000, 1319651, 22832),
        (0.124, 257, 116290, 715993, 22986, 2, 2293371, 1000, 1319651, 22832),
        (0.137, 518, 51957, 986579, 48792, 2, 2293371, 1000, 1319651, 22832),
        (0.209, 1045, 22053, 1267353, 88320, 3, 1549410, 11759, 623681, 713),
        (0.227, 2113, 8690, 1432851, 142585, 3, 1549410, 11759, 623681, 713),
        (0.245, 4282, 3019, 1597012, 204947, 3, 1549410, 11759, 623681, 713),
        (0.268, 8782, 931, 1750701, 271500, 3, 1549410, 11759, 623681, 713),
        (0.344, 10782, 661, 1791160, 290045, 4, 1136030, 100733, 378647, 22),
        (0.388, 21782, 193, 1888495, 353947, 4, 1136030, 100733, 378647, 22),
        (0.451, 37282, 72, 1966110, 398149, 4, 1136030, 100733, 378647, 22),
        (0.513, 59282, 30, 2038126, 431783, 4, 1136030, 100733, 378647, 22),
        (0.565, 69782, 21, 2064397, 442555, 5, 793632, 133529, 179962, 11),
        (0.627, 98282, 11, 2111875, 464016, 5, 793632, 133529, 179962, 11),
        (0.657, 100282, 10, 2114723, 465071, 6, 691370, 147708, 178686, 6),
        (0.72, 126782, 7, 2152253, 479347, 6, 691370, 147708, 178686, 6),
        (0.722, 127744, 6, 2153583, 479880, 6, 691370, 147708, 178686, 6),
    ],
)
# fmt: on


def estimates(training: Training) -> list[tuple[float, float, float]]:
    """Return at each step the share of the time, the work done, and all work that is expected."""
    work = LearningWork(training.symbols, training.merges)
    found = [(training.begun / training.ended, *work.amounts())]
    for seconds, merges, count, *state in training.steps:
        work.add(int(merges), int(count), LearnerState(*map(int, state)))
        found.append((seconds / training.ended, *work.amounts()))
    return found


@pytest.mark.parametrize("training", [ENGLISH, LANGUAGES, CHINESE, CODE])
def test_the_end_is_foreseen(training: Training) -> None:
    """From the first tenth on, all time is told far better by the work than by merges."""
    late = [row for row in estimates(training) if row[0] >= 0.1]
    errors = [at * total / done - 1 for at, done, total in late]
    assert max(map(abs, errors)) < 0.32
    assert sum(map(abs, errors)) < 0.2 * len(errors)
    even = [seconds / training.ended * training.merges / n - 1 for seconds, n, *_ in training.steps]
    assert sorted(map(abs, even))[len(even) // 2] > 0.6


@pytest.mark.parametrize("training", [ENGLISH, LANGUAGES, CHINESE, CODE])
def test_work_is_foreseen(training: Training) -> None:
    """The work that a training will have taken is known from the first merges on."""
    found = estimates(training)
    whole = found[-1][2]
    assert all(abs(total / whole - 1) < 0.33 for _, _, total in found)
    assert all(abs(total / whole - 1) < 0.15 for at, _, total in found if at > 0.55)


def test_what_is_done_grows_and_ends() -> None:
    found = estimates(CODE)
    done = [amount for _, amount, _ in found]
    assert done == sorted(done)
    assert all(amount <= total for _, amount, total in found)
    _, amount, total = found[-1]
    assert 0.5 < amount / total < 0.9, "tokens are made of merges in the end"


def test_pairs_may_run_out() -> None:
    """The rarer the rarest pair may be, the more merges there are to come."""

    def expected(least: int) -> float:
        work = LearningWork(ENGLISH.symbols, ENGLISH.merges, least)
        for _, merges, count, *state in ENGLISH.steps:
            if merges < 1_000:
                work.add(int(merges), int(count), LearnerState(*map(int, state)))
        return work.amounts()[1]

    assert expected(3_000) < expected(300) < expected(30) == expected(0)


def test_a_continued_tokenizer_has_done_the_long_merges() -> None:
    """Of as many symbols, later merges are left: shorter ones, with more neighbours."""
    first = LearningWork(1_000_000, 20_000)
    later = LearningWork(1_000_000, 20_000, merged=20_000)
    assert first.amounts()[0] == later.amounts()[0]
    assert later.amounts()[1] != first.amounts()[1]


@pytest.mark.parametrize("recipe", [BpeRecipe(600), WordPieceRecipe(600)])
def test_learning_reports_its_work(recipe: BpeRecipe | WordPieceRecipe) -> None:
    made = np.random.default_rng(1)
    lengths = made.integers(1, 9, 3_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    data = (97 + np.minimum(made.geometric(0.2, int(offsets[-1])), 25)).astype(np.uint8)
    words = Words(data, offsets, made.integers(1, 50, 3_000).astype(np.int64))
    reports: list[tuple[int, float, float]] = []
    learned = learn(words, recipe, lambda merges, work: reports.append((merges, *work.amounts())))
    assert reports[0][0] == 0
    assert sum(merges for merges, _, _ in reports) == len(learned.counts)
    done = [amount for _, amount, _ in reports]
    assert done[0] > 0
    assert done == sorted(done)
    assert all(amount < total for _, amount, total in reports)
