"""The folders of runs: killed ones are taken over, orphans write into their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from output_folders import JOB, begun, claim, run_job, tree, write_piece

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder

pytestmark = pytest.mark.quick


def test_what_a_killed_run_finished_is_taken_over(tmp_path: Path, whole: dict[str, bytes]) -> None:
    _, run = begun(tmp_path / "out", 1, 2)
    Path(run.path("shard-00000-of-00003.bin")).write_bytes(b"half")
    assert run_job(tmp_path / "out") == [0]
    assert tree(tmp_path / "out") == whole


def test_a_takeover_that_was_broken_off_is_taken_up_again(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    """Killed after one of a piece's files was moved; and between the receipt and its removal."""
    folder, run = begun(tmp_path / "out", 0, 1)
    folder.storage.make_folder(folder.path("__rejects"))
    for name in ("shard-00000-of-00003.bin", "__rejects/shard-00001-of-00003.jsonl"):
        folder.storage.move(run.path(name), folder.path(name))
    receipt = Path(run.path("work/00001.json")).read_bytes()
    folder.take(run, all_files=True)
    Path(run.path("work/00001.json")).write_bytes(receipt)
    assert run_job(tmp_path / "out") == [2]
    assert tree(tmp_path / "out") == whole


def test_an_orphan_writes_into_its_own_folder_only(tmp_path: Path, whole: dict[str, bytes]) -> None:
    """A pipeline goes on when its driver is dead: while the next run works, and when it is done."""
    folder, orphan = begun(tmp_path / "out", 0)
    folder = claim(tmp_path / "out")
    assert folder.receipt("00000")
    write_piece(orphan, 0)
    write_piece(orphan, 1)
    assert "00001" not in folder.receipts()
    assert run_job(tmp_path / "out") == [2]  # the next claim takes over that one, too
    assert tree(tmp_path / "out") == whole
    with pytest.raises(DataError, match="cannot write"):
        write_piece(orphan, 2)
    assert tree(tmp_path / "out") == whole


def test_an_orphan_of_another_job_is_not_believed(tmp_path: Path) -> None:
    _, orphan = begun(tmp_path / "out", 0)
    folder = claim(tmp_path / "out", {**JOB, "append": "x"}, overwrite=True)
    for name in ("work", "__rejects"):
        Path(orphan.path(name)).mkdir(parents=True)
    write_piece(orphan, 1)
    assert claim(tmp_path / "out", {**JOB, "append": "x"}).receipts() == {}
    assert folder.receipt("00001") is None
    folder.finish("__manifest", b"{}")
    assert sorted(tree(tmp_path / "out")) == ["__job", "__manifest"]


def test_what_nobody_wrote_stays_in_the_folder_of_a_run(tmp_path: Path) -> None:
    folder, run = begun(tmp_path / "out", 0)
    (Path(run.url) / "notes.txt").write_text("mine")
    folder.take(run, all_files=False)
    folder.finish("__manifest", b"{}")
    assert [path for path in (tmp_path / "out" / "work").rglob("*") if path.is_file()] == [
        Path(run.url) / "notes.txt"
    ]


def test_temporary_files_of_a_run_stay_where_they_are(tmp_path: Path) -> None:
    folder = claim(tmp_path / "out")
    run = folder.new_run()
    run.storage.write_bytes(run.path("work/plan.json"), b"{}\n")
    file = FileInfo.of("work/plan.json", b"{}\n")
    run.for_workers().write_receipt("piece", [file], {})
    folder.take(run, all_files=False)
    named = folder.receipts()["piece"].files[0].name
    assert Path(folder.path(named)) == Path(run.path("work/plan.json"))
    assert claim(tmp_path / "out").receipt("piece")
    folder.finish("__manifest", b"{}")
    assert not (tmp_path / "out" / "work").exists()


def test_a_file_that_a_run_has_lost_is_made_again(tmp_path: Path, whole: dict[str, bytes]) -> None:
    """After a loss of power, or by hand: a receipt exists, and its file does not."""
    _, run = begun(tmp_path / "out", 0, 1)
    Path(run.path("shard-00001-of-00003.idx")).unlink()
    assert run_job(tmp_path / "out") == [1, 2]
    assert tree(tmp_path / "out") == whole


def test_a_receipt_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand of them take minutes; receipts that other processes write are seen."""
    folder, run = begun(tmp_path / "out", 0, 1)
    read: list[str] = []
    reading = RunFolder.read_receipt

    def read_receipt(self: RunFolder, task: str) -> Receipt | None:
        read.append(f"{self.name}/{task}")
        return reading(self, task)

    monkeypatch.setattr(RunFolder, "read_receipt", read_receipt)
    folder.take(run, all_files=True)
    taken = folder.receipts()
    assert read == [f"{run.name}/00000", f"{run.name}/00001"]
    folder.for_workers().write_receipt("00002", [], {})
    assert [*folder.receipts()] == ["00000", "00001", "00002"]
    assert read[2:] == ["out/00002"]
    folder.forget([taken["00001"]])
    assert [*folder.receipts()] == ["00000", "00002"]
    folder.for_workers().write_receipt("00001", [], {"again": 1})
    assert folder.receipts()["00001"].stats == {"again": 1}
    assert claim(tmp_path / "out").receipts()["00000"] == taken["00000"]
