"""Limits of the waits of storage clients."""

from __future__ import annotations

import fsspec
import pytest

from bpe_beam.storage import file_systems as clients
from bpe_beam.storage import retry

pytestmark = pytest.mark.quick


def test_azure_waits_for_content_no_longer_than_one_silence() -> None:
    """`retried` takes a longer wait for a client that has asked several times itself."""
    assert clients._with_time_limits("az", {})["read_timeout"] == retry.SILENCE_SECONDS
    assert clients._with_time_limits("abfs", {"read_timeout": 5}) == {"read_timeout": 5}


def test_connections_to_s3_are_as_many_as_requests_unless_the_user_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def config(options: object) -> object:
        return clients._with_time_limits("s3", {"config_kwargs": options})["config_kwargs"]

    monkeypatch.delitem(fsspec.config.conf, "s3", raising=False)
    assert config(None) == {"max_pool_connections": retry.REQUESTS_AT_ONCE}
    own = {"max_pool_connections": 7, "region_name": "mars"}
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": own})
    assert clients._with_time_limits("s3", {})["config_kwargs"] == own
    assert config({"max_pool_connections": 9}) == {**own, "max_pool_connections": 9}
