"""The command line: what it takes, what it refuses and how, and what it lets a job say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import heavy_modules_of
from some_of import in_turn

from bpe_beam.cli import main as cli
from bpe_beam.cli.arguments import read_arguments, settings_of
from bpe_beam.engines.runner_errors import JobCancelled
from bpe_beam.errors import DataError, UsageError
from bpe_beam.settings.count import CountSettings

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


# ---- what it refuses ----


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["cuont"], "'cuont' is not a job; the jobs are count, train"),
        (["trian"], "did you mean train?"),
        (["--quiet", "count"], "the first word must be a job"),
        (["count"], "--input is required"),
        (["count", "--input", "a"], "--output is required"),
        (["train", "--output", "o", "--input", "a"], "--vocab-size is required"),
        (["train", "--output", "o", "--vocab-size", "300"], "are both missing; give --counts"),
        (["verify"], "DIR is required"),
        (["inspect"], "PATH is required"),
        (["encode", "x"], "--tokenizer is required"),
        (["count", "--input"], "--input needs a value"),
        ([*COUNT, "--vocab-size", "3"], "--vocab-size is an option of train, not of count"),
        (["encode", "--workers", "3", "x"], "--workers is an option of count, train"),
        (["encode", "--shwo", "x"], "--shwo is not an option of encode; did you mean --show?"),
        (["encode", "--tokenizer", "t", "a", "b"], "unexpected: b; quote a value"),
        ([*COUNT, "-x"], "unexpected: -x"),
        (
            ["evaluate", "t.json"],
            "t.json; name files with --tokenizer or --input or --counts; quote",
        ),
        (
            ["evaluate", "--counts", "c", "--vocab-sizes", "8", "9"],
            "unexpected: 9; name files with --tokenizer or --input or --counts; separate values "
            "of --vocab-sizes by commas; quote a value",
        ),
        ([*COUNT, "--inptu", "x"], "nor of a Beam runner; did you mean --input?"),
        ([*COUNT, "--inp", "x"], "--inp is neither an option of count"),
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
            "--text-field has no effect without a corpus",
        ),
        (
            [*FROM_COUNTS, "--weight", "a=1"],
            "--weight is neither an option of",
        ),
        (
            [*FROM_COUNTS, "--model", "x"],
            "--model must be one of bpe, wordpiece, prefix_bpe, word_level, unigram, mingram, "
            "got 'x'",
        ),
        ([*COUNT, "--max-rejects", "-1"], "--max-rejects must be a whole number, or a share with"),
        (
            [*FROM_COUNTS, "--driver-memory", "1KB"],
            "--driver-memory must be at least 1,000,000, got 1,000",
        ),
        (
            [*FROM_COUNTS, "--symbols", "characters", "--continue-from", "t.json"],
            "--symbols and --continue-from exclude each other: the base tokenizer decides",
        ),
        (
            [*COUNT, "--source-field", "a", "--source", "b=c"],
            "--source-field and --source exclude each other; give one of them",
        ),
        (["verify", ""], "DIR must not be empty"),
        (["verify", "f", "--runner", "FlinkRunner"], "verify runs in this process"),
        (["verify", "f", "--parallelism=2"], "verify runs in this process"),
        (["inspect", "f", "--runner", "FlinkRunner"], "inspect runs in this process"),
        (["inspect", "f", "--fooo"], "--fooo is not an option of inspect"),
        (
            ["decode", "--tokenizer", "t", "1", "x"],
            "ID must be a whole number from 0 to 2,147,483,647, got 'x' as number 2",
        ),
        (["help", "trian"], "'trian' is not a job"),
        ([*COUNT, "--pretokenizer", "GPT-2"], "got 'GPT-2'; did you mean gpt2?"),
        ([*COUNT, "--pretokenizer", "cl100k_base"], "did you mean cl100k?"),
        ([*COUNT, "--pretokenizer", "gpt4o"], "did you mean o200k?"),
        ([*COUNT, "--pretokenizer", "ByteLevel"], "did you mean gpt2?"),
        ([*COUNT, "--normalizer", "NFKC+lower"], "did you mean nfkc?"),
        ([*COUNT, "--input-format", "JSON"], "got 'JSON'; did you mean jsonl?"),
        (
            [*COUNT, "--max-rejects", "0.5"],
            "or a share with a percent sign such as 0.1%, got '0.5'",
        ),
        (
            ["tokenize", *COUNT[1:], "--tokenizer", "t", "--validation-share", "0.5"],
            "must be a share above 0% with a percent sign, such as 0.5%, got '0.5'",
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
        ("job: train", "job must be count, the job"),
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


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bpe-beam ")


@pytest.mark.parametrize(
    ("argv", "others"),
    [
        (["--help"], ["argparse", "bpe_beam.settings.field"]),
        (["--version"], ["argparse", "bpe_beam.settings.field"]),
        (["cuont"], ["argparse", "bpe_beam.settings.field"]),
        (["train", "--help"], ["bpe_beam.settings.verify", "bpe_beam.tokenizer.tokenizer"]),
    ],
)
def test_starting_loads_nothing_heavy(argv: list[str], others: list[str]) -> None:
    """Nor the settings of other jobs."""
    code = f"from bpe_beam.cli.main import main; main({argv!r})"
    assert not heavy_modules_of(code, *others)


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
    warnings = ["no document has the source a", "merges.txt is not written"]
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
        (JobCancelled(), 1, "bpe-beam count: cancelled on its runner; the same command resumes\n"),
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
    if code != 130 and not isinstance(error, JobCancelled):
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
    for command in (["evaluate", "--tokenizer", "t", "--counts", "c"], ["inspect", "p"]):
        job(command[0], run)
        assert cli.main(command) == 130
        assert capsys.readouterr().err == f"bpe-beam {command[0]}: interrupted\n"


def test_arguments_that_are_not_utf8_are_refused() -> None:
    done = run_cli("encode", "--tokenizer", "t", "\udcff")
    assert done.returncode == 2
    assert "TEXT must be valid UTF-8" in done.stderr
    assert "Traceback" not in done.stderr


# An unknown flag loads Beam, which needs a `tokenize` that is not the one beside the script.
LAUNCHED = {"--help": (0, "usage: bpe-beam {job} "), "--oh": (2, "bpe-beam {job}: --oh is")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "flag"),
    in_turn(["count", "train", "tokenize", "stream_tokenize"], LAUNCHED),
)
def test_launchers_are_the_jobs(name: str, flag: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "pipelines" / f"{name}.py"), flag],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=600,
    )
    code, said = LAUNCHED[flag]
    assert done.returncode == code, done.stderr
    assert said.format(job=name.replace("_", "-")) in done.stdout + done.stderr
