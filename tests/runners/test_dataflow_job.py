"""The whole description of a Dataflow job, as the command line builds it, without sending it: its
labels, coders and hints, and what of this machine it tells.

Everything is caught that Dataflow's client would send or upload. Storage is fsspec's `memory`.
"""

from __future__ import annotations

import base64
import bz2
import importlib.util
import io
import json
import re
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pipeline_checks
import pytest
import yaml
from apache_beam.options.pipeline_options import GoogleCloudOptions
from apache_beam.portability.api import beam_runner_api_pb2
from command_line import ROOT, run, run_whole
from engines import missing

pytestmark = pytest.mark.runners

DATAFLOW = (
    *("--runner", "DataflowRunner", "--project", "p-project", "--region", "us-central1"),
    *("--temp_location", "gs://bucket/temp", "--staging_location", "gs://bucket/staging"),
    "--no_auth",
)
CORPUS = "memory://corpus"


class Caught:
    """What would have been sent.

    Attributes:
        files: Uploads by their last name.
        job: The request itself, as JSON.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.job = ""

    @property
    def pipeline(self) -> Any:
        """The pipeline."""
        return beam_runner_api_pb2.Pipeline.FromString(self.files["pipeline.pb"])

    def texts(self) -> bytes:
        """All that was sent, with all that is packed in it beside."""
        return b"\n".join(unpacked(data) for data in (*self.files.values(), self.job.encode()))


def unpacked(data: bytes) -> bytes:
    """Bytes, and what they hold in Base64 and deflate or bzip2, as Beam packs what it pickles."""
    found = [data]
    for text in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", data):
        packed = base64.b64decode(text + b"=" * (-len(text) % 4))
        for unpack in (zlib.decompress, bz2.decompress):
            try:
                found.append(unpack(packed))
            except (zlib.error, OSError, ValueError):
                continue
    return b"\n".join(found)


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> Caught:
    """Catches what Dataflow's client would send."""
    if importlib.util.find_spec("gcsfs") is None:
        missing("Dataflow's client is not installed: pip install -e '.[dataflow]'")
    from apache_beam.runners.dataflow.internal import apiclient

    caught = Caught()

    def stage(_: Any, __: str, name: str, data: Any, *___: Any, **____: Any) -> None:
        content = Path(data).read_bytes() if isinstance(data, str) else data.read()
        caught.files[name] = content

    def submit(_: Any, job: Any) -> None:
        caught.job = job.json()
        raise ConnectionAbortedError("enough")

    # It would ask Google whether the bucket keeps what is removed.
    warn = "_warn_if_soft_delete_policy_enabled"
    monkeypatch.setattr(GoogleCloudOptions, warn, lambda *_: False)
    client = apiclient.DataflowApplicationClient
    monkeypatch.setattr(client, "stage_file_with_retry", stage)
    monkeypatch.setattr(client, "submit_job_description", submit)
    return caught


@pytest.fixture
def stores() -> None:
    """A corpus and a tokenizer where Dataflow could reach them."""
    fs = fsspec.filesystem("memory")
    for i in range(3):
        with fs.open(f"/corpus/{i}.txt", "wb") as file:
            file.write(b"SECRETTEXT of the corpus, not to be sent\n" * 20)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("low lower lowest " * 50)
    arguments = ("--input", tmp_path / "text", "--vocab-size", "262")
    run_whole("train", *arguments, "--output", tmp_path / "local-tokenizer")
    return tmp_path / "local-tokenizer/tokenizer.json"


@pytest.fixture
def build(caught: Caught, stores: None, tokenizer: Path) -> Callable[..., Caught]:
    """Builds a job's description."""
    number = iter(range(100))

    def build(job: str, *more: str | Path) -> Caught:
        arguments: list[str | Path] = ["--input", f"{CORPUS}/*.txt"]
        arguments += ["--output", f"memory://out/{next(number)}", *DATAFLOW, *more]
        if job == "tokenize":
            arguments += ["--tokenizer", tokenizer]
        caught.files.clear()
        ran = run(job, *arguments)
        assert ran.code == 1, ran.err
        assert "enough" in ran.message
        return caught

    return build


@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_labels_coders_and_hints(build: Callable[..., Caught], job: str) -> None:
    proto = build(job).pipeline
    pipeline_checks.check(proto)
    labels = pipeline_checks.labels(proto)
    assert f"{job.title()}/{job.title()}Split" in labels
    assert {name.partition("/")[0] for name in labels} == {job.title()}
    assert labels == pipeline_checks.labels(build(job).pipeline)

    environments = proto.components.environments
    ram = {
        environments[each.environment_id].resource_hints["beam:resources:min_ram_bytes:v1"]
        for each in proto.components.transforms.values()
        if each.environment_id and each.unique_name.startswith(f"{job.title()}/")
    }
    assert ram == {b"2000000000" if job == "count" else b"1000000000"}


@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_nothing_of_this_machine_is_told(
    build: Callable[..., Caught],
    job: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_ENVIRONMENT", "SECRETVALUE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRETKEY")
    config = tmp_path / "config.yaml"
    config.write_text("# SECRETCOMMENT\nquiet: true\n")
    options = tmp_path / "options.json"
    options.write_text(json.dumps({"s3": {"endpoint_url": "http://store:9000", "anon": True}}))
    sent = build(job, "--config", config, "--storage-options", f"@{options}")
    texts = sent.texts()
    assert set(sent.files) == {"pipeline.pb"}
    assert b"http://store:9000" in texts, "the options that workers need; or nothing was unpacked"
    for secret in (
        b"SECRETTEXT",
        b"SECRETVALUE",
        b"SECRETKEY",
        b"SECRETCOMMENT",
        b"SECRET_OF_THE_ENVIRONMENT",
        b'"merges"',  # of the tokenizer, which workers read from the output folder
        str(tmp_path).encode(),
        str(ROOT).encode(),
        str(Path.home()).encode() + b"/",
    ):
        assert secret not in texts, secret


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that `--setup_file` can name; ours is built by tests/test_install.py."""
    folder = tmp_path / "clone"
    (folder / "made").mkdir(parents=True)
    (folder / "made/__init__.py").write_text("")
    (folder / "setup.py").write_text(
        "from setuptools import setup\nsetup(name='made', packages=['made'])\n"
    )
    (folder / "beside.txt").write_text("SECRETNOTE")
    return folder


def test_what_setup_file_packs_is_all_that_is_uploaded(
    build: Callable[..., Caught], package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(package)
    sent = build("count", "--setup_file", "./setup.py")
    assert set(sent.files) == {"pipeline.pb", "workflow.tar.gz"}
    with tarfile.open(fileobj=io.BytesIO(sent.files["workflow.tar.gz"])) as packed:
        names = {Path(name).name for name in packed.getnames()}
    assert "__init__.py" in names
    assert "beside.txt" not in names
    assert str(tmp_path).encode() not in sent.texts()


def test_a_job_by_config_is_the_same(
    build: Callable[..., Caught], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = pipeline_checks.labels(build("count").pipeline)
    (package / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(package)
    config = "configs/runners/dataflow.yaml"
    sent = build("count", "--config", config, "--requirements_cache", "skip")
    assert pipeline_checks.labels(sent.pipeline) == plain
    workers = (ROOT / "configs/runners/dataflow-workers.txt").read_bytes()
    assert sent.files["requirements.txt"] == workers
    options = json.loads(sent.job)["environment"]["sdkPipelineOptions"]["options"]
    arguments = yaml.safe_load((ROOT / config).read_text())["runner_options"]
    assert {name: options[name] for name in arguments} == arguments


@pytest.mark.parametrize("job", ["count", "tokenize"])
def test_a_template_is_the_same_job_and_its_end(
    build: Callable[..., Caught], caught: Caught, job: str, tokenizer: Path
) -> None:
    plain = pipeline_checks.labels(build(job).pipeline)
    caught.files.clear()
    arguments = [
        "--input",
        f"{CORPUS}/*.txt",
        "--output",
        f"memory://out/template-{job}",
        *DATAFLOW,
    ]
    more = ["--tokenizer", str(tokenizer)] if job == "tokenize" else []
    location = "gs://bucket/templates/one"
    summary = tokenizer.parent / "summary.json"
    more += ["--template_location", location, "--summary-file", str(summary), "--overwrite"]
    assert run(job, *arguments, *more).code == 0
    assert json.loads(summary.read_bytes())["template"] == location
    assert set(caught.files) == {"pipeline.pb", "one"}
    pipeline_checks.check(caught.pipeline)
    labels = set(pipeline_checks.labels(caught.pipeline))
    steps = ("KeyResults", "GatherResults", "FinishFolder")
    assert labels - set(plain) == {f"{job.capitalize()}/{step}" for step in steps}
    texts = caught.texts()
    assert str(tokenizer.parent).encode() not in texts
    assert b'"merges"' not in texts
