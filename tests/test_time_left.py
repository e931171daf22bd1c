"""The time left, by the moments of real jobs that are played again.

A moment is the seconds since a stage began and the megabytes read until then; of `count`, also the
megabytes of counted splits, the words that were found and written, and the parts that are written.
They were recorded on two cores: `count` of 562 MB of five kinds of text and of 62 MB of Chinese, in
CPU seconds for one core; `tokenize` of 1.9 GB of many sources, and of 0.5 GB in which each file is
of other languages, at other speeds. What is learned is in `training/test_learning_work.py`.
"""

from __future__ import annotations

import pytest

from bpe_beam import progress
from bpe_beam.jobs.counting_work import CountingWork
from bpe_beam.progress import Progress, Snapshot

pytestmark = pytest.mark.quick

Moments = list[tuple[float, ...]]

# fmt: off
COUNT: Moments = [
    (0.02, 4, 0, 27297, 0, 0), (0.22, 29, 0, 128117, 0, 0), (0.41, 60, 45, 374093, 140485, 0),
    (0.61, 70, 45, 489488, 140485, 0), (0.8, 90, 61, 604091, 181682, 0),
    (1.01, 111, 93, 942658, 608301, 0), (1.21, 138, 109, 1353671, 649473, 0),
    (1.42, 148, 125, 1428804, 784325, 0), (1.62, 169, 141, 1443814, 807029, 0),
    (1.82, 181, 173, 1536765, 1444846, 0), (2.01, 200, 173, 1790910, 1444846, 0),
    (2.21, 216, 189, 2030404, 1499568, 0), (2.41, 230, 205, 2094255, 1550828, 0),
    (2.61, 256, 233, 2209576, 2119199, 0), (2.81, 283, 265, 2377288, 2192952, 0),
    (3.01, 311, 297, 2697670, 2411306, 0), (3.21, 341, 313, 3039720, 2467904, 0),
    (3.4, 360, 329, 3199745, 2530284, 0), (3.6, 374, 346, 3265107, 2561230, 0),
    (3.82, 406, 390, 3372280, 3272877, 0), (4.03, 433, 422, 3524590, 3483452, 0),
    (4.23, 465, 450, 3644541, 3576314, 0), (4.42, 497, 467, 3785730, 3614157, 0),
    (4.62, 522, 498, 4084060, 3791773, 0), (4.82, 545, 514, 4434185, 3830307, 0),
    (5.01, 562, 547, 4550811, 3924764, 0), (5.21, 562, 562, 4550811, 4550811, 0),
    (5.4, 562, 562, 4550811, 4550811, 0), (5.61, 562, 562, 4550811, 4550811, 3),
    (5.82, 562, 562, 4550811, 4550811, 6), (6.02, 562, 562, 4550811, 4550811, 9),
    (6.23, 562, 562, 4550811, 4550811, 12), (6.43, 562, 562, 4550811, 4550811, 15),
    (6.62, 562, 562, 4550811, 4550811, 17), (6.81, 562, 562, 4550811, 4550811, 20),
    (7.01, 562, 562, 4550811, 4550811, 23), (7.2, 562, 562, 4550811, 4550811, 26),
    (7.39, 562, 562, 4550811, 4550811, 29), (7.52, 562, 562, 4550811, 4550811, 32),
]
COUNT_CHINESE: Moments = [
    (0.04, 6, 0, 82423, 0, 0), (0.12, 14, 0, 342442, 0, 0), (0.23, 23, 0, 727430, 0, 0),
    (0.31, 30, 0, 1061848, 0, 0), (0.39, 31, 0, 1139702, 0, 0), (0.5, 31, 0, 1139702, 0, 0),
    (0.6, 31, 0, 1139702, 0, 0), (0.7, 35, 15, 1266383, 496067, 0),
    (0.8, 39, 15, 1438457, 496067, 0), (0.89, 47, 31, 1698905, 1139702, 0),
    (0.99, 55, 31, 2071166, 1139702, 0), (1.09, 59, 31, 2240236, 1139702, 0),
    (1.17, 62, 31, 2395749, 1139702, 0), (1.28, 62, 31, 2395749, 1139702, 0),
    (1.39, 62, 31, 2395749, 1139702, 0), (1.47, 62, 31, 2395749, 1139702, 0),
    (1.55, 62, 46, 2395749, 1765749, 0), (1.67, 62, 62, 2395749, 2395749, 0),
    (1.76, 62, 62, 2395749, 2395749, 2), (1.86, 62, 62, 2395749, 2395749, 6),
    (1.97, 62, 62, 2395749, 2395749, 8), (2.05, 62, 62, 2395749, 2395749, 10),
    (2.14, 62, 62, 2395749, 2395749, 12), (2.22, 62, 62, 2395749, 2395749, 14),
    (2.3, 62, 62, 2395749, 2395749, 16), (2.38, 62, 62, 2395749, 2395749, 18),
    (2.46, 62, 62, 2395749, 2395749, 20), (2.54, 62, 62, 2395749, 2395749, 21),
    (2.62, 62, 62, 2395749, 2395749, 23), (2.71, 62, 62, 2395749, 2395749, 25),
    (2.79, 62, 62, 2395749, 2395749, 26), (2.87, 62, 62, 2395749, 2395749, 28),
    (2.97, 62, 62, 2395749, 2395749, 30), (3.06, 62, 62, 2395749, 2395749, 31),
    (3.07, 62, 62, 2395749, 2395749, 32),
]
TOKENIZE: Moments = [
    (0.051, 9), (0.206, 52), (0.357, 92), (0.507, 138), (0.661, 183), (0.812, 236),
    (0.963, 266), (1.114, 319), (1.264, 368), (1.415, 423), (1.57, 474), (1.724, 527),
    (1.875, 575), (2.029, 610), (2.184, 666), (2.335, 712), (2.488, 763), (2.638, 807),
    (2.789, 859), (2.94, 904), (3.144, 976), (3.295, 1028), (3.446, 1071), (3.598, 1131),
    (3.752, 1184), (3.903, 1232), (4.054, 1284), (4.212, 1333), (4.362, 1387), (4.513, 1432),
    (4.664, 1476), (4.815, 1530), (4.966, 1573), (5.117, 1627), (5.268, 1678), (5.419, 1731),
    (5.57, 1777), (5.724, 1828), (5.874, 1866), (6.025, 1899),
]
LANGUAGES: Moments = [
    (0.051, 4), (0.264, 22), (0.465, 31), (0.673, 35), (0.823, 47), (1.027, 56), (1.238, 68),
    (1.457, 78), (1.658, 82), (1.859, 90), (2.01, 92), (2.221, 103), (2.422, 120), (2.639, 133),
    (2.851, 153), (3.061, 170), (3.262, 187), (3.415, 191), (3.616, 212), (3.826, 224),
    (4.027, 243), (4.229, 253), (4.43, 269), (4.581, 277), (4.788, 292), (4.99, 299),
    (5.204, 314), (5.406, 332), (5.61, 354), (5.813, 374), (5.967, 381), (6.171, 391),
    (6.372, 413), (6.581, 420), (6.785, 442), (6.991, 458), (7.145, 469), (7.346, 489),
    (7.547, 495), (7.741, 511),
]
# fmt: on


def errors_of(
    moments: Moments,
    monkeypatch: pytest.MonkeyPatch,
    work: progress.Work | None = None,
    kept: int = 0,
    after: float = 0.1,
) -> list[tuple[float, float]]:
    """Return how far each estimate is off, over all time, and when, after a share of it."""
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    end, total = moments[-1][0], int(moments[-1][1])
    found = []
    with Progress("none").stage("count", total + kept, "bytes") as stage:
        stage.work = work
        stage.done_before(kept)
        for seconds, done, *counters in moments:
            now[0] = seconds
            stage.at_least(kept + int(done))
            if counters:
                names = ("_split_bytes", "_words_found", "_words_written", "parts_written")
                stage.at_least(0, **dict(zip(names, map(int, counters), strict=True)))
            left = stage.snapshot().eta_seconds
            if seconds >= end * after:
                assert left is not None
                found.append((seconds / end, (left - (end - seconds)) / end))
    return found


def in_bytes(moments: Moments) -> Moments:
    """Return moments of `count` with bytes instead of megabytes."""
    return [(at, 10**6 * read, 10**6 * split, *rest) for at, read, split, *rest in moments]


def test_tokenize(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(abs(error) for _, error in errors_of(TOKENIZE, monkeypatch)) < 0.2


@pytest.mark.parametrize(
    ("moments", "split_bytes", "most", "mean"),
    [(COUNT, 20e6, 0.32, 0.1), (COUNT_CHINESE, 15.5e6, 0.45, 0.15)],
)
def test_count_knows_its_words(
    moments: Moments, split_bytes: float, most: float, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that are new cost most of the time, and are merged in the end."""
    work = CountingWork(parts=32, before=0, split_bytes=split_bytes, at_once=2)
    found = [abs(error) for _, error in errors_of(in_bytes(moments), monkeypatch, work)]
    assert max(found) < most
    assert sum(found) / len(found) < mean
    # Bytes alone promise the end when everything is read.
    read = [abs(error) for _, error in errors_of(in_bytes(moments), monkeypatch)]
    assert 2 * sum(found) < sum(read)


def test_a_counted_split_of_an_earlier_run_has_words_to_merge() -> None:
    """Half is counted by an earlier run: half of the reading is left, and the whole merging."""
    stage = Snapshot("count", 100, 200, "bytes", {}, 1.0)
    fresh = CountingWork(parts=4, before=0, split_bytes=50, at_once=2)
    resumed = CountingWork(parts=4, before=100, split_bytes=50, at_once=2)
    counted = {"_split_bytes": 50, "_words_found": 10, "_words_written": 10}
    half = stage._replace(done=150, counters=counted)
    _, total = resumed(half)
    ended = half._replace(done=200, counters=dict.fromkeys(counted, 20) | {"_split_bytes": 100})
    assert resumed(ended)[1] == total > resumed(ended)[0]
    merged = ended._replace(counters={**ended.counters, "parts_written": 4})
    assert resumed(merged) == (total, total)
    assert fresh(merged._replace(done=150))[1] < total


def test_files_of_other_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first splits say less about the rest: the estimate is good later."""
    found = errors_of(LANGUAGES, monkeypatch)
    assert max(abs(error) for at, error in found if at > 0.45) < 0.2


def test_what_earlier_runs_have_done_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = errors_of(TOKENIZE, monkeypatch, after=0.0)
    assert errors_of(TOKENIZE, monkeypatch, kept=5000, after=0.0) == plain


def test_between_two_steps_the_time_left_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    with Progress("none").stage("learn", 100, "merges") as stage:
        assert stage.snapshot().eta_seconds is None
        now[0] = 2.0
        stage.step(0, lambda: (10.0, 50.0))
        said = []
        for seconds in (2.0, 5.0, 9.0, 12.0):
            now[0] = seconds
            said.append(stage.snapshot().eta_seconds)
        assert said == [8.0, 5.0, 1.0, 0.8]
        stage.step(60, lambda: (30.0, 50.0))
        assert stage.snapshot().eta_seconds == 8.0
        stage.step(40, lambda: (50.0, 50.0))
        assert stage.snapshot().eta_seconds == 0.0
        assert stage.snapshot().done == 100


def test_time_that_is_estimated_elsewhere_falls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    assert progress.clock_seconds() == 0.0
    with Progress("none").stage("learn", 100, "merges") as stage:
        stage.timed_step(0, lambda: 8.0)
        said = []
        for seconds in (0.0, 3.0, 7.5, 20.0):
            now[0] = seconds
            said.append(stage.snapshot().eta_seconds)
        assert said == [8.0, 5.0, 0.8, 0.8]
        stage.timed_step(60, lambda: 4.0)
        assert stage.snapshot().eta_seconds == 4.0
        assert stage.snapshot().done == 60
