"""The streaming job's watcher: each file in one window, through any crash and beside a twin."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from stream_by_hand import (
    DOCUMENTS,
    STORAGE,
    expected,
    file_names,
    put,
    run_stream,
    texts,
    windows,
    work_off,
)

from bpe_beam.corpus.new_files import Watched
from bpe_beam.errors import DataError
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage
from bpe_beam.workers.stream import watcher as watching
from bpe_beam.workers.stream import window_log
from bpe_beam.workers.stream.watcher import Stream, Watcher


def test_files_are_read_as_they_come_and_each_once(stream: Stream) -> None:
    put(stream, "a.jsonl", 0, 1)
    put(stream, "deep/er/b.jsonl", 2)

    def more(look: int) -> None:
        if look == 2:
            put(stream, "c.jsonl", 3, 4, 5)
        if look == 3:
            put(stream, "deep/a.jsonl", 6)

    run_stream(replace(stream, until_idle_seconds=3), more)
    assert file_names(stream) == [["a.jsonl", "deep/er/b.jsonl"], ["c.jsonl"], ["deep/a.jsonl"]]
    assert sorted(texts(stream)) == expected(*range(7))
    before = {path: path.read_bytes() for path in Path(stream.output).rglob("*") if path.is_file()}
    run_stream(stream)
    assert before == {
        path: path.read_bytes() for path in Path(stream.output).rglob("*") if path.is_file()
    }, "what is finished is left alone"


def test_a_file_is_ready_when_it_has_stopped_growing(stream: Stream) -> None:
    def grow(look: int) -> None:
        if look < 4:
            put(stream, "a.jsonl", *range(look + 1))

    run_stream(replace(stream, until_idle_seconds=1), grow)
    assert file_names(stream) == [["a.jsonl"]]
    assert sorted(texts(stream)) == expected(0, 1, 2, 3)


def test_where_files_appear_whole_one_look_is_enough(stream: Stream, monkeypatch) -> None:
    put(stream, "a.jsonl", 0)
    watcher = Watcher(stream)
    assert watcher.look(1.0) == []
    assert len(watcher.look(2.0)) == 1
    other = replace(stream, output=f"{stream.output}-2")
    Path(other.output).mkdir()
    monkeypatch.setattr(Watched, "appears_whole", True)
    assert len(Watcher(other).look(1.0)) == 1


def test_an_empty_file_is_waited_for(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    path = Path(stream.watched.root, "b.jsonl")
    path.touch()
    run_stream(stream)
    assert file_names(stream) == [["a.jsonl"]]
    put(stream, "b.jsonl", 1)
    run_stream(stream)
    assert file_names(stream) == [["a.jsonl"], ["b.jsonl"]]


def test_files_of_one_window_are_gathered(stream: Stream) -> None:
    def come(look: int) -> None:
        if look < 12:
            put(stream, f"{look:02}.jsonl", look)

    times = run_stream(replace(stream, window_seconds=5, until_idle_seconds=2), come)
    assert [len(names) for names in file_names(stream)] == [6, 6]
    assert sorted(texts(stream)) == expected(*range(12))
    # the last file is ready at 12; its window is due 5 after its first, at 7; then two of rest
    assert len(times) < 20


def test_a_file_that_changes_afterwards_is_not_read_again(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    run_stream(stream)
    put(stream, "a.jsonl", 0, 1)
    watcher = Watcher(stream)
    for now in range(3):
        assert watcher.look(float(now)) == []
    assert watcher.counts == {"files_changed": 1}, "it is told once"
    assert sorted(texts(stream)) == expected(0)


def test_a_file_that_changes_before_it_is_read_ends_the_stream(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    watcher = Watcher(stream)
    watcher.look(1.0)
    tasks = watcher.look(2.0)
    put(stream, "a.jsonl", 0, 1)
    with pytest.raises(DataError, match=r"a\.jsonl"):
        work_off(stream, tasks)
    put(stream, "a.jsonl", 0)
    with pytest.raises(DataError, match=r"a\.jsonl"):
        run_stream(stream)  # its time is another, too
    assert file_names_unfinished(stream) == ["window-00000000"]


def file_names_unfinished(stream: Stream) -> list[str]:
    return [window.name for window in windows(stream) if not (window / "__manifest").exists()]


def test_large_files_are_cut_but_not_where_it_would_be_a_guess(stream: Stream) -> None:
    put(stream, "a.jsonl", *range(20))
    folder = Path(stream.watched.root)
    rows = "".join(f'"{DOCUMENTS[i]}"\n' for i in range(20) if '"' not in DOCUMENTS[i])
    (folder / "b.csv").write_text("text\n" + rows)
    both = Watched.of(STORAGE, [f"{folder}/*.jsonl", f"{folder}/*.csv"])
    run_stream(replace(stream, watched=both, range_bytes=300))
    slices = [
        piece.file
        for shard in read_manifest(STORAGE, str(windows(stream)[0])).shards
        for piece in shard.slices
    ]
    assert slices.count("b.csv") == 1
    assert slices.count("a.jsonl") > 3
    assert len(texts(stream)) == 20 + rows.count("\n")


def test_rejects_stand_beside_and_too_many_end_the_stream(stream: Stream) -> None:
    path = put(stream, "a.jsonl", 0, 1, 2)
    path.write_text(path.read_text() + '{"text": 7}\n')
    with pytest.raises(DataError, match=r"max_rejects 0.1% is exceeded: 1 of 4 records"):
        run_stream(stream)
    assert file_names_unfinished(stream) == ["window-00000000"]
    run_stream(replace(stream, max_rejects="1"))
    assert sorted(texts(stream)) == expected(0, 1, 2)
    manifest = read_manifest(STORAGE, str(windows(stream)[0]))
    assert manifest.totals.rejects == 1
    assert [file.name for file in manifest.rejects.files] == [
        "__rejects/rejects-00000-of-00001.jsonl"
    ]


@pytest.mark.parametrize(
    ("damage", "limit", "allowing"),
    [
        ("no text", "max_rejects", "allow more with max_rejects"),
        ("changed", "max_lost", "allow the loss with max_lost"),
    ],
)
def test_a_refused_window_names_the_only_way_on(
    stream: Stream, damage: str, limit: str, allowing: str
) -> None:
    """Its files are those that were recorded, and other options would be another stream."""
    path = put(stream, "a.jsonl", 0)
    if damage == "no text":
        path.write_text('{"body": "words"}\n')
    stream = replace(stream, **{limit: "1%"})
    watcher = Watcher(stream)
    watcher.look(1.0)
    tasks = watcher.look(2.0)
    if damage == "changed":
        put(stream, "a.jsonl", 0, 1)
    work_off(stream, tasks)
    with pytest.raises(DataError) as error:
        watcher.look(3.0)
    assert str(error.value).startswith(f"{limit} 1% is exceeded")
    assert str(error.value).endswith(f"; {allowing}: the same command then resumes")
    run_stream(replace(stream, **{limit: "100%"}))
    assert texts(stream) == []


# ---- crashes, twins ----


class Killed(BaseException):
    """What no code of ours catches."""


class Storm:
    """Ends whoever makes the n-th change to storage, before or after it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> None:
        self.left = at
        for owner, name in (
            (Storage, "write_bytes"),
            (Storage, "remove"),
            (Storage, "make_folder"),
            (window_log, "write_once"),
            (os, "replace"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name), after))
        monkeypatch.setattr(Path, "replace", self._failing(Path.replace, after))

    def _failing(self, real, after: bool):
        def call(*args, **kwargs):
            self.left -= 1
            last = self.left == 0
            if last and not after:
                raise Killed
            value = real(*args, **kwargs)
            if last:
                raise Killed
            return value

        return call


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_change_and_started_again(
    stream: Stream, tmp_path: Path, after: bool
) -> None:
    """At every single change that a run makes to storage, and then once more."""
    put(stream, "a.jsonl", 0, 1, 2)
    put(stream, "b.jsonl", 3, 4)
    stream = replace(stream, range_bytes=200)
    at, killed = 0, True
    while killed:
        at += 1
        killed = False
        out = tmp_path / f"out-{at}"
        out.mkdir()
        (Path(stream.watched.root) / "c.jsonl").unlink(missing_ok=True)
        tried = replace(stream, output=str(out))
        for again in (at, max(1, at // 2)):
            with pytest.MonkeyPatch.context() as patch:
                Storm(patch, again, after)
                try:
                    run_stream(tried)
                except Killed:
                    killed = True
        put(stream, "c.jsonl", 5)
        run_stream(tried)
        assert sorted(texts(tried)) == expected(*range(6)), at
        names = [name for window in file_names(tried) for name in window]
        assert sorted(names) == ["a.jsonl", "b.jsonl", "c.jsonl"], at
    assert at > 15


def test_of_two_watchers_one_has_each_file(stream: Stream, monkeypatch) -> None:
    """One that was taken for dead goes on just where it would add a window."""
    put(stream, "a.jsonl", 0)
    old, new = Watcher(stream), Watcher(stream)
    assert old.look(1.0) == new.look(1.0) == []
    describe = watching.described  # type: ignore[attr-defined]
    tasks: list[Any] = []

    def meanwhile(*args):
        monkeypatch.setattr(watching, "described", describe)
        put(stream, "b.jsonl", 1)
        new.look(2.0)
        tasks.extend(new.look(3.0))
        return describe(*args)

    monkeypatch.setattr(watching, "described", meanwhile)
    late = old.look(4.0)
    assert len(tasks) > 0
    for now in range(5, 9):
        late += old.look(float(now))
        tasks += new.look(float(now))
        work_off(stream, tasks + late)
    run_stream(stream)
    assert sorted(name for names in file_names(stream) for name in names) == ["a.jsonl", "b.jsonl"]
    assert sorted(texts(stream)) == expected(0, 1)


def test_an_attempt_that_is_late_changes_nothing(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    watcher = Watcher(stream)
    watcher.look(1.0)
    tasks = watcher.look(2.0)
    assert work_off(stream, tasks) == ["window-00000000/shard-00000-of-00001"]
    assert work_off(stream, tasks) == [], "it is there already"
    watcher.look(3.0)
    assert work_off(stream, tasks) == []
    assert sorted(texts(stream)) == expected(0)


def test_a_shard_that_is_lost_before_the_end_is_made_again(stream: Stream) -> None:
    put(stream, "a.jsonl", 0)
    watcher = Watcher(stream)
    watcher.look(1.0)
    work_off(stream, watcher.look(2.0))
    (windows(stream)[0] / "work" / "shard-00000-of-00001.bin").unlink()
    run_stream(stream)
    assert sorted(texts(stream)) == expected(0)


# ---- what is watched ----


# ---- files that are written once ----


@pytest.mark.parametrize("becomes", ["gone", "shorter"])
def test_a_file_that_changes_in_an_open_window_does_not_hold_it_for_ever(
    stream: Stream, becomes: str
) -> None:
    """Without a limit the job ends each time; with one, the file is lost and the window done."""
    put(stream, "a.jsonl", 0, 1)
    path = put(stream, "b.jsonl", *range(2, 7))
    watcher = Watcher(stream)
    now, tasks = 1000.0, []  # type: ignore[var-annotated]
    while not tasks:
        tasks = watcher.look(now)
        now = watcher.next_look
    if becomes == "gone":
        path.unlink()
    else:
        put(stream, "b.jsonl", 2)
    for _ in range(2):
        with pytest.raises(DataError, match=r"b\.jsonl"):
            work_off(stream, Watcher(stream).look(now))
    allowing = replace(stream, max_lost="90%")
    run_stream(allowing)
    (folder,) = windows(stream)
    manifest = read_manifest(STORAGE, str(folder))
    assert [loss.file for loss in manifest.rejects.lost] == ["b.jsonl"]
    assert manifest.rejects.by_reason == {"file changed": 1}
    assert manifest.totals.documents == 2


def test_a_damaged_file_of_a_window_is_named_and_made_again(stream: Stream) -> None:
    """As the advice of `verify` says; of the first file of a window, as the next run says."""
    put(stream, "a.jsonl", 0, 1)
    with Path(stream.watched.root, "a.jsonl").open("a") as file:
        file.write('{"no": "text"}\n')
    stream = replace(stream, max_rejects="50%")
    run_stream(stream)
    window = Path(stream.output, "window-00000000")
    names = [path for path in window.rglob("*") if path.is_file()]
    whole = {path: path.read_bytes() for path in names}
    assert len(whole) == 6
    assert run("verify", window).code == 0
    for path, data in whole.items():
        for damaged in (data[: len(data) // 2], b"", data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]):
            path.write_bytes(damaged)
            ran = run("verify", window)
            assert (ran.code, path.name in ran.message) == (1, True), ran.message
            if path.name == "__window":
                with pytest.raises(DataError, match="remove the folder of this window"):
                    run_stream(stream)
                shutil.rmtree(window)
            else:
                assert "remove its __manifest" in ran.message.lower()
                (window / "__manifest").unlink()
            run_stream(stream)
            assert {path: path.read_bytes() for path in names} == whole


def test_a_window_that_lost_its_first_file_takes_no_other_files(stream: Stream) -> None:
    put(stream, "a.jsonl", 0, 1)
    run_stream(stream)
    window = Path(stream.output, "window-00000000")
    (window / "__window").unlink()
    put(stream, "b.jsonl", 2)
    with pytest.raises(DataError, match="__window is missing; remove the folder of this window"):
        run_stream(stream)
    shutil.rmtree(window)
    run_stream(stream)
    assert sorted(texts(stream)) == expected(0, 1, 2)


def test_the_windows_tell_whose_a_folder_is(stream: Stream) -> None:
    assert not window_log.has_windows_of(STORAGE, stream.output, stream.fingerprint)
    put(stream, "a.jsonl", 0, 1)
    run_stream(stream)
    assert window_log.has_windows_of(STORAGE, stream.output, stream.fingerprint)
    assert not window_log.has_windows_of(STORAGE, stream.output, "0" * 64)


def test_a_damaged_root_is_called_so(stream: Stream) -> None:
    window_log.require_root(STORAGE, stream.output, stream.watched)
    put(stream, "a.jsonl", 0)
    run_stream(stream)
    path = Path(stream.output, window_log.INPUT_FILE)
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], whole.replace(b'"version": 1', b'"version": 2')):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"__input is damaged; if .* remove it"):
            window_log.require_root(STORAGE, stream.output, stream.watched)
    path.unlink()
    window_log.require_root(STORAGE, stream.output, stream.watched)
    assert path.read_bytes() == whole
