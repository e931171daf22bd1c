"""Each file of each job's folder is lost, cut, changed, emptied or that of another folder.

Then the same command makes it again and says so, `verify` names it, and what else reads the folder
names it or gives what the whole folder gives.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, run
from read_back import tree

from bpe_beam.errors import DataError
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.jobs.tokenize.arrange_steps import ArrangeSteps
from bpe_beam.jobs.tokenize.documents import TokenizeJob
from bpe_beam.shards.formats import SHARD_FORMATS

END = "<|end|>"
READ = ("--max-rejects", "10%", "--range-bytes", "2000", "--source-field", "source")
TRAIN = ("--vocab-size", "270", "--special-token", END)
ORDER = ("--sequence-length", "64", "--shuffle-seed", "3", "--shard-tokens", "600")
PARTS = ("--validation-share", "30%", "--format", "parquet", "--shuffle-seed", "3")

TOKENIZE: dict[str, tuple[str, ...]] = {
    **{name: ("--format", name, "--prepend", END) for name in SHARD_FORMATS},
    "packed": (*ORDER, "--append", END),
    "packed best fit": (*ORDER, "--packing", "best_fit", "--format", "mds"),
    "parts": PARTS,
    "several": ("--format", "parquet", "--format", "flat"),
    "several parts": (*PARTS, "--format", "mds"),
}
KILLED: dict[str, tuple[str, Any, str]] = {
    "killed": ("megatron", OutputFolder, "finish"),
    "killed count": ("count", OutputFolder, "finish"),
    "killed while packing": ("packed", ArrangeSteps, "finish"),
    "killed before packing": ("packed", TokenizeJob, "publish"),
}
"""The job that is killed, and the function before which it is."""

COUNTS = ("count", "counts filter", "counts merge")
JOBS = (*COUNTS, "train", "train counts", *TOKENIZE, "convert", "convert shards", *KILLED)
QUICK = ("train counts", "packed", "killed before packing")


def lost(path: Path, _: Path | None) -> None:
    path.unlink()


def cut(path: Path, _: Path | None) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path, _: Path | None) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def emptied(path: Path, _: Path | None) -> None:
    path.write_bytes(b"")


def of_another_folder(path: Path, other: Path | None) -> None:
    if other is not None:
        path.write_bytes(other.read_bytes())


ADVICE = ("bpe-beam verify", "run the command that wrote it again", "since train wrote them")

DAMAGES = (lost, cut, flipped, emptied, of_another_folder)


class Ground:
    """Folders of every job, each of two corpora."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for corpus, seed in (("a", 1), ("b", 2)):
            made = random.Random(seed)
            words = ["the", "cat", "sat", "on", "mats", "while", "dogs", "ran", "over", "hills"]
            for source in "xy":
                texts = [" ".join(made.choices(words, k=12)) for _ in range(40)]
                rows = [{"text": text, "source": source} for text in texts]
                lines = [json.dumps(row) for row in rows]
                path = folder / f"{corpus}-{source}.jsonl"
                path.write_text("\n".join([*lines, '{"source": "x"}', ""]))
        ran = run(*self.command("train", "a"), "--output", folder / "tokenizer", "--quiet")
        assert ran.code == 0, ran.err

    def command(self, name: str, corpus: str) -> list[object]:
        """Return the command of a job, without its output."""
        reading = ("--input", self.folder / f"{corpus}-*.jsonl", *READ)
        if name in KILLED:
            return self.command(KILLED[name][0], corpus)
        if name in TOKENIZE:
            tokenizer = self.folder / "tokenizer" / "tokenizer.json"
            return ["tokenize", "--tokenizer", tokenizer, *reading, *TOKENIZE[name]]
        return {
            "count": lambda: ["count", *reading],
            "counts filter": lambda: [
                *("counts", "filter", self.whole("count", corpus), "--min-count", "3")
            ],
            "counts merge": lambda: ["counts", "merge", *(self.whole("count", c) for c in "ab")],
            "train": lambda: ["train", *reading, *TRAIN],
            "train counts": lambda: ["train", "--counts", self.whole("count", corpus), *TRAIN],
            "convert": lambda: ["convert", self.whole("megatron", corpus), "--format", "mds"],
            "convert shards": lambda: [
                *("convert", self.whole("packed", corpus)),
                *(self.whole("packed", "b" if corpus == "a" else "a"), "--shards", "2"),
            ],
        }[name]()

    def whole(self, name: str, corpus: str) -> Path:
        """Return the folder of a job, made once."""
        out = self.folder / corpus / name
        if not out.exists():
            out.parent.mkdir(exist_ok=True)
            with pytest.MonkeyPatch.context() as patch:
                if name in KILLED:
                    _, holder, function = KILLED[name]
                    patch.setattr(holder, function, _die)
                ran = run(*self.command(name, corpus), "--output", out, "--quiet")
            assert ran.code == (name in KILLED), ran.err
        return out


def _die(*_: object, **__: object) -> None:
    raise DataError("killed")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("ground"))


def files_of(folder: Path) -> list[str]:
    """Return the names of all files, of parts of counts only the first."""
    names = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
    return [name for name in names if "part-" not in name or "part-00000" in name]


def content(folder: Path) -> dict[str, Any]:
    """Return the files of a folder, without times and without names of temporary files."""
    files: dict[str, Any] = dict(tree(folder))
    for name in files:
        if name.endswith("__job"):
            record = JobRecord.from_bytes(files[name])
            assert record is not None
            names = {each for each in record.names if not each.startswith("work/")}
            files[name] = (record.fingerprint, names)
    return files


def cases(folder: Path, every: bool) -> Iterator[tuple[str, Callable[..., None]]]:
    """Yield files with damages: all pairs, or each file once."""
    damages = cycle(DAMAGES)
    for name in files_of(folder):
        for damage in DAMAGES if every else (next(damages),):
            yield name, damage


def readings(name: str, folder: Path, ground: Ground, output: Path) -> Iterator[list[object]]:
    """Yield the commands that read a folder, without its own."""
    if name in KILLED:
        return
    yield ["verify", folder]
    if name in COUNTS:
        yield ["inspect", folder]
        yield ["train", "--counts", folder, *TRAIN, "--output", output]
    elif name.startswith("train"):
        yield ["inspect", folder]
    elif "several" not in name:
        corpus = ("--input", ground.folder / "a-*.jsonl")
        if name != "convert shards":
            yield ["verify", folder, "--full", *corpus]
        if name != "parts":
            yield ["inspect", folder]
            yield ["evaluate", "--tokens", folder]
            other = "flat" if name != "flat" else "mds"
            yield ["convert", folder, "--format", other, "--output", output]


def result(command: list[object], output: Path) -> tuple[Ran, Any]:
    """Run a command; return also what it gives, without times."""
    shutil.rmtree(output, ignore_errors=True)
    ran = run(*command, "--quiet")
    assert "Traceback" not in ran.err
    assert "unexpectedly" not in ran.err
    printed = re.sub(rb'"[a-z_]*seconds": [0-9.]+', b"", ran.out)
    return ran, (ran.code, printed, content(output) if output.exists() else None)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "every"),
    [
        *(
            pytest.param(name, False, marks=() if name in QUICK else pytest.mark.slow)
            for name in JOBS
        ),
        *(pytest.param(name, True, marks=pytest.mark.scheduled) for name in JOBS),
    ],
)
def test_each_file_is_made_again_and_named(
    ground: Ground, tmp_path: Path, name: str, every: bool
) -> None:
    whole, other = ground.whole(name, "a"), ground.whole(name, "b")
    finished = content(ground.whole(KILLED[name][0] if name in KILLED else name, "a"))
    spot, output = tmp_path / "spot", tmp_path / "output"

    def damaged(file: str, damage: Callable[..., None]) -> bool:
        """Copy the folder, and damage a file; return whether that changes it."""
        shutil.rmtree(spot, ignore_errors=True)
        shutil.copytree(whole, spot)
        others = [each for each in other.rglob(Path(file).name) if each.is_file()]
        same = other / file
        damage(spot / file, same if same.exists() else next(iter(others), None))
        return tree(spot, without=()) != tree(whole, without=())

    shutil.copytree(whole, spot)
    expected = [result(each, output)[1] for each in readings(name, spot, ground, output)]
    command = [*ground.command(name, "a"), "--output", spot, "--quiet"]
    for file, damage in cases(whole, every):
        if not damaged(file, damage):
            continue
        base, where = Path(file).name, f"{file} {damage.__name__}"
        ran = run(*command)
        if ran.code == 2 and name in KILLED and file == "__job":
            assert "--overwrite" in ran.message  # nothing else says which job the folder is of
            ran = run(*command, "--overwrite")
        elif name not in KILLED:
            assert base in ran.message, where
        assert (ran.code, "Traceback" in ran.err) == (0, False), (where, ran.err)
        assert content(spot) == finished, where
        if not every and name in KILLED:
            continue
        damaged(file, damage)
        ran = run(*command, "--overwrite")
        assert ran.code == 0, (where, ran.err)
        assert content(spot) == finished, where
        for reading, sound in zip(readings(name, spot, ground, output), expected, strict=True):
            damaged(file, damage)
            ran, given = result(reading, output)
            printed = ran.message + ran.out.decode()
            # If the last file is of another folder, the others are called damaged.
            named = any(each in printed for each in (base, *ADVICE))
            is_verify = reading[0] == "verify"
            assert (ran.code and named) or (not is_verify and (given == sound or named)), (
                where,
                reading[:3],
                ran.err,
            )
            if not every:
                break
