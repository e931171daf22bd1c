"""The time left, by the moments of real jobs that are played again.

A moment is the seconds since a stage began and the megabytes read until then; of `count`, also the
megabytes of counted splits, their words, and the number of parts that are written. They were
recorded on two cores: `count` and `tokenize` of 1.9 GB of many sources, and `tokenize` of 0.5 GB in
which each file is of other languages, at other speeds. `LEARN_CHINESE`,
`LEARN_LANGUAGES` and `LEARN_ENGLISH` are the CPU seconds and merges of a trainer that learns
32,000 tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_beam import progress
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs.corpus_job import SplitsLeft
from bpe_beam.jobs.count import _CountJob
from bpe_beam.jobs.train.trainer import _merging_work
from bpe_beam.progress import Progress, Snapshot
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

Moments = list[tuple[float, ...]]

# fmt: off
COUNT: Moments = [
    (0.05, 23, 0, 0, 0), (0.152, 66, 50, 122695, 0), (0.303, 120, 100, 364666, 0),
    (0.404, 162, 150, 442343, 0), (0.504, 210, 183, 542711, 0), (0.658, 275, 250, 727243, 0),
    (0.759, 323, 316, 801377, 0), (0.86, 368, 350, 893179, 0), (0.961, 421, 416, 987308, 0),
    (1.112, 502, 483, 1093314, 0), (1.214, 556, 533, 1165983, 0), (1.314, 600, 583, 1269423, 0),
    (1.465, 666, 650, 1440614, 0), (1.569, 711, 699, 1531822, 0), (1.669, 757, 733, 1619958, 0),
    (1.82, 821, 799, 1892084, 0), (1.921, 866, 849, 2032611, 0), (2.025, 923, 899, 2148459, 0),
    (2.176, 1003, 983, 2274920, 0), (2.278, 1052, 1033, 2384456, 0),
    (2.378, 1104, 1083, 2503470, 0), (2.479, 1160, 1132, 2583594, 0),
    (2.632, 1235, 1216, 2757733, 0), (2.732, 1287, 1266, 2863276, 0),
    (2.833, 1345, 1316, 2970204, 0), (2.989, 1418, 1399, 3212750, 0),
    (3.089, 1472, 1449, 3350956, 0), (3.19, 1521, 1499, 3459702, 0),
    (3.341, 1600, 1582, 3626629, 0), (3.442, 1656, 1649, 3737670, 0),
    (3.546, 1720, 1699, 3804471, 0), (3.698, 1809, 1782, 3943218, 0),
    (3.801, 1855, 1832, 4022310, 0), (3.901, 1896, 1865, 4073190, 0),
    (4.002, 1899, 1899, 4152261, 2), (4.154, 1899, 1899, 4152261, 8),
    (4.255, 1899, 1899, 4152261, 12), (4.355, 1899, 1899, 4152261, 17),
    (4.508, 1899, 1899, 4152261, 26), (4.599, 1899, 1899, 4152261, 32),
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
LEARN_CHINESE: Moments = [
    (0.127, 1), (0.155, 15), (0.183, 33), (0.215, 64), (0.247, 102), (0.337, 162), (0.375, 257),
    (0.404, 365), (0.432, 518), (0.465, 735), (0.493, 1045), (0.527, 1671), (0.817, 2674),
    (0.847, 3807), (0.88, 5282), (0.912, 7282), (0.944, 9782), (0.973, 12282), (1.004, 15282),
    (1.034, 18282), (1.064, 21782), (1.094, 22782), (1.124, 26782), (1.152, 30782), (1.159, 31744),
    (1.232, 31744),
]
LEARN_LANGUAGES: Moments = [
    (0.074, 1), (0.089, 27), (0.104, 57), (0.12, 114), (0.139, 229), (0.194, 325), (0.209, 518),
    (0.226, 929), (0.244, 1671), (0.26, 2674), (0.277, 4282), (0.398, 6282), (0.416, 8782),
    (0.432, 10782), (0.449, 13282), (0.465, 15782), (0.482, 18282), (0.499, 20782), (0.525, 21782),
    (0.542, 24282), (0.557, 27782), (0.572, 31282), (0.574, 31744), (0.647, 31744),
]
LEARN_ENGLISH: Moments = [
    (0.017, 1), (0.024, 46), (0.04, 162), (0.047, 518), (0.054, 1486), (0.07, 2674), (0.077, 4282),
    (0.085, 6282), (0.093, 8282), (0.1, 10282), (0.109, 12782), (0.117, 15282), (0.124, 17282),
    (0.131, 19282), (0.139, 20782), (0.163, 21782), (0.176, 23782), (0.183, 26282), (0.19, 28782),
    (0.197, 30782), (0.2, 31744), (0.282, 31744),
]
# fmt: on


def errors_of(
    moments: Moments,
    monkeypatch: pytest.MonkeyPatch,
    work: progress.Work | None = None,
    kept: int = 0,
    after: float = 0.1,
    warm_up: float | None = None,
) -> list[tuple[float, float]]:
    """Return how far each estimate is off, over all time, and when, after a share of it."""
    now = [0.0]
    monkeypatch.setattr(progress, "_now", lambda: now[0])
    end, total = moments[-1][0], int(moments[-1][1])
    found = []
    with Progress("none").stage("count", total + kept, "bytes") as stage:
        stage.work = work
        stage.warm_up = stage.warm_up if warm_up is None else warm_up
        stage.done_before(kept)
        for seconds, done, *counters in moments:
            now[0] = seconds
            stage.at_least(kept + int(done))
            if counters:
                size, words, parts = map(int, counters)
                stage.at_least(0, _split_bytes=size, _words_written=words, parts_written=parts)
            left = stage.snapshot().eta_seconds
            if seconds >= end * after:
                assert left is not None
                found.append((seconds / end, (left - (end - seconds)) / end))
    return found


def counting_work(tmp_path: Path) -> Any:
    """Return the estimate of work of a count job that begins; sizes are megabytes."""
    plan = Plan("", (InputFile("a", 1, "text", "none"),), (Split(0, (Slice(0, 0, 1),)),))
    settings = CountSettings(InputSettings((str(tmp_path),)), str(tmp_path / "out"))
    job = _CountJob(settings, Storage(), plan)
    job.folder = OutputFolder.claim(Storage(), settings.output, {"job": "count"}, [], False)
    work = job.work(SplitsLeft(plan, ["split"], {}, job.folder.new_run()))
    assert work is not None

    def in_megabytes(now: Snapshot) -> tuple[float, float]:
        """Words per byte are those of the bytes that they were read from."""
        counters = {**now.counters, "_split_bytes": now.counters.get("_split_bytes", 0) * 10**6}
        return work(now._replace(counters=counters))

    return in_megabytes


def test_tokenize(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(abs(error) for _, error in errors_of(TOKENIZE, monkeypatch)) < 0.2


def test_count_knows_that_words_are_merged_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = errors_of(COUNT, monkeypatch, counting_work(tmp_path))
    read = errors_of(COUNT, monkeypatch)
    assert max(abs(error) for _, error in found) < 0.2
    # Bytes alone promise the end when everything is read.
    late = [max(abs(error) for at, error in rows if at > 0.2) for rows in (found, read)]
    assert 1.5 * late[0] < late[1]


def test_files_of_other_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first splits say less about the rest: the estimate is good later."""
    found = errors_of(LANGUAGES, monkeypatch)
    assert max(abs(error) for at, error in found if at > 0.45) < 0.2


def test_what_earlier_runs_have_done_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = errors_of(TOKENIZE, monkeypatch, after=0.0)
    assert errors_of(TOKENIZE, monkeypatch, kept=5000, after=0.0) == plain


@pytest.mark.parametrize(
    ("moments", "most", "mean"),
    [(LEARN_CHINESE, 0.5, 0.2), (LEARN_LANGUAGES, 0.3, 0.1), (LEARN_ENGLISH, 0.65, 0.4)],
)
def test_learning(
    moments: Moments, most: float, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first merges and what precedes them take a share of the time far beyond their number.

    English has fewer symbols, and its later merges take a greater share: its estimates are worst.
    """
    found = [abs(error) for _, error in errors_of(moments, monkeypatch, _merging_work, warm_up=0.0)]
    even = [abs(error) for _, error in errors_of(moments, monkeypatch, warm_up=0.0)]
    assert max(found) < most
    assert sum(found) / len(found) < mean
    assert sum(even) > 2 * sum(found)
