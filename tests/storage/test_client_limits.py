"""Limits of the waits of storage clients."""

from __future__ import annotations

import pytest

from bpe_beam.storage import file_systems as clients
from bpe_beam.storage import retry

pytestmark = pytest.mark.quick


def test_azure_waits_for_content_no_longer_than_one_silence() -> None:
    """`retried` takes a longer wait for a client that has asked several times itself."""
    assert clients._with_time_limits("az", {})["read_timeout"] == retry.SILENCE_SECONDS
    assert clients._with_time_limits("abfs", {"read_timeout": 5}) == {"read_timeout": 5}
