"""A SentencePiece `.model` wherever the command line takes a tokenizer."""

from __future__ import annotations

from pathlib import Path

import sentencepiece
from command_line import run, run_whole
from made_text import documents
from sentencepiece_models import NORMAL, SPECIAL, UNIGRAM, Piece, made_model

import bpe_beam
from bpe_beam import Tokenizer

PIECES: list[Piece] = [*SPECIAL, ("▁ab", -2, NORMAL), *((char, -9, NORMAL) for char in "▁abc")]


def test_jobs(tmp_path: Path) -> None:
    model, corpus, output = tmp_path / "m.model", tmp_path / "in.txt", tmp_path / "tokens"
    model.write_bytes(made_model(PIECES, UNIGRAM))
    corpus.write_text("ab  cab\n\nxyz ab\n" * 20)
    arguments = ("--input", corpus, "--workers", 1)
    ran = run_whole(
        "tokenize", "--tokenizer", model, *arguments, "--output", output, "--append", "</s>"
    )
    assert any("for bpe-beam alone" in warning for warning in ran.warnings)
    assert ran.summary["tokens"] == 20 * (5 + 1 + 3 + 3 - 1)
    run_whole("verify", output, "--full", *arguments[:2])
    assert Tokenizer.from_file(str(output)) == Tokenizer.from_sentencepiece(str(model))
    assert run("encode", "--tokenizer", model, "ab  cab").out == b"3 4 7 5 6\n"
    assert run("decode", "--tokenizer", output, 3, 4, 7, 5, 6, 2).out == b"ab cab"
    assert b"SentencePiece algorithm='unigram'" in run("inspect", model).out
    figures = bpe_beam.evaluate(Tokenizer.from_sentencepiece(str(model)), ["ab  cab", "xyz ab"])
    assert figures["figures"]["total"]["tokens"] == 8


def test_training_writes_a_model(tmp_path: Path) -> None:
    """Its ids and texts are those of `sentencepiece` itself."""
    corpus, output = tmp_path / "in.txt", tmp_path / "tok"
    corpus.write_text("\n".join(documents(60)))
    arguments = ("train", "--input", corpus, "--vocab-size", "700", "--unk-token", "<unk>")
    arguments += ("--normalizer", "dummy_prefix", "--pretokenizer", "metaspace")
    roles = ("--bos-token", "<s>", "--pad-token", "<pad>")
    run_whole(*arguments, *roles, "--byte-fallback", "--output", output)
    ours = Tokenizer.from_file(str(output))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(output / "tokenizer.model"))
    assert [theirs.id_to_piece(i) for i in range(len(ours))] == [*ours.vocab]
    named = (theirs.unk_id(), theirs.bos_id(), theirs.pad_id(), theirs.eos_id())
    assert named == (0, 1, 2, -1)
    for text in [*documents(80), "", " ", "  a  b ", "▁x", "é<s>\n\t<0x41>", "日本 👩", "\x00 "]:
        assert ours.encode(text) == theirs.encode(text), text
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text)), text
    # Without bytes for unknown characters, no file says the same.
    summary = run_whole(*arguments, "--output", tmp_path / "other").summary
    assert any("not written: .model: " in warning for warning in summary["warnings"])
    assert not (tmp_path / "other" / "tokenizer.model").exists()
