"""`convert`: the folder that `tokenize` would have written, in any format and number of shards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import COMMAND, run, run_whole, with_options
from killed_jobs import kill_between
from made_text import documents, write
from read_back import read_shards, tree, without_job

import bpe_beam
from bpe_beam.errors import UsageError
from bpe_beam.shards.dataset import TokenDataset
from bpe_beam.shards.formats import SHARD_FORMATS
from bpe_beam.shards.manifest import Manifest, read_manifest
from bpe_beam.storage import Storage

END = "<|endoftext|>"
LABELLED = ("parquet", "arrow")
LENGTH = 48
PACKED = ("--sequence-length", LENGTH, "--packing", "best_fit")
PADDED = ("--pad-token", END)


@dataclass
class Ground:
    """A corpus with empty documents and a reject, its tokenizer, and its shards in any format."""

    folder: Path

    @property
    def corpus(self) -> Path:
        return self.folder / "a.jsonl"

    def shards(self, format_name: str) -> Path:
        """Return the folder that `tokenize` writes."""
        out = self.folder / format_name
        if not out.exists():
            reading = ("--input", self.corpus, "--range-bytes", "3KB", "--max-rejects", "1")
            tokenizer = ("--tokenizer", self.folder / "tok", "--prepend", END)
            run_whole("tokenize", *reading, *tokenizer, "--format", format_name, "--output", out)
        return out

    def packed(self, format_name: str, *extra: object) -> Path:
        """Return the folder of sequences that `tokenize` writes."""
        out = self.folder / "-".join(map(str, ("packed", format_name, *extra)))
        if not out.exists():
            reading = ("--input", self.corpus, "--max-rejects", "1", "--shard-tokens", 700)
            tokenizer = ("--tokenizer", self.folder / "tok", "--prepend", END)
            arguments = with_options((*reading, *tokenizer, *PACKED), *extra)
            arguments += ["--format", format_name]
            run_whole("tokenize", *arguments, "--output", out)
        return out


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    corpus = write(folder / "a.jsonl", ["", *documents(90, seed=6), "", ""])
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    with corpus.open("a") as file:
        file.write('{"no text": 1}\n')
    return Ground(folder)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_what_is_converted_is_what_tokenize_writes(
    ground: Ground, tmp_path: Path, format_name: str
) -> None:
    """To the byte: shards, manifest, rejects, tokenizer; and back again."""
    before = {"parquet": "arrow", "arrow": "parquet", "megatron": "dolma"}.get(format_name)
    old = ground.shards(before or "megatron")
    there, back = tmp_path / "there", tmp_path / "back"
    run_whole("convert", old, "--format", format_name, "--output", there)
    assert without_job(there) == without_job(ground.shards(format_name))
    run_whole("convert", there, "--format", old.name, "--output", back)
    assert without_job(back) == without_job(old)


@pytest.mark.slow
@pytest.mark.parametrize("old", SHARD_FORMATS)
def test_there_and_back_by_every_other_format(ground: Ground, tmp_path: Path, old: str) -> None:
    """But for labels, which some formats have no place for."""
    for new in SHARD_FORMATS:
        if new == old or (old in LABELLED and new not in LABELLED):
            continue
        there, back = tmp_path / new, tmp_path / f"{new}-back"
        run_whole("convert", ground.shards(old), "--format", new, "--output", there)
        run_whole("convert", there, "--format", old, "--output", back)
        assert without_job(back) == without_job(ground.shards(old)), new


def test_the_corpus_proves_what_is_converted(ground: Ground, tmp_path: Path) -> None:
    there = tmp_path / "there"
    run_whole("convert", ground.shards("megatron"), "--format", "flat", "--output", there)
    proof = run_whole("verify", there, "--full", "--input", ground.corpus).summary
    assert proof["whole"] is True


def table(folder: Path) -> pa.Table:
    """Return the rows of a folder of Arrow shards."""
    paths = sorted(folder.glob("*.arrow"))
    return pa.concat_tables(pa.ipc.open_file(path.read_bytes()).read_all() for path in paths)


def tokens_of(folder: Path) -> list[int]:
    """Return the number of tokens of each shard."""
    manifest: Manifest = read_manifest(Storage(), str(folder))
    return [shard.tokens for shard in manifest.shards]


@pytest.mark.parametrize("shards", [1, 7, 300])
def test_divided_evenly_in_order(ground: Ground, tmp_path: Path, shards: int) -> None:
    """Also into more shards than there are documents: those without tokens are not written."""
    out, again = tmp_path / "out", tmp_path / "again"
    old = ground.shards("arrow")
    run_whole("convert", old, "--shards", shards, "--output", out)
    assert table(out).equals(table(old))
    sizes, lengths = tokens_of(out), table(old).column("length").to_pylist()
    if shards < 300:
        assert len(sizes) == shards
        assert max(sizes) - min(sizes) <= 2 * max(lengths)
    else:
        assert len(sizes) < shards
    assert min(sizes) > 0
    assert run_whole("verify", out).summary["whole"] is True
    refused = run("verify", out, "--input", ground.corpus)
    assert refused.code == 2
    assert "--input must not be given: no plan says which text is in which shard" in refused.message
    run_whole("convert", out, "--shards", len(tokens_of(old)), "--output", again)
    assert table(again).equals(table(old))


def test_folders_are_joined_in_their_order(ground: Ground, tmp_path: Path) -> None:
    flat, joined, one = tmp_path / "flat", tmp_path / "joined", tmp_path / "one"
    run_whole("convert", ground.shards("dolma"), "--format", "flat", "--output", flat)
    (flat / "__job").unlink()  # as a window of a stream, which has none
    folders = (ground.shards("megatron"), flat)
    run_whole("convert", *folders, "--output", joined)
    documents = read_shards(ground.shards("megatron"))
    assert read_shards(joined) == 2 * documents
    assert tokens_of(joined) == 2 * tokens_of(flat)
    totals = json.loads((joined / "__manifest").read_bytes())["totals"]
    each = json.loads((flat / "__manifest").read_bytes())["totals"]
    assert totals["text_bytes"] == 2 * each["text_bytes"]
    assert totals["documents"] == 2 * each["documents"]
    assert run_whole("verify", joined).summary["whole"] is True
    run_whole("convert", *folders, "--shards", "1", "--output", one)
    assert read_shards(one) == 2 * documents


def masks(data: TokenDataset) -> list[tuple[list[int], list[bool]]]:
    """Return the positions, and what is no padding, of each sequence."""
    return [
        (data.position_ids(at).tolist(), data.loss_mask(at).tolist()) for at in range(len(data))
    ]


def arranged(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "__manifest").read_bytes())["arranged"]
    return found


@pytest.mark.parametrize("old", ["parquet", "arrow", "mds"])
@pytest.mark.parametrize(
    "arguments",
    [("--format", "arrow"), ("--format", "parquet", "--shards", 3), ("--format", "mds")],
)
def test_joined_sequences_are_sequences(
    ground: Ground, tmp_path: Path, old: str, arguments: tuple[object, ...]
) -> None:
    """With their padding and documents where the formats keep them; else nobody claims to know."""
    packed = ground.packed(old, *PADDED, "--validation-share", "30%")
    out, parts = tmp_path / "out", [packed / name for name in ("train", "validation")]
    run_whole("convert", *parts, *arguments, "--output", out)
    opened = [bpe_beam.shards.open(str(part)) for part in parts]
    data = bpe_beam.shards.open(str(out))
    ids = [each[at].tolist() for each in opened for at in range(len(each))]
    assert [data[at].tolist() for at in range(len(data))] == ids
    if old in LABELLED and "mds" not in arguments:
        expected = [row for each in opened for row in masks(each)]
        assert masks(data) == expected
        assert any(not all(mask) for _, mask in expected)
    else:
        for view in (data.position_ids, data.loss_mask):
            with pytest.raises(UsageError, match="where documents begin in sequence"):
                view(0)
    found, each = arranged(out), [arranged(part) for part in parts]
    assert found == {
        "settings": {"sequence_length": LENGTH, "packing": "best_fit", "pad_token": END},
        **{name: sum(part[name] for part in each) for name in ("documents", "tokens", "padding")},
    }
    assert run_whole("verify", out).summary["whole"] is True
    refused = run("verify", out, "--full", "--input", ground.corpus)
    assert (refused.code, "since these were arranged, joined" in refused.message) == (2, True)
    summary_file = tmp_path / "shown.json"
    assert run("inspect", out, "--summary-file", summary_file).code == 0
    shown = json.loads(summary_file.read_bytes())
    assert shown["arranged"]["padding"] == found["padding"]
    assert shown["sample"][0].startswith("sequence ")


def test_sequences_of_which_some_lost_where_documents_begin(ground: Ground, tmp_path: Path) -> None:
    out, mixed = tmp_path / "out", (ground.packed("mds", *PADDED), ground.packed("arrow", *PADDED))
    ran = run_whole("convert", *mixed, "--format", "arrow", "--output", out)
    assert [warning[:55] for warning in ran.warnings] == [
        "mds has no place for the lengths of the documents in a "
    ]
    assert "they are null in arrow" in ran.warnings[0]
    data, known = bpe_beam.shards.open(str(out)), bpe_beam.shards.open(str(mixed[1]))
    assert masks(data[len(known) :]) == masks(known)
    with pytest.raises(
        UsageError, match="it is unknown where documents begin in sequence 2: it was"
    ):
        data[2:].loss_mask(0)
    ran = run_whole("convert", mixed[1], "--format", "flat", "--output", tmp_path / "flat")
    assert ran.warnings == [
        "flat has no place for the lengths of the documents in a sequence, which arrow has; they "
        "are dropped"
    ]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (("--sequence-length", 32), "sequences of 32 tokens, best_fit, padded with"),
        (("--packing", "concatenate"), "sequences of 48 tokens, concatenate, padded with"),
        (None, "documents in"),
    ],
)
def test_rows_that_are_read_in_different_ways_are_not_joined(
    ground: Ground, tmp_path: Path, extra: tuple[object, ...] | None, said: str
) -> None:
    packed = ground.packed("arrow", *PADDED)
    other = ground.shards("arrow") if extra is None else ground.packed("arrow", *PADDED, *extra)
    for folders in ((packed, other), (other, packed)):
        ran = run("convert", *folders, "--output", tmp_path / "out")
        assert ran.code == 2
        problem, row, remedy = ran.message.splitlines()
        assert problem.endswith("these shards cannot be joined; what differs:")
        assert row.startswith("  rows: ")
        assert f"sequences of 48 tokens, best_fit, padded with {END} in {packed}" in row
        assert said in row
        assert remedy == "Tokenize with the same settings, or keep the shards in separate folders"
    unpadded = run("convert", packed, ground.packed("arrow"), "--output", tmp_path / "out")
    assert f"sequences of 48 tokens, best_fit in {ground.packed('arrow')}" in unpadded.message


def test_orders_and_limits_that_differ_are_not_kept(ground: Ground, tmp_path: Path) -> None:
    one = ground.packed("arrow", "--shuffle-seed", 1, "--max-documents-per-sequence", 2)
    other = ground.packed("arrow", "--shuffle-seed", 2)
    run_whole("convert", one, other, "--output", tmp_path / "out")
    settings = {"sequence_length": LENGTH, "packing": "best_fit"}
    assert arranged(tmp_path / "out")["settings"] == settings
    shuffled = tmp_path / "shuffled"
    run_whole(
        *("tokenize", "--input", ground.corpus, "--max-rejects", "1", "--prepend", END),
        *("--tokenizer", ground.folder / "tok", "--shuffle-seed", 3, "--output", shuffled),
    )
    plain = ground.shards("megatron")
    run_whole("convert", plain, shuffled, "--output", tmp_path / "documents")
    assert read_manifest(Storage(), str(tmp_path / "documents")).row_kind == "documents"
    assert len(read_shards(tmp_path / "documents")) == 2 * len(read_shards(plain))


def test_labels_without_a_place_are_warned_of(ground: Ground, tmp_path: Path) -> None:
    ran = run_whole(
        "convert", ground.shards("parquet"), "--format", "flat", "--output", tmp_path / "out"
    )
    (warning,) = ran.warnings
    assert warning.startswith("flat has no place for the ids, sources and sizes of")


def test_killed_and_resumed(ground: Ground, tmp_path: Path) -> None:
    """On either engine; a folder that lost a file is repaired."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    command = ("convert", ground.shards("megatron"), "--format", "parquet", "--shards", "24")
    run_whole(*command, "--output", whole)
    kill_between(
        [*COMMAND, *map(str, command), "--output", str(out), "--quiet"],
        out,
        lambda: len([*(out / "work").glob("*/work/*.json")]) > 2,
        (out / "__manifest").exists,
        "the receipts of three of 24 shards",
    )
    ran = run_whole(*command, "--output", out, "--runner", "FnApiRunner")
    assert ran.summary["shards_kept_from_before"] > 0
    assert tree(out) == tree(whole)
    min(out.glob("shard-*")).unlink()
    assert run_whole(*command, "--output", out).summary["shards_kept_from_before"] == 23
    assert tree(out) == tree(whole)
    assert run_whole(*command, "--output", out).summary["was_finished_before"]


def test_damage_is_not_converted(ground: Ground, tmp_path: Path) -> None:
    old, out = tmp_path / "old", tmp_path / "out"
    run_whole("convert", ground.shards("megatron"), "--format", "flat", "--output", old)
    damaged = min(old.glob("*.bin"))
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    ran = run("convert", old, "--format", "megatron", "--output", out)
    assert ran.code == 1
    assert f"{damaged} is missing, or is not the file that was written" in ran.message
    damaged.write_bytes(data)
    run_whole("convert", old, "--format", "megatron", "--output", out)


def test_what_cannot_be_converted(ground: Ground, tmp_path: Path) -> None:
    out = ("--output", tmp_path / "out")
    megatron = ground.shards("megatron")
    bare = tmp_path / "bare"
    run_whole(
        *("tokenize", "--input", ground.corpus, "--max-rejects", "1"),
        *("--tokenizer", ground.folder / "tok", "--output", bare),
    )
    for args, code, said in (
        ((megatron,), 2, "--format and --shards are both missing"),
        ((megatron, megatron), 2, "is named twice: its documents would appear twice"),
        ((megatron, bare), 2, f"prepend: {END} in"),
        ((bare, "--format", "llmc"), 2, "--format must not be llmc"),
        ((ground.folder / "tok", "--format", "flat"), 2, "holds a tokenizer, not shards"),
        ((tmp_path / "none", "--format", "flat"), 1, "__manifest"),
    ):
        ran = run("convert", *args, *out)
        assert (ran.code, said in ran.message) == (code, True), ran.message
        assert not (tmp_path / "out").exists()
    ran = run("convert", megatron, "--format", "flat", "--output", megatron)
    assert "must be a folder other than those that are read" in ran.message
