"""The first command of the README, as it is: on the sources of this Python's own library."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest
import tokenizers
from command_line import run_process
from read_back import read_shards, tree


@pytest.mark.slow
def test_the_quickstart(tmp_path: Path) -> None:
    ran = run_process("quickstart", "--summary-file", "summary.json", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert ran.out == b""
    out = tmp_path / "bpe-beam-quickstart"
    assert {path.name for path in tmp_path.iterdir()} == {out.name, "summary.json"}
    summary = json.loads((tmp_path / "summary.json").read_bytes())

    loaded = tokenizers.Tokenizer.from_file(str(out / "tokenizer" / "tokenizer.json"))
    assert loaded.get_vocab_size() == 8000
    loaded.encode_special_tokens = True
    shards = read_shards(out / "tokens")
    assert summary["documents"] == len(shards)
    assert summary["tokens"] == sum(map(len, shards))
    assert summary["shards_whole"] is True
    assert summary["bytes_per_token"] > 3
    # It read what it says it reads.
    source = Path(sysconfig.get_paths()["stdlib"], "textwrap.py").read_text()
    ids = [*loaded.encode(source, add_special_tokens=False).ids, 0]
    assert ids in shards

    shown = ran.message
    for expected in ("bytes per token", "shards whole", "yes", f"{summary['tokens']:,}"):
        assert expected in shown
    commands = shown.partition("next:\n")[2].splitlines()
    assert [command.split()[:2] for command in commands] == [
        *(["bpe-beam", "encode"], ["bpe-beam", "inspect"], ["bpe-beam", "train"])
    ]

    before = tree(tmp_path)
    again = run_process("quickstart", "--quiet", cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert tree(tmp_path) == before
