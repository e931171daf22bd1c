"""Two watchers that finish one window of a stream on an object store at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import reference_bpe
from stores import Store
from stream_by_hand import work_off
from twins import Meeting

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.stream.watcher import Stream, Watcher

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("at", ["move", "__manifest"])
@pytest.mark.parametrize("name", ["moto", "versitygw"])
def test_both_end_well(name: str, at: str, start_store: Callable[[str], Store]) -> None:
    store = start_store(name)
    storage, folder = store.storage, store.folder()
    vocab, merges = reference_bpe.learn_bpe([("\u0120the", 5)], vocab_size=258)
    for file, text in (("a", "the words"), ("b", ""), ("c", "more of the words")):
        line = f'{{"text": "{text}"}}\n'.encode()
        storage.write_bytes(f"{folder}/data/{file}.jsonl", line * 20)
    stream = Stream(
        storage=storage,
        output=f"{folder}/out",
        fingerprint="f" * 64,
        watched=Watched.of(storage, [f"{folder}/data/*.jsonl"]),
        reading=ReadSettings(),
        encoding=Encoding.of(Tokenizer.from_learned(vocab, merges, [])),
        settings={"append": None, "prepend": None, "allowed_special": "none"},
        range_bytes=200,
        max_rejects="0.1%",
        max_lost="0",
        poll_seconds=1,
        window_seconds=0,
        until_idle_seconds=0,
    )
    work_off(stream, Watcher(stream).look(1.0))
    meeting = Meeting(store.options, at=at)
    watchers = [Watcher(replace(stream, storage=meeting)) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        tasks = list(pool.map(lambda watcher: watcher.look(3.0), watchers))
    assert tasks == [[], []]
    assert not meeting.barrier.broken
    window = f"{folder}/out/window-00000000"
    assert verify(storage, window).problems == ()
    manifest = read_manifest(storage, window)
    assert manifest.tokenless
    assert manifest.totals.documents == 60
    there = storage.list_names(window)
    shards = {file.name for shard in manifest.shards for file in shard.files}
    assert set(there) == {"__manifest", "__tokenizer", "__window"} | shards
