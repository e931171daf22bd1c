"""The parser of a job's declared options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import msgspec

from bpe_beam.cli.help import commands, help_columns, wrapped
from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.field import Option
from bpe_beam.settings.jobs import JOBS

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

JsonObject: TypeAlias = dict[str, Any]

Value: TypeAlias = list[str] | bool | JsonObject
"""Texts; true or false of a switch; or, for a key that is a mapping, the mapping."""


class Argument(msgspec.Struct, frozen=True):
    """The value of one option as it was written."""

    where: str  # its name in messages: its flag, or the file, the line and the key
    value: Value
    in_file: bool = False  # whether it is from a YAML file


class _StoreOnce(argparse.Action):
    """Store the value of an option, which is refused if it is repeated."""

    remedy = "keep one"

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if hasattr(namespace, self.dest):
            raise UsageError(f"{option_string} must be given once, got it twice; {self.remedy}")
        setattr(namespace, self.dest, values)


class _StoreListOnce(_StoreOnce):
    remedy = "separate its values by commas"


# By kind of option, for flags.
_ACTIONS = {"one": _StoreOnce, "mapping": _StoreOnce, "list": _StoreListOnce}


class _HelpFormatter(argparse.HelpFormatter):
    """Wrap help to the terminal's width; in a narrow one an option's help is below its name."""

    def __init__(self, prog: str) -> None:
        width = help_columns()
        super().__init__(prog, width=width, max_help_position=26 if width >= 70 else 8)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrapped(text, width).splitlines()

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrapped(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is raised instead of printed with the whole usage."""

    files: tuple[str, ...] = ()
    """The options that name files, in a job without positional arguments."""
    lists: tuple[str, ...] = ()  # the typed options whose values are separated by commas

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        super().print_help(file)
        sys.stdout.flush()  # here an error is reported

    def error(self, message: str) -> NoReturn:
        needs = re.fullmatch(r"argument (\S+): expected (?:one|at least one) argument", message)
        if needs is not None:
            raise UsageError(f"{needs[1]} needs a value")
        leftover = "unrecognized arguments: "
        if message.startswith(leftover):
            remedies = []
            if self.files:
                remedies.append(f"name files with {' or '.join(self.files)}")
            if self.lists:
                remedies.append(f"separate values of {' or '.join(self.lists)} by commas")
            remedies.append("quote a value that contains spaces")
            message = f"unexpected: {message.removeprefix(leftover)}; {'; '.join(remedies)}"
        raise UsageError(message)


def job_parser(job: str, typed: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of a job's options, without the flags of a runner."""
    spec = JOBS[job]
    options = list(spec.options.values())
    running = " [runner flags]" if spec.has_runner else ""
    names = "".join(
        f" {o.metavar}" if o.required else f" [{o.metavar}]" for o in options if o.positional
    )
    parser = _Parser(
        prog=f"bpe-beam {job}",
        usage=f"bpe-beam {job}{names} [options]{running}",
        description=f"{spec.summary[0].upper()}{spec.summary[1:]}.",
        epilog=f"example:\n{commands(spec.example)}" + (f"\n\n{spec.note}" if spec.note else ""),
        formatter_class=_HelpFormatter,
        add_help=False,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.lists = tuple(o.flag for o in options if o.kind == "list" and o.flag in typed)
    if not names:
        parser.files = tuple(f for f in ("--tokenizer", "--input", "--counts") if f in spec.options)
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
    if option.choices and len(f"  {option.flag} {metavar}") > help_columns():
        help_text = f"One of {', '.join(option.choices)}. {help_text}"
        metavar = option.key.rpartition("_")[2].upper()
    arguments: dict[str, Any] = {"action": _ACTIONS.get(option.kind, "append")}
    if option.positional:
        arguments = {"action": "store", "nargs": "?" if option.kind == "one" else "*"}
    elif option.kind == "many":
        arguments = {"action": "extend", "nargs": "+"}
    section.add_argument(option.flag, metavar=metavar, help=help_text, **arguments)


def split_arguments(job: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of the job, and the flags of the runner as `--name=value`.

    argparse cannot do this: it guesses whether a value follows a flag that it does not know.
    """
    options = JOBS[job].options
    of_job: list[str] = []
    runner_flags: list[str] = []
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            of_job += [argument, *rest]
            break
        name, equals, _ = argument.partition("=")
        # Beam's flags have underscores, and so have the parameters of Dataflow's templates.
        ours = name.replace("_", "-")
        if name not in options and ours.startswith("--") and ours in options:
            argument, name = ours + argument[len(name) :], ours
        if not name.startswith("--") or name in options or name == "--help":
            of_job.append(argument)
            continue
        takes_value = _runner_flag_takes_value(job, name)
        if takes_value and not equals:
            if not rest:
                raise UsageError(f"{name} needs a value")
            argument = f"{argument}={rest.pop(0)}"
        runner_flags.append(argument)
    return of_job, runner_flags


def _runner_flag_takes_value(job: str, name: str) -> bool:
    """Return whether a flag takes a value; refuse a flag that no runner has."""
    others = [other for other in JOBS if name in JOBS[other].options]
    options = JOBS[job].options
    near = did_you_mean(name, options)
    has_runner = JOBS[job].has_runner
    if not has_runner and (name == "--runner" or not (others or near)):
        from bpe_beam.engines.runner_flags import known_flags

        if name == "--runner" or name in known_flags():
            why = "runs in this process: it takes no runner and no flags of a runner"
            raise UsageError(f"{job} {why}")
    if others:
        raise UsageError(f"{name} is an option of {', '.join(others)}, not of {job}")
    if not has_runner:
        raise UsageError(f"{name} is not an option of {job}{near}")
    from bpe_beam.engines.runner_flags import known_flags

    known = known_flags()
    if name not in known:
        # Of two equally near names, an option of the job is likelier.
        near = near or did_you_mean(name, known)
        raise UsageError(f"{name} is neither an option of {job} nor of a Beam runner{near}")
    return known[name]
