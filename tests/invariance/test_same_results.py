"""However a corpus is cut, listed, packed and worked on: the same counts, tokenizer and tokens."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run_process, run_whole
from made_text import documents, write
from read_back import read_shards, tree

END = "<|endoftext|>"
RULES = ("lowest_id", "first_seen", "greatest_bytes")

# Many pairs of equal counts, so that a tie decided otherwise is seen.
TEXTS = documents(250, seed=5)


def pieces(sizes: list[int]) -> list[list[str]]:
    """The texts in order, cut into files of so many documents; the rest in the last."""
    cut, at = [], 0
    for size in sizes:
        cut.append(TEXTS[at : at + size])
        at += size
    return [*cut, TEXTS[at:]]


def one_file(name: str) -> Callable[[Path], list[Path]]:
    return lambda folder: [write(folder / name, TEXTS)]


def several_files(folder: Path) -> list[Path]:
    # An empty one, and one of a single document; named in the order of the documents.
    files = pieces([1, 80, 0, 120])
    return [write(folder / f"{i}" / "part.jsonl", texts) for i, texts in enumerate(files)]


def a_hundred_files(folder: Path) -> list[Path]:
    files = pieces([3] * 99)
    return [write(folder / f"{i:03}.jsonl", texts) for i, texts in enumerate(files)]


def listed_otherwise(folder: Path) -> list[Path]:
    paths = several_files(folder)
    random.Random(3).shuffle(paths)
    return [*paths, paths[0]]


def packed_differently(folder: Path) -> list[Path]:
    names = ["a.jsonl", "b.jsonl.gz", "c.txt", "d.txt.zst"]
    return [
        write(folder / name, texts) for name, texts in zip(names, pieces([50, 60, 70]), strict=True)
    ]


# By name: the files, how many splits they come to, the size of these, the workers.
WAYS: dict[str, tuple[Callable[[Path], list[Path]], int, str, int]] = {
    "one split": (one_file("a.jsonl"), 1, "1MB", 1),
    "two splits": (one_file("a.jsonl"), 2, "16KB", 1),
    "seven splits": (one_file("a.jsonl"), 7, "4100", 1),
    "seven splits, two workers": (one_file("a.jsonl"), 7, "4100", 2),
    "several files": (several_files, 1, "1MB", 2),
    "several files, split": (several_files, 9, "4KB", 2),
    "a hundred files": (a_hundred_files, 4, "8KB", 2),
    "listed otherwise": (listed_otherwise, 3, "14KB", 2),
    "text": (one_file("a.txt"), 7, "3200", 2),
    "gzip": (one_file("a.jsonl.gz"), 9, "1KB", 1),
    "zstd": (one_file("a.jsonl.zst"), 9, "1KB", 2),
    "bzip2": (one_file("a.jsonl.bz2"), 1, "1KB", 1),
    "xz": (one_file("a.txt.xz"), 1, "1KB", 1),
    "gzip of members": (one_file("members.jsonl.gz"), 13, "1300", 2),
    "zstd of frames": (one_file("members.txt.zst"), 11, "1300", 2),
    "packed differently": (packed_differently, 6, "4KB", 2),
}


def reading(folder: Path, way: str) -> list[str | Path]:
    """Makes the files of a way; returns the options that read them."""
    files, _, size, workers = WAYS[way]
    inputs = files(folder / "data")
    return ["--input", *inputs, "--range-bytes", size, "--workers", str(workers)]


def make_all(folder: Path, way: str) -> None:
    """Counts with and without places, a tokenizer under each tie rule, and shards."""
    arguments = reading(folder, way)
    counting = ("count", *arguments, "--special-token", END)
    run_whole(*counting, "--output", folder / "counts")
    run_whole(*counting, "--tie-break", "first_seen", "--output", folder / "placed")
    for rule in RULES:
        counts = folder / ("placed" if rule == "first_seen" else "counts")
        recipe = ("--tie-break", rule, "--vocab-size", "450", "--output", folder / rule)
        run_whole("train", "--counts", counts, *recipe)
    tokenizer = ("--tokenizer", folder / "lowest_id" / "tokenizer.json", "--append", END)
    run_whole("tokenize", *arguments, *tokenizer, "--output", folder / "tokens")


def parts(counts: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(counts.glob("part-*"))}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made in the plainest way."""
    folder = tmp_path_factory.mktemp("first")
    make_all(folder, "one split")
    return folder


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "one split"])
def test_the_way_does_not_matter(way: str, first: Path, tmp_path: Path) -> None:
    make_all(tmp_path, way)
    plan = json.loads((tmp_path / "tokens" / "__manifest").read_bytes())["plan"]
    assert len(plan["splits"]) == WAYS[way][1]
    assert parts(tmp_path / "counts") == parts(first / "counts")
    for rule in RULES:
        for name in ("tokenizer.json", "vocab.json", "merges.txt"):
            assert (tmp_path / rule / name).read_bytes() == (first / rule / name).read_bytes(), rule
    assert read_shards(tmp_path / "tokens") == read_shards(first / "tokens")


def test_the_rules_do_differ_on_this_corpus(first: Path) -> None:
    assert len({(first / rule / "merges.txt").read_bytes() for rule in RULES}) == 3
    assert len(read_shards(first / "tokens")) == len(TEXTS)


def test_places_differ_with_the_files_and_with_nothing_else(first: Path, tmp_path: Path) -> None:
    """Places are of files and offsets: the same for any split, others in other files."""
    for way, same in (("seven splits, two workers", True), ("several files", False)):
        counts = tmp_path / way / "placed"
        count = ("count", *reading(tmp_path / way, way), "--special-token", END)
        run_whole(*count, "--tie-break", "first_seen", "--output", counts)
        assert (parts(counts) == parts(first / "placed")) is same


def test_equal_plans_give_equal_folders(tmp_path: Path) -> None:
    """Elsewhere, under another path, listed otherwise, with more workers, on Beam: equal to the
    byte."""
    made = {}
    on_beam = ("--runner", "FnApiRunner", "--workers", "2")
    for place, shuffled, how in (
        ("here", False, ("--workers", "1")),
        ("over/there", True, ("--workers", "2")),
        ("beam", False, on_beam),
    ):
        folder = tmp_path / place
        inputs = several_files(folder / "data")
        if shuffled:
            # The root is that of the files that are read, not of the arguments.
            inputs = [Path(path.parent, "..", path.parent.name, path.name) for path in inputs[::-1]]
        arguments = ("--input", *inputs, "--range-bytes", "4KB", *how)
        train = ("--vocab-size", "400", "--special-token", END, "--tie-break", "first_seen")
        run_whole("train", *arguments, *train, "--output", folder / "tok")
        tokenizer = ("--tokenizer", folder / "tok" / "tokenizer.json")
        run_whole("tokenize", *arguments, *tokenizer, "--output", folder / "tokens")
        shutil.rmtree(folder / "data")
        made[place] = tree(folder)
    assert made["here"] == made["over/there"] == made["beam"]
    assert sum(name.endswith(".bin") for name in made["here"]) > 5


_ALL_JOBS = """
import sys
from bpe_beam.cli.main import main
data = ["--input", "data/a.jsonl", "--range-bytes", "8KB", "--quiet"]
jobs = [["count", *data, "--tie-break", "first_seen", "--output", "counts"]]
for rule in ("lowest_id", "first_seen", "greatest_bytes"):
    recipe = ["--tie-break", rule, "--alphabet", "seen", "--vocab-size", "450"]
    jobs.append(["train", "--counts", "counts", *recipe, "--quiet", "--output", rule])
jobs.append(["tokenize", *data, "--tokenizer", "first_seen/tokenizer.json", "--output", "tokens"])
sys.exit(max(main(job) for job in jobs))
"""


def test_the_hash_seed_does_not_matter(tmp_path: Path) -> None:
    made = []
    for seed in ("0", "1", "random"):
        folder = tmp_path / seed
        write(folder / "data" / "a.jsonl", TEXTS)
        command = (sys.executable, "-c", _ALL_JOBS)
        ran = run_process(command=command, cwd=folder, env={"PYTHONHASHSEED": seed})
        assert (ran.code, ran.err) == (0, "")
        made.append(tree(folder))
    assert made[0] == made[1] == made[2]
    assert any(name.startswith("tokens/shard-00003") for name in made[0])
