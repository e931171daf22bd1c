"""Commands that read the output of a stream: its finished windows, while it goes on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import reference_bpe
import stream_by_hand
from command_line import run, run_whole
from made_text import write
from read_back import read_shards
from stream_by_hand import STORAGE, stream_of

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.jobs import stream_tokenize
from bpe_beam.workers.stream.status import ReportingWatcher

MANIFEST = "__manifest"


class Job:
    """A stream of three windows, the last of them without tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"
        vocab, merges = reference_bpe.learn_bpe([("Ġa", 2)], vocab_size=256)
        Tokenizer.from_learned(vocab, merges, []).save(str(folder / "tokenizer.json"))
        for name, texts in (("a", ["first", "second"]), ("b", ["third"]), ("c", [""])):
            write(folder / "in" / f"{name}.jsonl", texts)
            self.run()

    def run(self, *extra: object) -> dict[str, Any]:
        """Run the stream until there is nothing more; return its summary."""
        times = ("--window-seconds", "0", "--until-idle-seconds", "0", "--runner", "PrismRunner")
        tokenizer = ("--tokenizer", self.folder / "tokenizer.json")
        inputs = ("--input", f"{self.folder / 'in'}/", "--output", self.out)
        return run_whole("stream-tokenize", *tokenizer, *inputs, *times, *extra).summary

    def inspect(self) -> str:
        ran = run("inspect", self.out)
        assert ran.code == 0, ran.err
        return ran.out.decode()

    def opened(self, number: int) -> Path:
        """Take the manifest of a window away; return the manifest."""
        manifest = self.out / f"window-{number:08}" / MANIFEST
        return manifest.rename(manifest.with_name("kept"))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    return Job(tmp_path)


def shown(text: str, name: str) -> str:
    match = re.search(rf"^  {name}  +(.*)$", text, re.MULTILINE)
    assert match, text
    return match[1]


def test_verify_checks_all_finished_windows(job: Job) -> None:
    summary = run_whole("verify", job.out).summary
    assert (summary["windows"], summary["windows_open"]) == (3, 0)
    assert (summary["documents"], summary["shards"], summary["whole"]) == (4, 2, True)
    assert "folders" not in summary
    job.opened(1)
    summary = run_whole("verify", job.out).summary
    assert (summary["windows"], summary["windows_open"], summary["documents"]) == (2, 1, 3)
    (shard,) = (job.out / "window-00000000").glob("*.bin")
    shard.write_bytes(b"\0" + shard.read_bytes()[1:])
    ran = run("verify", job.out)
    assert ran.code == 1
    assert "window-00000000 is not whole" in ran.message
    assert "window-00000002 is whole" in ran.message


def test_inspect_shows_a_window_without_a_record(job: Job) -> None:
    """A watcher makes the folder first."""
    (job.out / "window-00000003").mkdir()
    assert shown(job.inspect(), "windows open") == "1"


def test_verify_takes_a_glob(job: Job) -> None:
    summary = run_whole("verify", f"{job.out}/window-*").summary
    assert len(summary["folders"]) == 3
    ran = run("verify", f"{job.out}/windows-*")
    assert (ran.code, "no finished folder has such a name" in ran.message) == (2, True)


def test_convert_joins_the_finished_windows(job: Job, tmp_path: Path) -> None:
    summary = run_whole("convert", job.out, "--shards", "1", "--output", tmp_path / "one").summary
    # The third window has no shard, since its document has no tokens.
    assert (summary["windows"], summary["windows_open"], summary["documents"]) == (3, 0, 3)
    one = read_shards(tmp_path / "one")
    assert [len(ids) for ids in one] == [5, 6, 5]
    assert one == [x.tolist() for x in bpe_beam.shards.open(job.out)]
    # As a glob says, and without a shard count.
    run_whole("convert", f"{job.out}/window-*", "--output", tmp_path / "glob")
    assert read_shards(tmp_path / "glob") == one
    run_whole("convert", job.out, "--output", tmp_path / "same")
    assert read_shards(tmp_path / "same") == one
    run_whole("verify", tmp_path / "same")
    kept = job.opened(1)
    summary = run_whole("convert", job.out, "--shards", "1", "--output", tmp_path / "two").summary
    assert (summary["windows"], summary["windows_open"], summary["documents"]) == (1, 2, 2)
    kept.rename(kept.with_name(MANIFEST))


def test_convert_resumes_with_the_windows_that_it_began_with(job: Job, tmp_path: Path) -> None:
    arguments = ("convert", job.out, "--shards", "1", "--output", tmp_path / "one")
    run_whole(*arguments)
    write(tmp_path / "in" / "d.jsonl", ["fourth"])
    job.run()
    (tmp_path / "one" / MANIFEST).unlink()
    for _ in range(2):
        summary = run_whole(*arguments).summary
        assert (summary["windows"], summary["documents"]) == (3, 3)
        assert "1 windows that finished later are not in" in summary["warnings"][0]
    summary = run_whole(*arguments, "--overwrite").summary
    assert (summary["windows"], summary["documents"], summary["warnings"]) == (4, 4, None)


def test_a_stream_without_a_finished_window(job: Job, tmp_path: Path) -> None:
    for number in range(3):
        job.opened(number)
    for command in (
        ("verify", job.out),
        ("convert", job.out, "--shards", "1", "--output", tmp_path / "one"),
    ):
        ran = run(*command)
        assert (ran.code, "has no finished window yet" in ran.message) == (1, True), ran.message
    text = job.inspect()
    assert (shown(text, "windows finished"), shown(text, "windows open")) == ("0", "3")


def test_inspect_tells_the_lag_and_the_bad_files(job: Job, tmp_path: Path) -> None:
    (tmp_path / "in" / "z.jsonl").write_bytes(b"PK\x03\x04 an archive")
    write(tmp_path / "in" / "y.jsonl", ["good"])
    with (tmp_path / "in" / "y.jsonl").open("a") as file:
        file.write('{"text": 7}\n')
    summary = job.run("--bad-files", "set_aside")
    assert summary["left_out"] == ["z.jsonl: is a ZIP archive, which is not read; unpack it first"]
    assert (summary["rejects"], summary["files"], summary["windows_open"]) == (1, 1, 0)
    job.opened(3)
    text = job.inspect()
    assert shown(text, "kind") == "windows of shards"
    assert (shown(text, "windows finished"), shown(text, "windows open")) == ("3", "1")
    assert shown(text, "first open window") == "window-00000003"
    assert shown(text, "documents") == "4"
    assert "z.jsonl: is a ZIP archive" in text


def test_inspect_tells_what_waits_while_the_stream_runs(job: Job, tmp_path: Path) -> None:
    stream = stream_of(
        Watched.of(STORAGE, [f"{tmp_path / 'in'}/"]),
        job.out,
        Tokenizer.from_file(str(tmp_path / "tokenizer.json")),
        fingerprint=json.loads((job.out / "__job").read_bytes())["fingerprint"],
        window_seconds=60,
    )
    write(tmp_path / "in" / "d.jsonl", ["fourth"])
    watchers = [ReportingWatcher(replace(stream, job=job_name)) for job_name in ("a", "b")]
    for watcher in [*watchers, watchers[0]]:
        watcher.look(0.0)
    text = job.inspect()
    assert shown(text, "files waiting") == "1"
    assert shown(text, "oldest waiting seconds").endswith(" s")
    assert re.search(r"watchers .*looked [0-9.]+ s ago", text)
    assert re.search(r"stands by [0-9.]+ s ago", text)
    (report, _) = (tmp_path / "out" / "__watchers").iterdir()
    assert run("inspect", job.out / "window-00000000").code == 0
    assert report.exists()
