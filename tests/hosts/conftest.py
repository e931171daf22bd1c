"""Networks of hosts for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hosts import Hosts, unavailable


@pytest.fixture(scope="session", autouse=True)
def _possible() -> None:
    """Skip the tests where a machine cannot have hosts: also in CI, which may not be root there."""
    if why := unavailable():
        pytest.skip(why)


@pytest.fixture(scope="module")
def pair() -> Iterator[Hosts]:
    """Yield two hosts."""
    with Hosts(["one", "two"]) as hosts:
        yield hosts
