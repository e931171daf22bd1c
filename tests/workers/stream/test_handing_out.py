"""What the streaming job's watcher hands out, when, and again after it was lost."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stream_by_hand import STORAGE, expected, file_names, put, run_stream, texts, windows, work_off

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import InputFile
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile
from bpe_beam.transforms import tokenize_new_files as stream_shards
from bpe_beam.workers.split_task import SplitTask
from bpe_beam.workers.stream import watcher as watcher_module
from bpe_beam.workers.stream.watcher import KEYS, Stream, Watcher, WindowTask


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is ready at the first look."""
    monkeypatch.setattr("bpe_beam.corpus.new_files.Watched.appears_whole", True)


class Tracked:
    """Stands where a runner's restriction tracker would."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.deferred: float | None = None

    def current_restriction(self) -> Any:
        return stream_shards.OffsetRange(self.position, stream_shards._END)  # type: ignore[attr-defined]

    def try_claim(self, position: int) -> bool:
        return True

    def defer_remainder(self, wait: Any) -> None:
        self.deferred = float(wait)


@pytest.fixture
def calls(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls the watcher's step at a position, as a runner does: what it hands out, and how long
    it then wants to be left alone."""
    monkeypatch.setattr(stream_shards, "_LONGEST_SLEEP", 0.0)
    step = stream_shards._WatchFiles(replace(stream, poll_seconds=0.01))
    step.setup()

    def call(position: int) -> tuple[list[tuple[int, str]], float | None]:
        tracked = Tracked(position)
        return list(step.process(b"", tracked)), tracked.deferred

    return call


def test_what_a_failed_bundle_handed_out_is_handed_out_again(stream: Stream, calls: Any) -> None:
    """The process lives on; also if the next call comes before it is time to look."""
    put(stream, "a.jsonl", 0)
    lost, _ = calls(5)
    assert len(lost) == 1
    found = []
    for position in (5, 6, 7, 8):
        found += calls(position)[0]
        time.sleep(0.02 if position > 5 else 0)
    assert [text for _, text in found] == [text for _, text in lost], "again, and then no more"
    work_off(stream, found)
    time.sleep(0.02)
    calls(9)
    assert texts(stream) == expected(0)


def test_a_shard_that_is_lost_is_made_again_by_the_same_watcher(stream: Stream) -> None:
    put(stream, "a.jsonl", 0, 1, 2)
    stream = replace(stream, range_bytes=100)
    watcher = Watcher(stream)
    first = watcher.look(1.0, 0)
    assert len(first) > 1
    work_off(stream, first)
    next((windows(stream)[0] / "work").glob("shard-00001-*.bin")).unlink()
    again = watcher.look(2.0, 1)
    assert len(work_off(stream, again)) == 1
    assert watcher.look(3.0, 2) == []
    assert sorted(texts(stream)) == expected(0, 1, 2)


def test_a_receipt_of_another_window_is_none(stream: Stream) -> None:
    """As when a window's folder was put together from two."""
    put(stream, "a.jsonl", 0)
    watcher = Watcher(stream)
    tasks = watcher.look(1.0, 0)
    work_off(stream, tasks)
    receipt = next((windows(stream)[0] / "work").glob("*.json"))
    text = receipt.read_text()
    for other in (text.replace('"fingerprint": "', '"fingerprint": "0'), "{", "[]", "{}"):
        receipt.write_text(other)
        assert len(work_off(stream, tasks)) == 1
        assert receipt.read_text() == text
    watcher.look(2.0, 1)
    assert texts(stream) == expected(0)


def test_the_wall_clock_may_be_set_back(stream: Stream, calls: Any, monkeypatch) -> None:
    day = 86400.0
    now = time.time()
    calls(0)
    monkeypatch.setattr(time, "time", lambda: now - day)
    time.sleep(0.02)
    put(stream, "a.jsonl", 0)
    tasks, wait = calls(1)
    assert len(tasks) == 1
    assert wait is not None
    assert wait < 1


# ---- when a window is made ----


def test_a_window_waits_for_its_own_first_file(stream: Stream) -> None:
    """Whatever became of those that were ready before: taken away, or in a twin's window."""
    stream = replace(stream, window_seconds=10)
    watcher = Watcher(stream)
    put(stream, "a.jsonl", 0)
    assert watcher.look(0.0) == []
    Path(stream.watched.root, "a.jsonl").unlink()
    assert watcher.look(8.0) == []
    put(stream, "b.jsonl", 1)
    assert watcher.look(9.0) == []
    assert watcher.look(18.0) == [], "b is ready for nine seconds"
    work_off(stream, Watcher(replace(stream, window_seconds=0)).look(0.0))
    put(stream, "c.jsonl", 2)
    assert watcher.look(20.0) == []
    assert len(windows(stream)) == 1
    assert watcher.look(29.0) == []
    assert len(watcher.look(30.0)) == 1
    assert len(windows(stream)) == 2


# ---- the output folder ----


@pytest.mark.parametrize("through", ["", "link"])
def test_a_stream_does_not_read_what_it_writes(
    stream: Stream, tmp_path: Path, through: str
) -> None:
    put(stream, "bad.jsonl", 0)
    bad = Path(stream.watched.root, "bad.jsonl")
    bad.write_text(bad.read_text() + '{"text": 7}\n')
    (tmp_path / "out2").mkdir()
    (tmp_path / "out2" / "x.jsonl").write_text(bad.read_text())
    output = tmp_path / "out"
    if through:
        output = tmp_path / through
        output.symlink_to(tmp_path / "out")
    watched = Watched.of(STORAGE, [f"{tmp_path}/**/*.jsonl"], [], str(output))
    stream = replace(stream, watched=watched, output=str(output), max_rejects="9")
    run_stream(stream)
    assert list(tmp_path.glob("out/window-*/__rejects/*.jsonl")), "what matches, too"
    run_stream(stream)
    assert file_names(stream) == [["in/bad.jsonl", "out2/x.jsonl"]]


def test_what_looks_in_the_output_folder_only_is_refused(tmp_path: Path) -> None:
    def watch(*patterns: str, output: str) -> Watched:
        return Watched.of(STORAGE, patterns, [], output)

    for pattern in (f"{tmp_path}/*", f"{tmp_path}/in/*"):
        with pytest.raises(UsageError, match="is in the output folder"):
            watch(f"{tmp_path}/*", pattern, output=f"{tmp_path}/")
        with pytest.raises(UsageError, match="is in the output folder"):
            watch(pattern, output="/")
    for patterns, output in [
        (("/*",), "/out"),
        ((f"{tmp_path}/*",), f"{tmp_path}-out"),
        (("memory://a/in/*", "memory://a/*"), "memory://a/out/"),
        (("memory://a/*",), str(tmp_path)),
    ]:
        assert watch(*patterns, output=output).output == output


def test_files_of_an_output_in_a_store_are_left_out() -> None:
    for name in ("a/x", "a/out/y", "a/out2/z"):
        STORAGE.write_bytes(f"memory://left-out/{name}", b"text")
    watched = Watched.of(STORAGE, ["memory://left-out/a/**/*"], [], "memory://left-out/a/out/")
    assert sorted(name for name, _ in watched.look(STORAGE)) == ["out2/z", "x"]


# ---- what travels ----


def test_elements_are_small_though_files_are_many(stream: Stream, monkeypatch) -> None:
    """Under a megabyte, with names of the worst kind; together they have every file once."""
    found = {}
    for i in range(6000):
        name = f"{i:05}-" + ('"' * 120 if i % 2 else "\U0001f600" * 60)
        found[name] = StoredFile(f"{stream.watched.root}/{name}", 10, "1795239428901664062-83" * 2)
    monkeypatch.setattr(Watched, "look", lambda *_: iter(found.items()))
    monkeypatch.setattr(
        watcher_module,
        "described",
        lambda storage, files, kind: tuple(
            InputFile(name, file.size, "jsonl", "none", file.tag) for name, file in files
        ),
    )
    tasks = Watcher(stream).look(0.0)
    assert max(len(text.encode()) for _, text in tasks) < 1 << 20
    assert 2 < len(tasks) < 20
    splits = [SplitTask.from_json(WindowTask(*json.loads(text)).split) for _, text in tasks]
    assert sorted(
        work.plan.files[piece.file].name for work in splits for piece in work.split.slices
    ) == sorted(found)


def test_keys_are_few_and_spread(stream: Stream) -> None:
    """Those of a window differ, and those of windows that have one split each."""
    put(stream, "a.jsonl", *range(20))
    watcher = Watcher(replace(stream, range_bytes=60))
    keys = [key for key, _ in watcher.look(0.0)]
    assert len(set(keys)) == len(keys) > 20
    seen = set(keys)
    for i in range(20):
        put(stream, f"b{i}.jsonl", i)
        watcher.stream = stream
        seen |= {key for key, _ in watcher.look(float(i))}
    assert len(seen) > len(keys) + 15
    assert max(seen) < KEYS == 4096


# ---- requests ----


def test_a_window_is_read_with_three_requests(stream: Stream, monkeypatch) -> None:
    """As the documents say; reading a file is two."""
    stream = replace(stream, window_seconds=0)
    for i in range(3):
        put(stream, f"{i}.jsonl", i)
        run_stream(stream)
    made: list[str] = []
    for name, requests in (("exists", 1), ("list_names", 1), ("read_bytes", 2)):
        real = getattr(Storage, name)

        def counting(self: Any, url: str, name=name, requests=requests, real=real) -> Any:
            made.extend([f"{name} {url}"] * requests)
            return real(self, url)

        monkeypatch.setattr(Storage, name, counting)
    watcher = Watcher(stream)
    watcher.look(0.0)
    assert len(made) == 3 * 3 + 1 + 2, "the folder once, and the window that is not there"
    made.clear()
    watcher.look(1.0)
    assert len(made) == 2
