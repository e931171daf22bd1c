"""Every YAML of `configs/` runs, as its first lines say, and each of its keys has its effect.

Those of `configs/runners/` run in the tests of the runners; here they are read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import ROOT, run, run_whole
from made_text import write
from read_back import read_shards, tree

ALL = sorted((ROOT / "configs").rglob("*.yaml"))
RUNNERS = [path for path in ALL if path.parent.name == "runners"]
CONFIGS = [path for path in ALL if path.parent.name not in ("runners", "cluster")]
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """The corpus that the configs are run on."""
    return write(tmp_path_factory.mktemp("corpus") / "a.jsonl.gz", [*texts, f"a{END}b"])


@pytest.fixture(scope="module")
def tokenizer(corpus: Path) -> Path:
    """A tokenizer for those configs that want one."""
    out = corpus.parent / "tok"
    arguments = ("--input", corpus, "--special-token", END)
    run_whole("train", *arguments, "--vocab-size", "400", "--output", out)
    return out / "tokenizer.json"


def settings(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(config.read_text())
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_it_runs_and_equals_its_settings_as_flags(
    config: Path, corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    keys = settings(config)
    job = str(keys.pop("job"))
    own = config.parent / "corpora" / f"{config.stem}.txt"
    corpus = own if own.exists() else corpus
    arguments: tuple[str | Path, ...] = ("--input", corpus)
    if own.with_suffix("").is_dir():
        arguments = ("--input", f"{own.with_suffix('')}/**/*.txt")
    if job == "tokenize":
        arguments += ("--tokenizer", tokenizer)
    run_whole(job, "--config", config, *arguments, "--output", tmp_path / "config")
    flags: list[str] = []
    for key, value in keys.items():
        if isinstance(value, dict):
            value = [f"{name}={each}" for name, each in value.items()]
        for each in value if isinstance(value, list) else [value]:
            flags += [f"--{key.replace('_', '-')}", str(each)]
    run_whole(job, *flags, *arguments, "--output", tmp_path / "flags")
    assert tree(tmp_path / "config") == tree(tmp_path / "flags")


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_it_is_for_its_job_only(config: Path, tmp_path: Path) -> None:
    job = settings(config)["job"]
    other = "count" if job != "count" else "train"
    ran = run(other, "--config", config, "--input", "x", "--output", tmp_path / "out")
    assert ran.code == 2
    assert str(config) in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("job", ["count", "train", "tokenize"])
@pytest.mark.parametrize("config", RUNNERS, ids=lambda path: path.stem)
def test_one_of_a_runner_is_read_for_every_job(config: Path, job: str, tmp_path: Path) -> None:
    keys = settings(config)
    assert {"runner", "runner_options"} <= set(keys)
    arguments = ("--config", config, "--input", tmp_path / "none", "--output", tmp_path / "out")
    more = {"train": ("--vocab-size", "300"), "tokenize": ("--tokenizer", tmp_path / "none.json")}
    ran = run(job, *arguments, *more.get(job, ()))
    assert ran.code in (1, 2)
    assert str(tmp_path / "none") in ran.err, "all of it was taken, and the job has begun"


@pytest.mark.parametrize("config", RUNNERS, ids=lambda path: path.stem)
def test_a_word_wrong_in_one_of_a_runner_is_refused(config: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        config.read_text().replace("runner_options:\n", "runner_options:\n  parr: 1\n")
    )
    ran = run("count", "--config", broken, "--input", "x", "--output", tmp_path / "out")
    assert ran.code == 2
    assert "parr" in ran.err


def test_what_the_documented_ones_give(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    configs = {path.stem: path for path in CONFIGS}
    tok = tmp_path / "tok"
    ran = run_whole("train", "--config", configs["gpt2_8k"], "--input", corpus, "--output", tok)
    assert "8,000" in ran.summary["warnings"][0], "so small a corpus has no so many pairs"
    vocab = json.loads((tok / "vocab.json").read_bytes())
    assert vocab[END] == 0
    arguments = ("--tokenizer", tokenizer, "--input", corpus, "--output", tmp_path / "tokens")
    run_whole("tokenize", "--config", configs["tokenize_megatron"], *arguments)
    last = read_shards(tmp_path / "tokens")[-1]
    assert last[-1] == 0, "the end-of-text token is appended"
    assert 0 not in last[:-1], "and is plain text where it stands in the text"


def test_flags_win_over_the_file(corpus: Path, tmp_path: Path) -> None:
    config = {path.stem: path for path in CONFIGS}["gpt2_8k"]
    arguments = ("--config", config, "--input", corpus, "--output", tmp_path / "tok")
    ran = run_whole("train", *arguments, "--vocab-size", "300")
    assert ran.summary["vocab_size"] == 300


def test_a_config_and_counts_that_agree(corpus: Path, tmp_path: Path) -> None:
    """What a config says of reading a corpus is not used with --counts; settings that the counts
    have may be set beside them if they are the same."""
    counts, config = tmp_path / "counts", tmp_path / "train.yaml"
    run_whole("count", "--input", corpus, "--output", counts)
    config.write_text("input: nowhere/*.jsonl\ntext_field: body\npretokenizer: gpt2\n")
    train = ("train", "--config", config, "--counts", counts, "--vocab-size", "300")
    run_whole(*train, "--output", tmp_path / "a")
    run_whole(*train[:1], *train[3:], "--output", tmp_path / "b")
    name = "tokenizer.json"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    refused = run(*train, "--pretokenizer", "bert", "--output", tmp_path / "c")
    assert refused.code == 2
    assert "--pretokenizer must be 'gpt2', as in the counts" in refused.err
    both = run(*train, "--text-field", "body", "--output", tmp_path / "c")
    assert (both.code, "line 1: input exclude each other" in both.err) == (2, True)
