"""Run the streaming job without a runner: its watcher and its worker in turn, in this process.

A real runner's threads, clocks and deferred calls are left out: no test waits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from made_text import documents, write

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.shards.formats.megatron import MegatronStream
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.transforms.tokenize_new_files import TokenizeNewFiles
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.stream.status import ReportingWatcher
from bpe_beam.workers.stream.watcher import Stream, Watcher, tokenize_window_split

STORAGE = Storage()
DOCUMENTS = documents(24, seed=3)
MOST_LOOKS = 1000
TIMES: list[list[float]] = []
"""Of each run of the job, when it looked."""


def stream_of(watched: Watched, output: Path, tokenizer: Tokenizer, **settings: Any) -> Stream:
    """Return a stream that ends as soon as nothing is left.

    Args:
        watched: The files that come.
        output: The output folder.
        tokenizer: What encodes them.
        **settings: Other settings of the stream.
    """
    defaults = {
        "storage": STORAGE,
        "output": str(output),
        "fingerprint": "f" * 64,
        "watched": watched,
        "reading": ReadSettings(),
        "encoding": Encoding.of(tokenizer),
        "settings": {"append": None, "prepend": None, "allowed_special": "none"},
        "range_bytes": None,
        "max_rejects": "0.1%",
        "max_lost": "0",
        "poll_seconds": 1,
        "window_seconds": 0,
        "until_idle_seconds": 0,
    }
    return Stream(**{**defaults, **settings})


def work_off(stream: Stream, tasks: list[tuple[int, str]]) -> list[str]:
    """Run the tasks that a watcher handed out; return the names of the shards."""
    made = [tokenize_window_split(stream, text) for _, text in tasks]
    return [name for shard in made if shard is not None for name in shard.outputs]


def run_stream(stream: Stream, at_look: Callable[[int], None] = lambda number: None) -> list[float]:
    """Look until the stream ends; return the times of the looks. `at_look` is called before each.

    The clock is simulated: no look waits. A stream with a job's name reports on storage.
    """
    watcher = ReportingWatcher(stream) if stream.job else Watcher(stream)
    times: list[float] = []
    now = 1000.0
    while not watcher.ended:
        assert len(times) < MOST_LOOKS, "the stream does not end"
        at_look(len(times))
        times.append(now)
        work_off(stream, watcher.look(now))
        assert watcher.next_look > now
        now = watcher.next_look
    return times


def run_pipeline(run: Any, label: str, transform: object, *others: Any) -> None:
    """Run a stream in place of `engines.beam.run_pipeline`."""
    assert isinstance(transform, TokenizeNewFiles)
    watch = others[2]
    TIMES.append(run_stream(transform.stream, lambda _: watch()))


def put(stream: Stream, name: str, *numbers: int) -> Path:
    """Write a file with some of the documents."""
    return write(Path(stream.watched.root, name), [DOCUMENTS[number] for number in numbers])


def windows(stream: Stream) -> list[Path]:
    return sorted(Path(stream.output).glob("window-*"))


def file_names(stream: Stream) -> list[list[str]]:
    """Return the files of each window by its manifest."""
    found = [read_manifest(STORAGE, str(window)) for window in windows(stream)]
    return [[file["name"] for file in manifest.plan["files"]] for manifest in found]


def texts(stream: Stream) -> list[str]:
    """Return all documents of all windows; verify each window first."""
    tokenizer = stream.encoding.tokenizer()
    found = []
    for window in windows(stream):
        assert verify(STORAGE, str(window)).problems == ()
        assert not (window / "work").exists()
        assert not list(window.rglob("*.attempt-*"))
        for shard in read_manifest(STORAGE, str(window)).shards:
            with MegatronStream.open(STORAGE, str(window), shard.name) as reader:
                ids = [reader.document(i).tolist() for i in range(len(reader))]
            found += [tokenizer.decode(each) for each in ids]
    return found


def expected(*numbers: int) -> list[str]:
    return sorted(DOCUMENTS[number] for number in numbers)
