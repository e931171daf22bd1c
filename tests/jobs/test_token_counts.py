"""`token_counts.parquet` beside the shards: the tokens of the shards, for any engine and resume."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import run_whole
from made_text import documents
from read_back import read_shards, tree

END = "<|endoftext|>"
FILE = "token_counts.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    rows = [
        {"text": text, "language": ("de", "en", "zh")[number % 3]}
        for number, text in enumerate(documents(60, seed=3))
    ]
    rows.append({"text": "", "language": "silent"})
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "c.jsonl").write_text("".join(lines))
    arguments = ("--input", folder / "c.jsonl", "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    return folder


def tokenize(made: Path, output: Path, *extra: object) -> Path:
    arguments = ("--input", made / "c.jsonl", "--tokenizer", made / "tok", "--output", output)
    run_whole("tokenize", *arguments, "--range-bytes", "2KB", *extra)
    return output


def counted(folder: Path) -> Counter[tuple[str | None, int]]:
    rows = pq.read_table(folder / FILE).to_pylist()
    return Counter({(row.get("source"), row["id"]): row["count"] for row in rows})


def test_the_counts_are_those_of_the_shards(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", "--append", END)
    vocab = json.loads((out / "tokenizer.json").read_bytes())["model"]["vocab"]
    ids = Counter(token for document in read_shards(out) for token in document)
    found = counted(out)
    assert +found == Counter({(None, token): count for token, count in ids.items()})
    assert {token for _, token in found} == {*vocab.values()}
    metadata = json.loads(pq.read_schema(out / FILE).metadata[b"bpe_beam"])
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert metadata == {"tokenizer": manifest["tokenizer"]["fingerprint"], "version": 1}


def test_nothing_depends_on_workers_splits_and_runner(made: Path, tmp_path: Path) -> None:
    by_source = ("--source-field", "language")
    out = tokenize(made, tmp_path / "out", *by_source)
    expected = (out / FILE).read_bytes()
    sums: Counter[str] = Counter()
    for (source, _), count in counted(out).items():
        sums[str(source)] += count
    sources = json.loads((out / "manifest.json").read_bytes())["shards"]
    tokens: Counter[str] = Counter()
    for shard in sources:
        for source, totals in shard["sources"].items():
            tokens[source] += totals["tokens"]
    assert +sums == +tokens
    assert sums["silent"] == 0
    for name, extra in {
        "threads": ("--workers", "2"),
        "one split": ("--range-bytes", "1MB"),
        "beam": ("--runner", "FnApiRunner"),
    }.items():
        assert (tokenize(made, tmp_path / name, *by_source, *extra) / FILE).read_bytes() == expected


@pytest.mark.parametrize("lost", [(), (FILE,)], ids=["counts kept", "counts lost"])
def test_a_folder_is_repaired_with_its_counts(
    made: Path, tmp_path: Path, lost: tuple[str, ...]
) -> None:
    out = tokenize(made, tmp_path / "out", "--source-field", "language")
    whole = tree(out)
    shard = sorted(out.glob("*.bin"))[1].name
    for name in (*lost, shard):
        (out / name).unlink()
    tokenize(made, out, "--source-field", "language")
    assert tree(out) == whole


def test_converted_shards_have_the_counts(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", "--source-field", "language")
    run_whole("convert", out, "--shards", "2", "--output", tmp_path / "two")
    total: Counter[tuple[str | None, int]] = Counter()
    for (_, token), count in counted(out).items():
        total[None, token] += count
    assert counted(tmp_path / "two") == total
