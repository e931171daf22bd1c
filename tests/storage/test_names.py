"""Names: joined, and hidden where they hold a secret."""

from __future__ import annotations

import pytest

from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


def test_join() -> None:
    join = Storage().join
    assert join("a", "b", "c") == "a/b/c"
    assert join("/", "a") == "/a"
    assert join("s3://", "bucket", "key") == "s3://bucket/key"
    assert join("s3://bucket/", "key") == "s3://bucket/key"
    assert join("", "a") == "a"
    assert join("a?b", "c") == "a?b/c"
    assert join("https://host/a?sig=1", "c") == "https://host/a/c?sig=1"
