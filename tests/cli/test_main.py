"""The command line: what it takes, what it refuses and how, and what it lets a job say."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bpe_beam.cli import main as cli
from bpe_beam.cli.arguments import read_arguments, settings_of
from bpe_beam.errors import DataError, UsageError
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.jobs import GROUPS, JOBS
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.tools import (
    DecodeSettings,
    EncodeSettings,
    InspectSettings,
    QuickstartSettings,
)
from bpe_beam.settings.train import TrainSettings
from bpe_beam.settings.verify import VerifySettings

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
FROM_COUNTS = ["train", "--counts", "c", "--output", "o", "--vocab-size", "300"]
COUNT = ["count", "--input", "a.txt", "--output", "out"]


def settings(*argv: str) -> Any:
    return settings_of(read_arguments(*cli.job_of(argv)))


def run_cli(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bpe_beam", *argv]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=600, **options
    )


Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    def run(*argv: str) -> str:
        """Runs what must end with exit code 2 and one message; returns the message."""
        assert cli.main(argv) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        name = f"bpe-beam {argv[0]}: " if argv and argv[0] in JOBS else "bpe-beam: "
        assert captured.err.startswith(name)
        return captured.err.removeprefix(name).rstrip("\n")

    return run


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any]], None]:
    """Puts a function in the place of a job."""

    def put(name: str, run: Callable[..., Any]) -> None:
        module = types.ModuleType(f"bpe_beam.jobs.{name}")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return put


# ---- what it takes ----


def test_all_options_of_count() -> None:
    given = settings(
        "count",
        *("--input", "a.txt", "b/*.jsonl", "--input", "@list", "--input-format", "jsonl"),
        *("--text-field", "body", "--id-field", "key", "--document-separator", r"\n\x1e"),
        *("--range-bytes", "64MB", "--max-rejects", "1%", "--output", "out"),
        *("--normalizer", "none", "--pretokenizer", "gpt2"),
        *("--special-token", "<a>", "--special-token", "<b>", "--tie-break", "first_seen"),
        *("--workers", "3", "--overwrite", "--quiet", "--debug", "--summary-file", "-"),
        *("--storage-options", '{"s3": {"anon": true}}'),
    )
    assert isinstance(given, CountSettings)
    assert given.input.inputs == ("a.txt", "b/*.jsonl", "@list")
    assert (given.input.input_format, given.input.text_field) == ("jsonl", "body")
    assert (given.input.id_field, given.input.document_separator) == ("key", "\n\x1e")
    assert (given.input.range_bytes, given.input.max_rejects) == (64_000_000, "1%")
    assert (given.output, given.special_tokens) == ("out", ("<a>", "<b>"))
    assert (given.normalizer, given.pretokenizer, given.with_places) == ("none", "gpt2", True)
    assert (given.run.workers, given.run.overwrite, given.run.quiet) == (3, True, True)
    assert (given.run.debug, given.run.summary_file) == (True, "-")
    assert given.run.storage_options == {"s3": {"anon": True}}
    assert not settings(*COUNT).with_places


def test_all_options_of_train() -> None:
    given = settings(
        "train",
        *("--counts", "c", "--output", "o", "--model", "bpe", "--vocab-size", "32000"),
        *("--min-frequency", "2", "--tie-break", "first_seen", "--alphabet", "seen"),
        *("--special-token", "<a>", "--driver-memory", "1GiB", "--merge-rounds", "local"),
    )
    assert given == TrainSettings(
        "o",
        32000,
        counts="c",
        min_frequency=2,
        tie_break="first_seen",
        alphabet="seen",
        special_tokens=("<a>",),
        driver_memory=1 << 30,
        merge_rounds="local",
    )
    given = settings("train", "--input", "a", "--output", "o", "--vocab-size", "300")
    assert given.input.inputs == ("a",)
    assert given.counts is None


def test_all_options_of_tokenize() -> None:
    given = settings(
        "tokenize",
        *("--tokenizer", "t", "--input", "a", "--output", "o", "--format", "megatron"),
        *("--append", "<eos>", "--prepend", "<bos>", "--allowed-special", "<a>,<b>"),
    )
    assert isinstance(given, TokenizeSettings)
    assert (given.tokenizer, given.format) == ("t", "megatron")
    assert (given.append, given.prepend, given.allowed_special) == (
        "<eos>",
        "<bos>",
        ("<a>", "<b>"),
    )
    for text, meant in (("none", "none"), ("all", "all"), ("all,<a>", ("all", "<a>"))):
        given = settings("encode", "x", "--tokenizer", "t", "--allowed-special", text)
        assert given.allowed_special == meant


def test_all_options_of_the_other_jobs() -> None:
    assert settings("verify", "f", "--full", "--input", "a", "b") == VerifySettings(
        "f", full=True, input=settings("count", "--input", "a", "b", "--output", "o").input
    )
    assert settings("encode", "--tokenizer", "t") == EncodeSettings("t")
    assert settings("encode", "--tokenizer", "t", "--show", "a b") == EncodeSettings(
        "t", "a b", show=True
    )
    assert settings("encode", "--tokenizer", "t", "--", "--help").text == "--help"
    assert settings("decode", "1", "2,3", "--tokenizer", "t") == DecodeSettings("t", ("1", "2,3"))
    assert settings("decode", "--tokenizer", "t") == DecodeSettings("t")
    assert settings("inspect", "p") == InspectSettings("p")
    assert settings("quickstart") == QuickstartSettings()
    assert settings("quickstart", "--output", "q").output == "q"


def test_every_declared_option_reaches_the_settings() -> None:
    """An option that is accepted and does nothing is the worst of faults."""
    values = {
        "--input-format": "text", "--max-rejects": "7", "--normalizer": "nfc",
        "--model": "wordpiece", "--pretokenizer": "bert", "--format": "megatron",
        "--tie-break": "first_seen",
        "--alphabet": "seen", "--storage-options": '{"s3": {}}', "--runner": "direct",
        "--counts": "c", "--driver-memory": "2GB", "--symbols": "bytes",
        "--merge-rounds": "distributed",
        "--progress": "json", "--source": "en=a/*", "--weights": "en=2", "--temperature": "0.5",
    }  # fmt: skip
    # Options of which only one value is legal yet.
    single = {"--format"}
    base = {
        "count": ["--input", "a", "--output", "o"],
        "train": ["--input", "a", "--output", "o", "--vocab-size", "300"],
        "tokenize": ["--input", "a", "--output", "o", "--tokenizer", "t"],
        "verify": ["f"],
        "encode": ["--tokenizer", "t"],
        "decode": ["--tokenizer", "t"],
        "inspect": ["p"],
        "plan": ["--input", "a"],
        "quickstart": [],
        "stream-tokenize": [
            *("--tokenizer", "t", "--input", "a", "--output", "o", "--runner", "FlinkRunner")
        ],
        "counts merge": ["a", "b", "--output", "o"],
        "counts show": ["a"],
        "counts filter": ["a", "--output", "o", "--min-count", "2"],
    }
    for name, spec in JOBS.items():
        job = name.split()
        before = settings(*job, *base[name])
        for flag, option in spec.options.items():
            if flag == "--config" or flag in single or flag[0] != "-":
                continue
            value = [] if option.kind == "switch" else [values.get(flag, "321")]
            if (name, flag) == ("stream-tokenize", "--runner"):
                value = ["PrismRunner"]
            argv = list(base[name])
            if flag == "--counts":
                del argv[:2]
            if flag in ("--weights", "--temperature"):
                argv += ["--source-field", "s"]
            assert settings(*job, *argv, flag, *value) != before, (name, flag)


def test_flags_of_the_runner_are_passed_on() -> None:
    given = settings(
        *COUNT,
        *("--runner", "FlinkRunner", "--parallelism", "2", "--flink_master=[local]"),
        *("--flink_submit_uber_jar", "--experiments", "a", "--experiments=b", "--quiet"),
    )
    assert given.run.runner == "FlinkRunner"
    assert given.run.runner_options == (
        "--parallelism=2",
        "--flink_master=[local]",
        "--flink_submit_uber_jar",
        "--experiments=a",
        "--experiments=b",
    )
    assert given.run.quiet
    # A value is never taken for an argument of ours.
    assert settings(*COUNT, "--job_name", "--quiet").run.runner_options == ("--job_name=--quiet",)


def test_the_file_gives_and_flags_win(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "job: train\ninput: [x, y]\noutput: o\nvocab_size: 400\nspecial-token: <a>\n"
        "range_bytes: 1MiB\ndocument_separator: '\\n\\n'\nquiet: true\noverwrite: false\n"
        "storage_options: {s3: {anon: true}}\nrunner: FlinkRunner\n"
        "runner_options: {parallelism: 2, flink_master: '[local]'}\n"
    )
    given = settings("train", "--config", str(config))
    assert given.input.inputs == ("x", "y")
    assert (given.vocab_size, given.special_tokens) == (400, ("<a>",))
    assert (given.input.range_bytes, given.input.document_separator) == (1 << 20, "\n\n")
    assert (given.run.quiet, given.run.overwrite) == (True, False)
    assert given.run.storage_options == {"s3": {"anon": True}}
    assert given.run.runner_options == ("--parallelism=2", "--flink_master=[local]")
    given = settings(
        *("train", "--vocab-size", "500", "--config", str(config), "--input", "z"),
        *("--special-token", "<b>", "--parallelism=7", "--overwrite"),
    )
    assert given.input.inputs == ("z",)
    assert (given.vocab_size, given.special_tokens) == (500, ("<b>",))
    assert given.run.runner_options == ("--flink_master=[local]", "--parallelism=7")
    assert given.run.overwrite
    later = tmp_path / "later.yaml"
    later.write_text("vocab-size: 600\n")
    assert settings("train", "--config", str(config), "--config", str(later)).vocab_size == 600


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_configs_that_we_ship_are_whole(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    more = ["--input", "a", "--output", "o"]
    more += ["--tokenizer", "t"] if values["job"] == "tokenize" else []
    settings(values["job"], "--config", str(path), *more)


def test_counts_work_with_the_training_configs() -> None:
    for path in (ROOT / "configs").glob("gpt2_*.yaml"):
        given = settings("train", "--config", str(path), "--counts", "c", "--output", "o")
        assert given.special_tokens == ("<|endoftext|>",)


def test_storage_options_from_a_file(tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"gs": {"token": "anon"}}')
    given = settings(*COUNT, "--storage-options", f"@{path}")
    assert given.run.storage_options == {"gs": {"token": "anon"}}
    path.write_text('{"gs": "hunter2"')
    said = refused(*COUNT, "--storage-options", f"@{path}")
    assert said == "--storage-options is not valid JSON (line 1)"
    assert "No such file" in refused(*COUNT, "--storage-options", f"@{path}.none")


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["cuont"], "'cuont' is none of the jobs count, train"),
        (["trian"], "did you mean train?"),
        (["--quiet", "count"], "the job comes first"),
        (["count"], "--input is required"),
        (["count", "--input", "a"], "--output is required"),
        (["train", "--output", "o", "--input", "a"], "--vocab-size is required"),
        (["train", "--output", "o", "--vocab-size", "300"], "give one of them"),
        (["verify"], "FOLDER is required"),
        (["inspect"], "PATH is required"),
        (["encode", "x"], "--tokenizer is required"),
        (["count", "--input"], "--input: expected at least one argument"),
        ([*COUNT, "--vocab-size", "3"], "--vocab-size is an option of train, not of count"),
        (["encode", "--workers", "3", "x"], "--workers is an option of count, train"),
        (["encode", "--shwo", "x"], "--shwo is not an option of encode; did you mean --show?"),
        (["encode", "--tokenizer", "t", "a", "b"], "unexpected: b; quote a value"),
        ([*COUNT, "-x"], "unexpected: -x"),
        ([*COUNT, "--inptu", "x"], "nor of a Beam runner; did you mean --input?"),
        ([*COUNT, "--inp", "x"], "--inp is an option neither of count"),
        ([*COUNT, "--range-byte", "3"], "did you mean --range-bytes?"),
        ([*COUNT, "--paralelism", "2"], "did you mean --parallelism?"),
        ([*COUNT, "--parallelism"], "--parallelism needs a value"),
        ([*COUNT, "--parallelism", "many"], "--parallelism: invalid int value: 'many'"),
        ([*COUNT, "--runner", "FlinkRuner"], "did you mean FlinkRunner?"),
        ([*COUNT, "--temperature", "0.5"], "--temperature is an option of train, not of count"),
        ([*COUNT, "--workers", "0"], "--workers must be at least 1, got 0"),
        ([*COUNT, "--workers", "two"], "--workers must be a whole number"),
        ([*COUNT, "--range-bytes", "1.5MB"], "--range-bytes must be a size"),
        ([*COUNT, "--document-separator", r"\q"], "\\x7f, got \\q; write"),
        ([*COUNT, "--document-separator", ""], "--document-separator must not be empty"),
        (
            [*COUNT, "--pretokenizer", "cl99k"],
            "--pretokenizer must be one of gpt2, cl100k,",
        ),
        ([*COUNT, "--tie-break", "x"], "--tie-break must be one of lowest_id"),
        ([*COUNT, "--overwrite=yes"], "--overwrite: ignored explicit argument 'yes'"),
        ([*COUNT, "--config", "none.yaml"], "config none.yaml cannot be read"),
        (
            [*FROM_COUNTS, "--text-field", "x"],
            "--text-field is about reading a corpus",
        ),
        (
            [*FROM_COUNTS, "--weight", "a=1"],
            "--weight is an option neither of",
        ),
        (
            [*FROM_COUNTS, "--model", "x"],
            "--model must be one of bpe, wordpiece, prefix_bpe, word_level, got 'x'",
        ),
        ([*COUNT, "--max-rejects", "-1"], "--max-rejects must be a number or a share"),
        (
            [*FROM_COUNTS, "--driver-memory", "1KB"],
            "--driver-memory must be at least 1,000,000, got 1,000",
        ),
        (
            [*FROM_COUNTS, "--symbols", "characters", "--continue-from", "t.json"],
            "--symbols and --continue-from exclude each other: the tokenizer that is continued",
        ),
        (
            [*COUNT, "--source-field", "a", "--source", "b=c"],
            "--source-field and --source exclude each other; give one of them",
        ),
        (["verify", ""], "FOLDER must not be empty"),
        (["verify", "f", "--runner", "FlinkRunner"], "verify runs in this process"),
        (["verify", "f", "--parallelism=2"], "verify runs in this process"),
        (
            ["decode", "--tokenizer", "t", "1", "x"],
            "IDS must be whole numbers from 0 to 2,147,483,647, got 'x' as number 2",
        ),
        (["inspect", "/none/such"], "/none/such: no such file or folder"),
        (["encode", "--tokenizer", "/none/such", "x"], "/none/such"),
    ],
)
def test_wrong_usage_is_one_message(argv: list[str], said: str, refused: Refused) -> None:
    assert said in refused(*argv)


def test_a_file_is_held_to_the_same_rules(tmp_path: Path, refused: Refused) -> None:
    config = tmp_path / "c.yaml"
    for text, said in (
        ("vocab_size: 300", "vocab_size is not a setting of count"),
        ("config: x.yaml", "config is not a setting of count"),
        ("job: train", "job must be count, the job that runs"),
        ("range_bytes: 1.5", "c.yaml, line 1: range_bytes must be a size"),
        ("max_rejects: 101%", "c.yaml, line 1: max_rejects must be at most 100%, got 101%"),
        ("output: [a, b]", "c.yaml, line 1: output must be one value, got 2"),
        ("output: []", "c.yaml, line 1: output must be one value, got 0"),
        ("runner_options: {paralelism: 2}", "c.yaml, line 1: runner_options: paralelism is no"),
    ):
        config.write_text(text)
        argv = ["count", "--config", str(config), "--input", "a"]
        assert said in refused(*argv, *([] if "output" in text else ["--output", "o"]))


def test_settings_of_the_runner_are_no_keys_of_jobs_without_one(
    tmp_path: Path, refused: Refused
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("runner_options: {}")
    assert "not a setting of inspect" in refused("inspect", "p", "--config", str(config))


# ---- help and version ----


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    most = min(100, columns - 1)
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= most
    for name, spec in JOBS.items():
        assert re.search(rf"^  {name}( |$)", text, re.MULTILINE)
        assert cli.main([*name.split(), "--help"]) == 0
        own = capsys.readouterr().out
        joined = re.sub(r" \\\n +", " ", own)
        assert re.sub(r" \\\n +", " ", spec.example).splitlines()[0] in joined
        for option in spec.options.values():
            assert (option.flag if option.flag[0] == "-" else option.metavar) in own
        assert max(map(len, own.splitlines())) <= most
    for name, jobs in GROUPS.items():
        assert cli.main([name, "--help"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= most
        assert all(any(line.startswith(f"  bpe-beam {job}") for line in lines) for job in jobs)
    assert cli.main(["count", "-h"]) == 0


def test_the_help_begins_with_what_every_job_needs(capsys: pytest.CaptureFixture[str]) -> None:
    for name, first in (
        ("train", ["--input", "--output", "--vocab-size"]),
        ("count", ["--input", "--output"]),
        ("tokenize", ["--input", "--tokenizer", "--output"]),
    ):
        assert cli.main([name, "--help"]) == 0
        flags = re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
        assert flags[: len(first)] == first


def test_who_names_no_job_is_told_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("bpe-beam: no job given\n")
    for line in ("bpe-beam quickstart", "bpe-beam train --input", "bpe-beam --help"):
        assert f"\n  {line}" in captured.err


def test_the_examples_of_the_help_are_right() -> None:
    import shlex

    for name, spec in JOBS.items():
        for line in spec.example.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            assert " ".join(words).partition(name)[0] == "bpe-beam "
            settings(*words[1:])


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bpe-beam ")


@pytest.mark.parametrize("argv", [["--help"], ["train", "--help"], ["--version"], ["cuont"]])
def test_starting_loads_nothing_heavy(argv: list[str]) -> None:
    code = (
        "import sys\n"
        "from bpe_beam.cli.main import main\n"
        f"main({argv!r})\n"
        "heavy = {'apache_beam', 'pyarrow', 'numpy', 'fsspec', 'yaml', 'regex'}\n"
        "sys.exit(', '.join(sorted(heavy & sys.modules.keys())))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=600,
    )
    loaded = done.stderr.splitlines()[-1] if done.returncode else ""
    assert loaded == ""


# ---- what a job may say ----


def test_a_job_gets_its_settings_and_its_summary_is_shown(
    job: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    seen = []

    def run(settings: CountSettings, progress: Any) -> dict[str, Any]:
        seen.append((settings, progress.mode))
        return {"job": "count", "documents": 1234}

    job("count", run)
    path = tmp_path / "s.json"
    assert cli.main([*COUNT, "--summary-file", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "bpe-beam count\n  documents  1,234\n"
    assert json.loads(path.read_text()) == {"job": "count", "documents": 1234}
    assert cli.main([*COUNT, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert cli.main([*COUNT, "--progress", "json", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert [mode for _, mode in seen] == ["plain", "none", "json"]
    assert seen[0][0].output == "out"


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_warnings_are_shown_even_if_quiet(
    quiet: list[str], job: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    warnings = ["no document is of --source a", "merges.txt is not written"]
    job("count", lambda settings, progress: {"job": "count", "warnings": warnings, "tokens": 7})
    path = tmp_path / "s.json"
    assert cli.main([*COUNT, *quiet, "--summary-file", str(path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [f"bpe-beam count: warning: {each}" for each in warnings]
    assert lines[2:] == ([] if quiet else ["bpe-beam count", "  tokens  7"])
    assert json.loads(path.read_text())["warnings"] == warnings


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no such token"), 2, "bpe-beam count: no such token\n"),
        (DataError("a.txt, byte 7: broken"), 1, "bpe-beam count: a.txt, byte 7: broken\n"),
        (
            RuntimeError("Traceback (most recent call last):\nbpe_beam.errors.DataError: a: b"),
            1,
            "bpe-beam count: a: b\n",
        ),
        (
            ZeroDivisionError("division by zero"),
            1,
            "bpe-beam count: failed unexpectedly: ZeroDivisionError: division by zero; run with "
            "--debug for more\n",
        ),
        (
            KeyboardInterrupt(),
            130,
            "bpe-beam count: interrupted; the same command resumes\n",
        ),
    ],
)
def test_failures_are_one_message(
    error: BaseException, code: int, said: str, job: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(settings: Any, progress: Any) -> None:
        # As Beam's worker threads do.
        print("Traceback (most recent call last):\n  x\nError", file=sys.stderr)
        raise error

    job("count", run)
    assert cli.main(COUNT) == code
    assert capsys.readouterr().err == said
    if code != 130:
        assert cli.main([*COUNT, "--debug"]) == code
        assert capsys.readouterr().err.count("Traceback") >= 2


def test_an_interrupted_overwrite_says_how_to_resume(
    job: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(settings: Any, progress: Any) -> None:
        raise KeyboardInterrupt

    job("count", run)
    assert cli.main([*COUNT, "--overwrite"]) == 130
    assert "the same command without --overwrite resumes" in capsys.readouterr().err
    job("inspect", run)
    assert cli.main(["inspect", "p"]) == 130
    assert capsys.readouterr().err == "bpe-beam inspect: interrupted\n"


def test_beams_log_is_silent_unless_asked_for(job: Any, caplog: pytest.LogCaptureFixture) -> None:
    def run(settings: Any, progress: Any) -> dict[str, Any]:
        logging.getLogger("apache_beam.x").error("a thousand lines")
        return {}

    job("count", run)
    assert cli.main([*COUNT, "--quiet"]) == 0
    assert caplog.messages == []
    assert logging.root.manager.disable == logging.NOTSET
    assert cli.main([*COUNT, "--quiet", "--debug"]) == 0
    assert caplog.messages == ["a thousand lines"]


SLOW_JOB = """
import signal, sys, threading, time, types
# A background job of a shell has the signal ignored, and so have its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
module = types.ModuleType("bpe_beam.jobs.count")
def run(settings, progress):
    # A thread of a runner, in the middle of a long batch.
    threading.Thread(target=time.sleep, args=(300,)).start()
    print("running", flush=True)
    time.sleep(300)
module.run = run
sys.modules[module.__name__] = module
from bpe_beam.cli import main as cli
sys.argv = ["bpe-beam", "count", "--input", "a", "--output", "o"]
cli.run()
"""


def test_an_interrupt_ends_the_process_at_once() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_JOB],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert time.monotonic() - start < 120
    assert process.returncode == 130
    assert errors == "bpe-beam count: interrupted; the same command resumes\n"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "bpe_beam", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=600,
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141


def test_arguments_that_are_not_utf8_are_refused() -> None:
    done = run_cli("encode", "--tokenizer", "t", "\udcff")
    assert done.returncode == 2
    assert "TEXT must be valid UTF-8" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["count", "train", "tokenize", "stream_tokenize", "verify"])
def test_launchers_are_the_jobs(name: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = ROOT / "pipelines" / f"{name}.py"
    # An unknown flag loads Beam, which needs a `tokenize` that is not the one beside the script.
    usage = f"usage: bpe-beam {name.replace('_', '-')} "
    for argv, code, said in ((["--help"], 0, usage), (["--oh"], 2, "--oh is")):
        done = subprocess.run(
            [sys.executable, str(script), *argv],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
            timeout=600,
        )
        assert done.returncode == code, done.stderr
        assert said in done.stdout + done.stderr


# Of two threads that hold a buffer, either may be the one that releases it. Here pyarrow's takes
# its time over that, and is still at it when the interpreter ends.
LATE_RELEASE = """
import io, sys, threading, time
import pyarrow as pa

reader = threading.get_ident()
class Late(bytes):
    def __del__(self):
        if threading.get_ident() != reader:
            released.set()
            time.sleep(5)
class File(io.BytesIO):
    def read(self, count=-1):
        return Late(super().read(count))

released = threading.Event()
table = pa.table({"text": ["some text"] * 1000})
sink = io.BytesIO()
with pa.ipc.new_file(sink, table.schema) as writer:
    writer.write_table(table)
for attempt in range(10_000):
    if released.is_set():
        break
    pa.ipc.open_file(pa.PythonFile(File(sink.getvalue()), mode="r")).get_batch(0)
assert released.is_set()
from bpe_beam.cli import main as cli
cli.run(["--version"])
"""


def test_a_thread_that_releases_a_buffer_late_does_not_abort_the_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LATE_RELEASE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=600,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("bpe-beam ")


JOB_WITH_AN_EXIT_FUNCTION = """
import atexit, sys, types
from bpe_beam.cli import main as cli
from bpe_beam.errors import DataError
def run(settings, progress):
    atexit.register(print, "stopping the job server")
    raise DataError("too many rejects")
module = types.ModuleType("bpe_beam.jobs.count")
module.run = run
sys.modules[module.__name__] = module
cli.run(["count", "--input", "a", "--output", "o"])
"""


def test_what_a_job_registers_for_the_exit_runs_and_the_exit_code_is_kept() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", JOB_WITH_AN_EXIT_FUNCTION],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=600,
    )
    assert ended.returncode == 1
    assert ended.stdout == "stopping the job server\n"
    assert ended.stderr == "bpe-beam count: too many rejects\n"
