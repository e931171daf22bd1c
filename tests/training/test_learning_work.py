"""The estimate of the time of learning, by the steps of real trainings that are played again.

A step is the CPU seconds since a training began, its merges, the count of the last one, and what
the learner had done then. The trainings are of 62 MB of Chinese, of 60 MB in many languages, and of
560 MB of five kinds of text. Others were recorded on a busy machine, whose memory was half as fast:
60 MB of English, of other languages and of Chinese, and 300 MB of code. When their words were
spelled was not recorded, and is a sixth of the time until they were laid out.
"""

from __future__ import annotations

import bisect
import itertools
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
        spelled: When the symbols were found, in CPU seconds.
        begun: When words were laid out.
        ended: When it ended.
        steps: Its steps.
    """

    symbols: int
    merges: int
    spelled: float
    begun: float
    ended: float
    steps: list[tuple[float, ...]]


# fmt: off
CHINESE = Training(
    symbols=43366024, merges=31744, spelled=0.110, begun=0.618, ended=6.254, steps=[
        (1.099, 1, 1124221, 271, 51, 1, 45729857, 354, 21490876, 35131),
        (1.099, 2, 1116692, 393, 85, 1, 45729857, 354, 21490876, 35131),
        (1.184, 8, 299797, 1328035, 599, 1, 45729857, 354, 21490876, 35131),
        (1.436, 33, 123244, 4949078, 3113, 1, 45729857, 354, 21490876, 35131),
        (1.756, 81, 72669, 8913117, 8358, 1, 45729857, 354, 21490876, 35131),
        (2.067, 162, 42962, 12858651, 21520, 1, 45729857, 354, 21490876, 35131),
        (2.182, 204, 35519, 14316328, 30299, 1, 45729857, 354, 21490876, 35131),
        (2.816, 229, 32455, 15051898, 35750, 2, 31382141, 4811, 18750360, 1092),
        (3.147, 410, 18910, 19003881, 102180, 2, 31382141, 4811, 18750360, 1092),
        (3.465, 735, 8729, 22588068, 321289, 2, 31382141, 4811, 18750360, 1092),
        (3.779, 1486, 3265, 25903702, 1001510, 2, 31382141, 4811, 18750360, 1092),
        (4.003, 2674, 1316, 27907404, 1857008, 2, 31382141, 4811, 18750360, 1092),
        (5.432, 3008, 1091, 28224730, 2034898, 3, 17532725, 102766, 6717692, 34),
        (5.728, 8282, 266, 30449961, 3659359, 3, 17532725, 102766, 6717692, 34),
        (6.010, 20782, 88, 32159995, 5245412, 3, 17532725, 102766, 6717692, 34),
        (6.168, 31744, 53, 32913107, 5971712, 3, 17532725, 102766, 6717692, 34),
    ],
)
MIXED = Training(
    symbols=58839227, merges=31744, spelled=0.181, begun=0.869, ended=8.525, steps=[
        (1.230, 1, 28305795, 21612, 8, 1, 62392268, 72, 2093759, 884556),
        (1.230, 2, 12087392, 31334, 17, 1, 62392268, 72, 2093759, 884556),
        (1.245, 8, 2459023, 272672, 718, 1, 62392268, 72, 2093759, 884556),
        (1.275, 33, 1183706, 944625, 3062, 1, 62392268, 72, 2093759, 884556),
        (1.283, 46, 962124, 1164105, 4283, 1, 62392268, 72, 2093759, 884556),
        (1.911, 51, 851659, 1218622, 4725, 2, 61349887, 2092, 37406577, 27154),
        (2.335, 325, 151501, 8317057, 41100, 2, 61349887, 2092, 37406577, 27154),
        (2.751, 582, 83652, 13956983, 78263, 2, 61349887, 2092, 37406577, 27154),
        (3.205, 1045, 45506, 19956738, 143143, 2, 61349887, 2092, 37406577, 27154),
        (3.481, 1486, 30411, 23841130, 207624, 2, 61349887, 2092, 37406577, 27154),
        (4.440, 1671, 26982, 25168452, 237109, 3, 38645643, 22623, 20414424, 848),
        (4.835, 3008, 12841, 30076729, 481079, 3, 38645643, 22623, 20414424, 848),
        (5.256, 5782, 5379, 34659637, 1100703, 3, 38645643, 22623, 20414424, 848),
        (5.655, 11782, 1960, 38488508, 2215486, 3, 38645643, 22623, 20414424, 848),
        (5.945, 20782, 849, 40840209, 3266214, 3, 38645643, 22623, 20414424, 848),
        (8.195, 21282, 819, 40927629, 3317496, 4, 23516575, 417073, 9788260, 26),
        (8.433, 31744, 451, 42239807, 4159643, 4, 23516575, 417073, 9788260, 26),
    ],
)
LANGUAGES = Training(
    symbols=10126069, merges=127744, spelled=0.023, begun=0.146, ended=1.821, steps=[
        (0.247, 1, 559096, 2928, 6, 1, 10818464, 491, 5461048, 17471),
        (0.251, 2, 509024, 63088, 147, 1, 10818464, 491, 5461048, 17471),
        (0.260, 8, 330698, 277734, 662, 1, 10818464, 491, 5461048, 17471),
        (0.289, 33, 164238, 1141567, 2694, 1, 10818464, 491, 5461048, 17471),
        (0.376, 289, 21786, 3632727, 28695, 1, 10818464, 491, 5461048, 17471),
        (0.381, 325, 19475, 3768909, 32387, 1, 10818464, 491, 5461048, 17471),
        (0.508, 365, 17349, 3979824, 36254, 2, 7477840, 9025, 5080203, 544),
        (0.592, 1175, 4612, 5359128, 115916, 2, 7477840, 9025, 5080203, 544),
        (0.683, 3807, 1218, 6821467, 309168, 2, 7477840, 9025, 5080203, 544),
        (0.732, 6782, 597, 7495686, 467232, 2, 7477840, 9025, 5080203, 544),
        (0.957, 7282, 543, 7571094, 488918, 3, 4350280, 140586, 2321701, 16),
        (1.042, 16282, 204, 8152713, 757455, 3, 4350280, 140586, 2321701, 16),
        (1.129, 30782, 87, 8576685, 999872, 3, 4350280, 140586, 2321701, 16),
        (1.211, 48782, 46, 8872712, 1184350, 3, 4350280, 140586, 2321701, 16),
        (1.294, 71782, 27, 9116005, 1339683, 3, 4350280, 140586, 2321701, 16),
        (1.377, 96782, 17, 9303086, 1460079, 3, 4350280, 140586, 2321701, 16),
        (1.400, 104782, 16, 9353173, 1492606, 3, 4350280, 140586, 2321701, 16),
        (1.527, 105282, 15, 9355404, 1494429, 4, 2685719, 354106, 719600, 8),
        (1.583, 127744, 12, 9445606, 1573015, 4, 2685719, 354106, 719600, 8),
    ],
)
WORDPIECE = Training(
    symbols=6361533, merges=117574, spelled=0.345, begun=0.655, ended=2.284, steps=[
        (0.656, 1, 1, 1, 2, 1, 7051012, 187822, 5668945, 1),
        (0.656, 2, 1, 2, 3, 1, 7051012, 187822, 5668945, 1),
        (0.656, 8, 1, 8, 14, 1, 7051012, 187822, 5668945, 1),
        (0.657, 33, 2, 37, 49, 1, 7051012, 187822, 5668945, 1),
        (0.760, 10282, 1, 34152, 32783, 1, 7051012, 187822, 5668945, 1),
        (0.868, 17782, 1, 60692, 56468, 1, 7051012, 187822, 5668945, 1),
        (0.972, 25782, 1, 83508, 76487, 1, 7051012, 187822, 5668945, 1),
        (1.077, 31782, 1, 103722, 93472, 1, 7051012, 187822, 5668945, 1),
        (1.183, 39782, 1, 128773, 113866, 1, 7051012, 187822, 5668945, 1),
        (1.287, 47782, 1, 152731, 134331, 1, 7051012, 187822, 5668945, 1),
        (1.395, 55282, 1, 169409, 150969, 1, 7051012, 187822, 5668945, 1),
        (1.501, 63282, 1, 187574, 168722, 1, 7051012, 187822, 5668945, 1),
        (1.608, 72782, 1, 210920, 188180, 1, 7051012, 187822, 5668945, 1),
        (1.716, 81282, 2, 231448, 206660, 1, 7051012, 187822, 5668945, 1),
        (1.821, 91782, 1, 251628, 227081, 1, 7051012, 187822, 5668945, 1),
        (1.925, 101782, 1, 273319, 247677, 1, 7051012, 187822, 5668945, 1),
        (2.029, 112282, 1, 294048, 267420, 1, 7051012, 187822, 5668945, 1),
        (2.083, 117574, 2, 304921, 278174, 1, 7051012, 187822, 5668945, 1),
    ],
)
BUSY_ENGLISH = Training(
    symbols=2701445, merges=31744, spelled=0.008, begun=0.046, ended=0.640, steps=[
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
BUSY_LANGUAGES = Training(
    symbols=10126069, merges=31744, spelled=0.027, begun=0.160, ended=2.001, steps=[
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
BUSY_CHINESE = Training(
    symbols=43366024, merges=31744, spelled=0.107, begun=0.641, ended=7.670, steps=[
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
BUSY_CODE = Training(
    symbols=2151977, merges=127744, spelled=0.007, begun=0.044, ended=1.020, steps=[
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


class Estimate(NamedTuple):
    """An estimate.

    Attributes:
        at: When it was made, as a share of all time.
        left: The time that was expected then, as a share of all time.
        whole: All time by it, as a share of all time; the truth is 1.
    """

    at: float
    left: float
    whole: float


def estimates(training: Training, *, slower: float = 1.0) -> list[Estimate]:
    """Return what was expected at the beginning, and after each step.

    Args:
        training: What happened.
        slower: How many times as long everything took.
    """
    likelihood = training is WORDPIECE
    ids, asked = (10_426, 128_000) if likelihood else (256, training.merges + 256)
    work = LearningWork(training.symbols, asked, in_characters=likelihood, by_likelihood=likelihood)
    found: list[Estimate] = []

    def expect(seconds: float) -> None:
        at, left = seconds / training.ended, work.seconds_left() / slower / training.ended
        found.append(Estimate(at, left, at + left))

    expect(0.0)
    work.spelled(training.symbols, training.merges, ids, slower * training.spelled)
    expect(training.spelled)
    first = LearnerState(*map(int, training.steps[0][3:]))
    laid_out = first._replace(positions=0, neighbours=0) if likelihood else LearnerState()
    work.laid_out(laid_out, slower * training.begun)
    expect(training.begun)
    for seconds, merges, count, *state in training.steps:
        work.add(int(merges), int(count), LearnerState(*map(int, state)), slower * seconds)
        expect(seconds)
    return found


def share_within(found: list[Estimate], tolerance: float) -> float:
    """Return the share of moments from the first tenth on whose estimate is as good as that.

    Until the next step the time left falls with the clock.
    """
    moments = np.arange(0.1, 1, 0.005).tolist()
    said = [found[bisect.bisect_right(found, (at, 2.0)) - 1] for at in moments]
    return sum(abs(one.whole - 1) <= tolerance for one in said) / len(moments)


@pytest.mark.parametrize(
    ("training", "right"),
    [(CHINESE, 1.0), (MIXED, 1.0), (LANGUAGES, 1.0), (WORDPIECE, 0.84)],
)
def test_the_end_is_foreseen(training: Training, right: float) -> None:
    """From the first tenth on, the time left is known within a fifth of all time."""
    found = estimates(training)
    assert share_within(found, 0.2) >= right
    assert all(abs(one.whole - 1) < 0.13 for one in found if one.at > 0.35)


@pytest.mark.parametrize("training", [CHINESE, MIXED, LANGUAGES])
@pytest.mark.parametrize("slower", [0.5, 3.0])
def test_the_machine_may_have_another_speed(training: Training, slower: float) -> None:
    """The first things that take long tell it."""
    found = estimates(training, slower=slower)
    assert all(abs(one.whole - 1) < 0.2 for one in found if one.at > 0.2)


@pytest.mark.parametrize(
    ("training", "most", "mean", "late"),
    [
        (BUSY_ENGLISH, 0.35, 0.08, 0.04),
        (BUSY_LANGUAGES, 0.42, 0.25, 0.1),
        (BUSY_CHINESE, 0.21, 0.1, 0.13),
        (BUSY_CODE, 0.11, 0.05, 0.05),
    ],
)
def test_slow_memory_is_measured(training: Training, most: float, mean: float, late: float) -> None:
    """What waits for memory is expected to take as much longer as it did until now."""
    found = [one for one in estimates(training) if one.at >= 0.1]
    errors = [abs(one.whole - 1) for one in found]
    assert max(errors) < most
    assert sum(errors) < mean * len(errors)
    assert all(abs(one.whole - 1) < late for one in found if one.at > 0.55)
    merges = [n * training.ended / seconds for seconds, n, *_ in training.steps]
    even = [abs(training.merges / n - 1) for n in merges]
    assert sorted(even)[len(even) // 2] > 0.6, "merges tell far less"


def test_a_stop_is_no_speed() -> None:
    """A process that was stopped for a minute takes as long as before afterwards."""
    work = LearningWork(LANGUAGES.symbols, LANGUAGES.merges)
    work.spelled(LANGUAGES.symbols, LANGUAGES.merges, 256, LANGUAGES.spelled)
    work.laid_out(LearnerState(), LANGUAGES.begun)
    for seconds, merges, count, *state in LANGUAGES.steps:
        late = 60.0 if merges > 1_000 else 0.0
        work.add(int(merges), int(count), LearnerState(*map(int, state)), seconds + late)
        if 1_000 < merges < 50_000:
            left = LANGUAGES.ended - seconds
            assert work.seconds_left() < 2 * left


def test_pairs_may_run_out() -> None:
    """The rarer the rarest pair may be, the more merges there are to come."""

    def expected(least: int) -> float:
        work = LearningWork(LANGUAGES.symbols, LANGUAGES.merges, least)
        work.laid_out(LearnerState(), LANGUAGES.begun)
        for seconds, merges, count, *state in LANGUAGES.steps:
            if merges < 1_000:
                work.add(int(merges), int(count), LearnerState(*map(int, state)), seconds)
        return work.seconds_left()

    assert expected(3_000) < expected(300) < expected(30) < expected(0) == expected(1)


def test_a_continued_tokenizer_has_done_the_long_merges() -> None:
    """Of as many symbols, later merges are left: shorter ones, with more neighbours."""
    left = []
    for merged in (0, 20_000):
        work = LearningWork(1_000_000, 20_000, merged=merged)
        work.spelled(1_000_000, 20_000, 256 + merged, 0.0)
        work.laid_out(LearnerState(), 0.0)
        left.append(work.seconds_left())
    assert left[0] != left[1]


@pytest.mark.parametrize("recipe", [BpeRecipe(600), WordPieceRecipe(600)])
def test_learning_reports_its_work(recipe: BpeRecipe | WordPieceRecipe) -> None:
    made = np.random.default_rng(1)
    lengths = made.integers(1, 9, 3_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    data = (97 + np.minimum(made.geometric(0.2, int(offsets[-1])), 25)).astype(np.uint8)
    words = Words(data, offsets, made.integers(1, 50, 3_000).astype(np.int64))
    reports: list[tuple[int, float]] = []
    ticks = itertools.count(0.0, 1e-3)
    learned = learn(
        words,
        recipe,
        lambda merges, work: reports.append((merges, work.seconds_left())),
        clock=lambda: next(ticks),
    )
    assert [merges for merges, _ in reports[:3]] == [0, 0, 0]
    assert sum(merges for merges, _ in reports) == len(learned.counts)
    assert all(left > 0 for _, left in reports)
    assert reports[-1][1] < min(left for _, left in reports[:3])
