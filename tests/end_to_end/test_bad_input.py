"""Whatever is wrong is said once, with its place; and nothing is left that looks finished."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from command_line import Ran, run, run_process, run_whole
from made_text import documents, write
from read_back import read_shards, tree

from bpe_beam.jobs.corpus import job as corpus_job
from bpe_beam.workers import split_reader

END = "<|endoftext|>"
READERS = ("count", "train", "tokenize")

# Root without the capability to read and write what a file's mode forbids; others have none.
_DROP = """
import ctypes, os, sys
if os.getuid() == 0:
    prctl = ctypes.CDLL(None).prctl
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        # PR_CAPBSET_READ, PR_CAPBSET_DROP
        if prctl(23, capability, 0, 0, 0) == 1 and prctl(24, capability, 0, 0, 0) != 0:
            sys.exit("root that may read everything, and may not give that up")
os.execv(sys.executable, [sys.executable, "-m", "bpe_beam.cli.main", *sys.argv[1:]])
"""
UNPRIVILEGED = (sys.executable, "-c", _DROP)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """One for those jobs that want one."""
    folder = tmp_path_factory.mktemp("tokenizer")
    corpus = write(folder / "a.txt", texts)
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    return folder / "tok" / "tokenizer.json"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job_args(job: str, tokenizer: Path) -> tuple[str, ...]:
    """A job that writes to `out`, but for its input."""
    more = {"train": ("--vocab-size", "300"), "tokenize": ("--tokenizer", str(tokenizer))}
    return (job, *more.get(job, ()), "--output", "out")


def refuses(ran: Ran, job: str, code: int, *said: str) -> None:
    """A run ended with the code and one message for people that holds all of `said`."""
    assert ran.code == code, ran.err
    assert ran.message.startswith(f"bpe-beam {job}: ")
    for each in said:
        assert each in ran.message
    assert "Traceback" not in ran.err
    assert "unexpected" not in ran.err
    assert ran.out == b""


def nothing_finished(out: Path) -> None:
    """Nothing in the folder looks like a finished artifact, or like half of a file."""
    for path in out.rglob("*"):
        assert path.name not in ("__manifest", "summary.json", "vocab.json", "merges.txt")
        assert ".attempt-" not in path.name
        # A tokens folder has the tokenizer from the start; it is not what the job makes.
        assert path.name != "tokenizer.json" or (out / "__rejects").exists()


# ---- inputs that are not there ----


@pytest.mark.parametrize("job", READERS)
@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (["missing.txt"], "'missing.txt': no file matches"),
        (["fine.txt", "missing.txt"], "'missing.txt': no file matches"),
        (["*.jsonl"], "'*.jsonl': no file matches"),
        (["folder"], "'folder' is a folder without files to read"),
        (["folder/**/*.txt"], "no file matches"),
        (["@list"], "there is no list of inputs at 'list'"),
        (["@empty.txt"], "there are no input files"),
        (["fine.txt", "a.zip"], "is a ZIP archive, which is not read"),
        (["no-such-protocol://a"], "the protocol 'no-such-protocol' is unknown"),
    ],
)
def test_inputs_that_cannot_be(
    job: str, inputs: list[str], said: str, place: Path, tokenizer: Path
) -> None:
    (place / "folder").mkdir()
    (place / "empty.txt").write_text("\n\n")
    write(place / "fine.txt", ["a text"])
    (place / "a.zip").write_bytes(b"PK\x03\x04 and more")
    ran = run(*job_args(job, tokenizer), "--input", *inputs)
    refuses(ran, job, 2, said)
    assert ran.err.count("\n") == 1
    assert not (place / "out").exists()


@pytest.mark.parametrize("job", READERS)
def test_an_unreadable_file(job: str, place: Path, tokenizer: Path) -> None:
    write(place / "fine.txt", ["a text"])
    write(place / "secret.txt", ["a text"]).chmod(0)
    args = (*job_args(job, tokenizer), "--input", "fine.txt", "secret.txt")
    ran = run_process(*args, command=UNPRIVILEGED)
    refuses(ran, job, 1, "secret.txt", "Permission denied")
    nothing_finished(place / "out")


@pytest.mark.parametrize("job", READERS)
def test_an_output_that_cannot_be_written(job: str, place: Path, tokenizer: Path) -> None:
    write(place / "fine.txt", ["a text"])
    closed = place / "closed"
    closed.mkdir(mode=0o500)
    args = (*job_args(job, tokenizer)[:-1], "closed/out", "--input", "fine.txt")
    ran = run_process(*args, command=UNPRIVILEGED)
    refuses(ran, job, 1, "closed/out", "Permission denied")
    assert list(closed.iterdir()) == []


# ---- a corpus of nothing ----


def _only_empty(place: Path) -> list[str]:
    (place / "a.txt").write_bytes(b"")
    (place / "b.jsonl").write_bytes(b"\n \n\n")
    (place / "c.txt.gz").write_bytes(gzip.compress(b""))
    return ["a.txt", "b.jsonl", "c.txt.gz"]


def _only_rejects(place: Path) -> list[str]:
    (place / "a.txt").write_bytes(b"\xff\n" * 5)
    return ["a.txt"]


@pytest.mark.parametrize("job", READERS)
@pytest.mark.parametrize("make", [_only_empty, _only_rejects])
def test_an_empty_corpus(
    job: str, make: Callable[[Path], list[str]], place: Path, tokenizer: Path
) -> None:
    inputs = make(place)
    ran = run(
        *job_args(job, tokenizer), "--input", *inputs, "--max-rejects", "100%", "--max-lost", "100%"
    )
    why = "the corpus is empty: no document in"
    if make is _only_rejects:
        why = "none of the 5 records is usable. a.txt: 5 records, first at"
    refuses(ran, job, 1, why, inputs[0])
    nothing_finished(place / "out")


# ---- records that cannot be used ----

GOOD = [f"good text number {i}" for i in range(20)]
_LINES = [json.dumps({"text": text}).encode() + b"\n" for text in GOOD]


def _text(bad: bytes) -> tuple[str, bytes, int]:
    before = "".join(f"{text}\n" for text in GOOD[:10]).encode()
    after = "".join(f"{text}\n" for text in GOOD[10:]).encode()
    return "a.txt", before + bad + b"\n" + after, len(before)


def _jsonl(bad: bytes) -> tuple[str, bytes, int]:
    before = b"".join(_LINES[:10])
    return "a.jsonl", before + bad + b"\n" + b"".join(_LINES[10:]), len(before)


BAD_RECORDS: dict[str, tuple[tuple[str, bytes, int], str, bytes]] = {
    "text that is not UTF-8": (_text(b"caf\xe9"), "invalid UTF-8", b"caf\xe9"),
    "half a surrogate in UTF-8": (_text(b"\xed\xa0\x80"), "invalid UTF-8", b"\xed\xa0\x80"),
    "JSON that is not UTF-8": (_jsonl(b'{"text": "\xff"}'), "invalid UTF-8", b'{"text": "\xff"}'),
    "JSON that ends too soon": (_jsonl(b'{"text": "a'), "broken JSON", b'{"text": "a'),
    "no JSON at all": (_jsonl(b"plain"), "broken JSON", b"plain"),
    "no object": (_jsonl(b'["text"]'), "not a JSON object", b'["text"]'),
    "no such field": (_jsonl(b'{"body": "a"}'), "field missing", b'{"body": "a"}'),
    "a field of a number": (_jsonl(b'{"text": 3}'), "not a string", b'{"text": 3}'),
    "a field of nothing": (_jsonl(b'{"text": null}'), "not a string", b'{"text": null}'),
    "half a surrogate pair": (_jsonl(b'{"text": "\\ud800"}'), "surrogate", b'{"text": "\\ud800"}'),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_bad_record_fails_the_job_with_its_place(name: str, place: Path, tokenizer: Path) -> None:
    (file, data, offset), reason, bad = BAD_RECORDS[name]
    (place / file).write_bytes(data)
    arguments = ("--input", file, "--range-bytes", "100")
    job = READERS[len(name) % 3]
    ran = run(*job_args(job, tokenizer), *arguments)
    refuses(ran, job, 1, "1 of 21 records", f"{file}: 1 record, first at byte {offset}: ", reason)
    nothing_finished(place / "out")
    # Told that one may be lost, the same job goes on from there, and keeps the record.
    run_whole(*job_args(job, tokenizer), *arguments, "--max-rejects", "1")
    rejects = [
        json.loads(line)
        for path in (place / "out").rglob("rejects-*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    assert [(row["file"], row["offset"], base64.b64decode(row["bytes"])) for row in rejects] == [
        (file, offset, bad)
    ]
    assert reason in rejects[0]["reason"]
    if job == "tokenize":
        assert len(read_shards(place / "out")) == 20
        assert run_whole("verify", "out").summary["whole"] is True


def _other_checksum(packed: bytes) -> bytes:
    return packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]


_PLAIN = "".join(f"{text}\n" for text in documents(300, seed=8)).encode()
BROKEN_STREAMS = {
    "gzip that ends too soon": ("a.txt.gz", gzip.compress(_PLAIN)[:-2000], "ends too soon"),
    "gzip without its end": ("a.txt.gz", gzip.compress(_PLAIN)[:-1], "ends too soon"),
    "gzip of other bytes": ("a.txt.gz", _other_checksum(gzip.compress(_PLAIN)), "corrupt"),
    "zstd that ends too soon": ("a.txt.zst", zstandard.compress(_PLAIN)[:-700], "ends too soon"),
    "zstd of a few bytes": ("a.txt.zst", zstandard.compress(_PLAIN)[:6], ""),
}


@pytest.mark.parametrize("job", READERS)
@pytest.mark.parametrize("name", BROKEN_STREAMS)
def test_a_broken_stream_fails_the_job_with_its_place(
    name: str, job: str, place: Path, tokenizer: Path
) -> None:
    file, data, why = BROKEN_STREAMS[name]
    (place / file).write_bytes(data)
    ran = run(*job_args(job, tokenizer), "--input", file)
    said = (f"{file} (", " at byte ", "broken compressed stream", "--max-lost 0 is exceeded")
    refuses(ran, job, 1, *said)
    nothing_finished(place / "out")
    reject = next((place / "out").rglob("rejects-*.jsonl")).read_bytes()
    assert why in json.loads(reject)["detail"]


def test_the_limit_of_rejects_is_exact(place: Path, tokenizer: Path) -> None:
    """2 of 1,000: 0.2 % is enough, 0.19 % is not, and the number 2 is, and 1 is not."""
    lines = [b"good\n"] * 998 + [b"\xff\n"] * 2
    (place / "a.txt").write_bytes(b"".join(lines))
    arguments = (*job_args("tokenize", tokenizer), "--input", "a.txt", "--range-bytes", "1KB")
    for limit in ("0.19%", "1", "0", "0.1%"):
        refuses(run(*arguments, "--max-rejects", limit), "tokenize", 1, "2 of 1,000", limit)
        nothing_finished(place / "out")
    before = {path.name: path.stat().st_ino for path in (place / "out").rglob("shard-*.???")}
    assert len(before) == 10
    ran = run_whole(*arguments, "--max-rejects", "0.2%")
    assert ran.summary["shards_kept_from_before"] == 5
    assert {path.name: path.stat().st_ino for path in (place / "out").glob("shard-*")} == before
    assert ran.summary["rejects"] == 2
    run_whole(*arguments[:-6], "--output", "number", *arguments[-4:], "--max-rejects", "2")
    assert tree(place / "number") == tree(place / "out")


@pytest.mark.parametrize("job", READERS)
def test_a_finished_folder_meets_a_stricter_limit_of_rejects_too(
    job: str, place: Path, tokenizer: Path
) -> None:
    (place / "a.txt").write_bytes(b"good\n" * 8 + b"\xff\n" * 2)
    arguments = (*job_args(job, tokenizer), "--input", "a.txt")
    run_whole(*arguments, "--max-rejects", "20%")
    before = tree(place / "out")
    refuses(
        run(*arguments, "--max-rejects", "1"),
        job,
        1,
        "2 of 10",
        "a.txt: 2 records, first at byte 40",
    )
    assert tree(place / "out") == before
    assert run_whole(*arguments, "--max-rejects", "2").summary["was_finished_before"]


# ---- output folders ----


@pytest.mark.parametrize("job", READERS)
def test_a_folder_that_holds_something_foreign(job: str, place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    foreign = {"notes.txt": b"mine", "sub/deep/data.bin": bytes(range(256)), "shard-x.bin": b"x"}
    for name, data in foreign.items():
        (place / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (place / "out" / name).write_bytes(data)
    (place / "out" / "link").symlink_to(place / "a.txt")
    arguments = (*job_args(job, tokenizer), "--input", "a.txt")
    refuses(run(*arguments), job, 2, "output out holds files", "notes.txt", "--overwrite")
    assert {path.name for path in (place / "out").iterdir()} == {
        *("notes.txt", "sub", "shard-x.bin", "link")
    }
    for _ in range(2):
        run_whole(*arguments, "--overwrite")
        for name, data in foreign.items():
            assert (place / "out" / name).read_bytes() == data
        assert (place / "out" / "link").is_symlink()
    assert (place / "a.txt").read_text().split("\n")[:-1] == GOOD


@pytest.mark.parametrize("job", READERS)
def test_a_file_that_the_job_would_replace_is_refused_even_then(
    job: str, place: Path, tokenizer: Path
) -> None:
    write(place / "a.txt", GOOD)
    name = {"count": "__manifest", "train": "vocab.json", "tokenize": "__tokenizer"}[job]
    (place / "out").mkdir()
    (place / "out" / name).write_text("mine")
    arguments = (*job_args(job, tokenizer), "--input", "a.txt")
    refuses(run(*arguments), job, 2, name)
    refuses(run(*arguments, "--overwrite"), job, 2, name, "move them away")
    assert tree(place / "out") == {name: b"mine"}


@pytest.mark.parametrize("job", READERS)
def test_the_output_of_another_job_names_what_differs(
    job: str, place: Path, tokenizer: Path
) -> None:
    write(place / "a.txt", GOOD)
    write(place / "b.txt", GOOD[1:])
    arguments = (*job_args(job, tokenizer), "--input")
    run_whole(*arguments, "a.txt")
    before = tree(place / "out")
    refuses(run(*arguments, "b.txt"), job, 2, "holds the work of another job", "--input: 1 file of")
    other, key = {
        "count": (("--special-token", END), f'--special-token: none there, "{END}" now'),
        "train": (("--alphabet", "seen"), '--alphabet: "bytes" there, "seen" now'),
        "tokenize": (("--append", END), f'--append: none there, "{END}" now'),
    }[job]
    refuses(run(*arguments, "a.txt", *other), job, 2, key)
    another = {"count": "train", "train": "tokenize", "tokenize": "count"}[job]
    changed = run(*job_args(another, tokenizer), "--input", "a.txt")
    refuses(changed, another, 2, f"job: {job} there, {another} now")
    assert tree(place / "out") == before
    run_whole(*arguments, "a.txt")
    assert tree(place / "out") == before


def test_counts_are_not_overwritten_by_what_is_learned_from_them(place: Path) -> None:
    write(place / "a.txt", GOOD)
    run_whole("count", "--input", "a.txt", "--output", "counts")
    before = tree(place / "counts")
    for name in ("counts", "./counts/", str(place / "counts")):
        arguments = ("--counts", "counts", "--output", name, "--vocab-size", "300")
        refuses(
            run("train", *arguments, "--overwrite"),
            "train",
            2,
            "must be a folder other than those that are read",
        )
    assert tree(place / "counts") == before


def test_overwriting_what_was_trained_on_a_corpus_takes_its_counts(
    place: Path, tokenizer: Path
) -> None:
    write(place / "a.txt", GOOD)
    write(place / "b.txt", GOOD[1:])
    small = ("--vocab-size", "300", "--output", "out", "--overwrite")
    run_whole("count", "--input", "b.txt", "--output", "others")
    for again in (
        ("train", "--counts", "others", *small),
        (*job_args("tokenize", tokenizer), "--input", "a.txt", "--overwrite"),
    ):
        run_whole("train", "--input", "a.txt", *small)
        counts = tree(place / "out" / "counts")
        (place / "out" / "mine").write_text("mine")
        run_whole(*again)
        assert not (place / "out" / "counts").exists()
        assert (place / "out" / "mine").read_text() == "mine"
    # What is read stays, and so do counts that no training made.
    (place / "out" / "mine").unlink()
    run_whole("train", "--input", "a.txt", *small)
    run_whole("train", "--counts", "out/counts", *small)
    run_whole("train", "--counts", "others", *small)
    assert tree(place / "out" / "counts") == counts


def test_an_output_that_is_a_file(place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    (place / "out").write_text("mine")
    for job in READERS:
        ran = run(*job_args(job, tokenizer), "--input", "a.txt", "--overwrite")
        refuses(ran, job, 2, "--output must be a folder, got the file out")
    assert (place / "out").read_text() == "mine"


# ---- settings that only the data refute ----


def test_a_vocabulary_below_the_alphabet(place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    source = ("--input", "a.txt", "--output", "out")
    refuses(run("train", *source, "--vocab-size", "255"), "train", 2, "--vocab-size", "256")
    with_special = ("--vocab-size", "256", "--special-token", END)
    refuses(run("train", *source, *with_special), "train", 2, "--vocab-size", "257")
    assert not (place / "out").exists()
    seen = len(set("".join(GOOD)))
    few = ("--alphabet", "seen", "--vocab-size")
    refuses(run("train", *source, *few, str(seen - 1)), "train", 2, "--vocab-size", f"least {seen}")
    assert not (place / "out" / "tokenizer.json").exists()
    # The counts are there to be used.
    counts = ("train", "--counts", "out/counts", *few)
    refuses(run(*counts, str(seen - 1), "--output", "low"), "train", 2, "--vocab-size")
    nothing_finished(place / "low")
    assert run_whole(*counts, str(seen), "--output", "tok").summary["merges"] == 0


def test_special_tokens_that_the_tokenizer_has_not(place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    arguments = (*job_args("tokenize", tokenizer), "--input", "a.txt")
    for option in ("--append", "--prepend", "--allowed-special"):
        ran = run(*arguments, option, "<|nope|>")
        refuses(ran, "tokenize", 2, option, "<|nope|>")
        assert not (place / "out").exists()


BROKEN_TOKENIZERS = {
    "empty": (b"", "the file is empty"),
    "cut off": (None, "not JSON"),
    "no object": (b"[]", "not an object"),
    "not UTF-8": (b'{"model": "\xff"}', "UTF-8"),
    "another model": (b'{"version": "1.0", "model": {"type": "Bigram", "vocab": []}}', "Bigram"),
    "no pieces": (b'{"version": "1.0", "model": {"type": "Unigram", "vocab": []}}', "model.vocab"),
    "no model": (b'{"version": "1.0"}', "model"),
}


@pytest.mark.parametrize("name", BROKEN_TOKENIZERS)
def test_a_broken_tokenizer(name: str, place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    data, said = BROKEN_TOKENIZERS[name]
    broken = place / "broken.json"
    broken.write_bytes(tokenizer.read_bytes()[:-100] if data is None else data)
    use = ("--tokenizer", "broken.json")
    ran = run("tokenize", *use, "--input", "a.txt", "--output", "out")
    refuses(ran, "tokenize", 2, "broken.json", said)
    assert not (place / "out").exists()
    refuses(run("encode", *use, "text"), "encode", 2, "broken.json", said)
    refuses(run("decode", *use, "1"), "decode", 2, "broken.json", said)
    refuses(run("inspect", "broken.json"), "inspect", 2, "broken.json", said)


def test_a_text_that_the_alphabet_does_not_hold(place: Path) -> None:
    write(place / "a.txt", GOOD)
    seen = ("--alphabet", "seen", "--vocab-size", "60")
    run_whole("train", "--input", "a.txt", *seen, "--output", "tok")
    write(place / "b.txt", [*GOOD, "good text numbeR"])
    use = ("--tokenizer", "tok/tokenizer.json")
    ran = run("tokenize", *use, "--input", "b.txt", "--output", "out")
    refuses(ran, "tokenize", 1, "'R'")
    nothing_finished(place / "out")
    refuses(run("encode", *use, "numbeR"), "encode", 1, "'R'")


def test_counts_that_are_not_whole(place: Path, tokenizer: Path) -> None:
    write(place / "a.txt", GOOD)
    run_whole("count", "--input", "a.txt", "--output", "counts")
    part = max((place / "counts").glob("part-*"), key=lambda path: path.stat().st_size)
    data = part.read_bytes()
    arguments = ("train", "--counts", "counts", "--vocab-size", "300", "--output", "out")
    for damaged in (data[:-1], bytes([*data[:60], data[60] ^ 1, *data[61:]]), None):
        if damaged is None:
            part.unlink()
        else:
            part.write_bytes(damaged)
        refuses(run(*arguments), "train", 1, part.name)
        nothing_finished(place / "out")
    # Counting again mends what is missing.
    run_whole("count", "--input", "a.txt", "--output", "counts")
    assert part.read_bytes() == data
    (place / "counts" / "__manifest").unlink()
    refuses(run(*arguments), "train", 2, "counts", "not finished")
    refuses(run(*arguments[:2], "nowhere", *arguments[3:]), "train", 2, "nowhere")


@pytest.mark.parametrize(
    ("job", "args"),
    [
        ("verify", ("nowhere",)),
        ("verify", ("empty",)),
        ("inspect", ("nowhere",)),
        ("inspect", ("empty",)),
        ("encode", ("--tokenizer", "nowhere", "text")),
        ("decode", ("--tokenizer", "nowhere", "1")),
    ],
)
def test_nothing_to_look_at(job: str, args: tuple[str, ...], place: Path) -> None:
    (place / "empty").mkdir()
    name = "empty" if "empty" in args else "nowhere"
    refuses(run(job, *args), job, 2, name)


def test_the_folder_of_another_job(place: Path) -> None:
    """It is said what it holds, and what to give; not what it lacks."""
    write(place / "a.txt", GOOD)
    run_whole("train", "--input", "a.txt", "--vocab-size", "300", "--output", "kt")
    shards = ("--tokenizer", "kt/tokenizer.json", "--input", "a.txt", "--output", "m1")
    run_whole("tokenize", *shards)
    shutil.copytree("m1", "m2")
    (place / "m2" / "__job").unlink()  # as WriteTokens leaves it
    run_whole("train", "--counts", "kt/counts", "--vocab-size", "300", "--output", "tok")
    train = ("--vocab-size", "300", "--output", "out")
    kt = "kt holds a tokenizer, not word counts: give kt/counts"
    for job, args, said in (
        ("evaluate", ("--tokens", "tok"), "tok holds a tokenizer, not shards"),
        ("blend", ("kt/counts",), "kt/counts holds word counts, not shards"),
        ("train", ("--counts", "kt", *train), kt),
        ("train", ("--counts", "tok", *train), "tok holds a tokenizer, not word counts"),
        ("train", ("--counts", "m1", *train), "m1 holds shards, not word counts"),
        ("counts show", ("m2",), "m2 holds shards, not word counts"),
        ("counts filter", ("kt", "--min-count", "2", "--output", "out"), kt),
        ("counts merge", ("kt/counts", "kt", "--output", "out"), kt),
        ("encode", ("--tokenizer", "kt/counts", "x"), "is a folder without a tokenizer.json"),
    ):
        ran = run(*job.split(), *args)
        refuses(ran, job, 2, said)
        assert ran.message.endswith(said)
    # A tokenizer's folder serves as well as its file; a corpus is none of them.
    assert (
        run("encode", "--tokenizer", "tok", "x").out == run("encode", "--tokenizer", "kt", "x").out
    )
    refuses(run("count", "--input", "m1", "--output", "out"), "count", 2, "m1 holds shards")
    below = run("count", "--input", ".", "--output", "out")
    assert (below.code, below.err.count("/kt/\n"), "documents              20" in below.err) == (
        0,
        1,
        True,
    )
    # A killed folder is recognised by its job; a broken one is not taken for another kind.
    (place / "kt" / "tokenizer.json").unlink()
    refuses(run("verify", "kt"), "verify", 1, "tokenizer.json: is missing")
    (place / "m2" / "__manifest").write_text('{"shards": []}')
    refuses(run("verify", "m2"), "verify", 1, "the key 'sha256' is missing")


def test_text_and_ids_that_cannot_be(place: Path, tokenizer: Path) -> None:
    use = ("--tokenizer", tokenizer)
    refuses(run("encode", *use, stdin=b"ab\xff"), "encode", 1, "not UTF-8", "offset 2")
    refuses(run("decode", *use, "1", "x"), "decode", 2, "'x'")
    refuses(run("decode", *use, stdin=b"1 x"), "decode", 1, "standard input", "'x'")
    refuses(run("decode", *use, "1", "400"), "decode", 1, "400", "399")


# ---- a full disk ----


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small file system; called again, gives it another size."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    mounted = False

    def resize(size: str) -> Path:
        nonlocal mounted
        if mount is None or os.getuid() != 0:
            pytest.skip("only root can mount a small file system")
        options = f"remount,size={size}" if mounted else f"size={size}"
        command = [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
        mounted = True
        return folder

    yield resize
    if mounted:
        subprocess.run(["umount", str(folder)], check=True, timeout=600)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A megabyte of words that occur once."""
    made = random.Random(4)
    lines = ["".join(made.choices("abcdefghij  ", k=99)) for _ in range(10_000)]
    return write(tmp_path_factory.mktemp("large") / "large.txt", lines)


@pytest.mark.parametrize("job", READERS)
def test_a_full_disk(
    job: str, small_disk: Callable[[str], Path], large: Path, tokenizer: Path, tmp_path: Path
) -> None:
    disk = small_disk("1m")
    arguments = job_args(job, tokenizer)[:-2]
    reading = ("--input", large, "--range-bytes", "100KB")
    ran = run(*arguments, *reading, "--output", disk / "out")
    refuses(ran, job, 1, str(disk / "out"), "No space left on device")
    nothing_finished(disk / "out")
    # With room enough it goes on, and ends as if nothing had been.
    small_disk("30m")
    ran = run_whole(*arguments, *reading, "--output", disk / "out")
    if job == "tokenize":
        assert ran.summary["shards_kept_from_before"] > 0
    run_whole(*arguments, *reading, "--output", tmp_path / "plain")
    assert tree(disk / "out") == tree(tmp_path / "plain")


def test_a_disk_that_is_full_at_the_very_end(
    small_disk: Callable[[str], Path], large: Path, tmp_path: Path
) -> None:
    """The words fit, the tokenizer does not."""
    run_whole("count", "--input", large, "--output", tmp_path / "counts")
    arguments = ("train", "--counts", tmp_path / "counts", "--vocab-size", "5000", "--output")
    disk = small_disk("100k")
    ran = run(*arguments, disk / "out")
    refuses(ran, "train", 1, str(disk / "out"), "No space left on device")
    assert not (disk / "out" / "tokenizer.json").exists()
    assert not (disk / "out" / "summary.json").exists()
    assert not list((disk / "out").rglob("*.attempt-*"))
    small_disk("4m")
    run_whole(*arguments, disk / "out")
    run_whole(*arguments, tmp_path / "plain")
    assert tree(disk / "out") == tree(tmp_path / "plain")


# ---- workers that fail ----


def failing(error: BaseException) -> Callable[..., Iterator[Any]]:
    """Return a `read_split` that fails after the first batch of each split but three."""
    read = split_reader.read_split  # type: ignore[attr-defined]
    calls, lock = list[int](), threading.Lock()

    def failing(*args: Any, **more: Any) -> Iterator[Any]:
        with lock:
            calls.append(1)
            late = len(calls) > 3
        for batch in read(*args, **more):
            yield batch
            if late:
                raise error

    return failing


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("job", "error", "how"),
    [
        ("count", RuntimeError("no such luck"), ("--workers", "2")),
        ("count", SystemExit(0), ("--runner", "FnApiRunner", "--workers", "2")),
        ("tokenize", MemoryError(), ("--workers", "1")),
        ("tokenize", MemoryError(), ("--runner", "FnApiRunner", "--workers", "1")),
        ("train", SystemExit(0), ("--workers", "2")),
    ],
)
def test_a_worker_that_fails_ends_the_job(
    job: str,
    error: BaseException,
    how: tuple[str, ...],
    place: Path,
    tokenizer: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(place / "a.txt", documents(300))
    arguments = (*job_args(job, tokenizer), "--input", "a.txt", "--range-bytes", "3KB")
    with monkeypatch.context() as patch:
        patch.setattr(split_reader, "read_split", failing(error))
        ran = run(*arguments, *how)
    assert (ran.code, ran.out) == (1, b"")
    no_memory = isinstance(error, MemoryError)
    reason = "not enough memory (" if no_memory else "failed unexpectedly: "
    assert ran.message.startswith(f"bpe-beam {job}: {reason}")
    assert type(error).__name__ in ran.message
    assert ("fewer workers" if no_memory else "--debug") in ran.message
    assert "Traceback" not in ran.err
    nothing_finished(place / "out")
    run_whole(*arguments)
    run_whole(
        *arguments[: arguments.index("out")], "fresh", *arguments[arguments.index("out") + 1 :]
    )
    assert tree(place / "out") == tree(place / "fresh")


@pytest.mark.parametrize("job", READERS)
def test_a_run_beside_this_one_is_named(
    job: str, place: Path, tokenizer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one sees whose pieces another run took for left over, or had no more use for."""
    write(place / "a.txt", GOOD)
    arguments = (*job_args(job, tokenizer), "--input", "a.txt")
    real = corpus_job.run_steps  # type: ignore[attr-defined]

    def disturbed(*args: object, **more: Any) -> object:
        done = real(*args, **more)
        max((place / "out").rglob("work/*.json")).unlink()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(corpus_job, "run_steps", disturbed)
        refuses(run(*arguments), job, 1, "out", "another run of this job")
    nothing_finished(place / "out")
    run_whole(*arguments)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("job", "how"),
    [
        pytest.param("tokenize", ("--workers", "1"), marks=pytest.mark.slow),
        ("tokenize", ("--workers", "2")),
        ("count", ("--workers", "2")),  # in processes
        pytest.param(
            *("tokenize", ("--workers", "1", "--runner", "FnApiRunner")), marks=pytest.mark.slow
        ),
        ("tokenize", ("--workers", "2", "--runner", "FnApiRunner")),
    ],
)
def test_an_interrupted_job_says_how_it_goes_on(
    job: str, how: tuple[str, ...], place: Path, tokenizer: Path
) -> None:
    write(place / "a.txt", documents(600))
    own = ("--pretokenizer", r"regex:\w+|\W+") if job == "count" else ()
    arguments = (*job_args(job, tokenizer), "--input", "a.txt", "--range-bytes", "500", *own)
    script = """
import glob, os, signal, sys, threading, time
from bpe_beam.cli import main as cli
def interrupt():
    while len(glob.glob("out/work/run-*/work/*.json")) < 20:
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGINT)
# A shell's background job has the signal ignored, and its children too.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt, daemon=True).start()
sys.argv[0] = "bpe-beam"
cli.run()
"""
    ran = run_process(*arguments, *how, command=(sys.executable, "-c", script))
    refuses(ran, job, 130, "interrupted", "the same command resumes")
    assert not (place / "out" / "__manifest").exists()
    arguments = (*arguments, "--workers", "1")
    ran = run_whole(*arguments)
    kept = "shards_kept_from_before" if job == "tokenize" else "splits_kept_from_before"
    assert ran.summary[kept] >= 20
    run_whole(*(each if each != "out" else "fresh" for each in arguments))
    assert tree(place / "out") == tree(place / "fresh")
