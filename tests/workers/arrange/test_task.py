"""Plans of new shards: each document is in one of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bpe_beam.workers.arrange.task import PartPlan, PartSums

SUMS = st.tuples(st.integers(0, 50), st.integers(0, 10**6)).map(
    lambda pair: PartSums(pair[0], pair[1] if pair[0] else 0)
)


@given(st.lists(SUMS, max_size=20), st.integers(1, 40))
def test_shards_of_equal_tokens_have_each_document_once(
    measured: list[PartSums], shards: int
) -> None:
    measured.append(PartSums(3, 1))
    plan = PartPlan.by_tokens("", measured, shards)
    assert plan.rows == sum(each.documents for each in measured)
    assert 1 <= plan.shards <= shards
    bounds = [plan.bounds(shard) for shard in range(plan.shards)]
    assert [bounds[0][0], *(stop for _, stop in bounds)] == [*plan.starts, plan.rows]
    assert all(start < stop for start, stop in bounds)
    shard_of = plan.shard_of(np.arange(plan.rows))
    assert shard_of.tolist() == [
        shard for shard, (start, stop) in enumerate(bounds) for _ in range(start, stop)
    ]


def test_long_documents_take_the_shards() -> None:
    measured = [PartSums(1000, 1000), PartSums(10, 9000)]
    assert PartPlan.by_tokens("", measured, 10).starts == (0, *range(1000, 1009))
    assert PartPlan.even("", 10, 3).starts == (0, 3, 6)
