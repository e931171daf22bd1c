"""Receipts of finished tasks: written by workers, believed only if they are this job's."""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from pathlib import Path

import pytest
from output_folders import claim, restore, run_job, write_piece

from bpe_beam.folders import claim as claim_module
from bpe_beam.folders import receipts
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage

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
        "other-job": {**good, "task": "other-job", "fingerprint": "0" * 64},
        "other-name": good,
        "no-files": {"task": "no-files", "fingerprint": folder.record.fingerprint, "stats": {}},
        "outside": {
            **good,
            "task": "outside",
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


def test_few_requests_to_a_local_disk_need_no_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "_FEW", 3)
    local = claim(tmp_path).for_workers()
    remote = TaskFolder(Storage(), "memory://bucket/out", "0" * 64)
    both_run = threading.Barrier(2)

    def caller(number: int) -> tuple[int, int]:
        return number, threading.get_ident()

    def waiting(number: int) -> int:
        both_run.wait(60)
        return number

    own = threading.get_ident()
    assert local.request_each(caller, range(3)) == [(0, own), (1, own), (2, own)]
    found = local.request_each(caller, range(4))
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert own not in {thread for _, thread in found}
    assert remote.request_each(waiting, range(2)) == [0, 1]


def test_a_listing_tells_of_many_files_and_may_be_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "_MANY", 0)
    for module in (receipts, claim_module):
        monkeypatch.setattr(module, "is_local", lambda _: False)
    url = str(tmp_path / "out")
    run_job(url)
    asked: list[str] = []
    has_size = TaskFolder.has_size

    def ask(self: TaskFolder, file: FileInfo) -> bool:
        asked.append(file.name)
        return has_size(self, file)

    monkeypatch.setattr(TaskFolder, "has_size", ask)
    folder = claim(url, restore=restore)
    assert folder.finished
    assert asked == []
    Storage().write_bytes(f"{url}/late", b"x")
    monkeypatch.setattr(Storage, "expand", lambda *_: [])
    files = [FileInfo.of("late", b"x"), FileInfo.of("missing", b"")]
    assert folder.have_sizes(files) == [True, False]
