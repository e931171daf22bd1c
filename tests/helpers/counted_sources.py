"""Corpora of some sources, counted by the job; what their folders and reports contain."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from command_line import run, run_whole
from made_text import documents, write

SOURCES = ("--source=en=en*", "--source=zh=zh*")


KINDS = {
    "plain": (),
    "sources": SOURCES,
    "places": ("--tie-break", "first_seen"),
    "both": (*SOURCES, "--tie-break", "first_seen"),
}


TEXTS = {"en-1": 1, "en-2": 2, "other": 3, "zh-1": 4, "zh-2": 5}


def write_corpus(root: Path) -> Path:
    """Write five files, by name in the order of TEXTS; return their folder."""
    for name, seed in TEXTS.items():
        write(root / f"{name}.txt", documents(40, seed=seed))
    return root


def count(corpus: Path, output: Path, names: tuple[str, ...], *extra: str) -> Path:
    files = [corpus / f"{name}.txt" for name in names]
    run_whole("count", "--input", *files, "--output", output, *extra)
    return output


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def manifest(folder: Path) -> Any:
    """Return the manifest without what it says of the job and its own files."""
    found = json.loads((folder / "__manifest").read_bytes())
    return {name: found[name] for name in found.keys() - {"files", "job_fingerprint", "sha256"}}


def rows(folder: Path) -> list[dict[str, Any]]:
    return [
        row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()
    ]


def words(folder: Path) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows(folder):
        total[row["word"]] += row["count"]
    return total


def evaluated(*arguments: object) -> Any:
    """Run `evaluate`, and return the report that it prints as JSON."""
    ran = run("evaluate", *arguments)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)
