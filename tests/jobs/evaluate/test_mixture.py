"""`evaluate --mixture`: the figures of the sources in the shares of a mixture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from made_text import documents

import bpe_beam
from bpe_beam.errors import UsageError


def test_sources_count_by_their_shares(tmp_path: Path) -> None:
    texts = {"web": documents(20, seed=1), "code": [f"x{n} = {n}" for n in range(50)]}
    tokenizer = bpe_beam.train(texts, vocab_size=300)
    tokenizer.save(tmp_path / "tokenizer.json")
    file = tmp_path / "mixture.yaml"
    file.write_text("tokens: 10B\nshare: {web: 0.75, code: 0.25}\n")
    figures = bpe_beam.evaluate(tokenizer, texts, mixture=file)["figures"]
    web, code = (figures["sources"][name] for name in ("web", "code"))
    expected = 0.75 * web["bytes"] / web["tokens"] + 0.25 * code["bytes"] / code["tokens"]
    assert figures["mixture"]["bytes_per_token"] == pytest.approx(expected)
    words = 0.75 * web["words"] / web["tokens"] + 0.25 * code["words"] / code["tokens"]
    assert figures["mixture"]["tokens_per_word"] == pytest.approx(1 / words)
    assert "mixture" not in bpe_beam.evaluate(tokenizer, texts)["figures"]
    for name, each in texts.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(each))
    command = ("evaluate", "--input", *(tmp_path / f"{name}.txt" for name in texts))
    named = ("--source", "web=web*", "--source", "code=code*", "--mixture", file)
    ran = run(*command, "--tokenizer", tmp_path, *named)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["tokenizers"][0]["figures"]["mixture"] == figures["mixture"]
    ran = run(*command, "--tokenizer", tmp_path, "--mixture", file)
    assert (ran.code, "--mixture must have sources" in ran.message) == (2, True), ran.message
    file.write_text("tokens: 10B\nshare: {wib: 1}\n")
    with pytest.raises(UsageError, match="mixture must name sources of the input, got 'wib'"):
        bpe_beam.evaluate(tokenizer, texts, mixture=file)
