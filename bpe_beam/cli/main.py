"""The command line: `bpe-beam JOB [options] [any option of the chosen Beam runner]`.

Light to import: what a job needs is imported when it runs, and Beam only by jobs that run on it.

Exit codes: 0 done; 1 the job ran and failed; 2 wrong usage or settings; 130 interrupted (as shells
have it for SIGINT); 141 whoever read stdout went away (as for SIGPIPE).
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import logging
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from bpe_beam.cli.arguments import Given, read_storage_options, settings_of
from bpe_beam.engines.runner_errors import WithoutTracebacks, describe, our_error
from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.options import GROUPS, JOBS, RUNNING_JOBS, SUMMED_UP_JOBS
from bpe_beam.settings.parsing import GivenValue

if TYPE_CHECKING:
    from bpe_beam.storage import Storage

_SHOWN = ("quickstart", "count", "train", "tokenize", "verify", "encode")
"""The jobs whose examples the overview shows."""

_INTERRUPTED = 130
_MODULE = str.maketrans(" -", "._")
# Of glibc's malloc.h; other systems have no mallopt, or take the numbers for nothing.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 << 20
_READER_GONE = 141


class _HelpFormatter(argparse.HelpFormatter):
    """Help as wide as the terminal, from 40 to 100 columns: longer lines are hard to read.

    Examples, whose lines are indented, are kept as they are; other lines are wrapped. Where the
    terminal is narrow, what an option does stands below its name.
    """

    def __init__(self, prog: str) -> None:
        width = _help_columns()
        super().__init__(prog, width=width, max_help_position=26 if width >= 70 else 8)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(text, width).splitlines()

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return _wrapped(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """argparse, but an error is raised instead of printed with the whole usage."""

    def error(self, message: str) -> NoReturn:
        leftover = "unrecognized arguments: "
        if message.startswith(leftover):
            message = (
                f"unexpected: {message.removeprefix(leftover)}; quote a value that holds spaces"
            )
        raise UsageError(message)


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """The console entry: runs `main` and ends the process.

    Args:
        argv: The arguments after the program's name; those of the process unless told.
    """
    # Tokens have characters that not every terminal has.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    codes: list[int] = []
    # Registered first, so called last: what the job registers for the exit has run by then.
    atexit.register(_leave, codes)
    _prepare_process()
    if "--debug" not in argv:
        # A failure of a runner's worker thread reaches the job, which reports it. What its other
        # threads raise when they are hung up on at a job's end is noise.
        threading.excepthook = lambda _: None
    code = main(argv)
    if code == _INTERRUPTED:
        # Threads of a runner would be waited for until their last batch is done; what they leave
        # unfinished was never visible.
        os._exit(code)
    codes.append(code)
    sys.exit(code)


def _leave(codes: Sequence[int]) -> None:
    """End the process without tearing the interpreter down.

    A thread of pyarrow's pools may release a buffer of Python a moment after the read that it
    belongs to has returned. Python ends a thread that enters it during the teardown, and C++ then
    aborts the process.

    Args:
        codes: The exit code; empty if `main` did not return, whose error Python then reports.
    """
    if not codes:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(codes[0])


def _prepare_process() -> None:
    """Settings of this process that jobs run faster with; its own, so not for who imports us."""
    # Imports make a million objects that live on: to look for garbage among them again and again
    # takes a tenth of a small job's time.
    gc.set_threshold(1_000_000, 50, 50)
    # NumPy would start threads for algebra, of which there is none here, and let them spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Blocks of some MB come and go with every batch. Given back to the system each time, they cost
    # a tenth of a count job in page faults.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, 8 * _KEPT_BYTES)


def main(argv: Sequence[str]) -> int:
    """Runs one job.

    Args:
        argv: The arguments after the program's name.

    Returns:
        The exit code; never raises, except for what `--debug` lets through to stderr.
    """
    job, rest = _job_of(argv)
    name = f"bpe-beam {job}".rstrip()
    try:
        code = _main(job, argv, rest)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        again = " without --overwrite" if "--overwrite" in argv else ""
        resumes = f"; the same command{again} resumes" if job in SUMMED_UP_JOBS else ""
        return _say(f"{name}: interrupted{resumes}", _INTERRUPTED)
    except BrokenPipeError:
        # Python would try to flush once more at exit, and complain.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _READER_GONE
    except Exception as error:
        return _fail(name, error, debug="--debug" in argv)


def _fail(name: str, error: Exception, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exception(error)
    ours = our_error(error)
    if ours is not None:
        return _say(f"{name}: {ours}", 2 if isinstance(ours, UsageError) else 1)
    hint = "" if debug else "; run with --debug for more"
    return _say(f"{name}: failed unexpectedly: {describe(error)}{hint}", 1)


def _say(message: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)
    return code


def _job_of(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The job that the first words name, one or two of them, or none; and what follows them."""
    for words in (2, 1):
        name = " ".join(argv[:words])
        if name in JOBS:
            return name, argv[words:]
    return "", argv


def _main(job: str, argv: Sequence[str], rest: Sequence[str]) -> int:
    first = argv[0] if argv else ""
    if first in ("-h", "--help", "help"):
        print(_overview(), end="")
        return 0
    if first == "--version":
        print(f"bpe-beam {_version()}")
        return 0
    if first in GROUPS and not job:
        explained = _job_lines(GROUPS[first], "bpe-beam ")
        if argv[1:] and argv[1] in ("-h", "--help", "help"):
            more = f"bpe-beam {GROUPS[first][0]} --help shows its options"
            print(f"{explained}\n\n{_wrapped(more, _help_columns())}")
            return 0
        raise UsageError(f"{first} is the first word of these jobs:\n{explained}")
    if not job:
        names = [name for name in JOBS if " " not in name] + list(GROUPS)
        jobs = ", ".join(names)
        if not argv:
            print(f"bpe-beam: no job given\n{_first_steps()}", file=sys.stderr)
            return 2
        if first.startswith("-"):
            raise UsageError(f"the job comes first ({jobs}), then its options; not {first}")
        raise UsageError(f"{first!r} is none of the jobs {jobs}{did_you_mean(first, names)}")
    try:
        with _calm("--debug" in argv):
            settings = settings_of(_read_arguments(job, rest))
    except SystemExit:  # argparse has printed the help
        return 0
    _run_job(job, settings)
    return 0


def _run_job(job: str, settings: Any) -> None:
    from bpe_beam.jobs.summary import show_summary, show_warnings, write_summary
    from bpe_beam.progress import Progress

    run: RunSettings = settings.run
    # Before stderr is filtered: what the job shows of itself needs no filter.
    progress = Progress(run.progress or ("none" if run.quiet else "auto"), stream=sys.stderr)
    with _calm(run.debug):
        summary = _module(job).run(settings, progress)
    show_warnings(summary, sys.stderr)
    # The others' results are what they print.
    if job in SUMMED_UP_JOBS and not run.quiet:
        show_summary(summary, sys.stderr)
    if run.summary_file is not None:
        write_summary(summary, run.summary_file, run.storage_options)


def _module(job: str) -> Any:
    return importlib.import_module(f"bpe_beam.jobs.{job.translate(_MODULE)}")


@contextlib.contextmanager
def _calm(debug: bool) -> Iterator[None]:
    """Keeps what Beam logs, and its tracebacks, from stderr: `main` says what failed, once."""
    if debug:
        logging.basicConfig(level=logging.INFO)
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(cast(TextIO, WithoutTracebacks(sys.stderr))):
            yield
    finally:
        logging.disable(before)


def _read_arguments(job: str, argv: Sequence[str]) -> Given:
    """What was given: the files of `--config`, then the arguments, which win.

    Raises:
        SystemExit: After printing the help, if that was asked for.
        UsageError: If an option is unknown or misses its value.
    """
    own, runner_flags = _split(job, argv)
    options = JOBS[job].options
    typed = vars(_parser(job).parse_args(own))
    values: dict[str, GivenValue] = {}
    files = typed.pop("config", [])
    if files:
        from bpe_beam.cli.config_file import read_config

        keys = {option.key: option for option in options.values() if option.flag[0] == "-"}
        mappings = {"storage_options"} | ({"runner_options"} if job in RUNNING_JOBS else set())
        switches = {key for key, option in keys.items() if option.kind == "switch"}
        pairs = {key for key, option in keys.items() if option.kind == "pairs"}
        texts = keys.keys() - mappings - switches - {"config"}
        storage = _storage_of_configs(typed)
        for file in files:
            values |= read_config(
                file,
                job,
                texts=texts,
                switches=switches,
                mappings=mappings,
                pairs=pairs,
                storage=storage,
            )
    for option in options.values():
        if option.key in typed:
            value = typed[option.key]
            value = [value] if isinstance(value, str) else value
            values[option.key] = GivenValue(option.flag, value)
    return Given(job, values, tuple(runner_flags))


def _storage_of_configs(typed: dict[str, Any]) -> Storage:
    """The door to the files of `--config`: with the options of the command line only."""
    from bpe_beam.storage import Storage

    name = "storage_options"
    return Storage(read_storage_options("--storage-options", typed[name]) if name in typed else {})


def _split(job: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Takes the runner's flags out of the arguments, each made whole (`--name=value`).

    argparse would guess what follows a flag that it does not know.
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


def _parser(job: str) -> _Parser:
    spec = JOBS[job]
    running = " [runner flags]" if job in RUNNING_JOBS else ""
    positional = [option for option in spec.options.values() if option.flag[0] != "-"]
    names = "".join(f" {o.metavar}" if o.required else f" [{o.metavar}]" for o in positional)
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
    for heading, group in spec.groups.items():
        section = parser.add_argument_group(heading)
        for option in group:
            if option.kind == "switch":
                section.add_argument(option.flag, action="store_true", help=option.help)
                continue
            positional_one = "?" if option.kind == "one" else "*"
            nargs = {"one": None, "many": "+", "repeat": None, "pairs": None}[option.kind]
            action = {"one": "store", "many": "extend"}.get(option.kind, "append")
            metavar, explained = option.metavar, option.help
            if metavar[0] == "{" and len(f"  {option.flag} {metavar}") > _help_columns():
                explained = f"one of {metavar[1:-1].replace(',', ', ')}; {explained}"
                metavar = option.key.rpartition("_")[2].upper()
            section.add_argument(
                option.flag,
                metavar=metavar,
                nargs=nargs if option.flag[0] == "-" else positional_one,
                action=action if option.flag[0] == "-" else "store",
                help=explained + (" (required)" if option.required else ""),
            )
    section.add_argument("-h", "--help", action="help", help="show this help")
    return parser


def _overview() -> str:
    columns = _help_columns()
    examples = "\n".join(_commands(JOBS[name].example) for name in _SHOWN)
    every = "--config F.yaml, --quiet, --debug, --summary-file F, --storage-options JSON"
    return (
        "\n\n".join(
            (
                "usage: bpe-beam JOB [options] [runner flags]",
                _wrapped(
                    "Learn subword tokenizers from corpora of any size, and turn them into token "
                    "shards, on Apache Beam: in process, or on any runner.",
                    columns,
                ),
                "jobs:\n" + _job_lines(JOBS),
                _wrapped(
                    f"Options of every job: {every}. bpe-beam JOB --help shows the rest; bpe-beam "
                    "--version the version.",
                    columns,
                ),
                f"examples:\n{examples}",
                _wrapped(
                    "Exit codes: 0 done, 1 the job ran and failed, 2 wrong usage or settings.",
                    columns,
                ),
            )
        )
        + "\n"
    )


def _job_lines(names: Iterable[str], before: str = "") -> str:
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
            lines.append(_wrapped(f"{command:{width}} {summary}", columns, "  ", " " * (width + 3)))
        else:
            lines += [f"  {command}", _wrapped(summary, columns, " " * 6)]
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


def _first_steps() -> str:
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


def _wrapped(text: str, columns: int, indent: str = "", later: str | None = None) -> str:
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


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("bpe-beam")
    except metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


if __name__ == "__main__":
    run()
