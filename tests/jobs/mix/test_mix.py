"""`mix`: the documents of the definition, in any arrangement and format, from any layout."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import COMMAND, run, run_whole
from killed_jobs import kill_between
from made_text import documents, write
from read_back import read_shards, tree, without_job
from reference_mix import Document, Part, mixed
from token_folders import write_folder

import bpe_beam
from bpe_beam.errors import DataError
from bpe_beam.jobs import arranged_shards
from bpe_beam.jobs.mix.steps import MixSteps
from bpe_beam.shards import mixture
from bpe_beam.shards.index_shuffle import IndexShuffle
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.storage import Storage
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.document_hashes import for_validation
from bpe_beam.workers.mix import task
from bpe_beam.workers.task_results import TaskResult

END = "<|endoftext|>"
LENGTH = 32
SOURCES = ("web", "code", "math")


@dataclass
class Ground:
    """Tokens folders of three sources: with ids, without ids and with equal documents."""

    folder: Path

    def of(self, name: str) -> Path:
        return self.folder / f"tokens-{name}"

    def inputs(self, *names: str) -> list[str]:
        return [f"{name}={self.of(name)}" for name in names or SOURCES]

    @property
    def documents(self) -> list[Document]:
        """All documents of the three sources."""
        return [each for name in SOURCES for each in documents_of(self.of(name), name)]


def documents_of(folder: Path, source: str | None = None) -> list[Document]:
    """Return the documents of Parquet shards."""
    return [
        Document(source or row["source"], tuple(row["input_ids"]), row["id"])
        for path in sorted(folder.glob("shard-*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    texts = {
        "web": ["", *documents(90, seed=6), ""],
        "code": documents(50, seed=7),
        "math": [text for text in documents(12, seed=8) for _ in range(3)],
    }
    corpus = write(folder / "train.jsonl", texts["web"])
    arguments = ("--input", corpus, "--vocab-size", "400", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok")
    for name, each in texts.items():
        rows = [{"id": f"{name}-{at}", "text": text} for at, text in enumerate(each)]
        if name != "web":
            rows = [{"text": row["text"]} for row in rows]
        path = folder / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        tokenizer = ("--tokenizer", folder / "tok", "--append", END, "--format", "parquet")
        reading = ("--input", path, "--range-bytes", "3KB")
        run_whole("tokenize", *reading, *tokenizer, "--output", folder / f"tokens-{name}")
    return Ground(folder)


MIXTURE = ("--tokens-of", "web=1500,code=900,math=2000", "--max-epochs", "math=3", "--seed", 5)
PARTS = {"web": Part(1500), "code": Part(900), "math": Part(2000, 0, 3)}


def mix(ground: Ground, output: Path, *extra: object, inputs: Iterable[object] = ()) -> dict:
    named = [*inputs] or ground.inputs()
    return run_whole("mix", "--input", *named, *extra, "--output", output).summary


def rows_of(folder: Path) -> list[list[int]]:
    """Return the ids of all rows, in order."""
    return [ids.tolist() for ids in bpe_beam.shards.open(str(folder))]


def in_order(rows: list, seed: int) -> list:
    order = IndexShuffle(len(rows), seed).number_at(np.arange(len(rows), dtype=np.uint64))
    return [rows[number] for number in order.tolist()]


def concatenated(rows: list[list[int]]) -> list[list[int]]:
    stream = [token for row in rows for token in row]
    whole = len(stream) // LENGTH * LENGTH
    return [stream[start : start + LENGTH] for start in range(0, whole, LENGTH)]


SEQUENCES = ("--sequence-length", LENGTH)


@pytest.mark.parametrize("seed", [None, 3])
def test_documents_are_those_of_the_definition(
    ground: Ground, tmp_path: Path, seed: int | None
) -> None:
    summary = mix(
        ground, tmp_path / "out", *MIXTURE, *(("--shuffle-seed", seed) if seed else ()),
        "--shard-tokens", 900,
    )  # fmt: skip
    expected = [each.document for each in mixed(ground.documents, PARTS, 5)]
    expected = expected if seed is None else in_order(expected, seed)
    written = documents_of(tmp_path / "out")
    assert written == expected
    assert summary["documents"] == len(expected)
    assert summary["shards"] >= 4
    for name in SOURCES:
        own = [each for each in expected if each.source == name]
        row = summary["sources"][name]
        assert (row["documents"], row["tokens"]) == (len(own), sum(len(d.tokens) for d in own))
        assert row["tokens_asked"] == PARTS[name].target
    assert summary["sources"]["math"]["epochs"] > 1
    assert run_whole("verify", tmp_path / "out").summary["whole"] is True
    assert not (tmp_path / "out" / "work").exists()
    counted = pq.read_table(tmp_path / "out" / "__token_counts").to_pylist()
    assert {(row["source"], row["id"]): row["count"] for row in counted if row["count"]} == {
        (name, token): sum(each.tokens.count(token) for each in expected if each.source == name)
        for name in SOURCES
        for token in {t for each in expected if each.source == name for t in each.tokens}
    }


def test_sequences_are_whole(ground: Ground, tmp_path: Path) -> None:
    taken = [list(each.document.tokens) for each in mixed(ground.documents, PARTS, 5)]
    tokens = sum(map(len, taken))
    out = tmp_path / "out"
    summary = mix(ground, out, *MIXTURE, *SEQUENCES, "--shuffle-seed", 4, "--shard-tokens", 900)
    assert rows_of(out) == in_order(concatenated(taken), 4)
    assert (summary["tokens"], summary["cut"]) == (tokens // LENGTH * LENGTH, tokens % LENGTH)
    assert sum(row["tokens"] for row in summary["sources"].values()) == summary["tokens"]
    assert run_whole("verify", out).summary["whole"] is True
    packed = tmp_path / "packed"
    best_fit = ("--packing", "best_fit", "--pad-token", END, "--format", "megatron")
    summary = mix(ground, packed, *MIXTURE, *SEQUENCES, *best_fit, "--shard-tokens", 900)
    rows = read_shards(packed)
    assert {len(row) for row in rows} == {LENGTH}
    assert summary["tokens"] == tokens
    assert summary["padding"] == len(rows) * LENGTH - tokens
    pieces = sorted(row[at : at + LENGTH] for row in taken for at in range(0, len(row), LENGTH))
    assert sum(map(len, pieces)) == tokens
    assert all(any(is_within(piece, row) for row in rows) for piece in pieces[:: len(pieces) // 9])
    assert run_whole("verify", packed).summary["whole"] is True


def is_within(piece: list[int], row: list[int]) -> bool:
    return any(row[at : at + len(piece)] == piece for at in range(len(row) - len(piece) + 1))


def convert(ground: Ground, name: str, *extra: object) -> Path:
    out = ground.folder / "-".join(map(str, ("converted", name, *extra)))
    if not out.exists():
        run_whole("convert", ground.of(name), *extra, "--output", out)
    return out


@pytest.mark.parametrize(
    "arranged",
    [
        pytest.param((), marks=pytest.mark.slow),
        (*SEQUENCES, "--shuffle-seed", 2, "--shard-tokens", 2000),
    ],
)
def test_the_layout_of_the_inputs_does_not_matter(
    ground: Ground, tmp_path: Path, arranged: tuple[object, ...]
) -> None:
    """One shard, 40 shards, Arrow, other names and another order: the same bytes."""
    made = {}
    for layout, extra in {
        "as it is": (),
        "one": ("--shards", 1),
        "forty": ("--shards", 40),
        "arrow": ("--format", "arrow"),
    }.items():
        out = tmp_path / layout
        folders = [convert(ground, n, *extra) if extra else ground.of(n) for n in SOURCES]
        inputs = [f"{n}={f}" for n, f in zip(SOURCES, folders, strict=True)]
        if layout == "forty":
            inputs.reverse()
        mix(ground, out, *MIXTURE, *arranged, "--format", "parquet", inputs=inputs)
        made[layout] = without_job(out)
    assert made["as it is"] == made["one"] == made["forty"] == made["arrow"]


def test_formats_without_ids_give_the_same_by_tokens(ground: Ground, tmp_path: Path) -> None:
    by_tokens = ("--identity", "tokens", "--format", "megatron", "--shard-tokens", 900)
    made = []
    for format_name in ("parquet", "megatron", "datatrove"):
        extra = ("--format", format_name, "--shards", 5)
        inputs = [f"{name}={convert(ground, name, *extra)}" for name in SOURCES]
        out = tmp_path / format_name
        mix(ground, out, *MIXTURE, *by_tokens, inputs=inputs)
        made.append({name: data for name, data in tree(out).items() if name[0] != "_"})
    assert made[0] == made[1] == made[2]
    expected = mixed(ground.documents, PARTS, 5, by="tokens")
    assert rows_of(tmp_path / "megatron") == [list(each.document.tokens) for each in expected]


def test_stages_share_no_document(ground: Ground, tmp_path: Path) -> None:
    stages = []
    for number, (tokens, skip) in enumerate(((900, 0), (700, 900), (400, 1600))):
        share = ("--tokens", tokens, "--share", "web=3,code=1", "--skip-tokens", skip)
        mix(ground, tmp_path / str(number), *share)
        stages.append(documents_of(tmp_path / str(number)))
    whole = ("--tokens", 2000, "--share", "web=0.75,code=0.25")
    mix(ground, tmp_path / "whole", *whole)
    together = documents_of(tmp_path / "whole")
    assert sorted(chain.from_iterable(stages), key=repr) == sorted(together, key=repr)
    assert sum(map(len, stages)) == len(together)


@pytest.mark.parametrize("duplicates", ["drop", "drop_within_sources"])
def test_duplicates_are_left_out(ground: Ground, tmp_path: Path, duplicates: str) -> None:
    twice = tmp_path / "twice"
    run_whole("convert", ground.of("math"), "--shards", 2, "--output", twice)
    inputs = [*ground.inputs("math"), f"again={twice}", *ground.inputs("web")]
    all_documents = [each for each in ground.documents if each.source != "code"]
    all_documents += documents_of(twice, "again")
    tokens = sum(len(each) for each in {d.tokens for d in ground.documents if d.source == "math"})
    again = tokens if duplicates == "drop_within_sources" else 9
    parts = {"math": Part(9), "again": Part(again), "web": Part(400)}
    of_each = ",".join(f"{name}={part.target}" for name, part in parts.items())
    options = ("--duplicates", duplicates, "--tokens-of", of_each)
    summary = mix(ground, tmp_path / "out", *options, inputs=inputs)
    expected = [each.document for each in mixed(all_documents, parts, 0, duplicates)]
    written = [(each.source, each.tokens) for each in documents_of(tmp_path / "out")]
    assert written == [(each.source, each.tokens) for each in expected]
    dropped = [summary["sources"][name]["duplicates_dropped"] for name in ("math", "again")]
    if duplicates == "drop_within_sources":
        assert dropped == [24, 24]
    else:
        assert sum(dropped) == 72 - 12


def test_validation_documents_are_in_no_mixture(ground: Ground, tmp_path: Path) -> None:
    share = ("--validation-share", "30%")
    held_back = set()
    for seed in (1, 2):
        out = tmp_path / str(seed)
        some = ("--tokens-of", "web=1200,math=500", "--max-epochs", "4", "--seed", seed)
        summary = mix(ground, out, *some, *share)
        train, validation = (documents_of(out / part) for part in ("train", "validation"))
        assert not {each.tokens for each in train} & {each.tokens for each in validation}
        assert {each.source for each in validation} == {"web", "math"}
        assert summary["parts"]["validation"]["documents_also_in_train"] == 0
        held_back.add(frozenset((each.source, each.tokens) for each in validation))
        assert run_whole("verify", out).summary["shards"] == 2
    assert len(held_back) == 1
    by_id = ("--validation-by", "id", "--tokens-of", "web=900")
    mix(ground, tmp_path / "by id", *share, *by_id, inputs=ground.inputs("web"))
    arguments = ("--input", ground.folder / "web.jsonl", "--tokenizer", ground.folder / "tok")
    options = ("--append", END, "--format", "parquet", *share, *by_id[:2])
    run_whole("tokenize", *arguments, *options, "--output", tmp_path / "tokenized")
    ids = [
        {each.id for each in documents_of(tmp_path / name / "validation")}
        for name in ("by id", "tokenized")
    ]
    assert ids[0] == ids[1] != set()


@pytest.mark.parametrize("by", ["tokens", "id"])
def test_verify_finds_documents_of_the_other_part(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Documents without an id are divided by their tokens."""
    inputs = ground.inputs("web", "code")
    share = ("--tokens", 1500, "--share", "web=1,code=1", "--validation-share", "30%")
    mix(ground, tmp_path / "out", *share, "--validation-by", by, inputs=inputs)
    summary = run_whole("verify", tmp_path / "out", "--full", "--input", *inputs).summary
    assert summary["compared"] == "every token, with the folders mixed again"
    # Every document with a part of the hashes goes to the wrong folder.
    wrong = lambda hashes, share: for_validation(hashes, share) ^ (hashes % 7 == 0)  # noqa: E731
    monkeypatch.setattr("bpe_beam.workers.mix.index.for_validation", wrong)
    mix(ground, tmp_path / "wrong", *share, "--validation-by", by, inputs=inputs)
    ran = run("verify", tmp_path / "wrong")
    assert ran.code == 1
    assert ran.message.count("documents belong to the other part") == 2, ran.message


def test_sources_within_a_folder(ground: Ground, tmp_path: Path) -> None:
    rows = [
        {"id": f"d{at}", "text": text, "lang": ("en", "de", "fr")[at % 3]}
        for at, text in enumerate(documents(60, seed=3))
    ]
    corpus = tmp_path / "a.jsonl"
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ("--input", corpus, "--source-field", "lang", "--tokenizer", ground.folder / "tok")
    options = ("--append", END, "--format", "arrow", "--range-bytes", "2KB")
    run_whole("tokenize", *arguments, *options, "--output", tmp_path / "tokens")
    out = tmp_path / "out"
    options = ("--tokens-of", "en=300,fr=200,web=200", "--format", "parquet")
    mix(ground, out, *options, inputs=[tmp_path / "tokens", *ground.inputs("web")])
    table = pa.ipc.open_file(next((tmp_path / "tokens").glob("shard-00000*")).read_bytes())
    assert table.schema.names[3] == "source"
    written = documents_of(out)
    languages = {row["id"]: row["lang"] for row in rows}
    assert {each.source for each in written} == {"en", "fr", "web"}
    assert all(each.source == languages.get(each.id, "web") for each in written)


YAML = """
tokens: 1.2k
share:
  web: 0.75
  code: 0.25
max_epochs:
  code: 2
"""


def test_a_file_has_the_mixture_and_the_command_line_wins(ground: Ground, tmp_path: Path) -> None:
    file = tmp_path / "mixture.yaml"
    file.write_text(YAML)
    summary = mix(ground, tmp_path / "out", "--mixture", file)
    asked = {name: row["tokens_asked"] for name, row in summary["sources"].items()}
    assert asked == {"web": 900, "code": 300}
    same = ("--tokens", "1200", "--share", "code=1,web=3", "--max-epochs", "code=2")
    mix(ground, tmp_path / "same", *same)
    assert tree(tmp_path / "out") == tree(tmp_path / "same")
    summary = mix(ground, tmp_path / "less", "--mixture", file, "--tokens", "400")
    assert summary["sources"]["web"]["tokens_asked"] == 300


def test_the_file_gives_the_weights_of_a_training(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = tmp_path / "counts"
    files = [ground.folder / f"{name}.jsonl" for name in SOURCES]
    named = [word for name in SOURCES for word in ("--source", f"{name}={name}*")]
    run_whole("count", "--input", *files, *named, "--output", counts)
    file = tmp_path / "mixture.yaml"
    file.write_text(YAML)
    train = ("train", "--counts", counts, "--vocab-size", 300, "--weights")
    with monkeypatch.context() as patch:
        patch.setattr(mixture, "read_mixture", reads := Mock(side_effect=mixture.read_mixture))
        weights = run_whole(*train, file, "--output", tmp_path / "tok").summary["weights"]
    assert reads.call_count == 1
    shares = {name: row["weighted_share"] for name, row in weights.items()}
    assert shares == pytest.approx({"web": 0.75, "code": 0.25, "math": 0}, abs=1e-4)
    typed = ",".join(f"{name}={row['decimal']}" for name, row in weights.items())
    run_whole(*train, typed, "--output", tmp_path / "typed")
    made = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("tok", "typed")]
    assert made[0] == made[1]
    file.write_text(YAML.replace("web", "webb"))
    ran = run(*train, file, "--output", tmp_path / "no")
    assert (ran.code, "did you mean web?" in ran.message) == (2, True), ran.message
    file.write_text(YAML.replace("0.75", "0.5"))
    ran = run(*train, file, "--output", tmp_path / "tok")
    assert (ran.code, "what differs" in ran.message) == (2, True), ran.message


def test_a_dry_run_writes_nothing(ground: Ground, tmp_path: Path) -> None:
    summary = mix(ground, tmp_path / "out", *MIXTURE, "--dry-run")
    assert not (tmp_path / "out").exists()
    row = summary["sources"]["math"]
    own = [each for each in ground.documents if each.source == "math"]
    assert row["tokens_there"] == sum(len(each.tokens) for each in own)
    assert (row["tokens_to_take"], row["max_epochs"]) == (2000, 3)


WRONG = {
    "an unknown source": (("--tokens-of", "webb=5"), 2, "did you mean web?"),
    "a share of 0": (("--tokens", "9", "--share", "web=0,code=1"), 2, "above 0, got '0' for web"),
    "no tokens of a source": (
        ("--tokens-of", "web=0,code=9"),
        2,
        "--tokens-of must be numbers above 0, got 0 for web",
    ),
    "only documents for validation": (
        ("--tokens-of", "web=9", "--validation-share", "100%"),
        2,
        "it has 0 without duplicates and documents for validation",
    ),
    "a share with an exponent": (
        ("--tokens", "9", "--share", "web=1e-30,code=1"),
        2,
        "must be decimal numbers above 0, got '1e-30' for web",
    ),
    "a number that is none": (("--tokens", "nan"), 2, "--tokens must be a whole number"),
    "no epochs": (
        ("--tokens-of", "web=9", "--max-epochs", "0"),
        2,
        "--max-epochs must be whole numbers from 1 to 1,000,000, got '0'",
    ),
    "no share": (("--tokens", "9"), 2, "--share is missing"),
    "no tokens": ((), 2, "--tokens and --tokens-of are both missing"),
    "both": (("--tokens", "9", "--tokens-of", "web=9"), 2, "exclude each other"),
    "too many": (("--tokens-of", "web=1M,code=9"), 2, "web: 1,000,000 tokens; it has "),
    "too many after others": (
        ("--tokens-of", "web=9", "--skip-tokens", "web=1M"),
        2,
        "web: 9 tokens after 1,000,000",
    ),
    "too many epochs": (
        ("--tokens-of", "math=1M", "--max-epochs", "2"),
        2,
        "in 2 epochs\nTake fewer tokens, or give more --max-epochs",
    ),
    "no number": (("--tokens-of", "web=many"), 2, "got 'many'"),
    "half a token": (("--tokens-of", "web=0.5"), 2, "got '0.5'"),
    "a source twice": (("--tokens-of", "web=5,web=6"), 2, "must not repeat 'web'"),
    "ids that are missing": (
        ("--tokens-of", "code=9", "--identity", "id"),
        1,
        "code: a document has no id",
    ),
    "less than a sequence": (
        ("--tokens-of", "web=9", "--sequence-length", 4096),
        1,
        "fill no sequence of 4,096 tokens",
    ),
    "columns without a place": (
        ("--tokens-of", "web=9", "--columns", "labels", "--format", "megatron"),
        2,
        "--columns",
    ),
    "no padding token": (
        ("--tokens-of", "web=90", *SEQUENCES, "--pad-token", "<no>"),
        2,
        "--pad-token must be a token",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused(ground: Ground, tmp_path: Path, name: str) -> None:
    extra, code, said = WRONG[name]
    ran = run("mix", "--input", *ground.inputs(), *extra, "--output", tmp_path / "out")
    assert ran.code == code, ran.err
    assert said in ran.message, ran.message


def test_folders_that_cannot_be_mixed(ground: Ground, tmp_path: Path) -> None:
    other, packed, unfinished = (tmp_path / name for name in ("other", "packed", "unfinished"))
    unfinished.mkdir()
    shutil.copy(ground.of("web") / "__job", unfinished)
    tokenizer = ("--tokenizer", ground.folder / "tok")
    corpus = ("--input", ground.folder / "web.jsonl")
    run_whole("tokenize", *corpus, *tokenizer, "--output", other)
    run_whole("tokenize", *corpus, *tokenizer, "--append", END, *SEQUENCES, "--output", packed)
    for folder, code, said in (
        (other, 2, "append"),
        (write_folder(tmp_path / "tokenizer", "parquet", [[[1]]]), 2, "differs:\n  tokenizer: "),
        (packed, 2, "which has sequences"),
        (ground.of("web"), 2, "named twice"),
        (ground.folder / "tok", 2, "holds a tokenizer, not shards"),
        (unfinished, 1, "not finished: the job failed, was interrupted or is running; run it"),
        (tmp_path / "none", 1, "cannot read"),
    ):
        inputs = [*ground.inputs("web"), f"web={folder}"]
        ran = run("mix", "--input", *inputs, "--tokens", 50, "--output", tmp_path / "out")
        assert (ran.code, said in ran.message) == (code, True), ran.message
    assert not (tmp_path / "out").exists()


def test_damaged_shards_are_named(ground: Ground, tmp_path: Path) -> None:
    folder = tmp_path / "web"
    run_whole("convert", ground.of("web"), "--format", "megatron", "--output", folder)
    shard = sorted(folder.glob("shard-*.bin"))[1]
    data = bytearray(shard.read_bytes())
    data[10] ^= 1
    shard.write_bytes(data)
    command = ("mix", "--input", f"web={folder}", "--tokens", 500, "--output", tmp_path / "out")
    ran = run(*command)
    assert (ran.code, shard.name in ran.message) == (1, True), ran.message
    assert f"bpe-beam verify {folder} shows what is damaged" in ran.message
    data[10] ^= 1
    shard.write_bytes(data)
    run_whole(*command)
    mix(ground, tmp_path / "whole", "--tokens", 500, inputs=[f"web={folder}"])
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


def test_small_budgets_are_told(ground: Ground, tmp_path: Path) -> None:
    command = ("mix", "--input", *ground.inputs("code"), "--tokens", 1)
    ran = run(*command, "--output", tmp_path / "out", "--quiet")
    assert ran.code == 0
    assert "code: its only document has" in ran.err
    # The second document begins later.
    ran = run(*command, "--skip-tokens", 1, "--output", tmp_path / "none", "--quiet")
    assert (ran.code, "no document with tokens begins" in ran.message) == (1, True), ran.message


ALL = (*MIXTURE, *SEQUENCES, "--packing", "best_fit", "--shuffle-seed", 9)


def test_every_engine_and_number_of_workers_writes_the_same_bytes(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for name, extra in {
        "1": ("--workers", "1"),
        "3": ("--workers", "3"),
        "beam": ("--runner", "FnApiRunner"),
    }.items():
        mix(ground, tmp_path / name, *ALL, "--shard-tokens", 100, *extra)
        made[name] = tree(tmp_path / name)
    assert made["1"] == made["3"] == made["beam"]
    monkeypatch.setattr(task, "RECORDS", 17)  # many groups, and many ranges of keys
    monkeypatch.setattr(planning, "MIN_BLOCKS", 1)  # and groups of new shards
    mix(ground, tmp_path / "many", *ALL, "--shard-tokens", 100)
    assert "work/regroup-" in (tmp_path / "many" / "__job").read_text()
    of_job = ("__job",)
    assert tree(tmp_path / "many", of_job) == tree(tmp_path / "1", of_job)


STEPS = ("index", "numbered", "keyed", "selected", "placed", "scatter", "shard")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_run_is_resumed(ground: Ground, tmp_path: Path, step: str) -> None:
    options = ("mix", "--input", *ground.inputs(), *ALL, "--shard-tokens", 600)
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*options, "--output", whole)
    command = [*COMMAND, *map(str, options), "--output", str(out), "--workers", "1"]
    kill_between(command, out, seen(out, step), (out / "__manifest").exists, step)
    summary = run_whole(*options, "--output", out).summary
    assert tree(out) == tree(whole)
    assert summary["was_finished_before"] is None
    again = run_whole(*options, "--output", out).summary
    assert again["was_finished_before"] is True
    (out / "__manifest").rename(out / "gone")
    (out / "gone").unlink()
    run_whole(*options, "--output", out)
    assert tree(out) == tree(whole)


def test_a_job_of_other_groups_and_ranges_is_resumed(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("mix", "--input", *ground.inputs(), *ALL, "--shard-tokens", 600)
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*options, "--output", whole)
    with monkeypatch.context() as other:
        other.setattr(task, "RECORDS", 17)
        other.setattr(MixSteps, "write", lambda *_: 1 / 0)
        assert run(*options, "--output", out).code == 1
    assert seen(out, "index")()
    run_whole(*options, "--output", out)
    made = {name: data for name, data in tree(out).items() if not name.startswith("work/")}
    assert made == tree(whole)


@pytest.mark.slow
def test_regrouping_goes_on_after_a_failure(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "MIN_BLOCKS", 1)
    options = ("mix", "--input", *ground.inputs(), *ALL, "--shard-tokens", 100, "--workers", 1)
    whole, out = tmp_path / "whole", tmp_path / "out"
    called: list[str] = []

    def failing(*arguments: Any) -> TaskResult:
        called.append(arguments[-1])
        if len(called) == 3:
            raise DataError("the machine is lost")
        return regroup_blocks(*arguments)

    monkeypatch.setattr(arranged_shards, "regroup_blocks", failing)
    assert run(*options, "--output", out).code == 1
    assert run(*options, "--output", out).code == 0
    assert not {*called[:2]} & {*called[3:]}
    assert run(*options, "--output", whole).code == 0
    assert tree(out) == tree(whole)


@pytest.mark.slow
@pytest.mark.parametrize("min_blocks", [(1, 4096), (4096, 1), (1, 2)])
def test_a_job_goes_on_with_other_groups(
    ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, min_blocks: tuple[int, int]
) -> None:
    options = ("mix", "--input", *ground.inputs(), *ALL, "--shard-tokens", 100)
    whole, out = tmp_path / "whole", tmp_path / "out"
    run_whole(*options, "--output", whole)
    with monkeypatch.context() as other:
        other.setattr(planning, "MIN_BLOCKS", min_blocks[0])
        other.setattr(arranged_shards, "write_new_shard", lambda *_: 1 / 0)
        assert run(*options, "--output", out).code == 1
    assert seen(out, "scatter")()
    assert seen(out, "regroup")() == (min_blocks[0] == 1)
    monkeypatch.setattr(planning, "MIN_BLOCKS", min_blocks[1])
    run_whole(*options, "--output", out)
    of_job = ("__job",)
    assert tree(out, of_job) == tree(whole, of_job)


def seen(out: Path, step: str) -> Callable[[], bool]:
    """Return whether a task of a step has a receipt."""
    return lambda: any(path.name.startswith(f"{step}-") for path in [*out.glob("work/**/*.json")])


def test_another_mixture_is_another_job(ground: Ground, tmp_path: Path) -> None:
    out = tmp_path / "out"
    mix(ground, out, *MIXTURE)
    ran = run("mix", "--input", *ground.inputs(), *MIXTURE[:-1], 6, "--output", out)
    assert (ran.code, "seed" in ran.message) == (2, True), ran.message
    shard = next(out.glob("shard-*"))
    data = shard.read_bytes()
    shard.unlink()
    ran = run("mix", "--input", *ground.inputs(), *MIXTURE, "--output", out)
    assert ran.code == 0, ran.err
    assert shard.read_bytes() == data


def test_the_manifest_says_what_was_mixed(ground: Ground, tmp_path: Path) -> None:
    sources = mix(ground, tmp_path / "out", *MIXTURE)["sources"]
    mixture = read_manifest(Storage(), str(tmp_path / "out")).mixture
    assert mixture
    assert (mixture.seed, mixture.duplicates, mixture.cut) == (5, "keep", 0)
    identities = {name: each.identity for name, each in mixture.sources.items()}
    assert identities == {"web": "id", "code": "tokens", "math": "tokens"}
    figures = tmp_path / "figures.json"
    ran = run("inspect", tmp_path / "out", "--summary-file", figures)
    shown = json.loads(figures.read_text())
    assert shown["mixture"] == {"seed": 5, "identity": "auto", "duplicates": "keep", "cut": 0}
    assert shown["mixture_sources"] == sources
    assert sources["web"]["share_asked"] == pytest.approx(1500 / 4400, abs=1e-6)
    taken = sum(row["tokens"] for row in sources.values())
    assert sources["web"]["share"] == pytest.approx(sources["web"]["tokens"] / taken, abs=1e-6)
    assert re.search(rb"mixture sources +asked +tokens +asked +share ", ran.out)
