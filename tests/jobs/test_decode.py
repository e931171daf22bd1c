"""`bpe-beam decode`: ids to the bytes of their text."""

from __future__ import annotations

import pytest
from command_line import run_for_output as run

from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick


def test_decoding_gives_the_bytes_back(tokenizer: str) -> None:
    text = "hel  hé\n\x00 \u2028"
    ids = [str(i) for i in Tokenizer.from_file(tokenizer).encode(text)]
    for argv, stdin in ((ids, b""), ([",".join(ids)], b""), ([], "\n".join(ids).encode())):
        out, said = run("decode", "--tokenizer", tokenizer, *argv, stdin=stdin)
        assert (out, said) == (text.encode(), "")
    half = Tokenizer.from_file(tokenizer).encode("é")[:1]
    assert run("decode", "--tokenizer", tokenizer, str(half[0]))[0] == b"\xc3"
    assert run("decode", "--tokenizer", tokenizer, stdin=b" \n")[0] == b""


def test_what_is_no_id_is_refused_with_its_place(tokenizer: str) -> None:
    decode = ["decode", "--tokenizer", tokenizer]
    said = "ID must be a whole number from 0 to 2,147,483,647, got 'x' as number 2"
    assert said in run(*decode, "1", "x", code=2)[1]
    assert "standard input must be a whole number" in run(*decode, stdin=b"1 x", code=1)[1]
    assert "got '\\\\xff' as number 1" in run(*decode, stdin=b"\xff", code=1)[1]
    assert "9999" in run(*decode, "1", "9999", code=1)[1]
