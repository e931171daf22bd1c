"""Completion in real shells: what each offers for the beginning of a command."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run

from bpe_beam.cli.completion import SHELLS
from bpe_beam.settings.jobs import JOBS

CASES = [
    ("bpe-beam tra", ["train"]),
    ("bpe-beam e", ["encode", "evaluate", "export"]),
    ("bpe-beam counts ", ["filter", "merge", "show"]),
    ("bpe-beam train --model w", ["word_level", "wordpiece"]),
    ("bpe-beam tokenize --tokenizer t --sh", ["--shard-tokens", "--shuffle-seed"]),
    ("bpe-beam counts show --t", ["--top"]),
    ("bpe-beam completion z", ["zsh"]),
]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        ran = run("completion", shell)
        assert (ran.code, ran.err) == (0, "")
        (folder / shell).write_bytes(ran.out)
    return folder


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, timeout=300, text=True).stdout


def in_bash(scripts: Path, line: str) -> list[str]:
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    return output_of(
        *("bash", "--norc", "-c"),
        f"source {scripts}/bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        f"_shtab_bpe_beam bpe-beam '{words[-1]}' ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    ).split()


def in_fish(scripts: Path, line: str) -> list[str]:
    lines = output_of("fish", "-N", "-c", f"source {scripts}/fish; complete -C '{line}'")
    return [row.split("\t")[0] for row in lines.splitlines()]


def in_zsh(scripts: Path, line: str) -> list[str]:
    """Type a line and Ctrl-D, which lists what is possible, in an interactive shell."""
    process, screen = pty.fork()
    if process == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    setup = f'autoload -U compinit; compinit -u -D; eval "$(<{scripts}/zsh)"'
    os.write(screen, f"{setup}; PS1='REA''DY> '\n".encode())
    read_until(screen, lambda text: "READY> " in text)  # the shell reads keys one by one now
    os.write(screen, f"{line}\x04".encode())
    shown = read_until(screen, lambda text: " -- " in text, finish="\x15exit\n")
    os.waitpid(process, 0)
    os.close(screen)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    return re.findall(r"^(\S+) +-- ", plain.replace("\r", "\n"), re.MULTILINE)


def read_until(screen: int, is_done: Callable[[str], bool], finish: str = "") -> str:
    """Return what a terminal shows until a condition holds, then type `finish`, and read on."""
    shown, done, limit = "", False, time.monotonic() + 120
    while time.monotonic() < limit:
        if not select.select([screen], [], [], 1.0)[0]:
            continue
        try:
            data = os.read(screen, 65536)
        except OSError:  # the shell has ended
            return shown
        shown += data.decode(errors="replace")
        if not done and is_done(shown):
            done = True
            if not finish:
                return shown
            os.write(screen, finish.encode())
    raise AssertionError(shown)


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_bash(scripts: Path, line: str, expected: list[str]) -> None:
    assert sorted(in_bash(scripts, line)) == expected


@pytest.mark.shells
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_fish(scripts: Path, line: str, expected: list[str]) -> None:
    assert sorted(in_fish(scripts, line)) == expected


@pytest.mark.shells
def test_fish_completes_files_and_folders(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").touch()
    (tmp_path / "counts").mkdir()
    folders = in_fish(scripts, f"bpe-beam train --counts {tmp_path}/co")
    assert folders == [f"{tmp_path}/counts/"]
    assert len(in_fish(scripts, f"bpe-beam train --input {tmp_path}/co")) == 2


@pytest.mark.shells
def test_zsh(scripts: Path) -> None:
    assert sorted(in_zsh(scripts, "bpe-beam counts ")) == ["filter", "merge", "show"]
    found = in_zsh(scripts, "bpe-beam e")
    assert sorted(found) == ["encode", "evaluate", "export"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_has_every_option(scripts: Path, shell: str) -> None:
    text = (scripts / shell).read_text()
    for job in JOBS.values():
        for flag in job.options:
            if flag.startswith("--"):
                assert (f"-l {flag[2:]} " if shell == "fish" else flag) in text, flag


def test_other_shells_are_refused() -> None:
    for arguments, got in (((), "nothing"), (("tcsh",), "tcsh"), (("zsh", "bash"), "zsh bash")):
        ran = run("completion", *arguments)
        assert ran.code == 2
        assert ran.message.endswith(f"SHELL must be one of bash, zsh, fish, got {got}")
    assert run("completion", "--help").out.startswith(b"usage: bpe-beam completion")
