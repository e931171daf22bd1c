"""`evaluate --input` on every runner: the report of a run in process, with words in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_process, run_whole
from corpora import Made
from engines import Engine
from waiting import SECONDS

pytestmark = pytest.mark.runners


def test_the_report_is_that_of_a_run_in_process(engine: Engine, made: Made, tmp_path: Path) -> None:
    inputs = ("--input", made.folder / "data" / "*", "--range-bytes", "4KB", "--max-rejects", "5%")
    sources = ("--source", "packed=*.gz", "--source", "plain=*")
    other = tmp_path / "o200k"
    run_whole("train", *inputs, "--vocab-size", "500", "--pretokenizer", "o200k", "--output", other)
    tokenizers = ("--tokenizer", made.folder / "train", other)
    arguments = ("evaluate", *inputs, *sources, *tokenizers)
    run_whole(*arguments, "--output", tmp_path / "here.json")
    more = ("--work", "work", "--output", "there.json", "--quiet")
    ran = run_process(*arguments, *engine.flags, *more, cwd=tmp_path, timeout=SECONDS)
    assert ran.code == 0, ran.err
    there = (tmp_path / "there.json").read_bytes()
    assert there == (tmp_path / "here.json").read_bytes()
    assert all(one["exact"] for one in json.loads(there)["tokenizers"])
