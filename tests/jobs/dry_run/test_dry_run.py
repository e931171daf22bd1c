"""`--dry-run`: amounts against those of the real jobs, and nothing written.

Seconds and memory depend on the machine; `benchmarks/estimates.py` compares them.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import run, run_whole
from made_text import documents, write

from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.engines.steps import processor_time
from bpe_beam.jobs import dry_run, train
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.dry_run import trial
from bpe_beam.jobs.dry_run.sample import sample_of
from bpe_beam.jobs.dry_run.trial import Trial, Trials
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.storage import Storage
from bpe_beam.training.recipe import BpeRecipe

AMOUNTS = ("documents", "text_bytes", "words", "unique_words")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus whose documents become longer, and a tokenizer of it."""
    root = tmp_path_factory.mktemp("estimate")
    for number in range(4):
        write(root / "corpus" / f"{number}.jsonl", documents(400, number, words=10 + 20 * number))
    args = ("--input", root / "corpus", "--vocab-size", 400)
    run_whole("train", *args, "--output", root / "tok")
    return root


def estimated(made: Path, job: str, *args: object) -> Any:
    output = made / "never"
    ran = run(job, *args, "--output", output, "--dry-run", "--summary-file", "-")
    assert ran.code == 0, ran.err
    assert not output.exists()
    found = json.loads(ran.out)
    assert (found["job"], found["dry_run"]) == (job, True)
    also = " and --cluster" if "--cluster" in args else ""
    assert found["next"] == [f"the same without --dry-run{also}"]
    assert found["memory_bytes"] > 10**7
    return found


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def truth(folder: Path, job: str, *args: object) -> Any:
    """Return the summary of the real job, and the size of its output, which is removed."""
    summary = run_whole(job, *args, "--output", folder).summary
    summary["storage_bytes"] = size_of(folder)
    shutil.rmtree(folder)
    return summary


def sources(made: Path) -> list[object]:
    pairs = ((f"s{number}", f"*{number}.*") for number in range(4))
    return [part for name, glob in pairs for part in ("--source", f"{name}={glob}")]


@pytest.mark.parametrize("by_source", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_count(made: Path, tmp_path: Path, workers: int, by_source: bool) -> None:
    """A corpus that the sample has whole."""
    args: list[object] = ["--input", made / "corpus", "--workers", workers]
    args += sources(made) if by_source else []
    found = estimated(made, "count", *args)
    real = truth(tmp_path / "counts", "count", *args)
    assert found["bytes"] == found["sampled_bytes"] == size_of(made / "corpus")
    for name in AMOUNTS:
        assert found[name] == real[name], name
    assert found["rejects"] == 0
    assert found["files"] == 4
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)


def test_train_from_a_corpus_and_from_counts(made: Path, tmp_path: Path) -> None:
    size = ("--vocab-size", 400)
    sized = [*sources(made), *size, "--temperature", 0.5]
    corpus = estimated(made, "train", "--input", made / "corpus", *sized)
    real = truth(tmp_path / "corpus", "train", "--input", made / "corpus", *sized)
    assert corpus["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)
    counts = estimated(made, "train", "--counts", made / "tok" / "counts", *size)
    real = truth(tmp_path / "counts", "train", "--counts", made / "tok" / "counts", *size)
    assert counts["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)
    assert corpus["unique_words"] == counts["unique_words"] == real["unique_words"]
    assert corpus["merge_rounds"] == counts["merge_rounds"] == "local"
    assert "bytes" not in counts


def test_train_from_some_parts(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training on less than all words tells the size of the files too."""
    args = ("--counts", made / "tok" / "counts", "--vocab-size", 1000)
    real = truth(tmp_path / "counts", "train", *args)
    tried = []

    def train_from_parts(settings: Any, progress: Any, *, parts: int) -> Any:
        tried.append(parts)
        return original(settings, progress, parts=parts)

    original = train.run
    monkeypatch.setattr(train, "run", train_from_parts)
    whole = dry_run._usual_seconds(BpeRecipe(1000), real["unique_words"] * 8)
    monkeypatch.setattr(dry_run, "_MIN_LEARNING", 0.8 * whole)
    found = estimated(made, "train", *args)
    assert tried[0] == 1 < tried[1] < 32
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.2)


def test_imports_do_not_grow_with_the_words(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first training, which imports modules, counts once in time and memory."""
    monkeypatch.setattr(dry_run, "_MIN_LEARNING", 0.0)
    args = ("--counts", made / "tok" / "counts", "--vocab-size", 400)
    found = []
    for more in (0, 100):
        costs = [
            dry_run._Learned(1.0 + more, 1.0, 10**8, 10**6 * (1 + more), 10**6, 400),
            dry_run._Learned(1.0, 1.0, 10**8, 10**6, 10**6, 400),
            dry_run._Learned(0.5, 1.0, 10**8, 10**6, 10**6, 400),
        ]
        monkeypatch.setattr(dry_run, "_learned", lambda *_, costs=costs: costs.pop(0))
        found.append(estimated(made, "train", *args))
        assert not costs
    assert found[1]["seconds"] - found[0]["seconds"] == pytest.approx(100, abs=5)
    assert found[1]["memory_bytes"] - found[0]["memory_bytes"] == 10**8


def test_a_training_grows_by_the_difference_of_two(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 2 of 32 parts of about the same size, and on 1: 30 more parts cost 30 times as much."""
    monkeypatch.setattr(dry_run, "_MIN_LEARNING", 0.0)
    monkeypatch.setattr(
        dry_run,
        "_learned",
        lambda plan, settings, parts: dry_run._Learned(
            100.0 * parts, 1.0, 10**8, 10**6, 10**6, 400
        ),
    )
    found = estimated(made, "train", "--counts", made / "tok" / "counts", "--vocab-size", 400)
    assert found["seconds"] == pytest.approx(3200, rel=0.3)


def test_train_in_rounds(made: Path) -> None:
    args = ("--counts", made / "tok" / "counts", "--vocab-size", 400)
    for rounds in (("--driver-memory", "1MB"), ("--merge-rounds", "distributed")):
        found = estimated(made, "train", *args, *rounds)
        assert found["merge_rounds"] == "distributed"
        assert found["seconds"] is None
        assert found["storage_bytes"] > 10_000


@pytest.mark.parametrize(("model", "memory"), [("unigram", "1GB"), ("mingram", "1MB")])
def test_train_pieces(model: str, memory: str, made: Path) -> None:
    args = ("--input", made / "corpus", "--model", model, "--vocab-size", 400)
    assert estimated(made, "train", *args)["merge_rounds"] == "local"
    far = estimated(
        made, "train", *args, "--merge-rounds", "distributed", "--driver-memory", memory
    )
    assert far["merge_rounds"] == "distributed"


def test_what_train_refuses(made: Path) -> None:
    args = ("--input", made / "corpus", "--model", "unigram", "--vocab-size", 400)
    ran = run("train", *args, "--driver-memory", "1MB", "--output", made / "no", "--dry-run")
    assert ran.code == 2
    assert "--model mingram" in ran.message


@pytest.mark.parametrize("formats", [("megatron",), ("megatron", "parquet")])
def test_tokenize(made: Path, tmp_path: Path, formats: tuple[str, ...]) -> None:
    args = ("--input", made / "corpus", "--tokenizer", made / "tok", "--workers", 1)
    chosen = [part for name in formats for part in ("--format", name)]
    found = estimated(made, "tokenize", *args, *chosen)
    real = truth(tmp_path / "tokens", "tokenize", *args, *chosen)
    for name in ("documents", "text_bytes", "tokens"):
        assert found[name] == real[name], name
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.02)


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a third of the corpus."""
    monkeypatch.setattr(trial, "MIN_SAMPLE", 100_000)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by_source", [False, True])
@pytest.mark.parametrize("packed", ["none", "gzip", "parquet"])
def test_count_of_a_part_of_the_corpus(
    made: Path, tmp_path: Path, small_sample: None, by_source: bool, packed: str
) -> None:
    corpus = made / "corpus"
    if packed != "none":
        corpus = as_packed(tmp_path / "corpus", packed)
    args: list[object] = ["--input", corpus, "--workers", 1, "--range-bytes", "16KB"]
    args += sources(made) if by_source else []
    found = estimated(made, "count", *args)
    real = truth(tmp_path / "counts", "count", *args)
    if packed == "none":
        assert 0 < found["sampled_bytes"] < 0.7 * found["bytes"]
    for name in (*AMOUNTS, "storage_bytes"):
        rel = 0.33 if name == "storage_bytes" else 0.05
        assert found[name] == pytest.approx(real[name], rel=rel), name


def test_both_samples_of_small_packed_files_may_be_the_same(
    tmp_path: Path, small_sample: None, made: Path
) -> None:
    (tmp_path / "corpus").mkdir()
    for number in range(30):
        write(tmp_path / "corpus" / f"{number}.jsonl.gz", documents(400, number, words=40))
    args = ("--input", tmp_path / "corpus", "--workers", 1, "--cluster", "workers=1")
    found = estimated(made, "count", *args)
    assert found["sampled_bytes"] < found["bytes"]
    assert found["cluster"]["processor_seconds"] > 0
    args = ("--input", tmp_path / "corpus", "--workers", 1, "--tokenizer", made / "tok")
    found = estimated(made, "tokenize", *args)
    assert found["sampled_bytes"] < found["bytes"]
    real = truth(tmp_path / "tokens", "tokenize", *args)
    assert found["storage_bytes"] == pytest.approx(real["storage_bytes"], rel=0.2)


def as_packed(folder: Path, packed: str) -> Path:
    """Return a folder with a corpus in gzip files, or in Parquet files of small row groups."""
    folder.mkdir()
    for number in range(4):
        texts = documents(400, number, words=40)
        if packed == "gzip":
            write(folder / f"{number}.jsonl.gz", texts)
        else:
            table = pa.table({"text": texts})
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=20)
    return folder


def test_tokenize_a_part_of_the_corpus(made: Path, tmp_path: Path, small_sample: None) -> None:
    args: list[object] = ["--input", made / "corpus", "--tokenizer", made / "tok"]
    args += ["--workers", 1, "--range-bytes", "16KB", "--format", "parquet"]
    found = estimated(made, "tokenize", *args)
    real = truth(tmp_path / "tokens", "tokenize", *args)
    assert found["sampled_bytes"] < 0.7 * found["bytes"]
    for name in ("documents", "text_bytes", "tokens", "storage_bytes"):
        assert found[name] == pytest.approx(real[name], rel=0.2), name


def test_a_small_validation_share_of_a_sample(made: Path, small_sample: None) -> None:
    """The corpus has documents for validation; the samples have none."""
    args: list[object] = ["--input", made / "corpus", "--tokenizer", made / "tok"]
    args += ["--workers", 1, "--range-bytes", "16KB", "--validation-share", "0.1%"]
    found = estimated(made, "tokenize", *args, "--cluster", "workers=1")
    assert found["sampled_bytes"] < found["bytes"]
    assert "measure" in found["cluster_stages"]


@pytest.mark.parametrize("fewer", [8, 16])
def test_a_sample_is_within_a_larger_one_and_has_whole_documents(made: Path, fewer: int) -> None:
    settings = InputSettings(inputs=(str(made / "corpus"),))
    plan = corpus_input.plan_of(Storage(), settings)
    small, large = (
        sample_of(Storage(), plan, size, positions, "\n", 4)
        for size, positions in ((20_000, fewer), (80_000, 16))
    )
    assert (len(small.splits), len(large.splits)) == (4, 4)
    assert sum(split.size for split in large.splits) == pytest.approx(80_000, rel=0.2)
    found = [[row["text"] for row in rows_of(each)] for each in (small, large)]
    assert not Counter(found[0]) - Counter(found[1])
    stored = sum(len(json.dumps({"text": text}, ensure_ascii=False).encode()) for text in found[1])
    assert sum(split.size for split in large.splits) == pytest.approx(stored, rel=0.1)


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """Return the documents of all splits of a plan."""
    return [
        row
        for split in plan.splits
        for batch in read_split(Storage(), plan, split, ReadSettings(), pytest.fail)
        for row in batch.to_pylist()
    ]


def a_run(seconds: float, text: int, stored: int) -> Trial:
    return Trial(seconds, stored, 0, 0, {"text_bytes": text})


def test_seconds_are_those_of_every_run_and_of_the_text() -> None:
    """The second run reads 3 MB more in 3 s; the corpus has 10 MB of text in 5 MB."""
    splits = tuple(
        Split(number, (Slice(0, number * 10**6, (number + 1) * 10**6),)) for number in range(5)
    )
    plan = Plan("", (InputFile("a", 5 * 10**6, "text", "none"),), splits)
    runs = a_run(2.0, 10**6, 500_000), a_run(5.0, 4 * 10**6, 2 * 10**6)
    alone = Trials(plan, *runs, started=0.5, repeated=runs[0], workers=1, splits=8)
    assert alone.seconds == pytest.approx(0.5 + 2 + 9)
    # Of two workers, one has three of five splits: as if there were 12 MB.
    both = dataclasses.replace(alone, workers=2)
    assert both.seconds == pytest.approx(0.5 + 2 + 11)


def test_samples_of_the_same_text() -> None:
    """All of an amount grows with the text, not what the clock says of the difference."""
    plan = Plan("", (InputFile("a", 10**6, "parquet", "none"),), ())
    one = a_run(2.0, 10**6, 10**5)
    trials = Trials(plan, one, one, started=0.5, repeated=one, workers=1, splits=8)
    assert trials.grown(3, 3.001) == pytest.approx(10 * 3.001)
    whole = dataclasses.replace(trials, plan=Plan("", (), ()))
    assert whole.grown(3, 3) == 3
    assert dataclasses.replace(whole, workers=2).seconds == 0.5 + 2


def test_slots_without_a_split_learn_no_words() -> None:
    """Words are new for each thread that tokenizes; only as many have some as there are splits."""
    measured = {processor_time("TokenizeSplit"): {"sum": 10**6}}
    one = Trial(1.0, 10**5, 10**5, 0, {"text_bytes": 10**6, "distributions": measured})
    splits = tuple(Split(number, (Slice(0, number, number + 1),)) for number in range(4))
    plan = Plan("", (InputFile("a", 10**6, "text", "none"),), splits)
    trials = Trials(plan, one, one, started=0.5, repeated=one, workers=1, splits=4)
    settings = TokenizeSettings(InputSettings(inputs=("a",)), tokenizer="tok", output="tokens")
    taken = [
        dry_run._tokenizing_stages(settings, trials, 1000, slots)["tokenize splits"]
        for slots in (2, 4, 400)
    ]
    assert taken[0].processor_seconds < taken[1].processor_seconds == taken[2].processor_seconds


def test_a_corpus_without_documents(tmp_path: Path) -> None:
    """The job itself says what is wrong with the sample."""
    (tmp_path / "empty.jsonl").write_text("no json\n")
    args = ("count", "--input", tmp_path / "empty.jsonl", "--output", tmp_path / "never")
    ran = run(*args, "--dry-run")
    assert ran.code == 1
    assert "no document" in ran.err
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("job", ["count", "train", "tokenize", "arrange"])
def test_a_cluster_is_predicted(made: Path, job: str) -> None:
    words: list[object] = ["--input", made / "corpus", "--workers", 1, "--range-bytes", "16KB"]
    if job == "train":
        words += ["--vocab-size", 400]
    if job in ("tokenize", "arrange"):
        words += ["--tokenizer", made / "tok"]
    if job == "arrange":
        words += ["--sequence-length", 64, "--shuffle-seed", 1, "--shard-tokens", 10_000]
    name = "tokenize" if job == "arrange" else job
    alone = estimated(made, name, *words) if job != "arrange" else {}
    found = estimated(made, name, *words, "--cluster", "workers=4,cores=2,start=60")
    assert "cluster" not in alone
    stages, whole = found["cluster_stages"], found["cluster"]
    assert [*stages] == {
        "count": ["driver", "count splits", "write parts"],
        "train": ["driver", "count splits", "write parts", "learn"],
        "tokenize": ["tokenize splits", "driver"],
        "arrange": [
            *("tokenize splits", "driver", "measure", "plan shards", "order documents"),
            "write new shards",
        ],
    }[job] + ["runner"]
    assert whole["cores"] == 8
    assert whole["pipelines"] == (3 if job == "arrange" else 1)
    assert whole["seconds"] == pytest.approx(
        sum(row["seconds"] for row in stages.values()), abs=0.5
    )
    assert whole["seconds"] > 60 * whole["pipelines"]
    assert all(row["processor_seconds"] > 0 for row in stages.values())


def test_the_model_is_scaled_by_the_pace_of_the_machine(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--input", made / "corpus", "--workers", 1, "--cluster", "workers=1"]

    def runner(mean: float) -> float:
        monkeypatch.setattr("bpe_beam.jobs.dry_run.pace.Pace.mean", mean)
        row = estimated(made, "count", *words)["cluster_stages"]["runner"]
        return float(row["processor_seconds"])

    assert runner(2.0) == pytest.approx(2 * runner(1.0))
