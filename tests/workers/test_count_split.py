"""A split to its counts file: what one record, many sources and a damaged file come to."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from bpe_beam.corpus.plan import InputFile
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.counts.word_table import PARTITIONS, WordRules
from bpe_beam.errors import DataError
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.storage import Storage
from bpe_beam.workers import count_split as counting
from bpe_beam.workers.count_split import (
    BlocksReference,
    CountStats,
    CountTask,
    count_split,
    write_parts,
)
from bpe_beam.workers.split_task import split_tasks


def stats_of(folder: TaskFolder) -> CountStats:
    """What the receipt of the only split says."""
    receipt = folder.read_receipt("counts-00000-of-00001")
    assert receipt is not None
    return receipt.read_stats(CountStats)


def count_file(
    folder: Path, data: bytes, *, by_source: bool
) -> tuple[TaskFolder, CountTask, list[tuple[int, BlocksReference]]]:
    """Counts one file of JSON Lines as one split."""
    (folder / "in.jsonl").write_bytes(data)
    kept = TaskFolder(Storage(), str(folder / "run"), "0")
    for name in ("work", "__rejects"):
        (folder / "run" / name).mkdir(parents=True)
    file = InputFile("in.jsonl", len(data), "jsonl", "none")
    plan = plan_of_files(str(folder), (file,), document_separator="\n", range_bytes=1 << 30)
    task = CountTask(
        folder=kept,
        reading=ReadSettings(source_field="source" if by_source else None),
        rules=WordRules(pretokenizer="whitespace_split"),
    )
    (element,) = split_tasks(plan)
    return kept, task, count_split(task, element).outputs


def counted(task: CountTask, places: list[tuple[int, BlocksReference]]) -> Counter[tuple[str, str]]:
    """The words of all parts, by source."""
    found: Counter[tuple[str, str]] = Counter()
    for partition in range(PARTITIONS):
        those = [row for row in places if row[0] == partition]
        (name,) = write_parts(task, (partition, those)).outputs
        rows = pq.read_table(str(Path(task.folder.url) / name)).to_pylist()
        found.update({(row.get("source", ""), row["word"]): row["count"] for row in rows})
    return found


@pytest.mark.slow
def test_receipts_do_not_grow_with_sources(tmp_path: Path) -> None:
    """A range a partition, whatever the sources: a row each would take gigabytes in the driver."""
    sources = 300
    lines = [
        json.dumps({"text": " ".join(f"w{i + j}" for j in range(40)), "source": f"source {i}"})
        for i in range(sources)
    ]
    kept, task, places = count_file(tmp_path, "\n".join(lines).encode(), by_source=True)
    stats = stats_of(kept)
    assert len(stats.blocks) == len(places) == PARTITIONS
    assert len(json.loads(stats.sources or "")) == sources
    expected = Counter({(f"source {i}", f"w{i + j}"): 1 for i in range(sources) for j in range(40)})
    assert counted(task, places) == expected


@pytest.mark.parametrize("by_source", [False, True])
def test_the_limit_holds_within_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_source: bool
) -> None:
    """Its words are written out before the table takes more, not when the record is over."""
    monkeypatch.setattr(counting, "TABLE_BYTES", 200_000)
    text = " ".join(f"w{i % 20_000}" for i in range(30_000))
    rows = [{"text": "w1 w2", "source": "a"}, {"text": text, "source": "b"}]
    data = b"\n".join(json.dumps(row).encode() for row in rows)
    kept, task, places = count_file(tmp_path, data, by_source=by_source)
    assert len(stats_of(kept).blocks) > 3 * PARTITIONS
    expected: Counter[tuple[str, str]] = Counter()
    for row in rows:
        source = row["source"] if by_source else ""
        expected.update((source, word) for word in row["text"].split())
    assert counted(task, places) == expected


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], "ends in the middle of its words"),
        (lambda data: data[:5], "ends in the middle of its words"),
        (
            lambda data: b"\xff" * 12 + data[12:],
            "does not contain the words that its",
        ),
    ],
)
def test_a_damaged_counts_file_is_named(tmp_path: Path, damage: Any, message: str) -> None:
    _, task, places = count_file(tmp_path, b'{"text": "one"}\n', by_source=False)
    ((partition, place),) = places
    path = Path(place[0])
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=f"{path.name} {message}"):
        write_parts(task, (partition, [(partition, place)]))


def test_a_task_of_several_parts_opens_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, task, places = count_file(tmp_path, b'{"text": "one two three four"}\n', by_source=False)
    opened: list[str] = []

    def note(storage: Storage, url: str) -> BinaryIO:
        opened.append(url)
        return Path(url).open("rb")

    monkeypatch.setattr(Storage, "open", note)
    assert len(places) > 1
    result = write_parts(replace(task, parts_per_task=PARTITIONS), (0, places))
    assert result.counts == {"unique_words": 4}
    assert opened == [places[0][1][0]]


@pytest.mark.parametrize("ahead_bytes", [counting.AHEAD_BYTES, 0])
def test_blocks_of_a_store_are_read_ahead_and_add_up(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    ahead_bytes: int,
) -> None:
    """Twenty files of a store with the same words, read by threads if they are small enough."""
    folder, task, places = count_file(tmp_path, b'{"text": "one two two"}\n', by_source=False)
    store = TaskFolder(Storage(), f"memory://{request.node.name}", "0")
    references: list[BlocksReference] = []
    for _, (url, sha256, start, size) in places:
        for number in range(20):
            copy = store.path(f"{number:02}.words")
            store.storage.write_bytes(copy, folder.storage.read_bytes(url))
            references.append((copy, sha256, start, size))
    readers: set[str] = set()

    def opened(url: str) -> BinaryIO:
        readers.add(threading.current_thread().name.partition("_")[0])
        return store.storage.open(url)

    monkeypatch.setattr(counting, "AHEAD_BYTES", ahead_bytes)
    task = replace(task, folder=store)
    (table,) = counting._added_up(task, references, opened).values()
    rows = pa.Table.from_batches(table.drain()).to_pylist()
    assert {row["word"]: row["count"] for row in rows} == {"one": 20, "two": 40}
    assert readers == ({"ahead"} if ahead_bytes else {"MainThread"})
