"""A storage, and a folder on each of two stores."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from bpe_beam.storage import Storage


@pytest.fixture(params=["local", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a folder: of this machine, and of a store."""
    if request.param == "local":
        return str(tmp_path)
    return f"memory://{uuid.uuid4().hex}/below"


@pytest.fixture
def storage() -> Storage:
    """Return a storage without options."""
    return Storage()
