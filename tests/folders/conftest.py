"""What an undisturbed job leaves in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from output_folders import run_job, tree


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    """Return the files that a job leaves that nothing disturbs."""
    assert run_job(tmp_path / "whole") == [0, 1, 2]
    return tree(tmp_path / "whole")
