"""Jobs on compressed files that are cut: what cannot be cut is read as one, and said."""

from __future__ import annotations

import gzip
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from command_line import run, run_whole
from made_text import documents, write
from read_back import read_shards, tree

from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs.corpus import job as corpus_job
from bpe_beam.storage import Storage
from bpe_beam.transforms import CountWords, ReadDocuments

TEXTS = documents(120, seed=9)
SMALL = ("--range-bytes", "700")
ANYTHING = ("--max-rejects", "100%", "--max-lost", "100%")


FOUND: list[str] = []


def keep(batch: pa.RecordBatch) -> None:
    FOUND.extend(batch.column("text").to_pylist())


def members(texts: list[str], size: int) -> bytes:
    data = "".join(f"{text}\n" for text in texts).encode()
    return b"".join(
        gzip.compress(data[at : at + size], mtime=0) for at in range(0, len(data), size)
    )


@pytest.fixture
def misleading(tmp_path: Path) -> Path:
    """Members, one of which holds another gzip file as it is, many times."""
    inner = next(
        packed for i in range(99) if b"\n" not in (packed := gzip.compress(b"in %d" % i, mtime=0))
    )
    stored = zlib.compressobj(0, wbits=31)
    raw = stored.compress(b"\n".join([inner * 2] * 60) + b"\n") + stored.flush()
    path = tmp_path / "in" / "b.txt.gz"
    path.parent.mkdir()
    path.write_bytes(members(TEXTS[:60], 900) + raw + members(TEXTS[60:], 900))
    write(tmp_path / "in" / "a.txt", TEXTS[:20])
    write(tmp_path / "in" / "c.txt", TEXTS[20:40])
    return path.parent


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def test_slices_that_do_not_meet_are_read_again(misleading: Path, tmp_path: Path) -> None:
    made = {}
    for name, cut in (("whole", ("--range-bytes", "1MB")), ("cut", SMALL)):
        arguments = ("--input", f"{misleading}/*", *ANYTHING, *cut)
        counts = run_whole("count", *arguments, "--output", tmp_path / f"{name}-counts")
        tokenizer = tmp_path / f"{name}-tok"
        run_whole(
            *("train", "--counts", tmp_path / f"{name}-counts"),
            *("--vocab-size", "300", "--output", tokenizer),
        )
        tokens = tmp_path / f"{name}-tokens"
        arguments = (*arguments, "--tokenizer", tokenizer / "tokenizer.json", "--output", tokens)
        summary = run_whole("tokenize", *arguments).summary
        assert summary["rejects"] == counts.summary["rejects"] == 60
        run_whole("verify", tokens, "--full", "--input", f"{misleading}/*")
        alone = summary.get("files_read_by_one_worker")
        assert alone == counts.summary.get("files_read_by_one_worker")
        made[name] = (parts(tmp_path / f"{name}-counts"), read_shards(tokens), alone)
    assert made["whole"][:2] == made["cut"][:2]
    assert (made["whole"][2], made["cut"][2]) == (None, ["b.txt.gz"])
    manifest = json.loads((tmp_path / "cut-tokens" / "__manifest").read_bytes())
    slices = [piece for split in manifest["plan"]["splits"] for piece in split]
    size = (misleading / "b.txt.gz").stat().st_size
    assert [piece for piece in slices if piece[0] == 1] == [[1, 0, size]]
    # The splits that lost their slices to the first one have no tokens.
    empty = [row["split"] for row in manifest["splits_without_tokens"]]
    assert empty == [i for i, split in enumerate(manifest["plan"]["splits"]) if not split]
    assert len(manifest["shards"]) + len(empty) == len(manifest["plan"]["splits"]) > 5


def test_what_is_missing_of_such_a_folder_is_made_again(misleading: Path, tmp_path: Path) -> None:
    tokenizer = tmp_path / "tok"
    run_whole(
        *("train", "--input", f"{misleading}/a.txt", "--vocab-size", "300"),
        *("--output", tokenizer),
    )
    arguments = ("--input", f"{misleading}/*", *ANYTHING, *SMALL)
    arguments = (
        *arguments,
        "--tokenizer",
        tokenizer / "tokenizer.json",
        "--output",
        tmp_path / "tokens",
    )
    run_whole("tokenize", *arguments)
    before = {path.name: path.read_bytes() for path in (tmp_path / "tokens").glob("*.*")}
    shards = [name for name in sorted(before) if name.startswith("shard-")]
    for name in (shards[0], shards[7]):
        (tmp_path / "tokens" / name).unlink()
        run_whole("tokenize", *arguments)
        after = {path.name: path.read_bytes() for path in (tmp_path / "tokens").glob("*.*")}
        assert after == before


def test_a_file_of_one_member_is_said(tmp_path: Path) -> None:
    write(tmp_path / "a.txt.gz", TEXTS)
    write(tmp_path / "members.txt.gz", TEXTS)
    write(tmp_path / "b.txt.xz", TEXTS)
    ran = run_whole("count", "--input", f"{tmp_path}/*.txt.*", *SMALL, "--output", tmp_path / "out")
    assert ran.summary["files_read_by_one_worker"] == ["a.txt.gz", "b.txt.xz"]
    assert ran.summary["documents"] == 3 * len(TEXTS)


def test_a_changed_file_is_read_again_when_a_job_goes_on(tmp_path: Path) -> None:
    """A killed job's splits are kept only while the files are unchanged."""
    write(tmp_path / "in" / "a.txt", TEXTS[:60])
    write(tmp_path / "in" / "b.txt", TEXTS[60:])
    arguments = ("--input", f"{tmp_path}/in/*", "--range-bytes", "100KB", "--max-rejects", "0")
    (tmp_path / "in" / "b.txt").write_bytes(b"\xff" * (tmp_path / "in" / "b.txt").stat().st_size)
    arguments = (*arguments, "--output", tmp_path / "out")
    assert run("count", *arguments).code == 1  # too many rejects: all is counted, nothing finished
    data = (tmp_path / "in" / "b.txt").read_bytes()
    (tmp_path / "in" / "b.txt").write_bytes(b"x" * len(data))
    ran = run_whole("count", *arguments)
    assert ran.summary["rejects"] == 0
    fresh = run_whole("count", *arguments[:-1], tmp_path / "fresh")
    assert fresh.summary["words"] == ran.summary["words"]
    assert parts(tmp_path / "out") == parts(tmp_path / "fresh")


class Killed(Exception):
    """The process ends here."""


@pytest.mark.slow
def test_killed_at_any_removal(
    misleading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder whose files are read as one, and one of whose files has changed meanwhile."""
    arguments = ("count", "--input", f"{misleading}/*", *ANYTHING, *SMALL)
    changed = misleading / "a.txt"
    finish, remove = OutputFolder.finish, Storage.remove

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(OutputFolder, "finish", killed)
    assert run(*arguments, "--output", tmp_path / "begun").code == 1
    monkeypatch.setattr(OutputFolder, "finish", finish)
    changed.write_bytes(changed.read_bytes().translate(bytes.maketrans(b"e", b"x")))
    run_whole(*arguments, "--output", tmp_path / "fresh")
    expected = parts(tmp_path / "fresh")
    moment = 0
    while True:
        out = tmp_path / f"out{moment}"
        shutil.copytree(tmp_path / "begun", out)
        left = moment

        def dying(self: Storage, url: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            remove(self, url)

        monkeypatch.setattr(Storage, "remove", dying)
        code = run(*arguments, "--output", out).code
        monkeypatch.setattr(Storage, "remove", remove)
        run_whole(*arguments, "--output", out)
        assert parts(out) == expected, moment
        if code == 0:
            break
        moment += 1 if moment < 4 else 17
    assert moment > 20


def test_a_late_attempt_changes_nothing(
    misleading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first, cut reading made comes once more, after the second."""
    arguments = ("count", "--input", f"{misleading}/*", *ANYTHING, *SMALL)
    run_whole(*arguments, "--output", tmp_path / "alone")
    out = tmp_path / "out"
    passes: list[dict[Path, bytes]] = []
    real = corpus_job.run_steps  # type: ignore[attr-defined]

    def run_steps(*args: object, **kwargs: object) -> object:
        done = real(*args, **kwargs)
        passes.append({path: path.read_bytes() for path in out.glob("work/run-*/work/counts-*")})
        if len(passes) == 2:
            for path, data in passes[0].items():
                path.write_bytes(data)
        return done

    monkeypatch.setattr(corpus_job, "run_steps", run_steps)
    run_whole(*arguments, "--output", out)
    assert len(passes) == 2
    assert any(path.suffix == ".json" for path in passes[0])
    assert tree(out) == tree(tmp_path / "alone")


def test_parts_of_another_reading_are_made_again(
    misleading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs that were killed one leaves splits as they are right, the other its parts."""
    arguments = ("count", "--input", f"{misleading}/*", *ANYTHING, *SMALL)
    run_whole(*arguments, "--output", tmp_path / "alone")
    out = tmp_path / "out"
    real = corpus_job.run_steps  # type: ignore[attr-defined]
    passes: list[Path] = []

    def killed_in_the_second_pass(*args: object, **kwargs: Any) -> object:
        done = real(*args, **kwargs)
        passes.append(next(path for path in out.glob("work/run-*") if path not in passes))
        if len(passes) == 1:
            shutil.copytree(passes[0], tmp_path / "orphan")
        else:
            for path in passes[1].glob("work/part-*.json"):
                path.unlink()
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr(corpus_job, "run_steps", killed_in_the_second_pass)
        assert run(*arguments, "--output", out).code == 1
    orphan = out / "work" / "run-000000000000"
    for path in (tmp_path / "orphan").rglob("part-*"):
        name = orphan / path.relative_to(tmp_path / "orphan")
        name.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, name)
    assert list(orphan.glob("work/part-*.json"))
    run_whole(*arguments, "--output", out)
    assert tree(out) == tree(tmp_path / "alone")


def test_rejects_of_nobody_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A split was killed between its rejects and its receipt; then its file was mended."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\n\xff\n")
    arguments = ("count", "--input", path, *ANYTHING, "--output", tmp_path / "out")
    write_receipt = TaskFolder.write_receipt

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(TaskFolder, "write_receipt", killed)
    assert run(*arguments).code == 1
    assert list((tmp_path / "out").glob("work/run-*/__rejects/*"))
    monkeypatch.setattr(TaskFolder, "write_receipt", write_receipt)
    path.write_bytes(b"fine\nX\n")
    assert run_whole(*arguments).summary["rejects"] == 0
    assert not (tmp_path / "out" / "__rejects").exists()


def test_a_folder_is_not_mended_from_other_files(tmp_path: Path) -> None:
    """A shard is gone, and so is the corpus that it was of: all is made of what is there."""
    data = members(TEXTS, 500)
    path = tmp_path / "a.txt.gz"
    path.write_bytes(data)
    tokenizer = tmp_path / "tok"
    run_whole("train", "--input", path, "--vocab-size", "300", "--output", tokenizer)
    arguments = ("tokenize", "--input", path, *SMALL, "--tokenizer", tokenizer / "tokenizer.json")
    run_whole(*arguments, "--output", tmp_path / "out")
    shards = sorted((tmp_path / "out").glob("*.bin"))
    assert len(shards) > 5
    other = members(TEXTS[::-1], 500)[: len(data)]
    path.write_bytes(other + bytes(len(data) - len(other)))
    shards[2].unlink()
    arguments = (*arguments, "--max-rejects", "100%", "--max-lost", "100%")
    run_whole(*arguments, "--output", tmp_path / "out")
    run_whole(*arguments, "--output", tmp_path / "fresh")
    assert read_shards(tmp_path / "out") == read_shards(tmp_path / "fresh")


def test_rejects_of_a_wrong_guess_do_not_count(tmp_path: Path) -> None:
    """Lines within quotes look like records of their own where a slice begins among them."""
    quoted = "\n".join(f"{i},{text}" for i, text in enumerate(["a,b", "c", '""d""'] * 300))
    rows = [f'{i},"{text}"' for i, text in enumerate(["first", quoted, "last", quoted])]
    path = tmp_path / "a.csv"
    path.write_text("id,text\n" + "\n".join(rows) + "\n")
    made = {}
    for size in ("1MB", "700"):
        out = tmp_path / size
        ran = run_whole("count", "--input", path, "--range-bytes", size, "--output", out)
        assert (ran.summary["rejects"], ran.summary["documents"]) == (0, 4)
        assert not (out / "__rejects").exists()
        made[size] = parts(out)
    assert made["1MB"] == made["700"]


def test_training_says_of_its_inputs_what_counting_says(tmp_path: Path) -> None:
    write(tmp_path / "a.txt.gz", TEXTS)
    arguments = ("--input", tmp_path / "a.txt.gz", tmp_path / "a*", *SMALL, "--vocab-size", "300")
    summary = run_whole("train", *arguments, "--output", tmp_path / "out").summary
    assert summary["duplicate_inputs"] == summary["files_read_by_one_worker"] == ["a.txt.gz"]


def test_in_a_pipeline_of_ones_own(misleading: Path, tmp_path: Path) -> None:
    path = tmp_path / "fine.txt.gz"
    path.write_bytes(members(TEXTS, 900))

    def texts(**options: Any) -> list[str]:
        FOUND.clear()
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            (
                pipeline
                | ReadDocuments([options.pop("path", str(path))], range_bytes=700, **options)
                | beam.Map(keep)
            )
        return FOUND

    assert sorted(texts()) == sorted(TEXTS)
    assert sorted(texts(cut_compressed=False)) == sorted(TEXTS)
    wrong = {"path": str(misleading / "b.txt.gz"), "rejects": str(tmp_path / "__rejects")}
    with pytest.raises(Exception, match=r"b\.txt\.gz: cannot be read in slices"):
        texts(**wrong)
    assert sorted(texts(**wrong, cut_compressed=False)) == sorted(TEXTS)
    pipeline = beam.Pipeline(runner=FnApiRunner())
    pipeline | ReadDocuments([str(path)], range_bytes=700) | CountWords(with_places=True)
    with pytest.raises(Exception, match="set cut_compressed=False in ReadDocuments"):
        pipeline.run()
