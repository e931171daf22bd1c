"""`bpe-beam counts` alone, and the help of its jobs."""

from __future__ import annotations

from command_line import run


def test_alone_it_explains_itself() -> None:
    ran = run("counts")
    assert ran.code == 2
    for name in ("merge", "show", "filter"):
        assert f"bpe-beam counts {name}" in ran.err
    assert run("counts", "nonsense").err == ran.err
    ran = run("counts", "--help")
    assert ran.code == 0
    assert b"bpe-beam counts merge" in ran.out


def test_each_has_its_help() -> None:
    for name, flag in (("merge", "--output"), ("show", "--top"), ("filter", "--min-count")):
        ran = run("counts", name, "--help")
        assert ran.code == 0
        assert f"usage: bpe-beam counts {name} ".encode() in ran.out
        assert flag.encode() in ran.out
    ran = run("counts", "show", "x", "--output", "y")
    assert ran.code == 2
    assert ran.message.startswith("bpe-beam counts show: --output is an option of count, ")
