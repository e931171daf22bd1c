"""What is refused for Dataflow before anything starts: it could not work, or would tell secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run

from bpe_beam.errors import UsageError
from bpe_beam.settings.dataflow import require_no_secrets, require_reachable

pytestmark = pytest.mark.quick

BUCKET = "gs://bucket/folder"


@pytest.mark.parametrize("runner", ["DataflowRunner", "dataflow", "apache_beam.x.DataflowRunner"])
def test_paths_of_this_machine(runner: str) -> None:
    for path in ("data/*.txt", "/data", "file:///data"):
        with pytest.raises(UsageError, match=r"input .* a path of this machine"):
            require_reachable(runner, output=[BUCKET], input=[BUCKET, path])
    require_reachable(runner, input=[BUCKET, "s3://b/c", "@list"], output=[BUCKET])
    require_reachable("FlinkRunner", input=["data"], output=["out"])
    require_reachable(None, input=["data"], output=["out"])


def test_passwords_in_urls() -> None:
    for url in ("https://user:SECRET@host/a", "https://host/a?token=SECRET"):
        with pytest.raises(UsageError, match="no password and no query") as error:
            require_reachable("dataflow", input=[url])
        assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    "options",
    [
        {"s3": {"secret": "SECRET"}},
        {"s3": {"key": "SECRET"}},
        {"s3": {"client_kwargs": {"aws_secret_access_key": "SECRET"}}},
        {"s3": {"client_kwargs": {"headers": {"x": ["SECRET"]}}}},
        {"s3": {"endpoint_url": "https://user:SECRET@host"}},
        {"gs": {"token": "SECRET.json"}},
        {"gs": {"token": {"refresh": "SECRET"}}},
        {"az": {"account_key": "SECRET"}},
        {"az": {"connection_string": "SECRET"}},
        {"az": {"sas_token": "SECRET"}},
        {"hf": {"token": "SECRET"}},
    ],
)
def test_secrets_in_storage_options(options: dict[str, dict[str, Any]]) -> None:
    (protocol,) = options
    with pytest.raises(UsageError, match=rf"must have no secrets .*{protocol}\.") as error:
        require_no_secrets("DataflowRunner", options)
    assert "SECRET" not in str(error.value)
    require_no_secrets("FlinkRunner", options)


def test_other_storage_options_pass() -> None:
    require_no_secrets(
        "DataflowRunner",
        {
            "s3": {"endpoint_url": "https://host", "anon": True, "client_kwargs": {"region": "x"}},
            "gs": {"token": "cloud", "project": "p", "requester_pays": True},
        },
    )


@pytest.mark.parametrize(
    "job", [("count",), ("tokenize", "--tokenizer", "t.json"), ("train", "--vocab-size", "300")]
)
def test_every_job_asks(job: tuple[str, ...], tmp_path: Path) -> None:
    options = json.dumps({"gs": {"token": "x.json"}})
    for more, said in (
        (
            ("--input", "/data", "--output", BUCKET),
            "--input must be in a bucket for Dataflow, got /data",
        ),
        (
            ("--input", BUCKET, "--output", "out"),
            "--output must be in a bucket for Dataflow, got out",
        ),
        (("--input", BUCKET, "--output", BUCKET, "--storage-options", options), "gs.token"),
    ):
        ran = run(*job, *more, "--runner", "DataflowRunner")
        assert ran.code == 2
        assert said in ran.message
    if job[0] == "train":
        # Workers read counts only where merges are learned in rounds.
        far = ("--output", BUCKET, "--runner", "DataflowRunner", "--merge-rounds", "distributed")
        ran = run(*job, "--counts", "c", *far)
        assert ran.code == 2
        assert "--counts must be in a bucket for Dataflow, got c, a path" in ran.message
    (tmp_path / "text").write_text("a b")
    (tmp_path / "list").write_text(str(tmp_path / "text"))
    if job[0] == "count":
        arguments = ("--input", f"@{tmp_path / 'list'}", "--output", "memory://out/refused")
        ran = run(*job, *arguments, "--runner", "DataflowRunner")
        assert ran.code == 2
        assert f"--input must be in a bucket for Dataflow, got {tmp_path}" in ran.message
