"""Files that are moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


def test_a_move_replaces_and_may_be_repeated(tmp_path: Path) -> None:
    storage = Storage()
    one, other = str(tmp_path / "one [1]*"), str(tmp_path / "other #2")
    storage.write_bytes(one, b"new")
    storage.write_bytes(other, b"old")
    storage.move(one, other)
    assert not storage.exists(one)
    assert storage.read_bytes(other) == b"new"
    storage.move(one, other)
    assert storage.read_bytes(other) == b"new"
    with pytest.raises(DataError, match=r"cannot move .*nothing"):
        storage.move(str(tmp_path / "nothing"), str(tmp_path / "no target"))
