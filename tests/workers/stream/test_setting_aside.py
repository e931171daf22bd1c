"""Bad files of a stream: limits over all windows, and files that are set aside."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from read_back import tree
from stream_by_hand import (
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
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage
from bpe_beam.workers.stream.watcher import Stream, Watcher
from bpe_beam.workers.stream.window_log import read_left_out

BAD = '{"text": 7}\n'


def put_bad(stream: Stream, name: str, bad: int, *numbers: int) -> Path:
    path = put(stream, name, *numbers)
    path.write_text(path.read_text() + BAD * bad)
    return path


def everything(stream: Stream) -> Stream:
    """The stream that reads files of any name."""
    return replace(stream, watched=Watched.of(STORAGE, [f"{stream.watched.root}/"]))


def rejects(stream: Stream) -> list[int]:
    return [read_manifest(STORAGE, str(window)).totals.rejects for window in windows(stream)]


def test_rejects_count_over_the_whole_stream(stream: Stream) -> None:
    stream = replace(stream, max_rejects="10%")
    put(stream, "a.jsonl", *range(18))
    run_stream(stream)
    put_bad(stream, "b.jsonl", 1, 18)
    run_stream(stream)
    assert rejects(stream) == [0, 1], "1 of 2 in this window, 1 of 20 in the stream"
    put_bad(stream, "c.jsonl", 2, 19)
    with pytest.raises(DataError) as error:
        run_stream(stream)
    said = str(error.value)
    assert said.startswith(
        "max_rejects 10% is exceeded: 3 of 23 records are unusable, 2 of them in this window. "
        "c.jsonl: 2 records"
    )
    run_stream(replace(stream, max_rejects="3"))
    assert rejects(stream) == [0, 1, 2]
    put_bad(stream, "d.jsonl", 1, 20)
    with pytest.raises(DataError, match="max_rejects 3 is exceeded: 4 of 25 records"):
        run_stream(replace(stream, max_rejects="3"))


def test_losses_count_over_the_whole_stream(stream: Stream) -> None:
    stream = replace(everything(stream), max_lost="100%")
    data = gzip.compress(b'{"text": "hello"}\n' * 2000)
    flawed = data[: len(data) // 2] + b"flaw" * 200
    Path(stream.watched.root, "b.gz").write_bytes(flawed)
    run_stream(stream)
    (loss,) = read_manifest(STORAGE, str(windows(stream)[0])).rejects.lost
    Path(stream.watched.root, "c.gz").write_bytes(flawed)
    with pytest.raises(DataError, match=r"are lost, .*, after .* in earlier windows: c\.gz"):
        run_stream(replace(stream, max_lost=str(2 * loss.bytes - 1)))
    run_stream(replace(stream, max_lost=str(2 * loss.bytes)))
    assert len(windows(stream)) == 2


def test_the_verdict_on_a_window_is_of_the_windows_before_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later window that has all shards waits, so no order of workers changes the verdict."""
    stream = replace(stream, max_rejects="10%")
    watcher = Watcher(stream)
    put(stream, "a.jsonl", *range(18))
    watcher.look(1.0)
    first = watcher.look(2.0)
    put_bad(stream, "b.jsonl", 1, 18)
    watcher.look(3.0)
    work_off(stream, watcher.look(4.0))
    watcher.look(5.0)
    assert [window.name for window in windows(stream)] == ["window-00000000", "window-00000001"]
    assert not [*Path(stream.output).rglob("__manifest")]
    assert (watcher.lag.files_waiting, watcher.lag.windows_open) == (2, 2)
    work_off(stream, first)
    watcher.look(6.0)
    assert rejects(stream) == [0, 1]
    assert (watcher.lag.files_waiting, watcher.lag.windows_finished) == (0, 2)


def test_the_sums_cost_nothing_while_all_records_are_usable(stream: Stream) -> None:
    read = []

    class Recording(Storage, frozen=True):
        def read_bytes(self, url: str) -> bytes:
            read.append(url.rpartition("/")[2])
            return super().read_bytes(url)

    put(stream, "a.jsonl", 0, 1, 2)
    run_stream(stream)
    put(stream, "b.jsonl", 3)
    run_stream(replace(stream, storage=Recording()))
    assert "__manifest" not in read
    put_bad(stream, "c.jsonl", 1, 4)
    run_stream(replace(stream, storage=Recording(), max_rejects="50%"))
    assert read.count("__manifest") == 2, "once for each window before"


def test_a_window_beyond_the_limit_is_set_aside(stream: Stream) -> None:
    put_bad(stream, "a.jsonl", 2, 0, 1)
    stream = replace(stream, sets_aside=True)
    watcher = Watcher(stream)
    watcher.look(1.0)
    work_off(stream, watcher.look(2.0))
    watcher.look(3.0)
    assert watcher.set_aside == 1
    assert watcher.last_set_aside is not None
    assert watcher.last_set_aside.startswith(
        "window-00000000: max_rejects 0.1% is exceeded: 2 of 4 records are unusable. a.jsonl: 2"
    )
    assert sorted(texts(stream)) == expected(0, 1)
    assert rejects(stream) == [2]


def test_a_file_that_cannot_be_read_is_left_out_and_named_once(stream: Stream) -> None:
    stream = everything(stream)
    put(stream, "a.jsonl", 0)
    bad = Path(stream.watched.root, "b.jsonl")
    bad.write_bytes(b"PK\x03\x04 an archive")
    with pytest.raises(UsageError, match=r"b\.jsonl' is a ZIP archive"):
        run_stream(stream)
    aside = replace(stream, sets_aside=True)
    run_stream(aside)
    assert file_names(stream) == [["a.jsonl"]]
    (left_out,) = read_left_out(STORAGE, stream.output, "window-00000000")
    assert (left_out.name, left_out.problem) == (
        "b.jsonl",
        "is a ZIP archive, which is not read; unpack it first",
    )
    before = tree(Path(stream.output))
    run_stream(aside)
    run_stream(stream)
    assert tree(Path(stream.output)) == before, "it is not looked at again"
    # A repaired file of the same name is new.
    put(stream, "b.jsonl", 1)
    run_stream(stream)
    assert file_names(stream) == [["a.jsonl"], ["b.jsonl"]]
    run_stream(stream)
    assert sorted(texts(stream)) == expected(0, 1)


def test_a_window_of_bad_files_alone(stream: Stream) -> None:
    stream = replace(everything(stream), sets_aside=True)
    Path(stream.watched.root, "b.jsonl").write_bytes('{"text": "a"}\n'.encode("utf-16"))
    run_stream(stream)
    assert file_names(stream) == [[]]
    assert texts(stream) == []
    assert read_left_out(STORAGE, stream.output, "window-00000000")[0].name == "b.jsonl"


@pytest.mark.parametrize("becomes", ["gone", "longer"])
def test_a_file_that_changes_after_its_window_was_made_is_lost_alone(
    stream: Stream, becomes: str
) -> None:
    put(stream, "a.jsonl", 0, 1)
    path = put(stream, "b.jsonl", 2)
    stream = replace(stream, sets_aside=True)
    watcher = Watcher(stream)
    watcher.look(1.0)
    tasks = watcher.look(2.0)
    if becomes == "gone":
        path.unlink()
    else:
        put(stream, "b.jsonl", 2, 3)
    work_off(stream, tasks)
    watcher.look(3.0)
    assert sorted(texts(stream)) == expected(0, 1)
    manifest = read_manifest(STORAGE, str(windows(stream)[0]))
    assert [loss.file for loss in manifest.rejects.lost] == ["b.jsonl"]
    assert watcher.last_set_aside is not None
    assert "max_lost 0 is exceeded" in watcher.last_set_aside
    assert "b.jsonl" in watcher.last_set_aside
