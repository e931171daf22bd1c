"""A corpus of some sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from counted_sources import write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of five files."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))
