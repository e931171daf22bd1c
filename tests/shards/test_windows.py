"""The output of a stream as one data set: finished windows in order, new ones, saved positions."""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import reference_bpe
from made_text import write
from stream_by_hand import DOCUMENTS, STORAGE, run_stream, stream_of

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.windows import chosen_folders, is_stream, windows_of
from bpe_beam.storage import Storage
from bpe_beam.workers.stream.watcher import Stream


@pytest.fixture(scope="module")
def stream_tokenizer() -> Tokenizer:
    counts = Counter(f"Ġ{word}" for text in DOCUMENTS for word in text.split() if word.isascii())
    vocab, merges = reference_bpe.learn_bpe(list(counts.items()), vocab_size=280)
    return Tokenizer.from_learned(vocab, merges, [])


@pytest.fixture
def stream(tmp_path: Path, stream_tokenizer: Tokenizer) -> Stream:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    watched = Watched.of(STORAGE, [str(tmp_path / "in" / "**" / "*.jsonl")])
    return stream_of(watched, tmp_path / "out", stream_tokenizer, range_bytes=300)


def add(stream: Stream, *numbers: int) -> None:
    """Finish one window more, of these documents."""
    name = f"{len(windows_of(STORAGE, stream.output).finished):03}.jsonl"
    write(Path(stream.watched.root, name), [DOCUMENTS[number] for number in numbers])
    run_stream(stream)


def ids(stream: Stream, *numbers: int) -> list[list[int]]:
    tokenizer = stream.encoding.tokenizer()
    return [tokenizer.encode(DOCUMENTS[number]) for number in numbers]


def lists(items: object) -> list[list[int]]:
    return [item.tolist() for item in items]  # type: ignore[attr-defined]


def test_finished_windows_are_one_data_set_in_order(stream: Stream) -> None:
    add(stream, 5, 6, 7, 8)
    add(stream, 1, 2)
    dataset = bpe_beam.shards.open(stream.output)
    assert dataset.windows == 2
    assert lists(dataset) == ids(stream, 5, 6, 7, 8, 1, 2)
    assert lists(pickle.loads(pickle.dumps(dataset))) == lists(dataset)
    assert dataset.token_count == sum(map(len, ids(stream, 5, 6, 7, 8, 1, 2)))
    # An open window hides the windows after it, so positions stay valid when it is finished.
    manifest = Path(stream.output, "window-00000000", "__manifest")
    manifest.rename(manifest.with_name("kept"))
    with pytest.raises(DataError, match="no finished window"):
        bpe_beam.shards.open(stream.output)
    manifest.with_name("kept").rename(manifest)
    assert bpe_beam.shards.open(f"{stream.output}/window-00000001").windows is None


def test_positions_stay_valid_when_windows_are_added(stream: Stream) -> None:
    add(stream, *range(6))
    views = {
        "documents": lambda d: d,
        "part": lambda d: d.part(2, 3),
        "later": lambda d: d.part(3, 4)[1:],
        "sequences": lambda d: d.sequences(16),
    }
    dataset = bpe_beam.shards.open(stream.output)
    saved, read = {}, {}
    for name, view in views.items():
        iterator = iter(view(dataset))
        read[name] = lists(islice(iterator, 1))
        saved[name] = json.loads(json.dumps(iterator.state_dict()))
    shuffled = iter(dataset.shuffled(3))
    next(shuffled)
    add(stream, 10, 11, 12)
    add(stream, 15)
    grown = dataset.refresh()
    assert (dataset.windows, grown.windows) == (1, 3)
    assert grown.refresh() is grown
    assert len(dataset) == 6, "a data set that was opened does not change"
    for name, view in views.items():
        assert lists(view(grown)) == lists(view(bpe_beam.shards.open(stream.output))), name
        assert lists(view(dataset).refresh()) == lists(view(grown)), name
        iterator = iter(view(grown))
        iterator.load_state_dict(saved[name])
        assert read[name] + lists(iterator) == lists(view(grown)), name
    iterator = iter(grown.shuffled(3))
    with pytest.raises(UsageError, match="does not grow"):
        iterator.load_state_dict(shuffled.state_dict())
    for fixed in (dataset.shuffled(1), dataset[::-1], dataset[:6], dataset[-2:]):
        with pytest.raises(UsageError, match="does not grow"):
            fixed.refresh()
    late = iter(grown)
    with pytest.raises(UsageError, match="3 windows of the stream, and 1 were opened"):
        iter(dataset).load_state_dict(late.state_dict())
    other = json.loads(json.dumps(saved["documents"])) | {"content": "0" * 64}
    with pytest.raises(UsageError, match="another data set: its content"):
        late.load_state_dict(other)


def test_a_part_without_items_begins_at_its_number_when_the_stream_grows(stream: Stream) -> None:
    add(stream, 0)
    part = bpe_beam.shards.open(stream.output).part(3, 4)
    assert len(part) == 0
    add(stream, *range(1, 8))
    assert lists(part.refresh()) == ids(stream, 3, 7)


def test_an_iterator_follows_the_stream_and_resumes(stream: Stream) -> None:
    add(stream, 0, 1, 2)
    following = bpe_beam.shards.open(stream.output).follow(2, poll_seconds=0.01)
    assert lists(next(following)) == ids(stream, 0, 1)
    saved = following.state_dict()
    writing = threading.Thread(target=add, args=(stream, 3, 4, 5))
    writing.start()
    # One document is left: a batch waits for the next window.
    assert lists(next(following)) == ids(stream, 2, 3)
    writing.join()
    again = bpe_beam.shards.open(stream.output).follow(2, poll_seconds=0.01)
    again.load_state_dict(saved)
    assert [lists(next(again)) for _ in range(2)] == [ids(stream, 2, 3), ids(stream, 4, 5)]
    assert lists([next(bpe_beam.shards.open(stream.output).sequences(8).follow())])
    window = f"{stream.output}/window-00000000"
    with pytest.raises(UsageError, match="only a stream's output grows"):
        bpe_beam.shards.open(window).follow()
    with pytest.raises(UsageError, match="poll_seconds must be greater than 0"):
        bpe_beam.shards.open(stream.output).follow(poll_seconds=0)


def test_which_folders_are_of_a_stream(stream: Stream, tmp_path: Path) -> None:
    assert not is_stream(STORAGE, str(tmp_path))
    add(stream, 0)
    assert is_stream(STORAGE, stream.output)
    assert not is_stream(STORAGE, f"{stream.output}/window-00000000")


def test_web_folders_keep_their_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question mark is no glob on the web."""
    monkeypatch.setattr(Storage, "exists", lambda *_: True)
    for url in ("http://host/f?sig=abcdef", "http://host/[f]"):
        assert chosen_folders(STORAGE, [url]).folders == [url]


def test_the_page_reads_a_stream(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/streaming.md").read_text("utf-8")
    (block,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "follow" in text
    ]
    add(stream, *range(12))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)
    assert (names["batch"].shape, names["data"].windows) == ((4, 17), 1)
    assert next(names["resumed"]).shape == (4, 17)
