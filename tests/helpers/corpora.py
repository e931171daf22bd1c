"""The corpora that runners are tested on, and the results of jobs in process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_line import run_whole
from made_text import documents, write
from read_back import tree

END = "<|endoftext|>"
JOBS = ("count", "train", "tokenize")


@dataclass(frozen=True)
class Made:
    """A corpus of some kinds of file, and the results of a run in process.

    Attributes:
        folder: The folder of the corpus and of the results.
        results: The files of each job's folder, by the job.
        measured: The counters and distributions of each job's summary, but for times.
    """

    folder: Path
    results: dict[str, dict[str, bytes]]
    measured: dict[str, dict[str, Any]]

    def command(self, job: str) -> tuple[str, ...]:
        """Return a job without its output and its runner."""
        return _command(self.folder, job)


def _command(folder: Path, job: str) -> tuple[str, ...]:
    # Some records of one file are broken, which is allowed here.
    inputs = ("--input", str(folder / "data" / "*"), "--range-bytes", "4KB")
    reading = (*inputs, "--max-rejects", "5%")
    more = {
        "count": ("--source", "packed=*.gz", "--source", "plain=*", "--tie-break", "first_seen"),
        "train": ("--vocab-size", "600"),
        "tokenize": ("--tokenizer", str(folder / "train" / "tokenizer.json"), "--append", END),
    }
    special = () if job == "tokenize" else ("--special-token", END)
    return (job, *reading, *special, *more[job])


def make(folder: Path) -> Made:
    """Write the corpus, and run the jobs in process."""
    broken = write(folder / "data" / "a.jsonl", documents(150, seed=1))
    with broken.open("ab") as out:
        out.write(b'{"text": 1}\nno JSON\n{"text": "\xff"}\n')
    write(folder / "data" / "members.jsonl.gz", documents(150, seed=2))
    write(folder / "data" / "c.txt.zst", documents(60, seed=3))
    write(folder / "data" / "d.parquet", documents(80, seed=4))
    results, measured = {}, {}
    for job in JOBS:
        summary = run_whole(*_command(folder, job), "--output", folder / job).summary
        results[job] = tree(folder / job)
        measured[job] = measured_of(summary)
        _check_against_manifest(job, folder / job, measured[job])
    assert [name for name in results["count"] if name.startswith("__rejects/")]
    return Made(folder, results, measured)


def measured_of(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what a pipeline measured, without times."""
    shown = {**summary["counters"], **summary["distributions"]}
    assert shown.pop("split_milliseconds")["count"] > 0
    return {name: row for name, row in shown.items() if not name.endswith("_microseconds")}


def _check_against_manifest(job: str, folder: Path, measured: dict[str, Any]) -> None:
    """Compare counters with the manifest, whose sums are computed in another way."""
    counts = folder / "counts" if job == "train" else folder
    manifest = json.loads((counts / "__manifest").read_text())
    if job == "tokenize":
        totals = manifest["totals"]
        pairs = [("documents_tokenized", "documents"), ("text_bytes_tokenized", "text_bytes")]
        pairs += [("tokens_made", "tokens"), ("records_rejected", "rejects")]
    else:
        totals = {**manifest, "rejects": sum(manifest["rejects"].values())}
        pairs = [("documents_read", "documents"), ("text_bytes_read", "text_bytes")]
        pairs += [("words_counted", "words"), ("unique_words", "unique_words")]
        pairs += [("records_rejected", "rejects")]
    for counter, total in pairs:
        assert measured[counter] == totals[total], counter
    assert measured["split_documents"]["sum"] == totals["documents"]
    assert measured["split_text_bytes"]["sum"] == totals["text_bytes"]


@dataclass(frozen=True)
class Long:
    """A corpus of hundreds of small splits, so that a job has a middle.

    Attributes:
        folder: The folder of the corpus and the tokenizers.
        splits: The approximate number of splits.
    """

    folder: Path
    splits: int

    def command(self, job: str, tokenizer: str = "one") -> tuple[str, ...]:
        """Return a job without its output and its runner."""
        data = self.folder / "data.jsonl"
        size = -(-data.stat().st_size // self.splits)
        arguments = (job, "--input", str(data), "--range-bytes", str(size))
        if job == "count":
            return (*arguments, "--tie-break", "first_seen")
        return (*arguments, "--tokenizer", str(self.folder / tokenizer / "tokenizer.json"))

    def undisturbed(self, job: str, tokenizer: str = "one") -> dict[str, bytes]:
        """Return the files that the job writes in process."""
        out = self.folder / f"{job}-{tokenizer}"
        if not out.exists():
            run_whole(*self.command(job, tokenizer), "--output", out)
        return tree(out)


def make_long(folder: Path, splits: int) -> Long:
    """Write the corpus, and train two tokenizers."""
    data = write(folder / "data.jsonl", documents(splits * 8, seed=5))
    for name, size in (("one", "400"), ("other", "300")):
        arguments = ("--input", data, "--vocab-size", size, "--alphabet", "bytes")
        run_whole("train", *arguments, "--output", folder / name)
    return Long(folder, splits)
