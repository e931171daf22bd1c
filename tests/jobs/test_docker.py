"""The Dockerfile's paths and the flex templates' parameters, held against what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, run, run_whole
from made_text import write
from read_back import tree

from bpe_beam.settings.jobs import JOBS

pytestmark = pytest.mark.quick

DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
TEMPLATES = sorted(path.stem for path in (ROOT / "docker").glob("*.json"))


def parameters(job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / f"docker/{job}.json").read_bytes())[
        "parameters"
    ]
    return found


def test_what_is_copied_exists_and_is_enough() -> None:
    copied = re.findall(r"^COPY (?!--from)((?:\S+ )+)\S+$", DOCKERFILE, re.MULTILINE)
    paths = {name for line in copied for name in line.split()}
    # The package need not be here: what is tested may be what was installed.
    assert all((ROOT / name).exists() for name in paths - {"bpe_beam"})
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "bpe_beam", "pipelines"} <= paths


def test_workers_start_where_no_module_hides_another() -> None:
    """Beam's boot starts Python's module unchanged: its folder is the first on the path."""
    stages = DOCKERFILE.split("\nFROM ")[1:]
    ours = [stage for stage in stages if "AS launcher" not in stage]
    folders = [re.findall(r"^WORKDIR (\S+)$", stage, re.MULTILINE) for stage in ours]
    assert len(ours) == 2
    assert folders[0][-1] == "/"
    assert not folders[1]
    assert "rm -rf /opt/bpe-beam" in ours[0]


def test_beam_is_one_that_the_package_takes() -> None:
    (beam,) = re.findall(r"^ARG BEAM=(\S+)$", DOCKERFILE, re.MULTILINE)
    (least,) = re.findall(r'"apache-beam>=([0-9.]+),', (ROOT / "pyproject.toml").read_text())
    assert tuple(map(int, beam.split("."))) >= tuple(map(int, least.split(".")))


def test_there_is_a_launcher_for_each() -> None:
    assert TEMPLATES == ["count", "tokenize"]
    for job in TEMPLATES:
        assert (ROOT / f"pipelines/{job}.py").exists()


@pytest.mark.parametrize("job", TEMPLATES)
def test_parameters_are_options_and_as_required(job: str) -> None:
    known = {option.key for option in JOBS[job].options.values()}
    names = [each["name"] for each in parameters(job)]
    assert set(names) <= known
    assert len(set(names)) == len(names)
    allowed = {"name", "label", "helpText", "isOptional", "regexes"}
    assert all(each.keys() <= allowed for each in parameters(job))
    required = [each["name"] for each in parameters(job) if not each.get("isOptional")]
    flags = {name: f"--{name}=memory://nowhere/{name}" for name in required}
    for left_out in required:
        some = [flag for name, flag in flags.items() if name != left_out]
        ran = run(job, *some)
        assert ran.code == 2
        assert f"--{left_out} is required" in ran.message
    assert "is required" not in run(job, *flags.values()).message


@pytest.mark.parametrize("job", TEMPLATES)
def test_patterns_take_what_the_job_takes(job: str) -> None:
    values = {
        "input": ["gs://b/*.txt", "@gs://b/list", "s3://b/c"],
        "output": ["gs://b/out"],
        "tokenizer": ["gs://b/tokenizer.json"],
        "range_bytes": ["64MB", "1000"],
        "max_rejects": ["0.1%", "10"],
    }
    for each in parameters(job):
        for pattern in each.get("regexes", ()):
            for value in values.get(each["name"], ()):
                assert re.fullmatch(pattern, value), (each["name"], value)
            assert not re.fullmatch(pattern, "/local/path")
    options = JOBS[job].options
    for each in parameters(job):
        metavar = options["--" + each["name"].replace("_", "-")].metavar
        for value in re.findall(r"[\w]+", metavar) if metavar.startswith("{") else ():
            assert all(re.fullmatch(pattern, value) for pattern in each["regexes"])


def test_underscores_mean_dashes(tmp_path: Path) -> None:
    corpus = write(tmp_path / "a.jsonl", ["one", "two"])
    arguments = ("count", "--input", corpus)
    run_whole(*arguments, "--output", tmp_path / "a", "--max-rejects", "3", "--range-bytes=1000")
    run_whole(*arguments, "--output", tmp_path / "b", "--max_rejects", "3", "--range_bytes=1000")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    ran = run(*arguments, "--output", tmp_path / "c", "--max_reject", "3")
    assert ran.code == 2
