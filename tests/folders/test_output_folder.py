"""An output folder belongs to one job, is resumed by an equal one, and loses nothing of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest
from command_line import ROOT, environment
from msgspec.structs import replace
from output_folders import (
    JOB,
    NAMES,
    OTHER,
    PIECES,
    TAKEOVER,
    begin_another,
    begun,
    claim,
    manifest_of,
    restore,
    run_job,
    tree,
    write_piece,
)

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders import claim as claims
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.job_json import PackedNames, unpack_names
from bpe_beam.folders.output_folder import RestoredFolder
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick


def test_a_new_folder_says_first_whose_it_is(tmp_path: Path) -> None:
    url = tmp_path / "deep" / "out #1 100% [a] ü"
    folder = claim(url)
    assert not folder.finished
    job = json.loads((url / "__job").read_bytes())
    assert list(job) == ["job", "version", "fingerprint", "settings", "final", "files", "sha256"]
    assert job["job"] == "tokenize"
    assert job["settings"] == {"append": None, "input": {"text_field": "text", "files": [["a", 1]]}}
    assert job["fingerprint"] == folder.record.fingerprint
    assert unpack_names(msgspec.convert(job["files"], PackedNames)) == set(NAMES)
    assert str(tmp_path) not in (url / "__job").read_text()
    assert (url / "work").is_dir()


def test_a_finished_folder_holds_nothing_temporary(whole: dict[str, bytes]) -> None:
    shards = [name for name in NAMES if name.startswith("shard")]
    assert sorted(whole) == sorted(
        [
            "__job",
            "__manifest",
            "__tokenizer",
            "__rejects/shard-00001-of-00003.jsonl",
            *shards,
        ]
    )


def test_the_fingerprint_follows_from_the_settings_alone(tmp_path: Path) -> None:
    turned = {
        "job": "tokenize",
        "input": {"files": [("a", 1)], "text_field": "text"},
        "append": None,
    }
    folders = [claim(tmp_path / "a"), claim(tmp_path / "b", turned)]
    assert folders[0].record.fingerprint == folders[1].record.fingerprint
    changed = [
        {**JOB, "append": "<eos>"},
        {**JOB, "job": "count"},
        {**JOB, "input": {"text_field": "t", "files": [["a", 1]]}},
    ]
    prints = {claim(tmp_path / str(i), job).record.fingerprint for i, job in enumerate(changed)}
    assert len(prints | {folders[0].record.fingerprint}) == 4
    with pytest.raises(ValueError, match="not JSON compliant"):
        claim(tmp_path / "nan", {**JOB, "share": float("nan")})


def test_names_that_are_not_utf8_can_stand_in_settings(tmp_path: Path) -> None:
    job = {**JOB, "input": "\udcff.txt"}
    assert claim(tmp_path, job).record.fingerprint == claim(tmp_path, job).record.fingerprint


def test_an_equal_job_keeps_what_is_finished(tmp_path: Path, whole: dict[str, bytes]) -> None:
    url = tmp_path / "out"
    folder = claim(url)
    write_piece(folder, 0)
    write_piece(folder, 2)
    # Not finished: published, but its receipt was never written.
    (url / "shard-00001-of-00003.bin").write_bytes(b"half")
    (url / "shard-00001-of-00003.idx.attempt-0123456789ab").write_bytes(b"half")
    again = claim(url)
    # It may be another run's, so it goes when the folder is finished.
    assert (url / "shard-00001-of-00003.idx.attempt-0123456789ab").exists()
    assert again.receipt("00001") is None
    receipt = again.receipt("00002")
    assert receipt is not None
    assert receipt.stats == {"documents": 2}
    before = (url / "shard-00000-of-00003.bin").stat().st_mtime_ns
    assert run_job(url) == [1]
    assert (url / "shard-00000-of-00003.bin").stat().st_mtime_ns == before
    assert tree(url) == whole


@pytest.mark.parametrize("damage", ["missing", "same size", "longer"])
def test_a_piece_that_does_not_stand_is_made_again(
    tmp_path: Path, whole: dict[str, bytes], damage: str
) -> None:
    url = tmp_path / "out"
    folder = claim(url)
    for piece in range(PIECES):
        write_piece(folder, piece)
    path = url / "shard-00001-of-00003.idx"
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"#" + data[1:] if damage == "same size" else data + b"#")
    assert run_job(url) == [1]
    assert tree(url) == whole


def test_a_finished_folder_is_left_alone(tmp_path: Path, whole: dict[str, bytes]) -> None:
    assert run_job(tmp_path / "whole") == []
    assert tree(tmp_path / "whole") == whole
    assert claim(tmp_path / "whole").finished
    assert not (tmp_path / "whole" / "work").exists()


def test_a_finished_folder_that_misses_a_file_is_mended(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    url = tmp_path / "whole"
    (url / "shard-00002-of-00003.bin").unlink()
    assert run_job(url) == [2]
    assert tree(url) == whole
    (url / "shard-00000-of-00003.idx").write_bytes(b"short")
    assert run_job(url) == [0]
    assert tree(url) == whole


def test_a_finished_folder_with_other_bytes_of_the_same_size_is_mended(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tmp_path / "whole"
    broken = url / "shard-00001-of-00003.bin"
    size = broken.stat().st_size
    broken.write_bytes(bytes(size))
    assert run_job(url) == [1]
    assert tree(url) == whole
    # Beyond what is cheap to read, sizes decide.
    broken.write_bytes(bytes(size))
    with monkeypatch.context() as patch:
        patch.setattr(claims, "HASHED_BYTES", size - 1)
        assert run_job(url) == []
    assert run_job(url) == [1]


def test_a_piece_without_facts_is_made_again_once_something_is_missing(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    def restore_some(data: bytes) -> RestoredFolder:
        found = restore(data)
        tasks = {**found.tasks, "00001": replace(found.tasks["00001"], stats=None)}
        return replace(found, tasks=tasks)

    url = tmp_path / "whole"
    assert claim(url, restore=restore_some).finished
    (url / "__rejects" / "shard-00001-of-00003.jsonl").unlink()
    folder = claim(url, restore=restore_some)
    assert not folder.finished
    assert [folder.receipt(f"{i:05}") is not None for i in range(PIECES)] == [True, False, True]


def test_a_finished_folder_of_a_broken_manifest_is_made_again(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    (tmp_path / "whole" / "__manifest").write_bytes(b"{")
    assert run_job(tmp_path / "whole") == [0, 1, 2]
    assert tree(tmp_path / "whole") == whole


def test_a_kill_between_the_manifest_and_the_cleaning_is_no_harm(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    url = tmp_path / "whole"
    folder = claim(tmp_path / "other")
    write_piece(folder, 0)
    (url / "work").mkdir()
    (url / "work" / "00000.json").write_bytes((tmp_path / "other/work/00000.json").read_bytes())
    (url / "work" / "plan.json").write_bytes(b"{}\n")
    (url / "__manifest.attempt-0123456789ab").write_bytes(b"half")
    assert run_job(url) == []
    assert tree(url) == whole


def test_another_job_is_refused_with_what_differs(tmp_path: Path) -> None:
    claim(tmp_path)
    other = {
        "job": "tokenize",
        "append": "<eos>",
        "input": {"text_field": "t", "files": [["a", 2]]},
    }
    before = tree(tmp_path)
    with pytest.raises(UsageError) as error:
        claim(tmp_path, other)
    said = str(error.value)
    assert '  append: none there, "<eos>" now' in said
    assert (
        '  input: text_field="text", files="a", 1 there, text_field="t", files="a", 2 now' in said
    )
    assert "another output" in said
    assert "overwrite to remove" in said
    assert tree(tmp_path) == before


def test_a_long_list_of_differences_is_cut(tmp_path: Path) -> None:
    claim(tmp_path, {"job": "x", **{f"s{i}": "v" * 500 for i in range(40)}})
    with pytest.raises(UsageError) as error:
        claim(tmp_path, {"job": "x"})
    assert "and more: s12, s13" in str(error.value)
    assert len(str(error.value)) < 4000


def test_names_that_were_recorded_later_are_the_jobs_too(tmp_path: Path) -> None:
    """Shards get their final names when all splits are done, and `__job` has them then."""
    claim_folder(Storage(), str(tmp_path), JOB, [*NAMES, "more.bin"], False)
    (tmp_path / "more.bin").write_bytes(b"x")
    folder = claim(tmp_path)
    assert folder.record.names == {*NAMES, "more.bin"}
    claim(tmp_path, overwrite=True)
    assert not (tmp_path / "more.bin").exists()


def test_files_of_others_are_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"no job of bpe-beam recorded \(thesis.tex\)"):
        claim(tmp_path)
    assert tree(tmp_path) == {"thesis.tex": b"years of work"}


def test_overwriting_removes_what_the_job_recorded_and_nothing_else(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    url = tmp_path / "whole"
    foreign = {
        "thesis.tex": b"1",
        "shard-00007-of-00003.bin": b"2",  # looks like ours, but no job wrote it
        "__rejects/notes.txt": b"3",
        "shard-00000-of-00003.bin.bak": b"4",
        "work/mine.json": b"{}",
        "shard-00000-of-00003.bin.attempt-me": b"5",
    }
    for name, data in foreign.items():
        (url / name).parent.mkdir(exist_ok=True)
        (url / name).write_bytes(data)
    (url / "shard-00000-of-00003.bin.attempt-00aa11bb22cc").write_bytes(b"half")
    other = {"job": "count"}
    folder = claim_folder(Storage(), str(url), other, ["part-0.parquet"], True)
    assert not folder.finished
    left = tree(url)
    assert json.loads(left.pop("__job"))["job"] == "count"
    assert left == foreign


def test_overwriting_an_equal_job_begins_anew(tmp_path: Path, whole: dict[str, bytes]) -> None:
    assert run_job(tmp_path / "whole", overwrite=True) == [0, 1, 2]
    assert tree(tmp_path / "whole") == whole
    unfinished = claim(tmp_path / "b")
    write_piece(unfinished, 1)
    assert run_job(tmp_path / "b", overwrite=True) == [0, 1, 2]
    assert tree(tmp_path / "b") == whole


@pytest.mark.parametrize(
    "name", ["__manifest", "__job", "shard-00001-of-00003.bin", "__rejects", "work"]
)
def test_overwriting_never_replaces_a_file_that_no_job_recorded(tmp_path: Path, name: str) -> None:
    if name == "__rejects":
        name = "__rejects/shard-00000-of-00003.jsonl"
        (tmp_path / "__rejects").mkdir()
    if name == "work":
        (tmp_path / "work").mkdir()
    else:
        (tmp_path / name).write_text("{}")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=f"holds {name}, which no job"):
        claim(tmp_path, overwrite=True)
    assert tree(tmp_path) == before


def test_overwriting_checks_collisions_before_it_removes(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    url = tmp_path / "whole"
    (url / "part-0.parquet").write_text("mine")
    before = tree(url)
    with pytest.raises(UsageError, match=r"holds part-0\.parquet, which no job"):
        claim_folder(Storage(), str(url), {"job": "count"}, ["part-0.parquet"], True)
    assert tree(url) == before


def test_overwriting_leaves_other_files_beside(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert run_job(tmp_path, overwrite=True) == [0, 1, 2]
    assert tree(tmp_path)["thesis.tex"] == b"years of work"
    assert run_job(tmp_path) == []


@pytest.mark.parametrize(
    "change", [("shard-", "SHARD-"), ('"first": 0', '"first": 1'), ("  ", " ")]
)
def test_a_change_that_no_setting_shows_is_refused(tmp_path: Path, change: tuple[str, str]) -> None:
    """What `__job` lists may be removed by --overwrite: then this job's own names alone."""
    claim(tmp_path)
    (tmp_path / "SHARD-00000-of-00003.bin").write_bytes(b"precious")
    path = tmp_path / "__job"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(UsageError, match="has no readable __job"):
        claim(tmp_path)
    assert run_job(tmp_path, overwrite=True) == [0, 1, 2]
    assert (tmp_path / "SHARD-00000-of-00003.bin").read_bytes() == b"precious"


def test_a_file_is_no_output_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(UsageError, match="must be a folder, got the file"):
        claim(tmp_path / "out")


def test_a_run_killed_at_its_very_first_file_can_start_again(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    url = tmp_path / "out"
    url.mkdir()
    (url / "__job.attempt-0123456789ab").write_bytes(b"{")
    assert run_job(url) == [0, 1, 2]
    assert tree(url) == whole


def test_finish_takes_only_the_claimed_name(tmp_path: Path) -> None:
    folder = claim(tmp_path, final="summary.json")
    with pytest.raises(ValueError, match=r"summary\.json"):
        folder.finish("__manifest", b"")
    folder.finish("summary.json", b"{}\n")
    assert folder.finished
    assert sorted(tree(tmp_path)) == ["__job", "summary.json"]
    assert claim(tmp_path, final="summary.json").finished


def test_finish_leaves_what_others_put_into_work(tmp_path: Path) -> None:
    folder = claim(tmp_path)
    (tmp_path / "work" / "notes.txt").write_text("mine")
    (tmp_path / "work" / "00000.json.attempt-0123456789ab").write_text("half")
    folder.finish("__manifest", b"{}\n")
    assert sorted(tree(tmp_path)) == ["__job", "__manifest", "work/notes.txt"]


def test_an_unreadable_file_is_an_error_and_not_a_silent_repetition(tmp_path: Path) -> None:
    class Refusing(Storage, frozen=True):
        def open(self, url: str) -> BinaryIO:
            if url.endswith("00001-of-00003.bin"):
                raise DataError(f"cannot read {url}: permission denied")
            return super().open(url)

    folder = claim(tmp_path)
    write_piece(folder, 1)
    with pytest.raises(DataError, match="permission denied"):
        claim(tmp_path, storage=Refusing())


def test_an_unfinished_job_leaves_its_folder_with_the_documents(tmp_path: Path) -> None:
    begin_another(tmp_path)
    documents = tree(tmp_path / "work" / "documents")
    folder = claim(tmp_path, takeover=TAKEOVER)
    assert folder.record.settings["append"] is None
    assert not folder.receipts()
    found = tree(tmp_path)
    assert {*found} == {"__job", *(f"work/documents/{name}" for name in documents)}
    assert tree(tmp_path / "work" / "documents") == documents


def test_what_is_not_taken_over(tmp_path: Path) -> None:
    """Finished tasks that are no moment's work, files outside of `work/`, other settings."""
    for name, tasks, file, job in (
        ("task", ("measure", "shard"), None, JOB),
        ("file", ("measure",), "__tokenizer", JOB),
        ("finished", (), "__manifest", JOB),
        ("settings", ("measure",), None, {**JOB, "input": {}}),
        ("lacks it", ("measure",), None, {"job": "tokenize", "input": JOB["input"]}),
        ("job", ("measure",), None, {**JOB, "job": "count"}),
    ):
        url = tmp_path / name
        begin_another(url, tasks=tasks)
        if file is not None:
            (url / file).write_bytes(b"{}")
        before = tree(url)
        with pytest.raises(UsageError, match="holds the work of another job"):
            claim(url, job, takeover=TAKEOVER)
        assert tree(url) == before


def test_a_temporary_folder_of_another_job_is_emptied(tmp_path: Path) -> None:
    begin_another(tmp_path)
    claim(tmp_path, OTHER, replace_others=True)
    assert "work/measure-00000-of-00002.json" in tree(tmp_path)
    claim(tmp_path, replace_others=True)
    assert {*tree(tmp_path)} == {"__job", "work"}


@pytest.mark.slow
@pytest.mark.parametrize("before", ["nothing", "another job", "a damaged finish"])
def test_a_job_killed_at_any_moment_ends_with_the_same_bytes(tmp_path: Path, before: str) -> None:
    assert killed_by(f"kill_at_every_moment(path, {before!r})", tmp_path) > 20


def test_a_job_killed_while_it_takes_over_a_folder_leaves_it_to_either(tmp_path: Path) -> None:
    assert killed_by("kill_at_takeover(path)", tmp_path) > 5


def killed_by(call: str, path: Path) -> int:
    """Return the result of a function of `output_folders.py`, in a process of its own.

    Forking one that has other threads can hang.
    """
    code = (
        "import pathlib, sys; from output_folders import *; "
        f"path = pathlib.Path(sys.argv[1]); print({call})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        env=environment(
            {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "helpers")))}
        ),
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_two_runs_at_once_end_with_the_same_bytes(tmp_path: Path, whole: dict[str, bytes]) -> None:
    url = tmp_path / "out"
    first, second = claim(url), claim(url)
    for piece in range(PIECES):
        write_piece(first, piece)
        write_piece(second, piece)
    for folder in (first, second):
        folder.storage.write_bytes(folder.path("__tokenizer"), b"{}\n")
    manifest = manifest_of(first.receipts())
    first.finish("__manifest", manifest)
    second.finish("__manifest", manifest)
    assert tree(url) == whole


def test_a_folder_that_another_job_took_is_left_alone(tmp_path: Path) -> None:
    mine, _ = begun(tmp_path / "out", 0)
    other = {**JOB, "append": "x"}
    assert run_job(tmp_path / "out", job=other, overwrite=True) == [0, 1, 2]
    theirs = tree(tmp_path / "out")
    with pytest.raises(DataError, match="another job overwrote this folder"):
        mine.require_ours()
    with pytest.raises(DataError, match="another job overwrote this folder"):
        mine.finish("__manifest", b"{}")
    assert tree(tmp_path / "out") == theirs


def test_a_file_that_changed_meanwhile_is_noticed(tmp_path: Path) -> None:
    folder, run = begun(tmp_path / "out", 0)
    folder.take(run, all_files=False)
    receipts = folder.receipts()
    folder.require_whole(receipts.values())
    with Path(folder.path("shard-00000-of-00003.bin")).open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="another run of this job works in the same folder"):
        folder.require_whole(receipts.values())
    Path(folder.path("shard-00000-of-00003.bin")).unlink()
    with pytest.raises(DataError, match="is gone or changed"):
        folder.require_whole(receipts.values())


def test_a_link_in_place_of_the_temporary_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "shard-00000.json").write_text("{}")
    claim(tmp_path / "out")
    (tmp_path / "out" / "work").rmdir()
    (tmp_path / "out" / "work").symlink_to("../elsewhere")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="holds a link named work"):
            claim(tmp_path / "out", overwrite=overwrite)
    assert (tmp_path / "elsewhere" / "shard-00000.json").exists()


def test_a_lost_job_file_is_written_again_if_other_files_name_the_job(tmp_path: Path) -> None:
    """Its final file, or a receipt, or what the job itself knows of its other files."""
    run_job(tmp_path / "whole")
    begun(tmp_path / "begun", 1)
    claim(tmp_path / "known")
    (tmp_path / "known" / "work").rmdir()
    for name, more in (
        ("whole", {"restore": restore}),
        ("begun", {}),
        ("known", {"is_of_job": lambda _: True}),
    ):
        path = tmp_path / name / "__job"
        whole = path.read_bytes()
        for damaged in (None, b"", whole[:-9]):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            warnings: list[str] = []
            folder = claim(tmp_path / name, warn=warnings.append, **more)
            assert folder.finished == (name == "whole")
            assert any(each.endswith("made again: __job") for each in warnings)
            assert path.read_bytes() == whole
            folder.lock = None


def test_a_job_that_cannot_overwrite_does_not_advise_it(tmp_path: Path) -> None:
    claim(tmp_path)
    with pytest.raises(UsageError) as other:
        claim(tmp_path, OTHER, None)
    (tmp_path / "__job").write_bytes(b"")
    with pytest.raises(UsageError, match="has no readable __job") as unknown:
        claim(tmp_path, JOB, None)
    assert "overwrite" not in f"{other.value}{unknown.value}"


def test_a_temporary_folder_of_an_unknown_job_is_made_again(tmp_path: Path) -> None:
    claim(tmp_path / "work")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"x")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "work" / "__rejects").mkdir()
    (tmp_path / "work" / "__rejects" / "other").write_bytes(b"x")
    (tmp_path / "work" / "__job").write_bytes(b"")
    warnings: list[str] = []
    claim(tmp_path / "work", replace_others=True, warn=warnings.append)
    assert "made again: __job, all that it names" in warnings[0]
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["__job", "work"]
    assert (tmp_path / "precious" / "file").read_bytes() == b"x"
