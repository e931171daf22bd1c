"""`bpe-beam completion SHELL`: a script that completes jobs, options, values and files.

shtab makes the script from the parsers of all jobs. Completing needs no Python.
"""

from __future__ import annotations

import argparse

from bpe_beam.cli.help import COMMAND, COMMAND_SUMMARY
from bpe_beam.cli.parser import job_parser
from bpe_beam.errors import UsageError
from bpe_beam.settings.jobs import GROUPS, JOBS

SHELLS = ("bash", "zsh", "fish")

HELP = """\
usage: bpe-beam completion {bash,zsh,fish}

Print a script that completes jobs, options, values and files.

  bash: bpe-beam completion bash > ~/.local/share/bash-completion/completions/bpe-beam
  zsh:  bpe-beam completion zsh > ~/.zfunc/_bpe-beam
        # ~/.zfunc must be in fpath before compinit runs
  fish: bpe-beam completion fish > ~/.config/fish/completions/bpe-beam.fish

For the running shell only:

  bash: eval "$(bpe-beam completion bash)"
  zsh:  eval "$(bpe-beam completion zsh)"   # after compinit
  fish: bpe-beam completion fish | source
"""

# The names of values in the help.
_FOLDERS = ("DIR",)
_FILES = ("F", "F.yaml", "P", "PATH", "A", "B", "@F")


def script(arguments: list[str]) -> str:
    """Return the script for a shell, or the help."""
    if arguments and arguments[0] in ("-h", "--help"):
        return HELP
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        got = " ".join(arguments) or "nothing"
        raise UsageError(f"SHELL must be one of {', '.join(SHELLS)}, got {got}")
    import shtab

    text: str = shtab.complete(_parser(), arguments[0])
    return text


def _parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser("bpe-beam", add_help=False)
    root.add_argument("-h", "--help", action="store_true", help="Show the jobs.")
    root.add_argument("--version", action="store_true", help="Show the version.")
    jobs = root.add_subparsers()
    for job in JOBS:
        if " " not in job:
            _add(jobs, job, job)
    for group, members in GROUPS.items():
        parser = jobs.add_parser(group, add_help=False, help=f"jobs on {group}")
        subjobs = parser.add_subparsers()
        for job in members:
            _add(subjobs, job.partition(" ")[2], job)
    completion = jobs.add_parser(COMMAND, add_help=False, help=COMMAND_SUMMARY)
    completion.add_argument("shell", choices=SHELLS)
    return root


def _add(jobs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, job: str) -> None:
    import shtab

    parent = job_parser(job)
    parser = jobs.add_parser(name, parents=[parent], add_help=False, help=JOBS[job].summary)
    options = JOBS[job].options
    for action in parser._actions:
        flag = action.option_strings[-1] if action.option_strings else action.dest
        option = options.get(flag)
        if option is None:
            continue
        action.help = option.help.partition(". ")[0].removesuffix(".").replace("%", "%%")
        if option.choices:
            action.choices = option.choices
        elif option.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif option.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
