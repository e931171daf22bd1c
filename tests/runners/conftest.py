"""Runners for the tests of this folder, each built and started once, at its first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from corpora import Made, make
from engines import Cluster, Engine

LOCAL = ("flink", "prism", "spark")


@pytest.hookimpl(tryfirst=True)  # before xdist looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the cluster in one process under `--dist loadgroup`: two are too large."""
    for item in items:
        parameters = getattr(item, "callspec", None)
        engine = parameters.params.get("engine") if parameters else None
        if engine == "cluster" or "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def local_engine(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Engine]:
    """Return a function that returns a runner of this machine by its name."""
    known: dict[str, Engine] = {}

    def get(name: str) -> Engine:
        if name not in known:
            known[name] = Engine.local(name, tmp_path_factory.mktemp(f"{name}-temporary"))
        return known[name]

    return get


@pytest.fixture(scope="session")
def _one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(_one_cluster: Cluster) -> Cluster:
    """Return the Flink cluster, whole; restart it where a test has left it otherwise."""
    if not _one_cluster.whole:
        _one_cluster.stop()
        _one_cluster.start()
    return _one_cluster


@pytest.fixture(params=[*LOCAL, pytest.param("cluster", marks=pytest.mark.scheduled)])
def engine(request: pytest.FixtureRequest, local_engine: Callable[[str], Engine]) -> Engine:
    """Return each of the runners, the cluster with parallelism 2.

    The cluster, whose tests run one after the other, has enough of its own in CI.
    """
    if request.param == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.engine(2)
    return local_engine(request.param)


@pytest.fixture(params=["flink", "prism"])
def streaming_engine(
    request: pytest.FixtureRequest, local_engine: Callable[[str], Engine]
) -> Engine:
    """Return each of the runners that stream."""
    return local_engine(request.param)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a corpus, and the results of the jobs in process."""
    return make(tmp_path_factory.mktemp("made"))
