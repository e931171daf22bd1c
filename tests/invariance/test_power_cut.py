"""A power cut at any moment: a finished folder is whole, and an unfinished one goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command_line import run, run_whole
from made_text import documents, write
from power_cut import Disk, Files, write_files
from read_back import tree

from bpe_beam.folders import claim
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.numbering import number_shards
from bpe_beam.storage import Storage
from bpe_beam.storage.create_exclusive import write_once
from bpe_beam.workers.stream.window_log import WindowFolder

VOCABULARY = ("--vocab-size", "400")
PACKED = ("--sequence-length", "64", "--packing", "best_fit", "--shuffle-seed", "3")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of a few splits, and a tokenizer."""
    folder = tmp_path_factory.mktemp("made")
    corpus = write(folder / "a.jsonl", documents(60, seed=3))
    corpus.write_bytes(corpus.read_bytes() + b"no JSON\n")
    arguments = ("--input", str(corpus), *VOCABULARY, "--max-rejects", "9")
    run_whole("train", *arguments, "--output", folder / "tok")
    return folder


def command(job: str, made: Path) -> list[str]:
    corpus = made / "a.jsonl"
    size = str(corpus.stat().st_size // 4)
    reading = ["--input", str(corpus), "--range-bytes", size, "--max-rejects", "9"]
    more = {
        "count": [],
        "train": [*VOCABULARY],
        "tokenize": ["--tokenizer", str(made / "tok" / "tokenizer.json")],
    }
    more["arrange"] = [*more["tokenize"], *PACKED]
    return [job.replace("arrange", "tokenize"), *reading, *more[job], "--quiet"]


def named(value: Any) -> Iterator[tuple[str, int, str]]:
    """Name, size and hash of each file that a manifest, receipt or summary names."""
    if isinstance(value, dict):
        if {"name", "bytes", "sha256"} <= value.keys():
            yield value["name"], value["bytes"], value["sha256"]
        for each in value.values():
            yield from named(each)
    elif isinstance(value, list):
        for each in value:
            yield from named(each)


def is_whole(files: Files, final: str) -> bool:
    """Whether all that a file names is there with its bytes; False if it is not there itself."""
    if final not in files:
        return False
    rows = list(named(json.loads(files[final])))
    assert rows
    folder = final.rpartition("/")[0]
    for name, size, digest in rows:
        content = files.get(f"{folder}/{name}")
        assert content is not None, f"{final} names {name}, which is not there"
        assert len(content) == size, f"{final} names {name}, which is not whole"
        assert hashlib.sha256(content).hexdigest() == digest
    return True


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("job", "finals"),
    [
        ("count", ["__manifest"]),
        ("tokenize", ["__manifest"]),
        ("arrange", ["__manifest"]),
        ("train", ["counts/__manifest", "summary.json"]),
    ],
)
def test_what_is_finished_is_whole(
    job: str, finals: list[str], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "disk"
    top.mkdir()
    disk = Disk(top)
    with disk.watched(monkeypatch):
        done = run(*command(job, made), "--output", top / "below" / "out")
    assert done.code == 0, done.err
    whole = tree(top / "below" / "out")
    for held in (disk.early, disk.late):
        for final in finals:
            finished = [is_whole(files, f"below/out/{final}") for files in held]
            assert True in finished, "what is reported to be done is on disk"
            assert finished == sorted(finished), "what was finished stays so"
    # A job that goes on from what is left ends with the same bytes.
    for number, held in enumerate((disk.early, disk.late)):
        for share in (0.4, 0.7, 0.95):
            again = tmp_path / f"again-{number}-{share}"
            again.mkdir()
            write_files(held[int(share * len(held))], again)
            done = run(*command(job, made), "--output", again / "below" / "out")
            assert done.code == 0, done.err
            assert tree(again / "below" / "out") == whole


def test_temporary_documents_that_a_power_cut_emptied_are_made_again(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not forced to disk: a file may have its size, and none of its bytes."""
    monkeypatch.setattr(claim, "HASHED_BYTES", 0)
    expected, out = tmp_path / "expected", tmp_path / "out"
    assert run(*command("arrange", made), "--output", expected).code == 0
    assert run(*command("arrange", made), "--output", out, "--dry-run").code == 0
    shards = sorted(out.glob("work/documents/shard-*"))
    assert shards
    for shard in shards[::2]:
        shard.write_bytes(bytes(shard.stat().st_size))
    done = run(*command("arrange", made), "--output", out)
    assert done.code == 0, done.err
    assert tree(out) == tree(expected)


def test_the_words_of_merge_rounds_are_never_lost(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "disk"
    top.mkdir()
    disk = Disk(top)
    arguments = ("--counts", made / "tok" / "counts", "--vocab-size", "300", "--quiet")
    with disk.watched(monkeypatch):
        done = run("train", *arguments, "--merge-rounds", "distributed", "--output", top / "out")
    assert done.code == 0, done.err
    for held in (disk.early, disk.late):
        begun = False
        for files in held:
            commits = [name for name in files if "/commit-" in name and ".attempt-" not in name]
            whole = [name for name in commits if _words_stand(files, name)]
            finished = is_whole(files, "out/summary.json")
            tokenizer = "out/tokenizer.json" in files
            assert whole or finished or tokenizer or not begun, f"lost: {commits}"
            begun = begun or bool(whole)
        assert begun


def _words_stand(files: Files, commit: str) -> bool:
    if not files[commit]:
        return False
    value = json.loads(files[commit])["commit"]
    run_folder = f"{commit.rpartition('/')[0]}/work/{value['run']}"
    return all(
        hashlib.sha256(files.get(f"{run_folder}/{words['file']['name']}", b"")).hexdigest()
        == words["file"]["sha256"]
        for words in value["word_batches"]
    )


def write_window(storage: Storage, folder: str) -> None:
    storage.make_folder(folder)
    assert write_once(storage, storage.join(folder, "__window"), b"a window")
    window = WindowFolder(storage, folder, "fingerprint")
    window.prepare()
    file = FileInfo.of("work/shard.bin", b"a shard")
    storage.write_bytes(storage.join(folder, "work", "shard.bin"), b"a shard")
    window.write_receipt("shard", [file], {"tokens": 1})
    receipt = window.read_receipt("shard")
    assert receipt is not None
    shards = number_shards([receipt], [1])
    files = msgspec.json.encode({"files": shards[0].receipt.files})
    window.finish(shards, files, {"__tokenizer": b"{}"})


@pytest.mark.parametrize(
    ("write_it", "names"),
    [
        (write_window, ["__window", "__manifest", "__tokenizer"]),
        (lambda storage, folder: storage.write_bytes(f"{folder}/file", b"x" * 9), ["file"]),
    ],
    ids=["window", "file"],
)
def test_no_name_has_an_empty_file(
    write_it: Callable[[Storage, str], None],
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk(tmp_path)
    with disk.watched(monkeypatch):
        write_it(Storage(), str(tmp_path))
    for files in (*disk.early, *disk.late):
        for name in names:
            assert files.get(name) != b""
    assert set(names) <= disk.early[-1].keys()
    if "__manifest" in names:
        assert is_whole({f"/{name}": each for name, each in disk.late[-1].items()}, "/__manifest")
