"""The final names of shards."""

from __future__ import annotations

import pytest

from bpe_beam.shards.numbering import shard_name

pytestmark = pytest.mark.quick


def test_shard_names() -> None:
    assert shard_name(3, 12) == "shard-00003-of-00012"
    assert shard_name(123_456, 200_000) == "shard-123456-of-200000"
