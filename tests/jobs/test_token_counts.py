"""`__token_counts` beside the shards: the tokens of the shards, for any engine and resume."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole, with_options
from made_text import documents
from read_back import read_shards, tree

END = "<|endoftext|>"
FILE = "__token_counts"


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
    run_whole("tokenize", *with_options((*arguments, "--range-bytes", "2KB"), *extra))
    return output


def counted(folder: Path) -> Counter[tuple[str | None, int]]:
    rows = pq.read_table(folder / FILE).to_pylist()
    return Counter({(row.get("source"), row["id"]): row["count"] for row in rows})


def test_the_counts_are_those_of_the_shards(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", "--append", END)
    vocab = json.loads((out / "__tokenizer").read_bytes())["model"]["vocab"]
    ids = Counter(token for document in read_shards(out) for token in document)
    found = counted(out)
    assert +found == Counter({(None, token): count for token, count in ids.items()})
    assert {token for _, token in found} == {*vocab.values()}
    metadata = json.loads(pq.read_schema(out / FILE).metadata[b"bpe_beam"])
    manifest = json.loads((out / "__manifest").read_bytes())
    assert metadata == {"tokenizer": manifest["tokenizer"]["fingerprint"], "version": 1}


def test_nothing_depends_on_workers_splits_and_runner(made: Path, tmp_path: Path) -> None:
    by_source = ("--source-field", "language")
    out = tokenize(made, tmp_path / "out", *by_source)
    expected = (out / FILE).read_bytes()
    sums: Counter[str] = Counter()
    for (source, _), count in counted(out).items():
        sums[str(source)] += count
    sources = json.loads((out / "__manifest").read_bytes())["shards"]
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


BY_LANGUAGE = ("--source-field", "language", "--append", END)
PADDED = ("--sequence-length", 32, "--packing", "best_fit", "--pad-token", END)
SHARE = ("--validation-share", "40%")


def evaluated(folder: Path) -> dict[str, Any]:
    ran = run("evaluate", "--tokens", folder)
    found: dict[str, Any] = json.loads(ran.out)["tokenizers"][0]
    return found


@pytest.mark.parametrize(
    "arranged",
    [("--shuffle-seed", 4), ("--sequence-length", 32), (*PADDED, "--shuffle-seed", 4)],
    ids=["shuffled", "concatenated", "padded"],
)
def test_documents_in_another_order_have_the_same_counts(
    made: Path, tmp_path: Path, arranged: tuple[object, ...]
) -> None:
    """Also in sequences: padding is not counted."""
    for name, extra in (("all", ("--append", END)), ("by source", BY_LANGUAGE)):
        plain = tokenize(made, tmp_path / name / "plain", *extra)
        out = tokenize(made, tmp_path / name / "out", *extra, *arranged)
        assert (out / FILE).read_bytes() == (plain / FILE).read_bytes()
        assert run_whole("verify", out).summary["whole"] is True
        figures = [evaluated(folder)["figures"]["total"] for folder in (plain, out)]
        assert figures[0] == figures[1]
        assert figures[0]["bytes"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("padded", [(), PADDED], ids=["documents", "padded"])
def test_parts_have_counts_of_their_own(
    made: Path, tmp_path: Path, padded: tuple[object, ...]
) -> None:
    end = json.loads((made / "tok" / "vocab.json").read_bytes())[END]
    for name, extra in (("all", ("--append", END)), ("by source", BY_LANGUAGE)):
        plain = counted(tokenize(made, tmp_path / name / "plain", *extra))
        folder = tokenize(made, tmp_path / name / "out", *extra, *SHARE, *padded)
        parts = [folder / "train", folder / "validation"]
        assert counted(parts[0]) + counted(parts[1]) == +plain
        text_bytes = 0
        for part in parts:
            proof = run_whole("verify", part, "--full", "--input", made / "c.jsonl").summary
            assert proof["whole"] is True
            total: Counter[int] = Counter()
            for (_, token), count in counted(part).items():
                total[token] += count
            shards = Counter(token for document in read_shards(part) for token in document)
            arranged = json.loads((part / "__manifest").read_bytes())["arranged"]
            shards[end] -= arranged.get("padding", 0)
            assert +total == +shards
            assert bool(padded) == bool(arranged.get("padding", 0))
            figures = evaluated(part)["figures"]["total"]
            assert figures["tokens"] == total.total() == arranged["tokens"]
            assert figures["bytes"] == arranged["texts"]["text_bytes"]
            text_bytes += figures["bytes"]
        assert text_bytes == arranged["corpus"]["text_bytes"]
        again = tokenize(
            made, tmp_path / name / "again", *extra, *SHARE, *padded, "--runner", "FnApiRunner"
        )
        assert tree(again) == tree(folder)


def test_the_sources_of_parts_are_those_of_their_documents(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", *BY_LANGUAGE, *SHARE, "--format", "arrow")
    for part in (out / "train", out / "validation"):
        tokens: Counter[tuple[str | None, int]] = Counter()
        texts: Counter[str] = Counter()
        for path in sorted(part.glob("shard-*.arrow")):
            for row in pa.ipc.open_file(path.read_bytes()).read_all().to_pylist():
                tokens.update((row["source"], token) for token in row["input_ids"])
                texts[row["source"]] += row["text_bytes"]
        assert +counted(part) == tokens
        arranged = json.loads((part / "__manifest").read_bytes())["arranged"]
        sources = arranged["texts"]["sources"]
        assert {name: row["text_bytes"] for name, row in sources.items()} == dict(texts)
        assert {*sources} >= {"de", "en", "zh"}


def test_verify_compares_the_counts_of_a_part(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", *SHARE)
    (out / "validation" / FILE).write_bytes((out / "train" / FILE).read_bytes())
    ran = run("verify", out / "validation")
    assert (ran.code, "  __token_counts: " in ran.message) == (1, True)


def test_counts_of_sequences_are_converted(made: Path, tmp_path: Path) -> None:
    out = tokenize(made, tmp_path / "out", *BY_LANGUAGE, *PADDED)
    for name, extra in (("one", ("--format", "arrow")), ("two", ("--shards", "2"))):
        run_whole("convert", out, *extra, "--output", tmp_path / name)
        assert (tmp_path / name / FILE).read_bytes() == (out / FILE).read_bytes()
        assert run_whole("verify", tmp_path / name).summary["whole"] is True
    run_whole("convert", out, tmp_path / "two", "--output", tmp_path / "joined")
    assert run_whole("verify", tmp_path / "joined").summary["whole"] is True
    total: Counter[tuple[str | None, int]] = Counter()
    for (_, token), count in counted(out).items():
        total[None, token] += 2 * count
    assert counted(tmp_path / "joined") == total


def test_temporary_counts_that_were_changed_are_made_again(made: Path, tmp_path: Path) -> None:
    whole = tree(tokenize(made, tmp_path / "whole", *PADDED))
    out = tokenize(made, tmp_path / "out", *PADDED, "--dry-run")
    counts = out / "work" / "documents" / FILE
    counts.write_bytes(b"PAR1")
    arguments = ("--input", made / "c.jsonl", "--tokenizer", made / "tok", "--output", out)
    ran = run("tokenize", *arguments, "--range-bytes", "2KB", *PADDED)
    assert (ran.code, "made again: __token_counts" in ran.message) == (0, True)
    assert tree(out) == whole
