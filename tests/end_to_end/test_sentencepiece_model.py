"""A SentencePiece `.model` wherever the command line takes a tokenizer."""

from __future__ import annotations

from pathlib import Path

from command_line import run, run_whole
from sentencepiece_models import NORMAL, SPECIAL, UNIGRAM, Piece, made_model

from bpe_beam import Tokenizer

PIECES: list[Piece] = [*SPECIAL, ("▁ab", -2, NORMAL), *((char, -9, NORMAL) for char in "▁abc")]


def test_jobs(tmp_path: Path) -> None:
    model, corpus, output = tmp_path / "m.model", tmp_path / "in.txt", tmp_path / "tokens"
    model.write_bytes(made_model(PIECES, UNIGRAM))
    corpus.write_text("ab  cab\n\nxyz ab\n" * 20)
    given = ("--input", corpus, "--workers", 1)
    ran = run_whole(
        "tokenize", "--tokenizer", model, *given, "--output", output, "--append", "</s>"
    )
    assert any("for bpe-beam alone" in warning for warning in ran.warnings)
    assert ran.summary["tokens"] == 20 * (5 + 1 + 3 + 3 - 1)
    run_whole("verify", output, "--full", *given[:2])
    assert Tokenizer.from_file(str(output)) == Tokenizer.from_sentencepiece(str(model))
    assert run("encode", "--tokenizer", model, "ab  cab").out == b"3 4 7 5 6\n"
    assert run("decode", "--tokenizer", output, 3, 4, 7, 5, 6, 2).out == b"ab cab"
    assert b"SentencePiece algorithm='unigram'" in run("inspect", model).out
    figures = Tokenizer.from_sentencepiece(str(model)).evaluate(["ab  cab", "xyz ab"])
    assert figures["figures"]["total"]["tokens"] == 8
