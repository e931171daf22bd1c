"""Receipts of finished tasks: written by workers, believed only if they are this job's."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest
from output_folders import claim, write_piece

from bpe_beam.folders.receipts import TaskFolder

pytestmark = pytest.mark.quick


def test_receipts_are_written_from_pickled_writers(tmp_path: Path) -> None:
    folder = claim(tmp_path)
    writer: TaskFolder = pickle.loads(pickle.dumps(folder.for_workers()))
    writer.write_receipt("empty", [], {"documents": 0})
    assert folder.receipts()["empty"].stats == {"documents": 0}
    assert folder.receipt("empty") is None  # of this run, not of an earlier one
    again = claim(tmp_path).receipt("empty")
    assert again is not None
    assert again.files == ()
    for name in ("", "../x", "a/b", "a b"):
        with pytest.raises(ValueError, match="task must match"):
            writer.write_receipt(name, [], {})


def test_receipts_that_are_not_ours_are_not_believed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"x")
    folder = claim(tmp_path / "out")
    write_piece(folder, 0)
    work = tmp_path / "out" / "work"
    good = json.loads((work / "00000.json").read_bytes())
    bad = {
        "other-job": {**good, "piece": "other-job", "fingerprint": "0" * 64},
        "other-name": good,
        "no-files": {"piece": "no-files", "fingerprint": folder.record.fingerprint, "facts": {}},
        "outside": {
            **good,
            "piece": "outside",
            "files": [
                {"name": "../outside", "bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
            ],
        },
        "list": [],
    }
    for name, value in bad.items():
        (work / f"{name}.json").write_text(json.dumps(value))
    (work / "torn.json").write_text("{")
    assert list(claim(tmp_path / "out").receipts()) == ["00000"]
    assert outside.exists()
