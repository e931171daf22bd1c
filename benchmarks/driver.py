"""Measure the driver of large jobs: of a million files, 100,000 splits, shards or receipts.

    python benchmarks/driver.py
    python benchmarks/driver.py --row count --files 1000000 --splits 100000
    python benchmarks/driver.py --row words --words 100000000

Each row runs in a process of its own and prints its seconds, its processor seconds, the peak of
resident memory beyond the memory of the process before, and the requests to the store. No text is
read: the store, S3 of one process, makes up the files of the corpus, and the tasks of a job only
leave the receipts that workers leave. Its requests take no time, so divide them by the requests
that run at once and multiply them by the latency of a real store. Linux only.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow as pa
from memory import MB, a_tokenizer, peak

from bpe_beam import shards
from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.counts.manifest import CountsManifest
from bpe_beam.counts.part_files import iter_words, write_part
from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.engines.steps import Collection
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs import count
from bpe_beam.jobs.corpus import job as corpus_job
from bpe_beam.jobs.tokenize import documents
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats.megatron import MegatronWriter
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.training.merges.words import gather_words
from bpe_beam.workers import count_split, tokenize_split
from bpe_beam.workers.split_reader import SplitReading
from bpe_beam.workers.split_task import SplitTask, task_name
from bpe_beam.workers.token_counter import TokenCounter, id_columns, token_counts_name

FILE_BYTES = 10_000_000
PAGE = 1000
INPUT, OUTPUT = "bucket/in", "s3://bucket/out"
LINE = b'{"text": "a few words of text"}\n'
DIGEST = hashlib.sha256(b"").hexdigest()


class Store(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """S3 in this process, with the requests that the storage client makes of s3fs.

    Objects are written to one file. Objects of equal content, such as the shards that tasks leave,
    are stored once. The files of the corpus are in no table: they follow from their numbers.
    """

    protocol = "s3"
    cachable = False
    files: ClassVar[int] = 0
    requests: ClassVar[Counter[str]] = Counter()
    spool: ClassVar[Any] = None
    objects: ClassVar[dict[str, dict[str, tuple[int, int] | None]]] = {}
    """For each folder its names: position and size of an object, None of a folder."""
    pages: ClassVar[dict[tuple[str, str], list[str]]] = {}
    lock = threading.Lock()
    req_kw: ClassVar[dict[str, Any]] = {}

    @classmethod
    def begin(cls, files: int) -> None:
        """Begin with a corpus of so many files."""
        cls.files, cls.spool = files, tempfile.TemporaryFile()  # noqa: SIM115
        fsspec.register_implementation("s3", cls, clobber=True)

    @classmethod
    def put(cls, path: str, at: tuple[int, int]) -> None:
        """Make an object of bytes that are in the file already."""
        folder, _, name = path.rpartition("/")
        with cls.lock:
            cls.objects.setdefault(folder, {})[name] = at
            while folder and "/" in folder:
                above, _, name = folder.rpartition("/")
                if name in cls.objects.setdefault(above, {}):
                    return
                cls.objects[above][name] = None
                folder = above

    @classmethod
    def kept(cls, data: bytes) -> tuple[int, int]:
        """Write bytes to the file."""
        with cls.lock:
            start = cls.spool.seek(0, io.SEEK_END)
            cls.spool.write(data)
            return start, len(data)

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.partition("/")
        return bucket, key, None

    def call_s3(self, request: str, **args: Any) -> Mapping[str, Any]:
        self.requests["LIST" if request == "list_objects_v2" else request] += 1
        if request == "delete_objects":
            for row in args["Delete"]["Objects"]:
                self._drop(f"{args['Bucket']}/{row['Key']}")
            return {}
        assert request == "list_objects_v2", request
        prefix, delimiter = f"{args['Bucket']}/{args['Prefix']}", args["Delimiter"]
        start = int(args.get("ContinuationToken", 0))
        if prefix.startswith(INPUT):
            return self._corpus_page(start)
        if start == 0:
            self.pages[prefix, delimiter] = sorted(self._below(prefix, delimiter))
        names = self.pages[prefix, delimiter]
        page, skip = names[start : start + PAGE], len(args["Bucket"]) + 1
        return {
            "Contents": [self._row(each, skip) for each in page if not each.endswith("/")],
            "CommonPrefixes": [{"Prefix": each[skip:]} for each in page if each.endswith("/")],
            "NextContinuationToken": str(start + PAGE) if start + PAGE < len(names) else None,
            "IsTruncated": start + PAGE < len(names),
        }

    def _row(self, path: str, skip: int) -> dict[str, Any]:
        info = self._stat(path)
        return {"Key": path[skip:], "Size": info["size"], "ETag": info["ETag"]}

    def _below(self, prefix: str, delimiter: str) -> Iterator[str]:
        folder, _, begin = prefix.rpartition("/")
        for name, at in list(self.objects.get(folder, {}).items()):
            if not name.startswith(begin):
                continue
            if at is not None:
                yield f"{folder}/{name}"
            elif delimiter:
                yield f"{folder}/{name}/"
            else:
                yield from self._below(f"{folder}/{name}/", "")

    def _corpus_page(self, start: int) -> Mapping[str, Any]:
        stop = min(start + PAGE, self.files)
        rows = (
            {"Key": self.name(i).partition("/")[2], "Size": FILE_BYTES, "ETag": f'"{i:032x}"'}
            for i in range(start, stop)
        )
        more = str(stop) if stop < self.files else None
        return {"Contents": list(rows), "NextContinuationToken": more, "IsTruncated": bool(more)}

    @staticmethod
    def name(number: int) -> str:
        return f"{INPUT}/folder-{number // 1000:04}/part-{number:08}.jsonl"

    def _stat(self, path: str) -> dict[str, Any]:
        folder, _, name = path.rpartition("/")
        if path.startswith(f"{INPUT}/folder-") and name.startswith("part-"):
            size, tag = FILE_BYTES, f"{int(name[5:13]):032x}"
        else:
            at = self.objects.get(folder, {}).get(name)
            if at is None:
                if path in self.objects or INPUT.startswith(path):
                    return {"name": path, "size": 0, "type": "directory"}
                raise FileNotFoundError(path)
            size, tag = at[1], f"{at[0]:032x}"
        return {"name": path, "size": size, "type": "file", "ETag": f'"{tag}"'}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self.requests["HEAD"] += 1
        return self._stat(path)

    def cat_file(self, path: str, start: int = 0, end: int | None = None, **_: Any) -> bytes:
        self.requests["GET"] += 1
        self._stat(path)
        if path.startswith(INPUT):
            return (LINE * (1 + (end or FILE_BYTES) // len(LINE)))[start:end]
        folder, _, name = path.rpartition("/")
        at = self.objects[folder][name]
        assert at is not None
        stop = at[1] if end is None else end
        with self.lock:
            self.spool.seek(at[0] + start)
            return bytes(self.spool.read(stop - start))

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        return _Written(self, path) if mode == "wb" else _Read(self, path)

    def rm_file(self, path: str) -> None:
        self.requests["DELETE"] += 1
        self._drop(path)

    def _drop(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with self.lock:
            self.objects.get(folder, {}).pop(name, None)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.requests["COPY"] += 1
        folder, _, name = path1.rpartition("/")
        at = self.objects[folder][name]
        assert at is not None
        self.put(path2, at)


class _Read:
    """An object that is open for reading."""

    def __init__(self, fs: Store, path: str) -> None:
        self._fs, self._path = fs, path
        self.details = fs.info(path)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._fs.cat_file(self._path, start, end)

    def close(self) -> None:
        """Do nothing."""


class _Written:
    """An object that is open for writing."""

    blocksize = 1 << 40
    closed = False

    def __init__(self, fs: Store, path: str) -> None:
        self._fs, self._path = fs, path
        self.buffer = io.BytesIO()

    def write(self, data: Any) -> int:
        return self.buffer.write(data)

    def close(self) -> None:
        self._fs.requests["PUT"] += 1
        self._fs.put(self._path, self._fs.kept(self.buffer.getvalue()))
        self.closed = True


# ---- the tasks of a job, which only leave their receipts ----


class Tasks:
    """An engine whose first step hands each task to a function, and whose others do nothing."""

    def __init__(self, leave: Callable[[SplitTask], None]) -> None:
        self._leave = leave

    def tasks(self, label: str, tasks: Any) -> Collection:
        return tasks

    def run(self, label: str, function: Any, elements: Any, kind: Any, *whole: Any) -> Collection:
        for element in elements if label in ("CountSplit", "TokenizeSplit") else ():
            self._leave(SplitTask.from_json(element))

    def gather(self, label: str, pairs: Any, known: Any = ()) -> Collection:
        return list(known)


def run_tasks(leave: Callable[[TaskFolder, SplitTask], None]) -> None:
    """Let the jobs of this process leave their receipts by a function."""
    make_run = corpus_job.RemainingSplits

    def run_steps(run: Any, label: str, steps: Any, *args: Any, **settings: Any) -> None:
        steps(Tasks(lambda task: leave(folders[-1], task)))

    folders: list[TaskFolder] = []

    def remaining(*fields: Any) -> Any:
        made = make_run(*fields)
        folders.append(made.run.for_workers())
        return made

    corpus_job.RemainingSplits = remaining  # type: ignore[assignment, misc]
    corpus_job.run_steps = run_steps  # type: ignore[attr-defined]


def reading(task: SplitTask) -> dict[str, Any]:
    """Return the facts of a split that was read."""
    of_split = SplitReading.of(task.plan, task.split, ())
    return {
        "slices": of_split.slices,
        "tags": of_split.tags,
        "boundaries": (),
        "documents": 1,
        "text_bytes": 20,
        "rejects": {},
    }


def inputs(splits: int) -> InputSettings:
    """Return the corpus, with about so many splits."""
    size = max(FILE_BYTES, -(-Store.files // splits) * FILE_BYTES)
    return InputSettings(inputs=(f"s3://{INPUT}/",), range_bytes=size, max_rejects="10%")


def plan_of(splits: int) -> Plan:
    """Return the plan of the corpus, as a listing would give it."""
    files = tuple(
        InputFile(Store.name(i).removeprefix(f"{INPUT}/"), FILE_BYTES, "jsonl", "none", f"{i:032x}")
        for i in range(Store.files)
    )
    size = inputs(splits).range_bytes
    return plan_of_files(f"s3://{INPUT}", files, document_separator="\n", range_bytes=size)


# ---- a function a row: the work, after what is not measured ----


def plan(args: argparse.Namespace) -> Callable[[], object]:
    """List the files, look at their first bytes, and divide them into splits."""
    settings = CountSettings(input=inputs(args.splits), output=OUTPUT)
    return lambda: count.plan_of(settings, Storage())


def count_job(args: argparse.Namespace) -> Callable[[], object]:
    """Run all of `count` but its tasks; each split has words in each partition."""
    made = plan_of(args.splits)
    blocks = [[partition, 1000 * partition, 1000] for partition in range(PARTITIONS)]
    words = Store.kept(bytes(1000 * PARTITIONS))

    def leave(folder: TaskFolder, task: SplitTask) -> None:
        number, splits = task.split.index, task.splits
        if number == 0:
            leave_parts(folder, splits)
        name = count_split.words_name(number, splits)
        Store.put(folder.path(name).removeprefix("s3://"), words)
        stats = count_split.CountStats(**reading(task), words=4, blocks=blocks)
        files = [FileInfo(name, words[1], DIGEST)]
        folder.write_receipt(task_name("counts", number, splits), files, stats)

    def leave_parts(folder: TaskFolder, splits: int) -> None:
        for number in range(PARTITIONS):
            part = write_part(folder.storage, folder.url, part_file(number), {None: ()}, False)
            made_of = [(number, ("", DIGEST, 1000 * number, 1000))] * splits
            stats = count_split.PartsStats((part,), count_split.made_of(made_of))
            folder.write_receipt(task_name("part", number, PARTITIONS), [part.file], stats)

    run_tasks(leave)
    settings = CountSettings(input=inputs(args.splits), output=OUTPUT, run=RunSettings(quiet=True))
    return lambda: count.run(settings, Progress("none"), plan=made)


def part_file(number: int) -> str:
    """Return the name of a part."""
    return f"part-{number:05}-of-{PARTITIONS:05}.parquet"


def tokenize_job(args: argparse.Namespace) -> Callable[[], object]:
    """Run all of `tokenize` but its tasks; each split has a shard of one document."""
    made, tokenizer = plan_of(args.splits), a_tokenizer()
    Path(args.folder, "tokenizer.json").write_bytes(tokenizer.json_bytes)
    ids = np.arange(5, dtype=np.uint32)
    with MegatronWriter(Storage(), args.folder, "shard", tokenizer.max_id + 1) as writer:
        writer.write_documents(ids, np.array([0, 5]))
    contents = [Path(args.folder, f"shard{suffix}").read_bytes() for suffix in (".bin", ".idx")]
    folder = TaskFolder(Storage(), args.folder, "")
    Path(args.folder, "work").mkdir()
    counter = TokenCounter(id_columns(tokenizer), False)
    counter.add(
        None,  # type: ignore[arg-type]
        pa.LargeListArray.from_arrays(pa.array([0, 5], pa.int64()), pa.array(ids)),
    )
    counted = counter.write(folder, "shard")
    contents.append(Path(args.folder, counted.name).read_bytes())
    stored = [Store.kept(data) for data in contents]
    digests = [hashlib.sha256(data).hexdigest() for data in contents]

    def leave(folder: TaskFolder, task: SplitTask) -> None:
        shard = task_name("shard", task.split.index, task.splits)
        names = [f"work/{shard}.bin", f"work/{shard}.idx", token_counts_name(shard)]
        files = []
        for name, at, digest in zip(names, stored, digests, strict=True):
            Store.put(folder.path(name).removeprefix("s3://"), at)
            files.append(FileInfo(name, at[1], digest))
        stats = tokenize_split.TokenizeStats(**reading(task), tokens=5)
        folder.write_receipt(shard, files, stats)

    run_tasks(leave)
    settings = TokenizeSettings(
        tokenizer=str(Path(args.folder, "tokenizer.json")),
        output=OUTPUT,
        input=inputs(args.splits),
        run=RunSettings(quiet=True),
    )
    found = documents.read_inputs(settings, made)
    return lambda: documents.tokenize_documents(found, Progress("none"))


def verify_folder(args: argparse.Namespace) -> Callable[[], object]:
    """Read a folder of so many small shards back."""
    tokenize_job(args)()
    return lambda: verify(Storage(), OUTPUT, workers=2)


def open_folder(args: argparse.Namespace) -> Callable[[], object]:
    """Open a folder of so many shards, and read a document of one."""
    tokenize_job(args)()

    def work() -> object:
        opened = shards.open(OUTPUT)
        return opened, opened[len(opened) // 2]

    return work


def words(args: argparse.Namespace) -> Callable[[], object]:
    """Read counts as `train` does; 10 letters a word."""
    every = args.words // PARTITIONS
    parts = []
    for number in range(PARTITIONS):
        numbers = np.arange(every, dtype=np.int64) * PARTITIONS + number
        letters = np.empty((every, 10), np.uint8)
        for at in range(9, -1, -1):
            numbers, letters[:, at] = np.divmod(numbers, 26)
        letters += ord("a")
        offsets = pa.py_buffer(np.arange(every + 1, dtype=np.int64) * 10)
        column = pa.LargeStringArray.from_buffers(every, offsets, pa.py_buffer(letters))
        rows = pa.RecordBatch.from_arrays(
            [column, pa.array(np.ones(every, np.int64))], ["word", "count"]
        )
        parts.append(write_part(Storage(), args.folder, part_file(number), {None: [rows]}, False))
    manifest = CountsManifest(
        "none", "whitespace_split", (), False, documents=1, text_bytes=1, words=args.words,
        unique_words=sum(part.unique_words for part in parts),
        word_bytes=sum(part.word_bytes for part in parts),
        rejects={}, inputs=(), parts=tuple(parts), sources=None,
    )  # fmt: skip
    return lambda: gather_words(iter_words(Storage(), args.folder, manifest), False)


ROWS: dict[str, Callable[[argparse.Namespace], Callable[[], object]]] = {
    "plan": plan, "count": count_job, "tokenize": tokenize_job, "verify": verify_folder,
    "open": open_folder, "words": words,
}  # fmt: skip


def main() -> int:
    """Run the rows, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", choices=ROWS)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--splits", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=10_000_000)
    args = parser.parse_args()
    if args.row is None:
        print(f"{'row':10} {'seconds':>8} {'CPU s':>8} {'memory':>10}  requests", flush=True)
        command = [sys.executable, *sys.argv, "--row"]
        return max(subprocess.run([*command, row], check=False).returncode for row in ROWS)
    with tempfile.TemporaryDirectory() as args.folder:
        Store.begin(args.files)
        work = ROWS[args.row](args)
        Store.requests.clear()
        began, processor = time.monotonic(), time.process_time()
        taken = peak(work)
        seconds, processor = time.monotonic() - began, time.process_time() - processor
    asked = ", ".join(f"{n:,} {name}" for name, n in sorted(Store.requests.items()))
    print(
        f"{args.row:10} {seconds:8.1f} {processor:8.1f} {taken / MB:7,.0f} MB  {asked}", flush=True
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
