"""`verify` of one folder and of several: all are read, and each problem is named."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import pytest
from command_line import run, run_whole
from made_text import documents, write

END = "<|endoftext|>"
PARTS = ("train", "validation")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus, its tokenizer, and tokens folders of several kinds."""
    folder = tmp_path_factory.mktemp("made")
    corpus = write(folder / "a.jsonl", documents(60, seed=6))
    size = ("--vocab-size", "400", "--eos-token", END)
    run_whole("train", "--input", corpus, *size, "--output", folder / "tok")
    tokenize = ("tokenize", "--input", corpus, "--tokenizer", folder / "tok", "--append", END)
    several = ("--format", "megatron", "--format", "parquet")
    packed = ("--sequence-length", "64", "--validation-share", "30%")
    run_whole(*tokenize, *several, "--output", folder / "two")
    run_whole(*tokenize, *packed, "--output", folder / "packed")
    run_whole(*tokenize, *packed, *several, "--output", folder / "both")
    return folder


@pytest.mark.parametrize(
    ("folders", "below"),
    [
        (("two",), ("two/megatron", "two/parquet")),
        (("packed",), tuple(f"packed/{part}" for part in PARTS)),
        (
            ("both", "packed/train"),
            (
                *(f"both/{name}/{part}" for name in ("megatron", "parquet") for part in PARTS),
                "packed/train",
            ),
        ),
        (("packed/train", "packed"), tuple(f"packed/{part}" for part in PARTS)),
    ],
)
def test_all_folders_below_are_verified(
    folders: tuple[str, ...], below: tuple[str, ...], made: Path
) -> None:
    summary = run_whole("verify", *(made / name for name in folders)).summary
    assert [*summary["folders"]] == [str(made / name) for name in below]
    for name, row in summary["folders"].items():
        alone = run_whole("verify", name).summary
        assert {key: alone[key] for key in row} == row
    assert summary["shards"] == sum(row["shards"] for row in summary["folders"].values())
    assert "documents" not in summary  # of two formats they are the same ones


def test_sequences_are_not_called_documents(made: Path) -> None:
    summary = run_whole("verify", made / "packed").summary
    rows = [summary["folders"][str(made / "packed" / part)] for part in PARTS]
    assert sum(row["documents"] for row in rows) == 60
    assert all(row["sequences"] == -(-row["tokens"] // 64) for row in rows)
    shown = run("inspect", made / "packed" / "train").out.decode()
    assert f"sequences              {rows[0]['sequences']:,}\n" in shown
    ran = run("convert", made / "packed" / "train", "--format", "flat", "--output", made / "flat")
    assert f"convert: done, {rows[0]['tokens']:,} tokens" in ran.err
    assert f", {rows[0]['sequences']:,} sequences\n" in ran.err
    assert "documents  " in ran.err


def test_full_compares_all_folders(made: Path) -> None:
    corpus = ("--full", "--input", made / "a.jsonl")
    assert run_whole("verify", made / "packed", *corpus).summary["compared"]
    write(made / "b.jsonl", documents(60, seed=7))
    ran = run("verify", made / "packed", "--full", "--input", made / "b.jsonl")
    assert ran.code == 1
    assert all(f"{made / 'packed' / part} is not whole" in ran.message for part in PARTS)


def test_damage_in_one_folder_fails_and_the_others_are_read(made: Path, tmp_path: Path) -> None:
    damaged = copytree(made / "two", tmp_path / "two")
    for shard in (damaged / "megatron").glob("*.bin"):
        shard.write_bytes(b"x" + shard.read_bytes()[1:])
    ran = run("verify", damaged)
    assert ran.code == 1
    assert f"{damaged / 'megatron'} is not whole" in ran.message
    assert f"{damaged / 'parquet'} is whole" in ran.message


@pytest.mark.parametrize("lost", ["validation", "validation/__manifest"])
def test_a_part_that_is_lost_is_not_left_out(lost: str, made: Path, tmp_path: Path) -> None:
    damaged = copytree(made / "packed", tmp_path / "packed")
    rmtree(damaged / lost) if lost == "validation" else (damaged / lost).unlink()
    ran = run("verify", damaged)
    assert (ran.code, f"{damaged / 'validation'}" in ran.message) == (1, True)


def test_what_is_no_folder_of_shards_is_wrong_use(made: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "a.jsonl", documents(2, seed=1))
    for path, said in (
        (made / "a.jsonl", "is a file: give the folder that tokenize"),
        (made / "two/megatron/__manifest", "is a file: give the folder that tokenize"),
        (tmp_path / "data", "has no shards: give a folder that tokenize or convert wrote"),
    ):
        ran = run("verify", made / "two", path)
        assert (ran.code, f"{path} {said}" in ran.message) == (2, True), ran.message
    for job in (("blend",), ("convert", "--format", "flat", "--output", "x"), ("counts show",)):
        ran = run(*job[0].split(), made / "a.jsonl", *job[1:])
        assert (ran.code, "is a file; give a folder" in ran.message) == (2, True), ran.message
