"""Runners for the tests of this folder."""

from __future__ import annotations

import os

import pytest


def _given(variable: str) -> str:
    path = os.environ.get(variable)
    if path is None:
        pytest.skip(f"{variable} names no file")
    return path


@pytest.fixture(scope="session")
def prism_binary() -> str:
    """Where Prism is."""
    return _given("BPE_BEAM_PRISM")


@pytest.fixture(scope="session")
def flink_job_server_jar() -> str:
    """Where Flink's job server is."""
    return _given("BPE_BEAM_FLINK_JAR")


@pytest.fixture(params=["prism", "flink"])
def flags(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The flags of each runner that streams."""
    if request.param == "prism":
        prism = request.getfixturevalue("prism_binary")
        return ("--runner", "PrismRunner", "--prism_location", prism)
    jar = request.getfixturevalue("flink_job_server_jar")
    return (
        *("--runner", "FlinkRunner", "--flink_version", "1.19", "--flink_master", "[local]"),
        *("--flink_job_server_jar", jar, "--environment_type", "LOOPBACK"),
    )
