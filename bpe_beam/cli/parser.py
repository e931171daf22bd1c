"""The parser of a job's options and the pages of help, made of the declared options."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import NoReturn

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.field import Option
from bpe_beam.settings.jobs import JOBS, RUNNING_JOBS

_OVERVIEW_JOBS = ("quickstart", "count", "train", "tokenize", "verify", "encode")
"""The jobs whose examples the overview shows."""

# By kind of option, for flags; positional arguments have their own.
_NARGS = {"many": "+"}
_ACTIONS = {"one": "store", "list": "store", "mapping": "store", "many": "extend"}


class _HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal, from 40 to 100 columns: longer lines are hard to read.

    Indented lines, which are examples, are kept as they are; other lines are wrapped. In a narrow
    terminal the help of an option is below its name.
    """

    def __init__(self, prog: str) -> None:
        width = _help_columns()
        super().__init__(prog, width=width, max_help_position=26 if width >= 70 else 8)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrapped(text, width).splitlines()

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrapped(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is raised instead of printed with the whole usage."""

    def error(self, message: str) -> NoReturn:
        leftover = "unrecognized arguments: "
        if message.startswith(leftover):
            message = (
                f"unexpected: {message.removeprefix(leftover)}; quote a value that holds spaces"
            )
        raise UsageError(message)


def job_parser(job: str) -> argparse.ArgumentParser:
    """Return the parser of a job's own options, without the runner's flags."""
    spec = JOBS[job]
    options = list(spec.options.values())
    running = " [runner flags]" if job in RUNNING_JOBS else ""
    names = "".join(
        f" {o.metavar}" if o.required else f" [{o.metavar}]" for o in options if o.positional
    )
    parser = _Parser(
        prog=f"bpe-beam {job}",
        usage=f"bpe-beam {job}{names} [options]{running}",
        description=f"{spec.summary[0].upper()}{spec.summary[1:]}.",
        epilog=f"example:\n{_commands(spec.example)}" + (f"\n\n{spec.note}" if spec.note else ""),
        formatter_class=_HelpFormatter,
        add_help=False,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    for heading in dict.fromkeys(option.group for option in options):
        section = parser.add_argument_group(heading)
        for option in options:
            if option.group == heading:
                _add_option(section, option)
    section.add_argument("-h", "--help", action="help", help="Show this help.")
    return parser


def _add_option(section: argparse._ArgumentGroup, option: Option) -> None:
    help_text = option.full_help.replace("%", "%%")
    if option.kind == "switch":
        section.add_argument(option.flag, action="store_true", help=help_text)
        return
    metavar = option.metavar
    if option.choices and len(f"  {option.flag} {metavar}") > _help_columns():
        help_text = f"One of {', '.join(option.choices)}. {help_text}"
        metavar = option.key.rpartition("_")[2].upper()
    nargs = _NARGS.get(option.kind)
    action = _ACTIONS.get(option.kind, "append")
    if option.positional:
        nargs, action = ("?" if option.kind == "one" else "*"), "store"
    section.add_argument(option.flag, metavar=metavar, nargs=nargs, action=action, help=help_text)


def split_arguments(job: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the job's own arguments, and the runner's flags, each whole: `--name=value`.

    argparse would guess what follows a flag that it does not know.

    Args:
        job: The job.
        argv: The arguments after the job's name.

    Raises:
        UsageError: A flag is known neither to the job nor to a runner, or has no value.
    """
    options = JOBS[job].options
    own: list[str] = []
    runner_flags: list[str] = []
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            own += [argument, *rest]
            break
        name, equals, _ = argument.partition("=")
        # Beam's flags have underscores, and so have the parameters of Dataflow's templates.
        ours = name.replace("_", "-")
        if name not in options and ours.startswith("--") and ours in options:
            argument, name = ours + argument[len(name) :], ours
        if not name.startswith("--") or name in options or name == "--help":
            own.append(argument)
            continue
        takes_value = _runner_flag_takes_value(job, name)
        if takes_value and not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            argument = f"{argument}={rest.pop(0)}"
        runner_flags.append(argument)
    return own, runner_flags


def _runner_flag_takes_value(job: str, name: str) -> bool:
    """Whether a flag that is none of the job's is followed by a value.

    Raises:
        UsageError: If no runner knows it either.
    """
    others = [other for other in JOBS if name in JOBS[other].options]
    if others:
        raise UsageError(f"{name} is an option of {', '.join(others)}, not of {job}")
    options = JOBS[job].options
    if job not in RUNNING_JOBS:
        raise UsageError(f"{name} is not an option of {job}{did_you_mean(name, options)}")
    from bpe_beam.engines.runner_flags import known_flags

    known = known_flags()
    if name not in known:
        # Our own first: of two that are equally near, those are likelier.
        near = did_you_mean(name, options) or did_you_mean(name, known)
        raise UsageError(f"{name} is an option neither of {job} nor of a Beam runner{near}")
    return known[name]


def overview() -> str:
    columns = _help_columns()
    examples = "\n".join(_commands(JOBS[name].example) for name in _OVERVIEW_JOBS)
    every = "--config F.yaml, --quiet, --debug, --summary-file F, --storage-options JSON"
    return (
        "\n\n".join(
            (
                "usage: bpe-beam JOB [options] [runner flags]",
                wrapped(
                    "Learn subword tokenizers from corpora of any size, and turn them into token "
                    "shards, on Apache Beam: in process, or on any runner.",
                    columns,
                ),
                "jobs:\n" + job_lines(JOBS),
                wrapped(
                    f"Options of every job: {every}. bpe-beam JOB --help shows the rest; bpe-beam "
                    "--version the version.",
                    columns,
                ),
                f"examples:\n{examples}",
                wrapped(
                    "Exit codes: 0 done, 1 the job ran and failed, 2 wrong usage or settings.",
                    columns,
                ),
            )
        )
        + "\n"
    )


def job_lines(names: Iterable[str], before: str = "") -> str:
    """Return what jobs do, each from a line of its own on; in narrow terminals below its name.

    Args:
        names: The jobs.
        before: Stands before each name.
    """
    columns = _help_columns()
    lines = []
    for name in names:
        command, summary = f"{before}{name}", JOBS[name].summary
        if columns >= 70:
            width = len(before) + 15
            lines.append(wrapped(f"{command:{width}} {summary}", columns, "  ", " " * (width + 3)))
        else:
            lines += [f"  {command}", wrapped(summary, columns, " " * 6)]
    return "\n".join(lines)


def _commands(example: str) -> str:
    """An example, indented; commands that are too long go on behind a backslash."""
    lines: list[str] = []
    for line in f"  {example}".splitlines():
        first, *options = line.replace(" --", "\0--").split("\0")
        lines.append(first)
        for option in options:
            if len(lines[-1]) + len(option) + 3 <= _help_columns():
                lines[-1] += f" {option}"
            else:
                lines[-1] += " \\"
                lines.append(f"      {option}")
    return "\n".join(lines)


def first_steps() -> str:
    """What to type for a beginning: for who named no job."""
    return (
        "try it all on text that is there:\n"
        f"{_commands(JOBS['quickstart'].example)}\n"
        "learn a tokenizer from your own text:\n"
        f"{_commands(JOBS['train'].example.splitlines()[0])}\n"
        "all jobs, and the options of one:\n"
        "  bpe-beam --help\n"
        "  bpe-beam train --help"
    )


def _help_columns() -> int:
    """The width of help: the terminal's, from 40 to 100; one column stays free."""
    return max(40, min(100, shutil.get_terminal_size().columns - 1))


def wrapped(text: str, columns: int, indent: str = "", later: str | None = None) -> str:
    """Text in lines of at most so many columns; lines that begin with blanks stay as they are.

    Args:
        text: The text, without indentation of its own but for examples.
        columns: The width, at least 40.
        indent: What lines begin with.
        later: What lines after the first begin with; `indent` unless told.
    """
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") or not line:
            lines.append(indent + line)
            continue
        lines += textwrap.wrap(
            line,
            columns,
            initial_indent=indent,
            subsequent_indent=indent if later is None else later,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)
