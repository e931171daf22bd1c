"""`WriteTokens` with sequences and a seed: the shards of `tokenize`, of the same documents."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from command_line import run_whole
from made_text import documents, write
from read_back import read_shards

from bpe_beam import Tokenizer, shards
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.manifest import read_manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage
from bpe_beam.transforms import (
    ReadDocuments,
    ReadSettings,
    Tokenize,
    WriteTokens,
    arrange_tokens,
)
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.task_results import TaskResult

END = "<|endoftext|>"


@dataclass
class Ground:
    """A corpus of several splits, some documents without a text, and its tokenizer."""

    folder: Path

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_file(self.folder / "tok" / "tokenizer.json")

    def tokenize(self, output: Path, *extra: object) -> Path:
        reading = ("--input", self.folder / "a.jsonl", "--id-field", "id", "--range-bytes", "3KB")
        tokenizer = ("--tokenizer", self.folder / "tok", "--append", END)
        run_whole("tokenize", *reading, *tokenizer, "--output", output, *extra)
        return output

    def read(self) -> ReadDocuments:
        settings = ReadSettings(id_field="id")
        return ReadDocuments([self.folder / "a.jsonl"], settings, range_bytes=3_000)


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
    return Ground(folder)


def shard_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "_"}


SEQUENCES: dict[str, Any] = {"sequence_length": 32}
ARRANGED: dict[str, dict[str, Any]] = {
    "shuffled": {"shuffle_seed": 7, "format": "parquet"},
    "shuffled, several shards": {"shuffle_seed": 7, "shard_tokens": 900},
    "shuffled, in groups": {"shuffle_seed": 7, "shard_tokens": 100},
    "concatenated": SEQUENCES,
    "concatenated, padded": {**SEQUENCES, "pad_token": END, "shuffle_seed": 1},
    "best fit": {
        **SEQUENCES, "packing": "best_fit", "shuffle_seed": 3, "max_documents_per_sequence": 3,
        "shard_tokens": 1_000, "format": "arrow", "columns": ["attention_mask", "position_ids"],
    },
}  # fmt: skip


def flags(options: dict[str, Any]) -> list[object]:
    given: list[object] = []
    for name, value in options.items():
        given += [f"--{name.replace('_', '-')}"]
        given += [",".join(value) if isinstance(value, list) else value]
    return given


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ARRANGED)
def test_documents_of_files_have_the_shards_of_tokenize(
    run, ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    options = ARRANGED[name]
    expected = ground.tokenize(tmp_path / "expected", *flags(options))
    regrouped = []
    if "groups" in name:
        monkeypatch.setattr(planning, "MIN_BLOCKS", 1)

        def recorded(*arguments: Any) -> TaskResult:
            regrouped.append(arguments[-1])
            return regroup_blocks(*arguments)

        monkeypatch.setattr(arrange_tokens, "regroup_blocks", recorded)
    write_tokens = WriteTokens(tmp_path / "out", ground.tokenizer, **options)
    kept, counters = run(
        lambda p: p | ground.read() | Tokenize(ground.tokenizer, append=END) | write_tokens
    )
    assert kept == [f"{tmp_path / 'out'}/__manifest"]
    ours, theirs = (read_manifest(Storage(), str(f)) for f in (tmp_path / "out", expected))
    assert (len(regrouped) > 1) == ("groups" in name)
    made = shard_bytes(tmp_path / "out")
    expected_bytes = shard_bytes(expected)
    expected_bytes.pop("token_counts.parquet", None)
    assert made == expected_bytes
    assert ours.shards == theirs.shards
    assert ours.totals == theirs.totals
    assert verify(Storage(), str(tmp_path / "out")).problems == ()
    assert counters["tokens_written"] >= ours.totals.tokens
    assert not (tmp_path / "out" / "work").exists()
    assert not (tmp_path / "out" / "__job").exists()


def test_documents_of_anywhere_have_one_order(run, ground: Ground, tmp_path: Path) -> None:
    """Whatever the order, the number of portions and the kind of element."""
    texts = documents(60, seed=3)
    read = []
    for name, shards_, seed in (("a", 1, 0), ("b", 5, 1)):
        random.Random(seed).shuffle(texts)
        elements = (
            beam.Create(texts, reshuffle=False)
            if seed
            else beam.Create([pa.RecordBatch.from_pydict({"text": texts})])
        )
        write_tokens = WriteTokens(
            tmp_path / name, ground.tokenizer, shards=shards_, sequence_length=16, shuffle_seed=2
        )
        run(lambda p, e=elements, w=write_tokens: p | e | Tokenize(ground.tokenizer) | w)
        read.append(read_shards(tmp_path / name))
    assert read[0] == read[1]
    tokens = [token for row in read[0] for token in row]
    assert sorted(tokens) == sorted(t for text in texts for t in ground.tokenizer.encode(text))


def _slices(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    half = batch.num_rows // 2
    return [batch.slice(0, half), batch.slice(half)]


def _doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    (joined,) = pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()
    return joined


@pytest.mark.parametrize("step", [beam.FlatMap(_slices), beam.Map(_doubled)], ids=["cut", "join"])
def test_batches_that_lost_their_order_are_refused(
    run, ground: Ground, tmp_path: Path, step: beam.ParDo
) -> None:
    write_tokens = WriteTokens(tmp_path / "out", ground.tokenizer, shuffle_seed=1)
    step = "Step" >> step.with_output_types(pa.RecordBatch)
    with pytest.raises((DataError, RuntimeError), match="has divided or joined batches"):
        run(lambda p: p | ground.read() | step | Tokenize(ground.tokenizer) | write_tokens)


def _odd(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pa.array([int(each[1:]) % 2 == 1 for each in batch["id"].to_pylist()]))


def _joined(batches: tuple[int, Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    # Together they have fewer rows than each had when it was read.
    one, other, *others = sorted(batches[1], key=lambda batch: batch["id"][0].as_py())
    both = pa.Table.from_batches([one, other]).combine_chunks().to_batches()
    return [*both, *others]


def test_filtered_batches_that_were_joined_are_refused(run, ground: Ground, tmp_path: Path) -> None:
    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        few = beam.Map(lambda batch: (0, batch.slice(3, 2)))
        joined = beam.FlatMap(_joined).with_output_types(pa.RecordBatch)
        batches = pipeline | ground.read() | few | beam.GroupByKey() | "Join" >> joined
        return batches | Tokenize(ground.tokenizer) | write_tokens

    write_tokens = WriteTokens(tmp_path / "out", ground.tokenizer, shuffle_seed=1)
    with pytest.raises((DataError, RuntimeError), match="has divided or joined batches"):
        run(build)


def test_documents_of_two_reads_have_one_order(run, ground: Ground, tmp_path: Path) -> None:
    other = tmp_path / "b.jsonl"
    rows = ({"id": f"b{number}", "text": f"the {number}"} for number in range(20))
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    orders = []
    for name in ("ab", "ba"):
        reads = {
            "a": ground.read(),
            "b": ReadDocuments([other], ReadSettings(id_field="id"), range_bytes=300),
        }
        write_tokens = WriteTokens(
            tmp_path / name, ground.tokenizer, shard_tokens=1_000, format="parquet"
        )

        def build(pipeline: beam.Pipeline, name=name, reads=reads, write=write_tokens) -> Any:
            both = [pipeline | each >> reads[each] for each in name] | beam.Flatten()
            return both | Tokenize(ground.tokenizer) | write

        run(build)
        dataset = shards.open(tmp_path / name)
        orders.append([dataset.labels(at)["id"] for at in range(len(dataset))])
    assert orders[0] == orders[1]
    for name, count in (("d", 152), ("b", 20)):
        numbers = [int(each[1:]) for each in orders[0] if each[0] == name]
        assert numbers == sorted(numbers)
        assert len(numbers) >= count


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "size", [pa.scalar(-5), pa.scalar(2**63 + 1, pa.uint64()), pa.scalar("x")], ids=str
)
def test_a_column_text_bytes_of_a_user_is_no_size(
    run, ground: Ground, tmp_path: Path, size: pa.Scalar
) -> None:
    def add(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.append_column("text_bytes", pa.array([size.as_py()] * len(batch), size.type))

    step = "Add" >> beam.Map(add).with_output_types(pa.RecordBatch)
    write_tokens = WriteTokens(tmp_path / "out", ground.tokenizer, shuffle_seed=1, format="parquet")
    run(lambda p: p | ground.read() | step | Tokenize(ground.tokenizer) | write_tokens)
    assert read_manifest(Storage(), str(tmp_path / "out")).totals.text_bytes == 0


def test_a_filter_keeps_the_order(run, ground: Ground, tmp_path: Path) -> None:
    write_tokens = WriteTokens(
        tmp_path / "out", ground.tokenizer, shard_tokens=1_000, format="parquet"
    )
    step = "Odd" >> beam.Map(_odd).with_output_types(pa.RecordBatch)
    run(lambda p: p | ground.read() | step | Tokenize(ground.tokenizer) | write_tokens)
    dataset = shards.open(tmp_path / "out")
    numbers = [int(dataset.labels(at)["id"][1:]) for at in range(len(dataset))]
    assert numbers == sorted(numbers)
    assert len(numbers) > 50


def test_a_learned_tokenizer_fills_sequences(run, ground: Ground, tmp_path: Path) -> None:
    text = ground.tokenizer.to_json()
    texts = documents(20, seed=4)

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        learned = beam.pvalue.AsSingleton(pipeline | "Learned" >> beam.Create([text]))
        ids = pipeline | beam.Create(texts) | Tokenize(learned)
        return ids | WriteTokens(tmp_path / "out", learned, sequence_length=16, pad_token=END)

    run(build)
    rows = read_shards(tmp_path / "out")
    assert all(len(row) == 16 for row in rows)
    pad = ground.tokenizer.token_to_id(END)
    padding = sum(row.count(pad or 0) for row in rows)
    manifest = read_manifest(Storage(), str(tmp_path / "out"))
    assert manifest.arranged.padding == padding
    assert len(shards.open(tmp_path / "out")) == len(rows)


def test_what_the_shards_have_no_place_for(run, ground: Ground, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no effect without sequence_length"):
        WriteTokens(tmp_path / "a", ground.tokenizer, pad_token=END)
    with pytest.raises(UsageError, match="must be a token of the tokenizer, got 'none'"):
        WriteTokens(tmp_path / "a", ground.tokenizer, sequence_length=9, pad_token="none")
    with pytest.raises(UsageError, match="packing"):
        WriteTokens(tmp_path / "a", ground.tokenizer, sequence_length=9, packing="first_fit")
    with pytest.raises(UsageError, match="sequence_length"):
        WriteTokens(tmp_path / "a", ground.tokenizer, sequence_length=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_there_must_be_a_token(run, ground: Ground, tmp_path: Path, texts: list[str]) -> None:
    write_tokens = WriteTokens(tmp_path / "out", ground.tokenizer, shuffle_seed=2)
    with pytest.raises((DataError, RuntimeError), match="there is no token"):
        run(lambda p: p | beam.Create(texts) | Tokenize(ground.tokenizer) | write_tokens)
    again = WriteTokens(tmp_path / "out", ground.tokenizer, shuffle_seed=2, overwrite=True)
    run(lambda p: p | beam.Create(["a b"]) | Tokenize(ground.tokenizer) | again)
    assert not (tmp_path / "out" / "work").exists()
    assert len(read_shards(tmp_path / "out")) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("at", ["move", "write_bytes", "remove"])
def test_the_last_step_may_run_again(
    run, ground: Ground, tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner repeats the last step after it was interrupted anywhere."""
    from bpe_beam.transforms import write_tokens as module

    options = {"sequence_length": 16, "shard_tokens": 300}
    texts = documents(60, seed=5)
    write = WriteTokens(tmp_path / "expected", ground.tokenizer, **options)
    run(lambda p: p | beam.Create(texts) | Tokenize(ground.tokenizer) | write)
    arranged = module._End.arranged
    interruptions = tmp_path / "interruptions"

    def interrupted(self: Any, *args: Any) -> str:
        """Run with an error at each call to the storage in turn, until it goes through."""
        plain = getattr(Storage, at)
        for allowed in range(100):
            left = itertools.count(allowed, -1)

            def failing(*inner: Any, left: Iterator[int] = left, **named: Any) -> Any:
                if next(left) <= 0:
                    raise OSError("interrupted")
                return plain(*inner, **named)

            with monkeypatch.context() as patched:
                patched.setattr(Storage, at, failing)
                try:
                    result = arranged(self, *args)
                except OSError:
                    interruptions.write_text(f"{allowed + 1}")
                    continue
            # A repetition after the end changes nothing.
            assert arranged(self, *args) == result
            return result
        raise AssertionError("it never ends")

    monkeypatch.setattr(module._End, "arranged", interrupted)
    write = WriteTokens(tmp_path / "out", ground.tokenizer, **options)
    run(lambda p: p | beam.Create(texts) | Tokenize(ground.tokenizer) | write, workers=1)
    assert int(interruptions.read_text()) > 1
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "expected").iterdir()
    }
