"""`tokenize` to several formats at once: each folder is the one that a run to it alone writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run, run_whole
from made_text import documents, write
from read_back import tree, without_job

END = "<|endoftext|>"
FORMATS = ("megatron", "llmc", "parquet")


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("arguments")
    corpus = write(folder / "a.jsonl", ["", *documents(60, seed=6), ""])
    size = ("--vocab-size", "400", "--special-token", END)
    run_whole("train", "--input", corpus, *size, "--output", folder / "tok")
    reading = ("--input", str(corpus), "--range-bytes", "3KB")
    return ("tokenize", *reading, "--tokenizer", str(folder / "tok"), "--prepend", END)


def formats(*names: str) -> list[str]:
    return [part for name in names for part in ("--format", name)]


def test_each_folder_is_that_of_a_run_to_it_alone(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = run_whole(*arguments, *formats(*FORMATS), "--output", out).summary
    assert summary["formats"] == {name: f"{out}/{name}" for name in FORMATS}
    assert {path.name for path in out.iterdir()} == set(FORMATS)
    files = [path for name in FORMATS for path in (out / name).glob("shard-*")]
    assert summary["shards_bytes"] == sum(path.stat().st_size for path in files)
    assert summary["shards"] == len({(path.parent, path.name.partition(".")[0]) for path in files})
    for name in FORMATS:
        run_whole(*arguments, "--format", name, "--output", tmp_path / name)
        assert without_job(out / name) == without_job(tmp_path / name)
        assert run("verify", out / name).code == 0
    min((out / "llmc").glob("shard-*")).unlink()
    before = tree(out / "llmc")
    run_whole(*arguments, *formats(*FORMATS), "--output", out)
    assert len(tree(out / "llmc")) == len(before) + 1
    one = run(*arguments, "--output", out)
    assert one.code == 2
    several = run(*arguments, *formats(*FORMATS), "--output", tmp_path / "llmc")
    assert several.code == 2
    assert "has the shards of one format" in several.message


def test_what_cannot_be_written_is_refused_before_work(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    bare = [part for part in arguments if part not in ("--prepend", END)]
    for args, said in (
        ([*bare, *formats("flat", "llmc")], "--prepend must be given for shards of llmc"),
        ([*arguments, *formats("flat", "flat")], "--format must not repeat 'flat'"),
        ([*arguments, *formats("flat", "tape")], "--format must be one of megatron"),
    ):
        ran = run(*args, "--output", tmp_path / "out")
        assert (ran.code, said in ran.message) == (2, True), ran.message
        assert not (tmp_path / "out").exists()


def test_arranged_documents(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The folders for training and validation of each format."""
    out, names = tmp_path / "out", ("flat", "arrow")
    order = ("--shuffle-seed", "3", "--validation-share", "20%")
    told = run_whole(*arguments, *formats(*names), *order, "--dry-run", "--output", out).summary
    assert told["next"] == ["the same without --dry-run"]
    summary = run_whole(*arguments, *formats(*names), *order, "--output", out).summary
    assert summary["next"] == [f"bpe-beam verify {out}"]
    assert run(*summary["next"][0].split()[1:]).code == 0
    written = [path.stat().st_size for path in out.glob("*/*/shard-*")]
    assert summary["shards_bytes"] == sum(written)
    for name in names:
        run_whole(*arguments, "--format", name, *order, "--output", tmp_path / name)
        for part in ("train", "validation"):
            one, other = out / name / part, tmp_path / name / part
            assert without_job(one) == without_job(other)
            assert run("verify", one).code == 0
