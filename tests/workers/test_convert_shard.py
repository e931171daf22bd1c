"""New shards of old ones: every position once, in order, and about as many tokens in each."""

from __future__ import annotations

import itertools
import random

from bpe_beam.shards.manifest import NO_PLAN, Manifest, Rejects, TokenizerInfo
from bpe_beam.shards.shard_rows import Shard, Totals
from bpe_beam.storage.json_file import VERSION
from bpe_beam.workers.convert_shard import even_shards


def manifest(sizes: list[int]) -> Manifest:
    shards = tuple(
        Shard(
            name=f"{index}",
            split=index,
            slices=(),
            documents=9,
            text_bytes=0,
            tokens=size,
            rejects=0,
            files=(),
        )
        for index, size in enumerate(sizes)
    )
    return Manifest(
        format="megatron",
        version=VERSION,
        tokenizer=TokenizerInfo("0" * 64, 300),
        settings={},
        totals=Totals.of(shards),
        rejects=Rejects({}, ()),
        plan=NO_PLAN,
        shards=shards,
        tokenless=(),
    )


def test_each_position_is_in_one_new_shard() -> None:
    """Against a slow definition, also with fewer tokens than shards."""
    draw = random.Random(3)
    for _ in range(300):
        folders = [
            [draw.randrange(draw.choice((2, 20))) for _ in range(draw.randrange(1, 5))]
            for _ in range(draw.randrange(1, 4))
        ]
        count = draw.randrange(1, 9)
        new = even_shards([manifest(sizes) for sizes in folders], count)
        total = sum(map(sum, folders))
        assert [each.tokens for each in new] == [
            total * (i + 1) // count - total * i // count for i in range(count)
        ]
        ends = [total * (i + 1) // count for i in range(count - 1)]
        begin = 0
        for folder, sizes in enumerate(folders):
            for index, size in enumerate(sizes):
                for position in range(size + 1):  # the last is of documents without tokens
                    found = [
                        each.index
                        for each, part in itertools.product(new, [None])
                        for part in each.slices
                        if (part.folder, part.name) == (folder, f"{index}")
                        and part.start <= position
                        and (part.stop is None or position < part.stop)
                    ]
                    assert found == [sum(end <= begin + position for end in ends)]
                begin += size
        order = [(part.folder, int(part.name), part.start) for each in new for part in each.slices]
        assert order == sorted(order)


def test_no_more_shards_than_documents() -> None:
    new = even_shards([manifest([50, 40]), manifest([10])], 32_000)
    assert len(new) == 27
    assert sum(each.tokens for each in new) == 100
    assert len(even_shards([manifest([])], 3)) == 1
