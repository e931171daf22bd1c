"""A job of three made-up tasks on an output folder, and the runs that write it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from bpe_beam.folders.claim import Takeover, claim_folder
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder, RestoredFolder, RestoredTask
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import to_struct

PIECES = 3


NAMES = [
    *(f"shard-{i:05}-of-{PIECES:05}.{kind}" for i in range(PIECES) for kind in ("bin", "idx")),
    *(f"__rejects/shard-{i:05}-of-{PIECES:05}.jsonl" for i in range(PIECES)),
    "work/plan.json",
    "__tokenizer",
]


JOB = {"job": "tokenize", "append": None, "input": {"text_field": "text", "files": [["a", 1]]}}

OTHER = {**JOB, "append": "another"}
"""Another job, whose folder TAKEOVER gives to JOB, and the other way round."""

TAKEOVER = Takeover("append", ("measure", "plan"))  # `work/plan.json` has the name of a receipt


def claim(
    url: Path | str,
    job: Mapping[str, Any] = JOB,
    overwrite: bool = False,
    storage: Storage | None = None,
    **more: Any,
) -> OutputFolder:
    return claim_folder(storage or Storage(), str(url), job, NAMES, overwrite, **more)


def content(piece: int, kind: str) -> bytes:
    return f"{kind} of {piece}\n".encode() * 1000


def write_piece(folder: RunFolder, piece: int) -> None:
    """Write the two files of a task, and for one task a reject file."""
    files = []
    stem = f"shard-{piece:05}-of-{PIECES:05}"
    names = [f"{stem}.bin", f"{stem}.idx"] + ([f"__rejects/{stem}.jsonl"] if piece == 1 else [])
    if isinstance(folder, OutputFolder):
        folder.storage.make_folder(folder.path("__rejects"))
    for name in names:
        data = content(piece, name)
        with folder.storage.create(folder.path(name)) as stream:
            stream.write(data)
        files.append(FileInfo.of(name, data))
    folder.for_workers().write_receipt(f"{piece:05}", files, {"documents": piece})


def manifest_of(receipts: Mapping[str, Receipt]) -> bytes:
    return msgspec.json.encode(receipts)


def restore(manifest: bytes) -> RestoredFolder:
    """Return the tasks of a manifest by `manifest_of`."""
    receipts = to_struct(json.loads(manifest), dict[str, Receipt], "it")
    (job,) = {receipt.fingerprint for receipt in receipts.values()}
    tasks = {name: RestoredTask(each.files, each.stats) for name, each in receipts.items()}
    return RestoredFolder(job, tasks)


def run_job(url: Path | str, storage: Storage | None = None, **options: Any) -> list[int]:
    """Run a whole job; return the tasks that it had to run."""
    folder = claim(url, storage=storage, restore=restore, **options)
    if folder.finished:
        return []
    folder.storage.write_bytes(folder.path("work/plan.json"), b"{}\n")
    folder.storage.write_bytes(folder.path("__tokenizer"), b"{}\n")
    written = [i for i in range(PIECES) if folder.receipt(f"{i:05}") is None]
    folder.storage.make_folder(folder.path("__rejects"))
    run = folder.new_run()
    for piece in written:
        write_piece(run, piece)
    folder.take(run, all_files=False)
    receipts = {task: found for task, found in folder.receipts().items() if task.isdigit()}
    assert list(receipts) == [f"{i:05}" for i in range(PIECES)]
    folder.finish("__manifest", manifest_of(receipts))
    return written


def tree(url: Path) -> dict[str, bytes]:
    """Return every file below a folder, and every empty folder."""
    return {
        str(path.relative_to(url)): path.read_bytes() if path.is_file() else b"folder"
        for path in sorted(url.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def begun(url: Path, *pieces: int) -> tuple[OutputFolder, RunFolder]:
    """Return a run that was killed when it had finished some tasks."""
    folder = claim(url)
    run = folder.new_run()
    for piece in pieces:
        write_piece(run, piece)
    return folder, run


class DyingStorage(Storage, frozen=True):
    """A storage that ends the process, as SIGKILL does, at the n-th change."""

    def step(self) -> None:
        moments = self.options["file"]
        moments["left"] -= 1  # type: ignore[index]
        if moments["left"] < 0:
            os._exit(9)

    @contextlib.contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        self.step()
        with super().create(url) as stream:
            stream.write(b"")
            self.step()
            yield stream
        self.step()

    def write_bytes(self, url: str, data: bytes) -> None:
        with self.create(url) as stream:
            stream.write(data)

    def remove(self, url: str) -> None:
        self.step()
        super().remove(url)

    def make_folder(self, url: str, *, synced: bool = True) -> None:
        self.step()
        super().make_folder(url, synced=synced)


def survives(run: Callable[[Storage], None], moment: int) -> bool:
    """Run in a child that dies at a moment; return whether it survived."""
    child = os.fork()
    if child == 0:
        try:
            run(DyingStorage({"file": {"left": moment}}))
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 9), "the job itself failed"
    return code == 0


def begin_another(url: Path, *, tasks: tuple[str, ...] = ("measure",)) -> None:
    """Begin OTHER: some temporary files, also of a run, and documents in a folder of their own."""
    folder = claim(url, OTHER)
    folder.storage.write_bytes(folder.path("work/plan.json"), b"another\n")
    run = folder.new_run()
    for each in (folder, run):
        for task in tasks:
            name = f"{task}-00000-of-00002"
            each.storage.write_bytes(each.path("work/plan.json"), b"another\n")
            each.write_receipt(name, [FileInfo.of("work/plan.json", b"another\n")], {"n": 1})
    inner = claim(url / "work" / "documents")
    inner.storage.write_bytes(inner.path("__tokenizer"), b"inner\n")
    inner.finish("__manifest", b"{}")


def kill_at_takeover(root: Path) -> int:
    """Kill a job at each of its changes while it takes a folder over, and run either job.

    Returns:
        The number of moments.
    """
    whole = {}
    for name, job in (("job", JOB), ("other", OTHER)):
        run_job(root / name, DyingStorage({"file": {"left": sys.maxsize}}), job=job)
        whole[name] = tree(root / name)
    for moment in itertools.count():
        for name, job in (("job", JOB), ("other", OTHER)):
            url = root / f"{name}-{moment}"
            begin_another(url)

            def run(storage: Storage, url: Path = url) -> None:
                claim(url, storage=storage, takeover=TAKEOVER)

            done = survives(run, moment)
            inner = tree(url / "work" / "documents")
            assert {"__manifest", "__job", "__tokenizer"} <= set(inner)
            run_job(url, job=job, takeover=TAKEOVER)
            assert tree(url) == whole[name], f"killed at {moment}"
        if done:
            return moment
    raise AssertionError


def kill_at_every_moment(root: Path, before: str) -> int:
    """Kill a job at each of its changes to storage in turn, run it again, and compare.

    Returns:
        The number of moments.
    """
    # By the storage of the children: what it imports is imported once.
    run_job(root / "undisturbed", DyingStorage({"file": {"left": sys.maxsize}}))
    whole = tree(root / "undisturbed")
    overwrite = before == "another job"
    for moment in itertools.count():
        url = root / f"killed-{moment}"
        if before == "another job":
            other = claim(url, {"job": "tokenize", "append": "other"})
            for piece in range(PIECES):
                write_piece(other, piece)
            if moment % 2:
                other.finish("__manifest", b"{}")
            del other  # a run that has ended
        elif before == "a damaged finish":
            run_job(url)
            (url / "shard-00001-of-00003.idx").unlink()

        def run(storage: Storage, url: Path = url) -> None:
            run_job(url, storage, overwrite=overwrite)

        done = survives(run, moment)
        # A folder never looks whole while it is being taken apart or filled.
        if before != "a damaged finish" and (url / "__manifest").exists():
            assert {name for name in whole if name.startswith("shard")} <= set(tree(url))
        run_job(url, overwrite=overwrite and not done)
        assert tree(url) == whole, f"killed at {moment}"
        if done:
            return moment
    raise AssertionError
