"""The command line: `bpe-beam JOB [options] [any option of the chosen Beam runner]`.

Light to import: the modules of a job are imported when it runs, and Beam only by jobs that use it.

Exit codes: 0 done; 1 the job ran and failed; 2 wrong usage or settings; 130 interrupted (as shells
have it for SIGINT); 141 the reader of stdout went away (as for SIGPIPE).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from bpe_beam.cli.arguments import Argument, Arguments, settings_of
from bpe_beam.cli.error_reporting import report, say
from bpe_beam.cli.parser import first_steps, job_lines, job_parser, overview, split_arguments
from bpe_beam.cli.process import INTERRUPTED, READER_GONE, drop_stdout, quiet_beam, run_and_exit
from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.field import Kind
from bpe_beam.settings.jobs import GROUPS, JOBS, RUNNING_JOBS, SUMMARY_JOBS
from bpe_beam.settings.parsing import parse_storage_options

_HELP = ("-h", "--help", "help")
_MODULE_NAME = str.maketrans(" -", "._")


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process: the console entry.

    Args:
        argv: The arguments after the program's name; None: those of the process.
    """
    run_and_exit(main, sys.argv[1:] if argv is None else argv)


def main(argv: Sequence[str]) -> int:
    """Run one job.

    Args:
        argv: The arguments after the program's name.

    Returns:
        The exit code. Raises nothing.
    """
    job, rest = job_of(argv)
    command = f"bpe-beam {job}".rstrip()
    debug = "--debug" in argv
    arguments = Arguments(job, {})
    try:
        if not job:
            return _answer(argv)
        with quiet_beam(debug):
            arguments = read_arguments(job, rest)
            settings = settings_of(arguments)
        _run_job(job, settings)
        sys.stdout.flush()
        return 0
    except SystemExit:  # argparse has printed the help
        return 0
    except KeyboardInterrupt:
        again = " without --overwrite" if "--overwrite" in argv else ""
        resumes = f"; the same command{again} resumes" if job in SUMMARY_JOBS else ""
        return say(f"{command}: interrupted{resumes}", INTERRUPTED)
    except BrokenPipeError:
        drop_stdout()
        return READER_GONE
    except Exception as error:
        return report(command, error, arguments.name_of, debug=debug)


def job_of(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the job that the first one or two words name, or "", and the arguments after it."""
    for words in (2, 1):
        name = " ".join(argv[:words])
        if name in JOBS:
            return name, argv[words:]
    return "", argv


def _answer(argv: Sequence[str]) -> int:
    """Answer a command without a job: print a page of help or the version, or refuse it."""
    first = argv[0] if argv else ""
    if first in _HELP:
        print(overview(), end="")
    elif first == "--version":
        print(f"bpe-beam {_version()}")
    elif first in GROUPS:
        jobs = job_lines(GROUPS[first], "bpe-beam ")
        if len(argv) == 1 or argv[1] not in _HELP:
            raise UsageError(f"{first} is the first word of these jobs:\n{jobs}")
        print(f"{jobs}\n\nbpe-beam {GROUPS[first][0]} --help shows its options")
    elif not argv:
        return say(f"bpe-beam: no job given\n{first_steps()}", 2)
    else:
        names = [name for name in JOBS if " " not in name] + list(GROUPS)
        jobs = ", ".join(names)
        if first.startswith("-"):
            raise UsageError(f"the job comes first ({jobs}), then its options; got {first}")
        raise UsageError(f"{first!r} is none of the jobs {jobs}{did_you_mean(first, names)}")
    sys.stdout.flush()
    return 0


def _run_job(job: str, settings: Any) -> None:
    from bpe_beam.cli.summary import show_result, show_summary, show_warnings
    from bpe_beam.jobs.json_output import write_json
    from bpe_beam.progress import Progress

    run: RunSettings = settings.run
    # Made before stderr is filtered: the job's own progress needs no filter.
    progress = Progress(run.progress or ("none" if run.quiet else "auto"), stream=sys.stderr)
    with quiet_beam(run.debug):
        module = importlib.import_module(f"bpe_beam.jobs.{job.translate(_MODULE_NAME)}")
        summary = module.run(settings, progress)
    show_warnings(summary, sys.stderr)
    if job not in SUMMARY_JOBS:
        show_result(settings, summary)
    elif not run.quiet:
        show_summary(summary, sys.stderr)
    if run.summary_file is not None:
        write_json(summary, run.summary_file, run.storage_options)


def read_arguments(job: str, argv: Sequence[str]) -> Arguments:
    """Return the arguments of a job: those of its configuration files and of the command line.

    Args:
        job: The job.
        argv: The arguments after its name.

    Raises:
        SystemExit: After printing the help, if the arguments ask for it.
        UsageError: An option is unknown or lacks its value, or a file cannot be read.
    """
    own, runner_flags = split_arguments(job, argv)
    typed = vars(job_parser(job).parse_args(own))
    values: dict[str, Argument] = {}
    files = typed.pop("config", [])
    options = {option.key: option for option in JOBS[job].options.values()}
    if files:
        from bpe_beam.cli.config_file import read_config
        from bpe_beam.storage import Storage

        keys: dict[str, Kind] = {
            key: option.kind
            for key, option in options.items()
            if not option.positional and key != "config"
        }
        if job in RUNNING_JOBS:
            keys["runner_options"] = "mapping"
        # The options of storage that a file has are not known yet.
        name = "storage_options"
        storage = Storage(parse_storage_options(name, typed[name]) if name in typed else {})
        for file in files:
            values |= read_config(file, job, keys, storage)
    for key, value in typed.items():
        texts = [value] if isinstance(value, str) else value
        values[key] = Argument(options[key].typed, texts)
    return Arguments(job, values, tuple(runner_flags))


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("bpe-beam")
    except metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


if __name__ == "__main__":
    run()
