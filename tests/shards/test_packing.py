"""The plan of sequences: equal to best-fit decreasing chunk by chunk."""

import random

import numpy as np
import pytest

from bpe_beam.shards.packing import PackingPlan, plan_best_fit


def best_fit_decreasing(lengths, size, limit=None):
    """Return (sequence, offset) of each chunk, by the definition: one chunk after the other."""
    sequences: list[list[int]] = []  # [room, time of the last change, chunks, number]
    places = {}
    order = sorted(range(len(lengths)), key=lambda chunk: -lengths[chunk])
    for now, chunk in enumerate(order):
        length = lengths[chunk]
        fitting = [s for s in sequences if s[0] >= length and (limit is None or s[2] < limit)]
        if fitting:
            chosen = min(fitting)
        else:
            chosen = [size, now, 0, len(sequences)]
            sequences.append(chosen)
        places[chunk] = chosen[3], size - chosen[0]
        chosen[0] -= length
        chosen[1] = now
        chosen[2] += 1
    return [places[chunk] for chunk in range(len(lengths))], len(sequences)


def planned(lengths, size, limit=None) -> tuple[list[tuple[int, int]], PackingPlan]:
    lengths = np.array(lengths, np.int64)
    plan = plan_best_fit(np.bincount(lengths, minlength=size + 1).astype(np.int64), limit)
    ranks = np.array([int((lengths[:i] == each).sum()) for i, each in enumerate(lengths)], np.int64)
    sequences, offsets = plan.place(lengths, ranks)
    return list(zip(sequences.tolist(), offsets.tolist(), strict=True)), plan


def random_lengths(generator):
    size = generator.choice([1, 2, 3, 7, 16, 33, 64])
    kind = generator.randrange(3)
    count = generator.randrange(1, 60)
    if kind == 0:
        return size, [generator.randint(1, size) for _ in range(count)]
    if kind == 1:
        few = [generator.randint(1, size) for _ in range(3)]
        return size, [generator.choice(few) for _ in range(count)]
    return size, [min(size, 1 + int(generator.expovariate(4 / size))) for _ in range(count)]


@pytest.mark.parametrize("limited", [False, True])
def test_equals_the_definition_chunk_by_chunk(limited):
    generator = random.Random(20 + limited)
    for _ in range(1500):
        size, lengths = random_lengths(generator)
        limit = generator.randint(1, 5) if limited else None
        expected, sequences = best_fit_decreasing(lengths, size, limit)
        places, plan = planned(lengths, size, limit)
        assert places == expected, (size, lengths, limit)
        assert plan.sequences == sequences


def test_places_never_overlap_and_fill_each_sequence_from_its_start():
    generator = np.random.default_rng(5)
    size = 512
    lengths = np.minimum(generator.geometric(1 / 90, 20_000), size)
    plan = plan_best_fit(np.bincount(lengths, minlength=size + 1).astype(np.int64))
    order = np.argsort(lengths, kind="stable")
    ranks = np.empty_like(lengths)
    starts = np.cumsum(plan.histogram) - plan.histogram
    ranks[order] = np.arange(lengths.size) - starts[lengths[order]]
    sequences, offsets = plan.place(lengths, ranks)
    by_place = np.lexsort((offsets, sequences))
    sequences, offsets, lengths = sequences[by_place], offsets[by_place], lengths[by_place]
    begins = np.diff(sequences, prepend=-1) == 1
    assert np.array_equal(np.unique(sequences), np.arange(plan.sequences))
    assert not offsets[begins].any()
    assert np.array_equal(offsets[1:][~begins[1:]], (offsets + lengths)[:-1][~begins[1:]])
    assert (offsets + lengths).max() <= size


def test_no_chunk_needs_no_sequence():
    plan = plan_best_fit(np.zeros(9, np.int64))
    assert (plan.sequences, len(plan.rows)) == (0, 0)


def test_the_plan_of_a_billion_documents_is_small():
    size = 2048
    lengths = np.arange(size + 1)
    share = np.exp(-((np.log(np.maximum(lengths, 1)) - 6.3) ** 2) / 2) / np.maximum(lengths, 1)
    share[0] = 0
    histogram = (share / share.sum() * 10**9).astype(np.int64)
    plan = plan_best_fit(histogram)
    assert len(plan.rows) < 4 * size
    tokens = int(histogram @ lengths)
    assert 0 <= plan.sequences * size - tokens < tokens // 1000
