"""Servers for the tests of this folder, each started once, at its first use."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from faults import Toxiproxy, toxiproxy_running
from starting import missing
from stores import CARELESS, NEEDED, STORES, Store


@pytest.fixture(scope="session")
def start_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Store]]:
    """Yield a function that returns a running store by its name."""
    with ExitStack() as running:
        known: dict[str, Store] = {}

        def start(name: str) -> Store:
            if name not in known:
                package = NEEDED[name]
                if importlib.util.find_spec(package) is None:
                    missing(f"{package} is not installed: pip install -e '.[servers]'")
                folder = tmp_path_factory.mktemp(name)
                known[name] = running.enter_context({**STORES, **CARELESS}[name](folder))
            return known[name]

        yield start


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, start_store: Callable[[str], Store]) -> Store:
    """Return each of the stores."""
    return start_store(request.param)


@pytest.fixture(scope="session")
def toxiproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    """Yield the proxy between us and a store that makes trouble."""
    with toxiproxy_running(tmp_path_factory.mktemp("toxiproxy")) as running:
        yield running
