"""The files of an undisturbed job."""

from __future__ import annotations

from pathlib import Path

import pytest
from output_folders import run_job, tree


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """Return the files of an undisturbed job."""
    assert run_job(tmp_path / "whole") == [0, 1, 2]
    return tree(tmp_path / "whole")
