"""The streaming job, without a runner: what it refuses before it begins."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import reference_bpe
import stream_by_hand
from made_text import write
from msgspec import to_builtins

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.jobs import stream_tokenize
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.stream_tokenize import StreamTokenizeSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.workers.stream.status import ReportingWatcher


@pytest.fixture
def tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tokenizer's file, for a job without a runner."""
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    vocab, merges = reference_bpe.learn_bpe([("Ġa", 2)], vocab_size=256)
    path = str(tmp_path / "tokenizer.json")
    Tokenizer.from_learned([*vocab, "<end>"], merges, ["<end>"]).save(path)
    return path


def run_job(
    tokenizer: str,
    folder: Path,
    output: str,
    pattern: str = "*.jsonl",
    bad_files: str = "fail",
    **framing: Any,
) -> tuple[dict[str, Any], str]:
    """Run the job until there is nothing more; gives its summary, and what it said."""
    job = StreamTokenizeSettings(
        TokenizeSettings(
            InputSettings((str(folder / pattern),)),
            tokenizer,
            output,
            RunSettings(runner="PrismRunner", quiet=True),
            **framing,
        ),
        window_seconds=0,
        until_idle_seconds=0,
        bad_files=bad_files,
    )
    said = io.StringIO()
    summary = stream_tokenize.run(job, Progress("none", stream=said))
    return to_builtins(summary), said.getvalue()


def test_another_input_with_files_of_the_same_names_is_refused(
    tmp_path: Path, tokenizer: str
) -> None:
    """They would pass for read."""

    def run(folder: str) -> int:
        summary, said = run_job(tokenizer, tmp_path / folder, str(tmp_path / "out"))
        assert said == ""
        return int(summary["files"])

    write(tmp_path / "one" / "a.jsonl", ["first"])
    write(tmp_path / "two" / "a.jsonl", ["another"])
    assert run("one") == 1
    with pytest.raises(UsageError, match=r"below another folder than .*two"):
        run("two")
    write(tmp_path / "one" / "b.jsonl", ["more"])
    assert run("one") == 1


def test_a_folder_is_an_input(tmp_path: Path, tokenizer: str) -> None:
    folder = tmp_path / "in"
    for name in ("a.jsonl", "deep/b.jsonl", "_part.jsonl"):
        write(folder / name, ["text"])
    assert run_job(tokenizer, folder, str(tmp_path / "out"), "")[0]["files"] == 2
    # The names are those of a glob in the same folder.
    write(folder / "deep" / "c.jsonl", ["more"])
    assert run_job(tokenizer, folder, str(tmp_path / "out"), "**/*.jsonl")[0]["files"] == 2
    with pytest.raises(UsageError, match="holds windows of shards, not a corpus"):
        run_job(tokenizer, tmp_path / "out", str(tmp_path / "other"), "")


def test_a_store_that_cannot_only_create_is_warned_of(tmp_path: Path, tokenizer: str) -> None:
    write(tmp_path / "in" / "a.jsonl", ["first"])
    output = f"memory://{tmp_path.name}/out"
    summary, said = run_job(tokenizer, tmp_path / "in", output)
    assert summary["files"] == 1
    assert said == f"warning: {summary['warnings'][0]}\n"
    assert said.startswith(f"warning: the store of {output} replaces files")


def test_tokens_that_a_text_has_around_it_already_are_warned_of(
    tmp_path: Path, tokenizer: str
) -> None:
    write(tmp_path / "in" / "a.jsonl", ["first", "second<end>"])
    framing = {"append": "<end>", "allowed_special": ("<end>",)}
    summary, _ = run_job(tokenizer, tmp_path / "in", str(tmp_path / "out"), **framing)
    assert summary["warnings"][0].startswith("1 of 2 documents have a token at the start or the")


@pytest.mark.parametrize("state", ["DRAINED", "UPDATED", "DONE"])
def test_how_a_stream_ended_is_said(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    write(tmp_path / "in" / "a.jsonl", ["first"])

    def run_pipeline(*arguments: Any) -> str:
        assert "DRAINED" in arguments[-1]
        stream_by_hand.run_pipeline(*arguments)
        return state

    monkeypatch.setattr(stream_tokenize, "run_pipeline", run_pipeline)
    summary, said = run_job(tokenizer, tmp_path / "in", str(tmp_path / "out"))
    assert summary["files"] == 1
    words = {"DRAINED": "was drained", "UPDATED": "an update", "DONE": ""}[state]
    assert (words in said, words in str(summary["warnings"])) == (True, True)
    assert bool(said) == bool(words)


def test_what_is_set_aside_at_the_end_is_said(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watcher that ends removes its report, maybe before anyone has read it."""
    monkeypatch.setattr(stream_tokenize, "_now", lambda: -1.0)  # no report is read
    folder, out = tmp_path / "in", str(tmp_path / "out")
    for name in ("a.jsonl", "b.jsonl"):
        write(folder / name, ["first"])
        with (folder / name).open("a") as file:
            file.write('{"text": 7}\n')
        write(folder / f"{name}.zip", ["x"]).write_bytes(b"PK\x03\x04 an archive")
        summary, said = run_job(tokenizer, folder, out, "*", bad_files="set_aside")
        assert summary["rejects"] == 1
        assert said.count("warning: set aside: ") == 1
        assert f"{name}.zip is left out: it is a ZIP archive" in said
        bad = "1 of 2" if name == "a.jsonl" else "2 of 4"
        assert f"max_rejects 0.1% is exceeded: {bad} records" in said


def test_what_the_watchers_report_is_shown(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job of the stream that runs, and a window that is set aside."""
    write(tmp_path / "in" / "a.jsonl", ["first"])
    with (tmp_path / "in" / "a.jsonl").open("a") as file:
        file.write('{"text": 7}\n')
    monkeypatch.setattr(stream_tokenize, "_now", itertools.count(step=100).__next__)
    said: list[str] = []

    def run_pipeline(run: Any, label: str, transform: Any, *others: Any) -> None:
        stream = replace(transform.stream, until_idle_seconds=None)
        old, ours = ReportingWatcher(replace(stream, job="old")), ReportingWatcher(stream)
        watch = others[2]
        for now in range(4):
            old.look(float(now))
            if now == 0:
                watch()
            stream_by_hand.work_off(stream, ours.look(float(now)))
            watch()
        later = ReportingWatcher(replace(stream, job="later"))
        for now in range(4, 7):
            later.look(float(now))
            ours.look(float(now))
            watch()

    monkeypatch.setattr(stream_tokenize, "run_pipeline", run_pipeline)
    summary, told = run_job(
        tokenizer, tmp_path / "in", str(tmp_path / "out"), bad_files="set_aside"
    )
    said = [line for line in told.splitlines() if line]
    assert summary["rejects"] == 1
    assert [line.partition(": this one ")[0][:60] for line in said] == [
        "warning: another job of this stream still runs on its runner",
        "warning: set aside: window-00000000: max_rejects 0.1% is exc",
        "warning: a job of this stream that was started later runs",
    ]
