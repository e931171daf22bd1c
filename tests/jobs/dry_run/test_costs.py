"""The model of costs, against figures that were computed by hand."""

from __future__ import annotations

import types
from typing import Any

import pytest

from bpe_beam.jobs.dry_run import costs
from bpe_beam.jobs.dry_run.costs import Corpus, Stage
from bpe_beam.jobs.train.commits import first_slices

pytestmark = pytest.mark.quick

MIB = 1 << 20
CORPUS = Corpus(files=10, splits=40, stored_bytes=400 * 10**6, text_bytes=380 * 10**6)
"""Slices of 10 MB; 30 of them end in a file. Each is read by 5 ranges, of 13.25 MiB."""


@pytest.mark.parametrize(
    ("size", "requests", "read"),
    [
        (1, 1, MIB // 4),
        (MIB // 4, 1, MIB // 4),
        (MIB // 4 + 1, 2, MIB + MIB // 4),
        (2 * MIB, 3, 5 * MIB + MIB // 4),
        (9 * MIB, 4, 9 * MIB + MIB // 4),
    ],
)
def test_ranges_of_a_remote_file(size: int, requests: int, read: int) -> None:
    assert costs.ranges_of(size) == (requests, read)


def test_an_upload_in_parts() -> None:
    assert [costs.parts_of(size * MIB) for size in (0, 16, 17, 160)] == [1, 1, 4, 12]


def test_the_time_of_the_client() -> None:
    stage = Stage(
        processor_seconds=5, reference_seconds=3, reads=600, writes=400,
        read_bytes=10**9, written_bytes=10**9,
    )  # fmt: skip
    client = 1000 * costs.REQUEST_SECONDS + 2e9 * costs.BYTE_SECONDS
    assert stage.all_seconds(pace=1) == pytest.approx(5 + 3 + client)
    assert stage.all_seconds(pace=2) == pytest.approx(5 + 2 * (3 + client))


def test_stages_of_count() -> None:
    """40 splits of 32 partitions: 1,280 blocks of 50 KB, each read by one range."""
    stages = costs.count_stages(CORPUS, (8.0, 2.0), 64 * 10**6, 3_200_000, 32 * 10**6)
    splits, parts = stages["count splits"], stages["write parts"]
    assert splits.read_bytes == 400 * 10**6 + 30 * (13 * MIB + MIB // 4 - 10**7)
    assert splits.written_bytes == 64 * 10**6
    assert splits.reads == 40 * (1 + 5 + 2)
    assert splits.writes == 40 * 2
    assert parts.tasks == 32
    assert parts.read_bytes == 1280 * MIB // 4
    assert parts.reads == 1280 * 2 + 32 * 2
    assert parts.memory_bytes == 15_000_000
    assert stages["driver"].reads == 10 + 1 + 2 * 40 + 4 * 32
    assert not stages["driver"].tasks


def test_few_new_shards_are_read_from_every_file() -> None:
    """50 splits and 38 new shards have 1,900 blocks: of each its size, its place and its bytes."""
    corpus = Corpus(10, 50, 5 * 10**9, 5 * 10**9)
    stages = costs.arrange_stages("s3://bucket", corpus, (1, 1, 1), 25 * 10**8, 38, 10**8)
    assert "regroup blocks" not in stages
    assert stages["write new shards"].reads == 50 * 38 * 3 + 38 * 4
    assert stages["write new shards"].at_once == 6


def test_requests_for_blocks_grow_slowly() -> None:
    """A corpus 100 times as large has 1,000 times as many blocks, not 10,000 times."""

    def blocks(times: int) -> int:
        corpus = Corpus(10, 100 * times, 10**10 * times, 10**10 * times)
        stages = costs.arrange_stages(
            "s3://bucket", corpus, (1, 1, 1), 10**8 * times, 100 * times, 10**8
        )
        both = stages["regroup blocks"], stages["write new shards"]
        return sum(stage.reads - 4 * stage.tasks for stage in both) // 3

    assert blocks(1) == 100 * 10 + 100 * 10
    assert blocks(100) == 10_000 * 100 + 10_000 * 100


def test_merge_rounds_are_as_many_pipelines() -> None:
    """640 MB of words are 32 batches; in ten rounds 3 GB of them, by ranges of 9 MB."""
    stage = costs.rounds_stages(640 * 10**6, 10, 5)["merge rounds"]
    assert (stage.tasks, stage.pipelines) == (32, 10)
    words, others = 4.7 * 640 * 10**6, 10 * 0.15 * 640 * 10**6
    assert stage.written_bytes == words + others
    assert stage.reads == 10 * (25 + 32 * (11 + 2 * (1 + 4))) + 10 * 2 * 32 * 32 * 2


@pytest.mark.parametrize(
    ("part_bytes", "batches"), [(321_000, 2), (5 * 10**6, 32), (10**8, 32), (129 * 10**6, 64)]
)
def test_word_batches_of_equal_parts(part_bytes: int, batches: int) -> None:
    parts = [types.SimpleNamespace(word_bytes=part_bytes)] * 32
    manifest: Any = types.SimpleNamespace(parts=parts)
    assert len(first_slices(manifest)) == batches
    stages = costs.rounds_stages(32 * part_bytes, 10, 5)
    assert stages["merge rounds"].tasks == batches


@pytest.mark.parametrize(
    ("word_bytes", "memory", "vocab_size", "measured"),
    [
        (10 * 10**6, 500 * 10**6, 32_000, 6),
        (64 * 10**6, 500 * 10**6, 32_000, 6),
        (156 * 10**6, 8 * 10**9, 8_000, 5),
        (156 * 10**6, 8 * 10**9, 32_000, 6),
        (156 * 10**6, 8 * 10**9, 128_000, 7),
        (156 * 10**6, 570 * 10**6, 32_000, 8),
        (156 * 10**6, 112 * 10**6, 32_000, 10),
        (156 * 10**6, 112 * 10**6, 128_000, 15),
    ],
)
def test_rounds_are_nearly_as_many_as_measured(
    word_bytes: int, memory: int, vocab_size: int, measured: int
) -> None:
    """By the words of 0.3, 5.4 and 21.5 GB of text; see docs/scale.md."""
    said = costs.usual_rounds(vocab_size, word_bytes, memory)
    assert said == pytest.approx(measured, rel=0.2)


def test_passes_read_all_words_each_time() -> None:
    stage = costs.passes_stages(640 * 10**6, 5)["passes"]
    assert (stage.tasks, stage.pipelines) == (32, costs.PASSES)
    assert stage.read_bytes == costs.PASSES * stage.written_bytes == costs.PASSES * 640 * 10**6


def test_rounds_of_any_sizes() -> None:
    for memory, word_bytes, vocab_size in ((0, 0, 0), (1, 10**15, 10**7), (10**15, 1, 300)):
        assert 1 <= costs.usual_rounds(vocab_size, word_bytes, memory) < 1000


def test_a_thread_that_has_seen_more_text_is_faster() -> None:
    """1 MB costs 46.5 ns a byte; at 32 MB the share of new words is a quarter."""
    assert costs.tokenizing_seconds(10**6, 1) == pytest.approx(46.5e-3)
    assert costs.tokenizing_seconds(64 * 10**6, 2) == pytest.approx(64e6 * (10.5 + 36 / 4) * 1e-9)


def test_few_blocks_where_splits_are_large() -> None:
    small, large = (costs.counting_seconds(10**9, blocks, 100) for blocks in (2 * 10**8, 10**8))
    assert small - large == pytest.approx(costs.COUNT_BLOCK_SECONDS * 10**8)


def test_words_of_a_large_split_are_not_in_the_cache() -> None:
    """48 MB of blocks of a split are 3 MB, doubled four times."""
    near, far = (costs.counting_seconds(10**9, 48 * 10**6, splits) for splits in (16, 1))
    assert far - near == pytest.approx(4 * costs.COUNT_MISS_SECONDS * 10**9)


def test_a_shard_of_many_tokens_needs_memory() -> None:
    sizes = [(10**6, 32_000), (10**9, 1 << 16), (10**9, (1 << 16) + 1)]
    assert [costs.new_shard_memory(*size) for size in sizes] == [110 * 10**6, 3 * 10**9, 5 * 10**9]
