"""Rules for documents in whole jobs: empty and long ones, and the tokens around each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole
from made_text import documents, write
from read_back import read_shards, tree, without_job

from bpe_beam import Tokenizer

BOS, EOS = "<s>", "</s>"


@dataclass
class Ground:
    """A corpus with empty documents, tokenizers with a BOS by template and without, its ids."""

    folder: Path
    ids: list[list[int]]
    bos: int

    def command(self, out: Path, *extra: object, tokenizer: str = "tok") -> tuple[object, ...]:
        reading = ("--input", self.folder / "a.jsonl", "--range-bytes", "2KB")
        made_by = ("--tokenizer", self.folder / tokenizer, "--output", out)
        return ("tokenize", *reading, *made_by, *extra)

    def made(self, out: Path, *extra: object) -> tuple[list[list[int]], dict[str, Any]]:
        """Tokenize, prove it by the corpus, repair it, and return the documents and the summary."""
        command = self.command(out, *extra)
        summary = run_whole(*command).summary
        proof = run_whole("verify", out, "--full", "--input", self.folder / "a.jsonl").summary
        assert proof["whole"] is True
        whole = tree(out)
        min(out.glob("shard-*")).unlink()
        run_whole(*command)
        assert tree(out) == whole
        return read_shards(out), summary


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    texts = ["", *documents(60, seed=4), "", ""]
    arguments = ("--input", write(folder / "a.jsonl", texts), "--vocab-size", "400")
    special = ("--special-token", BOS, "--special-token", EOS)
    run_whole("train", *arguments, *special, "--template", f"{BOS} $A", "--output", folder / "tok")
    run_whole("train", *arguments, *special, "--output", folder / "plain")
    tokenizer = Tokenizer.from_file(str(folder / "tok" / "tokenizer.json"))
    bos = tokenizer.token_to_id(BOS)
    assert bos is not None
    return Ground(folder, [tokenizer.encode(text) for text in texts], bos)


def test_empty_documents_are_dropped_and_counted(ground: Ground, tmp_path: Path) -> None:
    found, summary = ground.made(tmp_path / "out", "--empty-documents", "drop", "--append", EOS)
    assert [ids[:-1] for ids in found] == [ids for ids in ground.ids if ids]
    assert summary["documents_changed"] == {"dropped": ground.ids.count([])}
    assert summary["documents"] == len(found)
    manifest = json.loads((tmp_path / "out" / "__manifest").read_bytes())
    assert manifest["settings"]["empty_documents"] == "drop"
    changed = [row["changes"]["dropped"] for row in manifest["shards"] if "changes" in row]
    assert sum(changed) == ground.ids.count([])
    assert min(changed) > 0
    assert 0 < len(changed) < len(manifest["shards"])


def test_a_corpus_of_empty_documents_only(ground: Ground, tmp_path: Path) -> None:
    """Also where the documents are arranged, and where the others are no documents."""
    tokenizer = ("--tokenizer", ground.folder / "tok", "--append", EOS, "--max-rejects", "100%")
    for texts, more, arranging, said in (
        ([""] * 3, "", (), "there is no document: 3 documents were empty and dropped, of"),
        ([""] * 3, "", ("--shuffle-seed", 1), "3 documents were empty and dropped, of"),
        ([""], "", (), "1 document was empty and dropped, of"),
        (
            [""] * 3,
            "{}\n{}\n",
            (),
            "3 documents were empty and dropped, and none of the 2 other records is usable",
        ),
    ):
        corpus = write(tmp_path / "empty.jsonl", texts)
        corpus.write_text(corpus.read_text() + more)
        arguments = ("--input", corpus, *tokenizer, *arranging, "--overwrite")
        ran = run("tokenize", *arguments, "--empty-documents", "drop", "--output", tmp_path / "out")
        assert (ran.code, said in ran.message) == (1, True), ran.message
        if not more:
            assert ran.message.endswith("; check --text-field, or keep them with --empty-documents")


def test_long_documents_are_split_without_a_lost_token(ground: Ground, tmp_path: Path) -> None:
    rule = ("--max-document-tokens", "16", "--add-special-tokens")
    found, summary = ground.made(tmp_path / "out", *rule)
    whole = [[ground.bos, *ids] for ids in ground.ids]
    assert found == [ids[i : i + 16] for ids in whole for i in range(0, len(ids), 16)]
    longer = sum(len(ids) > 16 for ids in whole)
    assert summary["documents_changed"] == {"split": longer}
    plain = run_whole(*ground.command(tmp_path / "plain")).summary
    assert summary["text_bytes"] == plain["text_bytes"]

    run_whole(*ground.command(tmp_path / "rows", *rule, "--format", "parquet", "--source", "a=a*"))
    tables = [pq.read_table(path) for path in sorted((tmp_path / "rows").glob("shard-*.parquet"))]
    assert [ids for table in tables for ids in table["input_ids"].to_pylist()] == found
    ids = [each for table in tables for each in table["id"].to_pylist()]
    assert list(dict.fromkeys(ids)) == [f"{number}" for number in range(len(whole))]
    assert len(ids) == len(found)


def test_long_documents_are_cut_within_the_tokens_around_them(
    ground: Ground, tmp_path: Path
) -> None:
    rule = ("--max-document-tokens", "16", "--long-documents", "cut")
    found, summary = ground.made(tmp_path / "out", *rule, "--add-special-tokens", "--append", EOS)
    eos = found[0][-1]
    assert found == [[ground.bos, *ids[:14], eos] for ids in ground.ids]
    assert summary["documents_changed"] == {"cut": sum(len(ids) > 14 for ids in ground.ids)}


def test_tokens_that_are_doubled_are_counted_and_told(ground: Ground, tmp_path: Path) -> None:
    """Those of the text and those around it are both kept."""
    texts = [f"{BOS}hello", f"world{EOS}", "hello", "", f"{EOS}hello{BOS}", f"{BOS}both{EOS}"]
    corpus = write(tmp_path / "b.jsonl", texts)
    around = ("--prepend", BOS, "--append", EOS, "--allowed-special", "all")
    special = ("--add-special-tokens", "--allowed-special", "all")
    for name, tokenizer, extra, expected in (
        ("around", "plain", around, 3),
        ("plain text", "plain", around[:4], 0),
        ("post-processor", "tok", special, 2),
        ("shuffled", "plain", (*around, "--shuffle-seed", 1), 3),
        ("divided", "plain", (*around, "--validation-share", "50%"), 3),
    ):
        out = tmp_path / name
        command = ground.command(out, "--input", corpus, *extra, tokenizer=tokenizer)
        for _ in range(2):  # then it is finished
            summary = run_whole(*command).summary
            assert summary.get("documents_changed", {}).get("doubled", 0) == expected
            said = [each for each in summary["warnings"] or () if "it is there twice" in each]
            assert [each.partition(" have")[0] for each in said] == (
                [f"{expected} of {len(texts) + len(ground.ids)} documents"] if expected else []
            )
        for folder in (out / "train", out / "validation") if name == "divided" else (out,):
            inputs = ("--input", ground.folder / "a.jsonl", "--input", corpus)
            proof = run_whole("verify", folder, "--full", *inputs)
            assert proof.summary["whole"] is True
    bos = Tokenizer.from_file(str(ground.folder / "plain" / "tokenizer.json")).token_to_id(BOS)
    assert [bos, bos] in [ids[:2] for ids in read_shards(tmp_path / "around")]


def test_a_frame_that_is_left_out_is_told(ground: Ground, tmp_path: Path) -> None:
    said = f"the tokenizer's post-processor has {BOS} before each text"
    for name, tokenizer, extra, expected in (
        ("left out", "tok", (), True),
        ("shuffled", "tok", ("--shuffle-seed", 1), True),
        ("added", "tok", ("--add-special-tokens",), False),
        ("chosen", "tok", ("--append", EOS), False),
        ("none", "plain", (), False),
    ):
        command = ground.command(tmp_path / name, *extra, tokenizer=tokenizer)
        warnings = run_whole(*command).summary["warnings"] or []
        assert [each.startswith(said) for each in warnings] == [True] * expected
    again = run_whole(*ground.command(tmp_path / "shuffled", "--shuffle-seed", 1)).summary
    assert [each.startswith(said) for each in again["warnings"]] == [True]


def test_the_post_processor_gives_the_token_that_llmc_needs(ground: Ground, tmp_path: Path) -> None:
    """And `convert` knows it, and what rules changed."""
    rules = ("--add-special-tokens", "--max-document-tokens", "16", "--empty-documents", "drop")
    run_whole(*ground.command(tmp_path / "megatron", *rules))
    run_whole(*ground.command(tmp_path / "llmc", *rules, "--format", "llmc"))
    converted = tmp_path / "converted"
    run_whole("convert", tmp_path / "megatron", "--format", "llmc", "--output", converted)
    assert without_job(converted) == without_job(tmp_path / "llmc")


@pytest.mark.parametrize(
    ("extra", "tokenizer", "said"),
    [
        (("--add-special-tokens", "--prepend", BOS), "tok", "--prepend must not be <s>, which"),
        (("--add-special-tokens",), "plain", "--add-special-tokens has no effect: the post-"),
        (("--long-documents", "cut"), "tok", "--long-documents has no effect without a maximum"),
        (
            ("--max-document-tokens", "2", "--add-special-tokens", "--append", EOS),
            "tok",
            "--max-document-tokens must be more than 2, the number of tokens around each",
        ),
    ],
)
def test_rules_that_cannot_work(
    ground: Ground, tmp_path: Path, extra: tuple[str, ...], tokenizer: str, said: str
) -> None:
    ran = run(*ground.command(tmp_path / "out", *extra, tokenizer=tokenizer))
    assert ran.code == 2
    assert said in ran.message
    assert not (tmp_path / "out").exists()
