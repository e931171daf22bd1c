"""`tokenize` with sequences, a seed and a validation share: what the plain folder has, arranged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import elsewhere_runner
import numpy as np
import pyarrow as pa
import pytest
from command_line import COMMAND, run, run_whole
from killed_jobs import kill_between
from made_text import documents, write
from read_back import read_shards, tree, without_job

import bpe_beam
from bpe_beam import progress
from bpe_beam.errors import DataError, UsageError
from bpe_beam.jobs import arranged_shards
from bpe_beam.shards.formats import SHARD_FORMATS, shard_format
from bpe_beam.shards.index_shuffle import IndexShuffle
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage
from bpe_beam.workers.arrange import block_files, new_shard, planning, scatter
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.task_results import TaskResult

END = "<|endoftext|>"
LENGTH = 32


@dataclass
class Ground:
    """A corpus with empty documents and a reject, its tokenizer, and its plain shards."""

    folder: Path

    def command(self, *extra: object) -> list[object]:
        reading = ("--input", self.folder / "a.jsonl", "--id-field", "id", "--range-bytes", "3KB")
        tokenizer = ("--tokenizer", self.folder / "tok", "--append", END, "--max-rejects", "1")
        return ["tokenize", *reading, *tokenizer, *extra]

    def make(self, output: Path, *extra: object) -> dict:
        return run_whole(*self.command(*extra), "--output", output).summary

    @cached_property
    def plain(self) -> list[list[int]]:
        """The ids of all documents in the order of the corpus."""
        out = self.folder / "plain"
        if not out.exists():
            self.make(out)
        return read_shards(out)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    texts = ["", *documents(150, seed=6), " ".join(documents(12, seed=7)), ""]
    corpus = write(folder / "train.jsonl", texts)
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    with (folder / "a.jsonl").open("w") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
        file.write('{"no text": 1}\n')
    return Ground(folder)


def ids_of(folder: Path) -> list[list[int]]:
    """Return the ids of all rows of a folder of any format, in order."""
    manifest = read_manifest(Storage(), str(folder))
    rows = []
    for shard in manifest.shards:
        with shard_format(manifest.format).reader(Storage(), str(folder), shard.name) as reader:
            rows += [reader.document(index).tolist() for index in range(len(reader))]
    return rows


def in_order(rows: list, seed: int | None) -> list:
    if seed is None:
        return rows
    order = IndexShuffle(len(rows), seed).number_at(np.arange(len(rows), dtype=np.uint64))
    return [rows[number] for number in order.tolist()]


def concatenated(rows: list[list[int]]) -> list[list[int]]:
    stream = [token for row in rows for token in row]
    return [stream[start : start + LENGTH] for start in range(0, len(stream), LENGTH)]


def best_fit(rows: list[list[int]], limit: int | None = None) -> list[list[int]]:
    """Return the sequences of best-fit decreasing by the definition, chunk after chunk."""
    chunks = [row[at : at + LENGTH] for row in rows for at in range(0, len(row), LENGTH)]
    made: list[tuple[list[int], list[int]]] = []  # tokens; time of the last change, chunks
    for now, chunk in enumerate(sorted(chunks, key=lambda each: -len(each))):
        open_ones = [
            (LENGTH - len(tokens), changed, number)
            for number, (tokens, (changed, count)) in enumerate(made)
            if LENGTH - len(tokens) >= len(chunk) and (limit is None or count < limit)
        ]
        if not open_ones:
            made.append(([], [now, 0]))
        tokens, state = made[min(open_ones)[2] if open_ones else -1]
        tokens += chunk
        state[:] = now, state[1] + 1
    return [tokens for tokens, _ in made]


SEQUENCES = ("--sequence-length", LENGTH)
BEST_FIT = (*SEQUENCES, "--packing", "best_fit")
MADE = {
    "shuffled": (("--shuffle-seed", 7), lambda rows: in_order(rows, 7)),
    "concatenated": (SEQUENCES, concatenated),
    "concatenated, shuffled": (
        (*SEQUENCES, "--packing", "concatenate", "--shuffle-seed", 1),
        lambda rows: in_order(concatenated(rows), 1),
    ),
    "best fit": (BEST_FIT, best_fit),
    "best fit, limited, shuffled": (
        (*BEST_FIT, "--max-documents-per-sequence", 2, "--shuffle-seed", 2**32 - 1),
        lambda rows: in_order(best_fit(rows, 2), 2**32 - 1),
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_equals_the_definition(ground: Ground, tmp_path: Path, name: str) -> None:
    extra, expected = MADE[name]
    rows = expected(ground.plain)
    summary = ground.make(tmp_path / "out", *extra, "--shard-tokens", 500)
    assert read_shards(tmp_path / "out") == rows
    assert summary["documents"] == len(ground.plain)
    assert summary["tokens"] == sum(map(len, rows)) == sum(map(len, ground.plain))
    assert summary["shards"] == -(-summary["tokens"] // 500)
    assert summary["rejects"] == 1
    if "--sequence-length" in extra:
        assert summary["sequences"] == len(rows)
        assert summary["sequence_length"] == LENGTH
        assert summary["unfilled"] == len(rows) * LENGTH - summary["tokens"]
        assert "padding" not in summary
    assert run_whole("verify", tmp_path / "out").summary["whole"] is True
    assert sorted(path.name for path in (tmp_path / "out" / "__rejects").iterdir())
    assert not (tmp_path / "out" / "work").exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_every_format_has_the_same_rows(ground: Ground, tmp_path: Path, format_name: str) -> None:
    begins = ("--prepend", END, "--format", format_name, "--shard-tokens", 900)
    ground.make(tmp_path / "out", *begins, *SEQUENCES, "--shuffle-seed", 5)
    rows = [[ground.plain[0][0], *row] for row in ground.plain]
    assert ids_of(tmp_path / "out") == in_order(concatenated(rows), 5)
    assert run_whole("verify", tmp_path / "out").summary["whole"] is True


def test_documents_keep_their_ids(ground: Ground, tmp_path: Path) -> None:
    for format_name in ("parquet", "arrow"):
        out = tmp_path / format_name
        ground.make(out, "--format", format_name, "--shuffle-seed", 3)
        names = [f"d{number}" for number in range(len(ground.plain))]
        data = bpe_beam.shards.open(str(out))
        found = [data.labels(at) for at in range(len(data))]
        assert [each["id"] for each in found] == in_order(names, 3)
        assert [each["text_bytes"] for each in found] == table(out)["text_bytes"].to_pylist()
        assert data.loss_mask(-1).all()
        assert data.position_ids(-1).tolist() == [*range(data[-1].size)]
        assert table(out).column("id").to_pylist() == in_order(names, 3)


def table(folder: Path) -> pa.Table:
    paths = sorted([*folder.glob("shard-*.arrow"), *folder.glob("shard-*.parquet")])
    if paths[0].suffix == ".arrow":
        return pa.concat_tables(pa.ipc.open_file(path.read_bytes()).read_all() for path in paths)
    return pa.concat_tables(pa.parquet.read_table(path) for path in paths)


def test_tables_tell_where_documents_begin_in_sequences(ground: Ground, tmp_path: Path) -> None:
    """With padding and without, and after a conversion; the lengths are those of the slices."""
    slices = [
        len(row[at : at + LENGTH]) for row in ground.plain for at in range(0, len(row), LENGTH)
    ]
    for format_name, other, pad in (("parquet", "arrow", ()), ("arrow", "parquet", (END,))):
        out, there, back = (tmp_path / name / format_name for name in ("out", "there", "back"))
        padding = ("--pad-token", *pad) if pad else ()
        ground.make(out, "--format", format_name, *BEST_FIT, *padding, "--shard-tokens", 800)
        lengths = table(out).column("seq_lengths").to_pylist()
        assert sorted(length for each in lengths for length in each) == sorted(slices)
        for ids, each in zip(ids_of(out), lengths, strict=True):
            used = ids[: sum(each)]
            assert len(ids) == (LENGTH if pad else sum(each))
            ends = [at + 1 for at, token in enumerate(used) if [token] == ground.plain[0]]
            assert {*ends} <= {sum(each[: number + 1]) for number in range(len(each))}
        data = bpe_beam.shards.open(str(out))
        for at in (0, len(lengths) // 2, -1):
            assert data.labels(at) == {"seq_lengths": lengths[at]}
            padding_tokens = data[at].size - sum(lengths[at])
            assert data.loss_mask(at).tolist() == [True] * sum(lengths[at]) + (
                [False] * padding_tokens
            )
            parts = [*lengths[at], padding_tokens]
            assert data.position_ids(at).tolist() == [
                position for length in parts for position in range(length)
            ]
        run_whole("convert", out, "--format", other, "--output", there)
        run_whole("convert", there, "--format", format_name, "--output", back)
        assert without_job(back) == without_job(out)


def test_padding_fills_every_sequence(ground: Ground, tmp_path: Path) -> None:
    out, packing = tmp_path / "out", ("--packing", "best_fit", "--pad-token", END)
    summary = ground.make(out, *SEQUENCES, *packing, "--shard-tokens", 700)
    (pad,) = ground.plain[0]
    expected = [row + [pad] * (LENGTH - len(row)) for row in best_fit(ground.plain)]
    assert read_shards(out) == expected
    arranged = json.loads((out / "__manifest").read_bytes())["arranged"]
    assert arranged["padding"] == summary["padding"]
    assert arranged["tokens"] == summary["tokens"] == LENGTH * len(expected) - summary["padding"]
    with pytest.raises(UsageError, match="tokenize with --format parquet or arrow"):
        bpe_beam.shards.open(str(out)).position_ids(0)


def test_validation_is_stable_when_documents_are_added(ground: Ground, tmp_path: Path) -> None:
    share = ("--validation-share", "30%", "--validation-by", "id", "--format", "arrow")
    summary = ground.make(tmp_path / "out", *share)
    parts = {part: table(tmp_path / "out" / part) for part in ("train", "validation")}
    names = {part: rows.column("id").to_pylist() for part, rows in parts.items()}
    everything = [f"d{number}" for number in range(len(ground.plain))]
    assert sorted([*names["train"], *names["validation"]]) == sorted(everything)
    assert [name for name in everything if name in {*names["train"]}] == names["train"]
    for part, rows in parts.items():
        known = {"documents": rows.num_rows, "tokens": sum(rows.column("length").to_pylist())}
        assert known.items() <= summary["parts"][part].items()
        assert run_whole("verify", tmp_path / "out" / part).summary["whole"] is True
    assert 20 < len(names["validation"]) < 70
    ran = run("inspect", tmp_path / "out")
    assert (ran.code, "train and validation: give one of them" in ran.message) == (2, True)
    more = tmp_path / "more.jsonl"
    extra = [json.dumps({"id": f"e{number}", "text": "more text"}) for number in range(40)]
    more.write_text("\n".join(extra))
    ground.make(tmp_path / "more", *share, "--input", more)
    after = table(tmp_path / "more" / "validation").column("id").to_pylist()
    assert [name for name in after if name.startswith("d")] == names["validation"]
    assert len(after) > len(names["validation"])


def test_documents_without_an_id_are_divided_by_their_texts(ground: Ground, tmp_path: Path) -> None:
    """The same ones are for validation, whatever is put around them, with any tokenizer."""
    texts = documents(60, seed=8)
    lines, more = tmp_path / "a.txt", tmp_path / "b.txt"
    lines.write_text("".join(f"{text}\n" for text in (*texts, *texts[:20])))
    more.write_text("".join(f"more {text}\n" for text in documents(30, seed=9)))
    rows = tmp_path / "a.jsonl"
    rows.write_text("".join(json.dumps({"text": text}) + "\n" for text in (*texts, *texts[:20])))
    special = ("--special-token", END, "--normalizer", "lowercase")
    arguments = ("--input", lines, "--vocab-size", "300", *special)
    run_whole("train", *arguments, "--output", tmp_path / "other")
    parts, tokens = {}, {}
    for name, tokenizer, extra in (
        ("plain", ground.folder / "tok", ("--input", lines)),
        ("framed", ground.folder / "tok", ("--input", lines, "--append", END)),
        ("records", ground.folder / "tok", ("--input", rows)),
        ("split", ground.folder / "tok", ("--input", lines, "--max-document-tokens", 8)),
        ("arrow", ground.folder / "tok", ("--input", lines, "--format", "arrow")),
        ("added", ground.folder / "tok", ("--input", more, "--input", lines)),
        ("other", tmp_path / "other", ("--input", lines)),
    ):
        made_by = ("--tokenizer", tokenizer, "--validation-share", "40%")
        out = tmp_path / "tokens" / name
        run_whole("tokenize", *extra, *made_by, "--output", out)
        decode = bpe_beam.Tokenizer.from_file(str(tokenizer)).decode
        train, validation = (
            [decode(ids, skip_special_tokens=True).lower() for ids in ids_of(out / part)]
            for part in ("train", "validation")
        )
        assert min(len(train), len(validation)) > 20
        parts[name] = train, validation
        tokens[name] = [
            [token for ids in ids_of(out / part) for token in ids]
            for part in ("train", "validation")
        ]
    train, validation = parts["plain"]
    assert len(train) + len(validation) == 80
    assert not {*train} & {*validation}
    for name in ("framed", "records", "arrow", "other"):
        assert parts[name] == parts["plain"], name
    assert tokens["split"] == tokens["plain"]
    known = {*train, *validation}
    assert [text for text in parts["added"][0] if text in known] == train
    assert [text for text in parts["added"][1] if text in known] == validation


def test_equal_texts_are_in_one_part_unless_ids_decide(ground: Ground, tmp_path: Path) -> None:
    corpus = tmp_path / "a.jsonl"
    texts = [text for number, text in enumerate(documents(60, seed=8)) for _ in range(number % 4)]
    rows = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    decode = bpe_beam.Tokenizer.from_file(str(ground.folder / "tok")).decode
    arguments = ("--input", corpus, "--tokenizer", ground.folder / "tok", "--range-bytes", "2KB")
    overlaps = {}
    for by, options in (("text", ()), ("id", ("--validation-by", "id"))):
        out = tmp_path / by
        command = ("tokenize", *arguments, "--validation-share", "40%", *options, "--output", out)
        for _ in range(2):  # a finished folder says the same
            parts = run_whole(*command).summary["parts"]
            train, validation = (
                [decode(ids) for ids in ids_of(out / part)] for part in ("train", "validation")
            )
            overlaps[by] = sum(text in set(train) for text in validation)
            assert parts["validation"]["documents_also_in_train"] == overlaps[by]
            assert "documents_also_in_train" not in parts["train"]
        for part in ("train", "validation"):
            settings = json.loads((out / part / "__manifest").read_bytes())["arranged"]
            assert settings["settings"].get("validation_by", "id") == by
            verified = run("verify", out / part, "--full", "--input", corpus)
            assert verified.code == 0, verified.err
        other = () if options else ("--validation-by", "id")
        ran = run("tokenize", *arguments, "--validation-share", "40%", *other, "--output", out)
        assert (ran.code, "validation" in ran.message) == (2, True), ran.message
    assert overlaps["text"] == 0 < overlaps["id"]
    nameless = tmp_path / "b.jsonl"
    nameless.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command = ("tokenize", "--input", nameless, *arguments[2:], "--validation-share", "40%")
    ran = run(*command, "--validation-by", "id", "--output", tmp_path / "nameless")
    assert (ran.code, "'id' is the field of ids, but none of the first" in ran.err) == (0, True)
    ran = run("tokenize", *arguments, "--validation-by", "text", "--output", tmp_path / "no")
    assert (ran.code, "give --validation-share" in ran.message) == (2, True)


def test_the_hash_of_temporary_documents_is_in_no_shard(ground: Ground, tmp_path: Path) -> None:
    share = ("--validation-share", "30%")
    ground.make(tmp_path / "dry", *share, "--dry-run")
    inside = tmp_path / "dry" / "work" / "documents"
    assert table(inside).column_names[-2:] == ["id_hash", "text_hash"]
    for format_name in ("arrow", "parquet"):
        out = tmp_path / format_name
        ground.make(out, *share, "--format", format_name)
        names = ["input_ids", "length", "id", "source", "text_bytes"]
        assert table(out / "train").column_names == table(out / "validation").column_names == names


STAGES = ("shard", "measure", "scatter", "train")
ALL = (*BEST_FIT, "--shuffle-seed", 9, "--validation-share", "20%")


def test_every_engine_and_number_of_workers_writes_the_same_bytes(
    ground: Ground, tmp_path: Path
) -> None:
    made = {}
    for name, extra in {
        "1": ("--workers", "1"),
        "2": ("--workers", "2"),
        "4": ("--workers", "4"),
        "beam": ("--runner", "FnApiRunner"),
    }.items():
        ground.make(tmp_path / name, *ALL, "--shard-tokens", 600, *extra)
        made[name] = tree(tmp_path / name)
    assert made["1"] == made["2"] == made["4"] == made["beam"]


@pytest.mark.parametrize(
    "extra",
    [ALL, pytest.param((*MADE["shuffled"][0], "--runner", "FnApiRunner"), marks=pytest.mark.slow)],
    ids=["all", "beam"],
)
def test_groups_of_shards_change_no_byte(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: tuple[object, ...]
) -> None:
    ground.make(tmp_path / "plain", *extra, "--shard-tokens", 200)
    monkeypatch.setattr(planning, "MIN_BLOCKS", 1)
    monkeypatch.setattr(block_files, "SMALL_BLOCK_BYTES", 600)  # some blocks are larger
    ground.make(tmp_path / "out", *extra, "--shard-tokens", 200)
    names_of_work = ("summary.json", "__job")
    assert tree(tmp_path / "out", names_of_work) == tree(tmp_path / "plain", names_of_work)
    for name, used in (("plain", False), ("out", True)):
        assert ("work/regroup-" in (tmp_path / name / "__job").read_text()) == used


def test_regrouping_goes_on_after_a_failure(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, out = (*ALL, "--shard-tokens", 200, "--workers", "1"), tmp_path / "out"
    monkeypatch.setattr(planning, "MIN_BLOCKS", 1)
    ground.make(tmp_path / "plain", *extra)
    called: list[str] = []

    def failing(*arguments: Any) -> TaskResult:
        called.append(arguments[-1])
        if len(called) == 5:
            raise DataError("the machine is lost")
        return regroup_blocks(*arguments)

    monkeypatch.setattr(arranged_shards, "regroup_blocks", failing)
    assert run(*ground.command(*extra), "--output", out).code == 1
    first = called[:4]
    assert ground.make(out, *extra)["shards_kept_from_before"] is None
    assert not {*first} & {*called[5:]}
    assert tree(out) == tree(tmp_path / "plain")


@pytest.mark.slow
@pytest.mark.parametrize("min_blocks", [(1, 4096), (4096, 1), (1, 2)])
def test_a_job_goes_on_with_other_groups(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_blocks: tuple[int, int]
) -> None:
    """Its new shards are kept; of its blocks nothing is used that other groups decided, or left."""
    extra, out = (*ALL, "--shard-tokens", 200, "--workers", "1"), tmp_path / "out"
    ground.make(tmp_path / "plain", *extra)
    written: list[str] = []

    def failing(*arguments: Any) -> TaskResult:
        written.append(arguments[-1])
        if len(written) == 3:
            raise DataError("the machine is lost")
        return new_shard.write_new_shard(*arguments)

    with monkeypatch.context() as first:
        first.setattr(arranged_shards, "write_new_shard", failing)
        first.setattr(planning, "MIN_BLOCKS", min_blocks[0])
        assert run(*ground.command(*extra), "--output", out).code == 1
    assert bool([*out.glob("work/**/regroup-*.json")]) == (min_blocks[0] == 1)
    monkeypatch.setattr(planning, "MIN_BLOCKS", min_blocks[1])
    assert ground.make(out, *extra)["shards_kept_from_before"] == 2
    names_of_work = ("summary.json", "__job")
    assert tree(out, names_of_work) == tree(tmp_path / "plain", names_of_work)


@pytest.mark.slow
@pytest.mark.parametrize("min_blocks", [1, 4096])
@pytest.mark.parametrize("step", ["regroup_blocks", "write_new_shard"])
def test_a_damaged_block_is_an_error_and_is_written_again(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, min_blocks: int
) -> None:
    """One bit of an id, or of a position, before a step reads it."""
    extra, out = (*ALL, "--shard-tokens", 200, "--workers", "1"), tmp_path / "out"
    ground.make(tmp_path / "plain", *extra)
    monkeypatch.setattr(planning, "MIN_BLOCKS", min_blocks)
    damaged: list[Path] = []
    do = getattr(arranged_shards, step)

    def damaging(*arguments: Any) -> TaskResult:
        if not damaged:
            kind = "regroup" if (step, min_blocks) == ("write_new_shard", 1) else "scatter"
            damaged.append(
                max(out.glob(f"work/**/{kind}-*.bin"), key=lambda each: each.stat().st_size)
            )
            data = bytearray(damaged[0].read_bytes())
            data[len(data) // 3] ^= 1
            damaged[0].write_bytes(data)
        return do(*arguments)

    monkeypatch.setattr(arranged_shards, step, damaging)
    ran = run(*ground.command(*extra), "--output", out)
    if not damaged:
        assert (step, min_blocks) == ("regroup_blocks", 4096)
        return
    assert (ran.code, "had other bytes than were written" in ran.message) == (1, True)
    assert damaged[0].name in ran.message
    ground.make(out, *extra)
    names_of_work = ("summary.json", "__job")
    assert tree(out, names_of_work) == tree(tmp_path / "plain", names_of_work)


@pytest.mark.slow
def test_another_arrangement_takes_over_what_was_regrouped(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MIN_BLOCKS", 1)
    extra, out = (*ALL, "--shard-tokens", 200, "--workers", "1"), tmp_path / "out"
    with monkeypatch.context() as first:
        first.setattr(arranged_shards, "write_new_shard", lambda *_: 1 / 0)
        assert run(*ground.command(*extra), "--output", out).code == 1
    assert [*out.glob("work/**/regroup-*.json")]
    documents = inodes(out)
    other = (*MADE["shuffled"][0], "--validation-share", "20%", "--shard-tokens", 250)
    ground.make(tmp_path / "plain", *other)
    with monkeypatch.context() as second:
        second.setattr(arranged_shards, "write_new_shard", lambda *_: 1 / 0)
        assert run(*ground.command(*other), "--output", out).code == 1
    assert inodes(out) == documents
    ground.make(out, *other)
    names_of_work = ("summary.json", "__job")
    assert tree(out, names_of_work) == tree(tmp_path / "plain", names_of_work)


@pytest.mark.parametrize("steps", [2, 3])
def test_progress_counts_what_workers_on_other_machines_have_finished(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(planning, "MIN_BLOCKS", 4096 if steps == 2 else 1)
    shown = []

    def at_least(stage: progress.Stage, done: int, **_: int) -> None:
        shown.append((stage.name, done, stage.total))

    monkeypatch.setattr(progress.Stage, "at_least", at_least)
    monkeypatch.setattr(elsewhere_runner, "FOLDERS", [tmp_path])
    summary = ground.make(
        tmp_path / "out",
        *ALL,
        "--shard-tokens",
        200,
        "--runner",
        "elsewhere_runner.ElsewhereRunner",
    )
    done, total = max((done, total) for name, done, total in shown if name == "arrange")
    assert done == total
    # Tasks that regroup blocks have equal shares, rounded down.
    assert steps * summary["tokens"] - 100 < total <= steps * summary["tokens"]


def test_memory_is_given_back_from_task_to_task(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of the tokenizer first, then what tasks leave: all of it before each new shard."""
    ground.make(tmp_path / "plain")
    documents = read_manifest(Storage(), str(tmp_path / "plain")).shards
    done: list[str] = []
    monkeypatch.setattr(bpe_beam.Tokenizer, "clear_cache", lambda _: done.append("words"))

    def release(above: int = 0) -> None:
        done.append("much" if above else "all")

    for module in (scatter, new_shard):
        monkeypatch.setattr(module, "release_unused_memory", release)
    ground.make(tmp_path / "out", *BEST_FIT, "--shard-tokens", 600, "--workers", "2")
    new = read_manifest(Storage(), str(tmp_path / "out")).shards
    assert min(len(documents), len(new)) > 2
    assert done == ["words"] + ["much"] * len(documents) + ["all"] * len(new)


def test_the_plan_is_told_before_shards_are_written(ground: Ground, tmp_path: Path) -> None:
    told = ground.make(tmp_path / "out", *ALL, "--dry-run")
    assert not [*(tmp_path / "out").glob("*/shard-*")]
    documents = (tmp_path / "out" / "work" / "documents").glob("shard-*")
    assert told["temporary_bytes"] == sum(path.stat().st_size for path in documents)
    made = ground.make(tmp_path / "out", *ALL)
    for name in ("documents", "tokens", "sequences", "unfilled", "unfilled_share", "parts"):
        assert told[name] == made[name]
    ground.make(tmp_path / "direct", *ALL)
    assert tree(tmp_path / "out") == tree(tmp_path / "direct")


def inodes(folder: Path) -> dict[str, int]:
    """Return the files of the temporary documents; one that is written again is another file."""
    inside = folder / "work" / "documents"
    return {path.name: path.stat().st_ino for path in inside.iterdir()}


def test_other_arrangements_go_on_with_the_same_documents(ground: Ground, tmp_path: Path) -> None:
    out = tmp_path / "out"
    padded = ("--pad-token", END)
    ground.make(out, *SEQUENCES, *padded, "--dry-run")
    plain = inodes(out)
    told = ground.make(out, "--sequence-length", 48, "--packing", "best_fit", "--dry-run")
    assert told["shards_kept_from_before"] is None
    assert ground.make(out, *BEST_FIT, "--shuffle-seed", 4, "--dry-run")["sequences"] > 20
    assert inodes(out) == plain
    # Those with hashes have all that others need.
    ground.make(out, *ALL, "--dry-run")
    hashed = inodes(out)
    assert not {*plain.values()} & {*hashed.values()}
    ground.make(out, *SEQUENCES, "--dry-run")
    assert inodes(out) == hashed
    ground.make(out, *BEST_FIT, "--shuffle-seed", 4)
    ground.make(tmp_path / "direct", *BEST_FIT, "--shuffle-seed", 4)
    assert tree(out) == tree(tmp_path / "direct")
    refused = run(*ground.command(*SEQUENCES), "--output", out)
    assert (refused.code, "--packing: " in refused.message) == (2, True)


def test_what_is_wrong_is_told_before_anything_is_written(ground: Ground, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other.jsonl"
    other.write_text('{"body": "a text"}\n' * 2000)
    fields = ("--input", other, "--exclude", ground.folder / "a.jsonl")
    for extra, code, said in (
        ((*SEQUENCES, "--pad-token", "nope"), 2, "--pad-token must be a token of the tokenizer"),
        ((*SEQUENCES, *fields), 1, "No more was read; check --text-field"),
    ):
        for dry in ((), ("--dry-run",)):
            ran = run(*ground.command(*extra, *dry), "--output", out)
            assert (ran.code, said in ran.message) == (code, True), ran.message
            assert not out.exists()


def test_another_share_is_the_remedy_for_an_empty_part(ground: Ground, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for share, part in (("100%", "train"), ("0.0001%", "validation")):
        ran = run(*ground.command("--validation-share", share), "--output", out)
        assert (ran.code, f"is for {part}" in ran.message) == (1, True)
    known = inodes(out)
    assert ground.make(out, "--validation-share", "30%", "--dry-run")["documents"] > 0
    assert inodes(out) == known
    ground.make(out, "--validation-share", "30%")
    ground.make(tmp_path / "direct", "--validation-share", "30%")
    assert tree(out) == tree(tmp_path / "direct")


@pytest.mark.slow
def test_killed_while_another_arrangement_takes_over(ground: Ground, tmp_path: Path) -> None:
    """Either command then ends right, until a new shard is finished."""
    first = (*SEQUENCES, "--shuffle-seed", 2, "--shard-tokens", 200)
    other = (*BEST_FIT, "--shard-tokens", 200, "--validation-share", "20%")
    out = tmp_path / "out"

    def has_a_shard() -> bool:
        folders, kinds = ("work", "work/run-*/work"), ("shard", "train", "validation")
        names = [f"{folder}/{kind}-*.json" for folder in folders for kind in kinds]
        names += ["shard-*", "*/shard-*"]  # a shard is published before its receipt
        return any(any(out.glob(name)) for name in names) or has_ended()

    def kill(extra: tuple[object, ...], kind: str, beyond: Callable[[], bool]) -> None:
        kill_between(
            [*COMMAND, *map(str, ground.command(*extra)), "--output", str(out), "--quiet"],
            out,
            partial(has_two_receipts, out, kind),
            beyond,
            f"two receipts of {kind}",
        )

    has_ended = (out / "train" / "__manifest").exists
    for extra, kind in ((first, "measure"), (other, "measure"), (first, "scatter")):
        kill(extra, kind, has_a_shard)
    kill(other, "train", has_ended)
    refused = run(*ground.command(*first), "--output", out)
    assert (refused.code, "--packing: " in refused.message) == (2, True)
    ground.make(out, *other)
    ground.make(tmp_path / "direct", *other)
    assert tree(out) == tree(tmp_path / "direct")


def test_long_documents_that_follow_each_other_have_shards_of_their_own(
    ground: Ground, tmp_path: Path
) -> None:
    corpus = write(tmp_path / "mixed.jsonl", ["a"] * 400 + documents(40, seed=3))
    reading = ("--input", corpus, "--tokenizer", ground.folder / "tok", "--range-bytes", "1KB")
    out = tmp_path / "out"
    run_whole(
        *("tokenize", *reading, "--output", out, "--validation-share", "20%"),
        *("--shard-tokens", 300),
    )
    rows = read_manifest(Storage(), str(out / "train")).shards
    longest = max(map(len, read_shards(out / "train")))
    assert len(rows) > 5
    assert max(row.tokens for row in rows) < 300 + 2 * longest
    assert max(row.documents for row in rows) > 10 * min(row.documents for row in rows)


def has_two_receipts(out: Path, kind: str) -> bool:
    try:
        return len([*out.glob(f"work/**/run-*/work/{kind}-*.json")]) > 1
    except FileNotFoundError:  # a folder was removed meanwhile
        return False


def test_killed_and_resumed(ground: Ground, tmp_path: Path) -> None:
    """In each of its steps, on either engine; a folder that lost a file is repaired."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    extra = (*ALL, "--shard-tokens", 200)
    ground.make(whole, *extra)
    for start in STAGES:
        kill_between(
            [*COMMAND, *map(str, ground.command(*extra)), "--output", str(out), "--quiet"],
            out,
            partial(has_two_receipts, out, start),
            (out / "validation" / "__manifest").exists,
            f"two receipts of {start}",
        )
    summary = ground.make(out, *extra, "--runner", "FnApiRunner")
    assert summary["shards_kept_from_before"] > 0
    assert tree(out) == tree(whole)
    min(out.glob("validation/shard-*")).unlink()
    ground.make(out, *extra)
    assert tree(out) == tree(whole)
    again = ground.make(out, *extra)
    assert again["was_finished_before"]
    for name in ("documents", "text_bytes", "tokens", "rejects", "rejects_by_reason", "unfilled"):
        assert again[name] == summary[name]


def test_inspect_shows_how_documents_were_arranged(ground: Ground, tmp_path: Path) -> None:
    ground.make(tmp_path / "out", *ALL)
    summary_file = tmp_path / "facts.json"
    run("inspect", tmp_path / "out" / "train", "--summary-file", summary_file)
    shown = json.loads(summary_file.read_text())["arranged"]
    assert shown["packing"] == "best_fit"
    assert shown["shuffle_seed"] == 9
    assert shown["part"] == "train"


def test_inspect_knows_the_texts_of_a_part(ground: Ground, tmp_path: Path) -> None:
    whole = ground.make(tmp_path / "plain", "--source", "web=a.jsonl")
    out = tmp_path / "out"
    ground.make(out, "--validation-share", "30%", "--source", "web=a.jsonl")
    parts = []
    for part in ("train", "validation"):
        summary_file = tmp_path / f"{part}.json"
        run("inspect", out / part, "--summary-file", summary_file)
        parts.append(json.loads(summary_file.read_text()))
    assert sum(part["text_bytes"] for part in parts) == whole["text_bytes"]
    for part in parts:
        assert part["sources"]["web"]["tokens"] == part["tokens"]
        assert part["bytes_per_token"] == part["text_bytes"] / part["tokens"]


def test_a_part_that_lost_a_file_is_repaired(ground: Ground, tmp_path: Path) -> None:
    out, extra = tmp_path / "out", ("--validation-share", "30%")
    ground.make(out, *extra)
    whole = tree(out)
    for name in ("__manifest", "__tokenizer"):
        (out / "validation" / name).unlink()
        ground.make(out, *extra)
        assert tree(out) == whole


def test_what_cannot_be_arranged(ground: Ground, tmp_path: Path) -> None:
    for extra, code, said in (
        (("--packing", "best_fit"), 2, "--packing has no effect without sequences"),
        (("--pad-token", END), 2, "--pad-token has no effect without sequences"),
        ((*SEQUENCES, "--max-documents-per-sequence", 2), 2, "has no effect without best_fit"),
        (("--shard-tokens", 5), 2, "--shard-tokens has no effect"),
        ((*SEQUENCES, "--pad-token", "no token"), 2, "must be a token of the tokenizer"),
        (("--validation-share", "0%"), 2, "must be a share above 0%"),
        (("--validation-share", "5"), 2, "must be a share above 0%"),
        (("--validation-share", "100%"), 1, "is for train"),
        (("--shuffle-seed", 2**32), 2, "--shuffle-seed must be"),
    ):
        ran = run(*ground.command(*extra), "--output", tmp_path / "out", "--overwrite")
        assert (ran.code, said in ran.message) == (code, True), (extra, ran.message)


def test_overwriting_removes_all_that_was_written(ground: Ground, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ground.make(out, *ALL, "--dry-run")
    refused = run(*ground.command(), "--output", out)
    assert refused.code == 2
    assert "--validation-share: " in refused.message
    ground.make(out, "--overwrite")
    ground.make(tmp_path / "plain")
    assert tree(out) == tree(tmp_path / "plain")
    ground.make(out, *ALL, "--overwrite")
    ground.make(out, "--overwrite")
    assert tree(out) == tree(tmp_path / "plain")


def test_sequences_without_the_end_of_documents_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("low lower lowest\nnew newer newest\n" * 9)
    reading = ("--input", tmp_path / "a.txt")
    role = ("--special-token", END, "--eos-token", END, "--vocab-size", 270)
    run_whole("train", *reading, *role, "--output", tmp_path / "tok")
    tokenize = ("tokenize", *reading, "--tokenizer", tmp_path / "tok", *SEQUENCES)
    warned = f"sequences do not show where a document ends: {END} is the tokenizer's eos_token"
    for _ in range(2):  # the second one is finished already
        (warning,) = run_whole(*tokenize, "--output", tmp_path / "bare").summary["warnings"]
        assert warning.startswith(warned)
        assert f"--append '{END}'" in warning
    ended = run_whole(*tokenize, "--append", END, "--output", tmp_path / "ended").summary
    assert not ended["warnings"]
    plain = run_whole(*tokenize[:-2], "--output", tmp_path / "plain").summary
    assert not plain["warnings"]


def test_a_sequence_length_is_written_in_full(ground: Ground, tmp_path: Path) -> None:
    refused = run(*ground.command(), "--sequence-length", "4k", "--output", tmp_path / "out")
    assert refused.code == 2
    assert "--sequence-length must be a number of tokens in full, such as 4096" in refused.err
