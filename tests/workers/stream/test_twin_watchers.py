"""Two watchers that finish one window at the same moment: both end well, and nothing is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from read_back import tree
from stream_by_hand import expected, put, texts, windows, work_off
from twins import SECONDS, LateWriter, Meeting

from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.workers.stream.watcher import Stream, Watcher


def ready(stream: Stream) -> Stream:
    """A stream with one window, all shards of which are made; some splits have no tokens."""
    put(stream, "a.jsonl", *range(8))
    with Path(stream.watched.root, "b.jsonl").open("w") as file:
        file.write('{"text": ""}\n' * 40)
    put(stream, "c.jsonl", 8, 9)
    stream = replace(stream, range_bytes=200)
    watcher = Watcher(stream)
    watcher.look(1.0)
    work_off(stream, watcher.look(2.0))
    return stream


@pytest.mark.parametrize("at", ["move", "__tokenizer", "__manifest"])
def test_two_watchers_in_the_midst_of_one_window(stream: Stream, at: str) -> None:
    stream = ready(stream)
    storage = Meeting(at=at)
    watchers = [Watcher(replace(stream, storage=storage)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        tasks = list(pool.map(lambda watcher: watcher.look(3.0), watchers))
    assert tasks == [[], []]
    assert storage.barrier.broken is False
    (window,) = windows(stream)
    manifest = read_manifest(Storage(), str(window))
    assert manifest.tokenless
    assert [shard.name for shard in manifest.shards] == sorted(
        path.stem for path in window.glob("shard-*.bin")
    )
    assert sorted(filter(None, texts(stream))) == list(filter(None, expected(*range(10))))


def test_a_watcher_that_is_late_with_its_manifest(stream: Stream) -> None:
    stream = ready(stream)
    late = LateWriter()
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(Watcher(replace(stream, storage=late)).look, 3.0)
        assert late.writing.wait(SECONDS)
        assert Watcher(stream).look(3.0) == []
        (window,) = windows(stream)
        before = tree(window)
        late.other_is_done.set()
        assert ending.result(SECONDS) == []
    assert len(late.attempts) == 1, "the other watcher left the file that this one was writing"
    after = {name: data for name, data in before.items() if ".attempt-" not in name}
    assert tree(window) == after
    (window / "__manifest.attempt-0123456789ab").write_bytes(b"of a watcher that was killed")
    Watcher(stream).look(4.0)
    assert tree(window) == after
    assert verify(Storage(), str(window)).problems == ()


def test_a_window_without_any_token(stream: Stream) -> None:
    with Path(stream.watched.root, "b.jsonl").open("w") as file:
        file.write('{"text": ""}\n' * 40)
    watcher = Watcher(stream)
    watcher.look(1.0)
    work_off(stream, watcher.look(2.0))
    assert watcher.look(3.0) == []
    (window,) = windows(stream)
    manifest = read_manifest(Storage(), str(window))
    assert (manifest.shards, manifest.totals.documents, manifest.totals.tokens) == ((), 40, 0)
    assert verify(Storage(), str(window)).problems == ()
    assert not list(window.glob("shard-*"))
