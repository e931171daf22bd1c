"""`WriteCounts` and `ReadCounts`: folders that the command line reads, with its bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.transforms.window import FixedWindows
from command_line import run as run_command
from command_line import run_whole
from counted_sources import manifest, parts, words
from made_text import documents

from bpe_beam.counts.manifest import read_manifest
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.transforms import (
    BpeRecipe,
    CountWords,
    LearnMerges,
    ReadCounts,
    ReadDocuments,
    ReadSettings,
    WriteCounts,
    claimed_folder,
    write_counts,
)
from bpe_beam.transforms.counted_words import BlockHead, to_block_chunks

KINDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "plain": ({}, ()),
    "sources": ({"by_source": True}, ("--source-field", "lang")),
    "places": ({"with_places": True}, ("--tie-break", "first_seen")),
    "both": (
        {"by_source": True, "with_places": True, "normalizer": "nfkc", "special_tokens": ["<|e|>"]},
        (
            *("--source-field", "lang", "--tie-break", "first_seen"),
            *("--normalizer", "nfkc", "--special-token", "<|e|>"),
        ),
    ),
}

LANGUAGES = ["en", "de", None, "", 7]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of documents with sources, some of them without one, or without words."""
    root = tmp_path_factory.mktemp("corpus")
    for number in range(2):
        texts = [f"{text} <|e|>" for text in documents(60, seed=number)] + [""]
        rows = [
            {"id": str(i), "lang": LANGUAGES[(i + number) % 5], "text": text}
            for i, text in enumerate(texts)
        ]
        rows.append({"lang": "silent", "text": ""})
        path = root / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return root


def read(corpus: Path, files: str = "*") -> ReadDocuments:
    settings = ReadSettings(source_field="lang")
    return ReadDocuments([f"{corpus}/{files}.jsonl"], settings, range_bytes=3000)


def counted_by_command(corpus: Path, output: Path, *flags: str, files: str = "*") -> Path:
    run_whole("count", "--input", f"{corpus}/{files}.jsonl", "--output", output, *flags)
    return output


def rows_of(folder: Path) -> Any:
    """Return the manifest without the names of input files, which a pipeline does not know."""
    return {**manifest(folder), "inputs": []}


@pytest.mark.sampled(3)  # with one worker and with two
@pytest.mark.parametrize(("kind", "workers"), [*zip(KINDS, (1, 2, 1, 2), strict=True)])
def test_the_folder_of_the_command(
    corpus: Path, tmp_path: Path, run: Any, kind: str, workers: int
) -> None:
    options, flags = KINDS[kind]
    out = tmp_path / "out"
    count = CountWords(**options, partitions=32 if workers == 1 else 5)
    kept, counters = run(lambda p: p | read(corpus) | count | WriteCounts(out), workers)
    assert kept == [f"{out}/__manifest"]
    expected = counted_by_command(corpus, tmp_path / "expected", *flags)
    assert parts(out) == parts(expected)
    assert rows_of(out) == rows_of(expected)
    assert {path.name for path in out.iterdir()} == {*parts(expected), "__manifest"}
    assert "unique_words" in counters
    run_whole("verify", out)
    again = tmp_path / "again"
    run(lambda p: p | ReadCounts(expected) | WriteCounts(again), workers)
    assert parts(again) == parts(expected)
    assert manifest(again) == manifest(expected)


def test_commands_read_the_folder(corpus: Path, tmp_path: Path, run: Any) -> None:
    out = tmp_path / "out"
    run(lambda p: p | read(corpus) | CountWords(by_source=True) | WriteCounts(out))
    expected = counted_by_command(corpus, tmp_path / "expected", "--source-field", "lang")
    more = counted_by_command(corpus, tmp_path / "more", "--source-field", "lang", files="0")
    for folder in (out, expected):
        filtered = tmp_path / f"f-{folder.name}"
        run_whole("counts", "merge", folder, more, "--output", tmp_path / f"m-{folder.name}")
        run_whole("counts", "filter", folder, "--min-count=2", "--output", filtered)
        flags = ("--weights", "en=0.5,de=2", "--vocab-size", "300")
        run_whole("train", "--counts", folder, *flags, "--output", tmp_path / f"t-{folder.name}")
    for name in ("m", "f", "t"):
        first, second = (
            {path.name: path.read_bytes() for path in (tmp_path / f"{name}-{f.name}").glob("*.*")}
            for f in (out, expected)
        )
        assert {**first, "summary.json": b""} == {**second, "summary.json": b""}
    shown, wanted = (run_command("counts", "show", folder).out for folder in (out, expected))
    assert shown == wanted
    tokenizer = tmp_path / "t-out" / "tokenizer.json"
    reports = [
        run_command("evaluate", "--tokenizer", tokenizer, "--counts", folder).out
        for folder in (out, expected)
    ]
    assert json.loads(reports[0])["tokenizers"] == json.loads(reports[1])["tokenizers"]


def test_new_documents_are_added_to_a_folder(corpus: Path, tmp_path: Path, run: Any) -> None:
    """As `counts merge` does: also the filter of the one, and its files."""
    flags = ("--source-field", "lang")
    old = counted_by_command(corpus, tmp_path / "all", *flags, files="0")
    run_whole("counts", "filter", old, "--min-count=2", "--output", tmp_path / "old")
    new = counted_by_command(corpus, tmp_path / "new", *flags, files="1")
    run_whole("counts", "merge", tmp_path / "old", new, "--output", tmp_path / "merged")

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        counted = pipeline | read(corpus, "1") | CountWords(by_source=True)
        before = pipeline | ReadCounts(tmp_path / "old")
        return (before, counted) | beam.Flatten() | WriteCounts(tmp_path / "out")

    run(build)
    assert parts(tmp_path / "out") == parts(tmp_path / "merged")
    out, merged = manifest(tmp_path / "out"), manifest(tmp_path / "merged")
    assert out["inputs"] == manifest(tmp_path / "old")["inputs"]
    assert {**out, "inputs": merged["inputs"]} == merged


def test_places_of_two_folders_are_refused(corpus: Path, tmp_path: Path, run: Any) -> None:
    folders = [
        counted_by_command(corpus, tmp_path / name, "--tie-break=first_seen", files=name)
        for name in ("0", "1")
    ]

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        read = [pipeline | folder.name >> ReadCounts(folder) for folder in folders]
        return read | beam.Flatten() | WriteCounts(tmp_path / "out")

    with pytest.raises(Exception, match="of several counts folders cannot be compared"):
        run(build)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"normalizer": "nfc"}, "counted with normalizer='n.*', others with normalizer='n"),
        ({"special_tokens": ["<|e|>"]}, r"special_tokens=\["),
        ({"by_source": True}, "with sources, others without"),
    ],
)
def test_words_of_other_rules_are_refused(
    tmp_path: Path, run: Any, others: dict[str, Any], message: str
) -> None:
    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        texts = pipeline | beam.Create(["a b"])
        counted = [texts | CountWords(), texts | "Others" >> CountWords(**others)]
        return counted | beam.Flatten() | WriteCounts(tmp_path / "out")

    with pytest.raises(Exception, match=message):
        run(build)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda batch: batch.num_rows > 0, "no totals of documents arrived"),
        (lambda batch: batch.num_rows == 0, "0 words of the source 'k' arrived, but 4 were coun"),
    ],
)
def test_words_that_do_not_add_up(
    tmp_path: Path, run: Any, changed: Callable[[Any], bool], message: str
) -> None:
    texts = [("k", "a b"), ("k", "a a")]
    with pytest.raises(Exception, match=message):
        run(
            lambda p: (
                p
                | beam.Create(texts)
                | CountWords(by_source=True)
                | beam.Filter(changed)
                | WriteCounts(tmp_path / "out")
            )
        )
    assert not (tmp_path / "out" / "__manifest").exists()


@pytest.mark.slow
def test_documents_without_words(tmp_path: Path, run: Any) -> None:
    out = tmp_path / "out"
    run(lambda p: p | beam.Create(["", ""]) | CountWords() | WriteCounts(out))
    written = read_manifest(Storage(), str(out))
    assert (written.documents, written.words, len(written.parts)) == (2, 0, 32)
    run_whole("verify", out)
    with pytest.raises(Exception, match="nothing was counted"):
        run(lambda p: p | beam.Create([]) | CountWords() | WriteCounts(tmp_path / "none"))
    assert not list((tmp_path / "none").iterdir())


def test_what_is_known_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder must be a path or a URL, got 7"):
        WriteCounts(7)
    with pytest.raises(UsageError, match="overwrite must be True or False, got 'yes'"):
        WriteCounts(tmp_path / "out", overwrite="yes")
    (tmp_path / "mine").touch()
    with pytest.raises(UsageError, match=r"must be empty or new, got .* has files: mine"):
        WriteCounts(tmp_path)
    words = beam.Pipeline() | beam.Create(["a"]) | beam.WindowInto(FixedWindows(1)) | CountWords()
    with pytest.raises(UsageError, match="WriteCounts needs bounded input in the global window"):
        _ = words | WriteCounts(tmp_path / "out")
    words = beam.Pipeline() | beam.Create(["a"]) | CountWords()
    _ = words | WriteCounts(tmp_path / "out")
    with pytest.raises(UsageError, match="folder must be different for each transform"):
        _ = words | "Again" >> WriteCounts(tmp_path / "out")


def written(run: Any, out: Path, text: str, **options: Any) -> None:
    run(lambda p: p | beam.Create([text]) | CountWords() | WriteCounts(out, **options))


@pytest.mark.slow
def test_a_folder_is_written_once_and_overwritten_on_demand(
    corpus: Path, tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    written(run, out, "a b")
    with pytest.raises(UsageError, match="set overwrite=True to remove what bpe-beam wrote"):
        WriteCounts(out)
    written(run, out, "c", overwrite=True)
    assert words(out) == {"c": 1}

    def fail(*_: Any) -> None:
        raise DataError("the store is full")

    with monkeypatch.context() as patched:
        patched.setattr(claimed_folder, "_check_file", fail)
        with pytest.raises(Exception, match="the store is full"):
            written(run, out, "d", overwrite=True)
    assert (out / "__job").exists()
    assert run_command("inspect", out).code
    written(run, out, "e", overwrite=True)
    assert words(out) == {"e": 1}
    shutil.rmtree(out)
    counted_by_command(corpus, out)
    written(run, out, "f", overwrite=True)
    assert words(out) == {"f": 1}
    (out / "mine").touch()
    with pytest.raises(UsageError, match=r"only files that bpe-beam wrote, got .* with mine; "):
        written(run, out, "g", overwrite=True)
    assert words(out) == {"f": 1}


def test_steps_of_another_run_fail_and_repeated_ones_continue(tmp_path: Path) -> None:
    ours, other = (
        write_counts.CountsFolder(Storage(), str(tmp_path / "out"), name) for name in "ab"
    )
    Storage().make_folder(ours.url)
    totals: list[Any] = []
    nothing = WordCounts.of(CountWords().rules, {}).manifest
    chunks = list(to_block_chunks(BlockHead({}, totals=nothing)))

    def steps(folder: write_counts.CountsFolder) -> list[str]:
        claimed = list(write_counts._claim((0, chunks), folder))
        marks: dict[int, list[Any]] = {}
        rows = [each.value[1] for each in claimed if isinstance(each, beam.pvalue.TaggedOutput)]
        for each in claimed:
            if not isinstance(each, beam.pvalue.TaggedOutput):
                marks.setdefault(each[0], []).append(each[1])
        for part in marks.items():
            rows += [row for _, row in write_counts._write_part(part, folder)]
        totals[:] = rows
        return list(write_counts._write_manifest((0, rows), folder))

    for _ in range(2):
        ours.claim(write_counts._NAMES)
    assert steps(ours) == [f"{ours.url}/__manifest"]
    assert list(write_counts._write_manifest((0, totals), ours)) == [f"{ours.url}/__manifest"]
    with pytest.raises(UsageError, match="must be empty or new, got __manifest"):
        steps(other)
    with pytest.raises(DataError, match="WriteCounts: the runner lost some of the words"):
        list(write_counts._write_manifest((0, totals[1:]), ours))


def test_read_counts_knows_its_folder(corpus: Path, tmp_path: Path, run: Any) -> None:
    with pytest.raises(UsageError, match="is no counts folder"):
        ReadCounts(tmp_path)
    folder = counted_by_command(corpus, tmp_path / "counts", "--source-field", "lang")
    read_counts = ReadCounts(folder)
    kept, _ = run(lambda p: p | read_counts)
    assert all(isinstance(batch, pa.RecordBatch) for batch in kept)
    rows = [row for batch in kept for row in batch.to_pylist()]
    assert {row["source"] for row in rows} == {"7", "de", "en", "other"}
    assert sum(row["count"] for row in rows) == read_counts.manifest.words
    metadata = kept[0].schema.metadata
    assert metadata[b"pretokenizer"] == b"gpt2"
    before = ReadCounts(folder)
    shutil.rmtree(folder)
    counted_by_command(corpus, folder, "--source-field", "lang", files="0")
    with pytest.raises(Exception, match=r"has changed since the pipeline was built|SHA-256"):
        run(lambda p: p | before)


def test_words_of_a_folder_and_of_documents_train_one_tokenizer(
    corpus: Path, tmp_path: Path, run: Any
) -> None:
    flags = ("--source-field", "lang", "--special-token", "<|e|>")
    old = counted_by_command(corpus, tmp_path / "old", *flags, files="0")
    every = counted_by_command(corpus, tmp_path / "every", *flags)

    def build(pipeline: beam.Pipeline) -> beam.PCollection:
        count = CountWords(by_source=True, special_tokens=["<|e|>"])
        counted = pipeline | read(corpus, "1") | count
        learn = LearnMerges(BpeRecipe(300), temperature=0.3)
        return (pipeline | ReadCounts(old), counted) | beam.Flatten() | learn

    (learned,), _ = run(build)
    flags = ("--temperature", "0.3", "--vocab-size", "300")
    run_whole("train", "--counts", every, *flags, "--output", tmp_path / "tok")
    assert learned == (tmp_path / "tok/tokenizer.json").read_text("utf-8")
