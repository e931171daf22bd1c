"""A corpus in any format: the same counts and the same tokens, in one piece and cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_whole
from made_text import documents, write
from read_back import read_shards

TEXTS = documents(150, seed=8)
# some with newlines and quotes, which text files cannot hold
TEXTS[::7] = [f'{text} "\n\n{text}",\r\n"' for text in TEXTS[::7]]


def counted(folder: Path, data: Path, *options: str) -> dict[str, bytes]:
    run_whole("count", "--input", data, *options, "--output", folder / "counts")
    return {path.name: path.read_bytes() for path in sorted((folder / "counts").glob("part-*"))}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """Of JSON Lines in one piece: the tokenizer, the tokens, the counts."""
    folder = tmp_path_factory.mktemp("first")
    data = write(folder / "a.jsonl", TEXTS)
    counts = counted(folder, data)
    run_whole(
        "train", "--counts", folder / "counts", "--vocab-size", "400", "--output", folder / "tok"
    )
    tokenizer = ("--tokenizer", folder / "tok" / "tokenizer.json")
    run_whole("tokenize", "--input", data, *tokenizer, "--output", folder / "tokens")
    return folder, counts


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("a.parquet", 3),
        ("a.arrow", 5),
        ("a.arrows", 5),
        ("a.csv", 4),
        ("a.tsv", 4),
        ("a.csv.gz", 1),
        ("a.wet", 8),
        ("members.wet.gz", 4),
        ("a.wet.zst", 2),
        ("a.tar", 1),
        ("a.tar.xz", 1),
    ],
)
def test_the_format_does_not_matter(
    tmp_path: Path, first: tuple[Path, dict[str, bytes]], name: str, splits: int
) -> None:
    folder, counts = first
    data = write(tmp_path / name, TEXTS)
    for place, options in (("whole", ()), ("cut", ("--range-bytes", "4KB"))):
        assert counted(tmp_path / place, data, *options) == counts
        tokens = tmp_path / place / "tokens"
        tokenizer = ("--tokenizer", folder / "tok" / "tokenizer.json")
        run_whole("tokenize", "--input", data, *options, *tokenizer, "--output", tokens)
        assert read_shards(tokens) == read_shards(folder / "tokens")
    plan = json.loads((tokens / "__manifest").read_bytes())["plan"]
    assert len(plan["splits"]) == splits
