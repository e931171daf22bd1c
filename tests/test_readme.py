"""Runs what the README and the pages about jobs tell users to type, on a small corpus."""

from __future__ import annotations

import re
from pathlib import Path

import made_text
import pages
import pytest

from bpe_beam.settings.jobs import JOBS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
RUN = [README, *((ROOT / f"docs/{name}.md").read_text("utf-8") for name in ("training", "python"))]
"""The pages whose blocks run one after another, in one folder."""
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a user of the README: a corpus, the configs, and `bpe-beam` on the path."""
    folder = tmp_path_factory.mktemp("readme")
    for part in range(2):
        texts = made_text.documents(300, seed=part)
        made_text.write(folder / "data" / f"part-{part}.jsonl.gz", texts)
    (folder / "configs").symlink_to(ROOT / "configs")
    return pages.with_command(folder)


@pytest.mark.slow
def test_every_example_runs(folder: Path) -> None:
    shown = [pages.run(folder, *block) for page in RUN for block in pages.blocks(page)]

    assert len(shown) == 9
    assert "offsets  text" in shown[0]
    for output in (
        "tokenizer",
        "tokenizer-8k",
        "tokenizer-64k",
        "tokenizer-mingram",
        "gpt2",
        "bert",
        "more",
    ):
        assert (folder / output / "tokenizer.json").exists()
    for output in ("tokens", "tokens-py"):
        assert (folder / output / "__manifest").exists()


@pytest.mark.quick
def test_the_readme_has_the_two_commands() -> None:
    commands = [line for line in README.splitlines() if line.startswith(pages.INSTALLS)]
    assert len(commands) == 2
    assert commands[0].endswith("bpe-beam quickstart")
    assert ".venv/bin/pytest" in commands[1]


@pytest.mark.quick
def test_ci_runs_the_two_commands() -> None:
    commands = [line for line in README.splitlines() if line.startswith(pages.INSTALLS)]
    script = (ROOT / ".ci/run").read_text("utf-8")
    assert re.findall(r'^(?:QUICKSTART|TESTS)="(.*)"$', script, re.MULTILINE) == commands


@pytest.mark.quick
def test_every_job_is_named() -> None:
    table = README.split("## Commands")[1].split("##")[0]
    assert set(JOBS) <= set(re.findall(r"`(?:bpe-beam )?([a-z -]+)`", table))


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link


@pytest.mark.quick
def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120
