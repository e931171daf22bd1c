"""The command line: `bpe-beam JOB [options] [any option of the chosen Beam runner]`.

A command imports only the settings and modules of its job, and Beam only if the job uses it.

Exit codes: 0 done; 1 the job ran and failed; 2 wrong usage or settings; 130 interrupted, 143
terminated (the shells' codes for SIGINT and SIGTERM); 141 the reader of stdout closed it (the code
for SIGPIPE). `diff` ends with 1 if something differs, `doctor` if something fails, both with 2
after any error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from bpe_beam.cli import interrupts
from bpe_beam.cli.error_reporting import report, write_message, write_text
from bpe_beam.cli.help import COMMAND, first_steps, job_lines, overview
from bpe_beam.cli.process import READER_GONE, drop_stdout, quiet_beam, run_and_exit
from bpe_beam.engines.runner_errors import JobCancelled, our_error, was_interrupted
from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.jobs import GROUPS, JOBS
from bpe_beam.storage import redact

if TYPE_CHECKING:
    from bpe_beam.settings.common import RunSettings

_HELP = ("-h", "--help", "help")
_MODULE_NAME = str.maketrans(" -", "._")


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command, by default with the arguments of the process, and end the process."""
    run_and_exit(main, sys.argv[1:] if argv is None else argv)


def main(argv: Sequence[str]) -> int:
    """Run the job that the arguments name, and return the exit code."""
    if len(argv) > 1 and argv[0] in _HELP and not argv[1].startswith("-"):
        argv = [*argv[1:], "--help"]
    job, command = "", "bpe-beam"
    debug = "--debug" in argv
    name_of: Callable[[str], str] = str
    try:
        job, rest = job_of(argv)
        command = f"bpe-beam {job}".rstrip()
        if not job:
            return _answer(argv)
        from bpe_beam.cli.arguments import Arguments, read_arguments, settings_of

        name_of = Arguments(job).name_of
        with quiet_beam(debug):
            arguments = read_arguments(job, rest)
            name_of = arguments.name_of
            settings = settings_of(arguments)
        code = _run_job(job, settings)
        sys.stdout.flush()
        return code
    except SystemExit:  # argparse has printed the help
        return 0
    except BrokenPipeError:
        drop_stdout()
        return READER_GONE
    except (KeyboardInterrupt, Exception) as error:
        # An import may turn an interrupt into any other error.
        if interrupts.was_received() or was_interrupted(error):
            code = interrupts.exit_code()
            return write_message(f"{command}: {interrupts.sentence()}{_resumes(job, argv)}", code)
        if isinstance(our_error(error), JobCancelled):
            return write_message(f"{command}: cancelled on its runner{_resumes(job, argv)}", 1)
        assert isinstance(error, Exception)
        code = report(command, error, name_of, debug=debug)
        return 2 if job and JOBS[job].verdict else code


def _resumes(job: str, argv: Sequence[str]) -> str:
    """Return the end of a sentence about a job that did not end by itself."""
    again = " without --overwrite" if "--overwrite" in argv else ""
    resumable = job and JOBS[job].shows_summary and JOBS[job].resumes
    return f"; the same command{again} resumes" if resumable else ""


def job_of(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the job that the first one or two words name, or "", and the arguments after it."""
    for words in (2, 1):
        name = " ".join(argv[:words])
        if name in JOBS:
            rest = argv[words:]
            takes_words = any(option.positional for option in JOBS[name].options.values())
            return name, ["--help"] if list(rest) == ["help"] and not takes_words else rest
    return "", argv


def _answer(argv: Sequence[str]) -> int:
    """Answer a command without a job: print a page of help or the version, or refuse it."""
    first = argv[0] if argv else ""
    if first in _HELP:
        print(overview(), end="")
    elif first == COMMAND:
        from bpe_beam.cli.completion import script

        print(script(list(argv[1:])), end="")
    elif first == "--version":
        print(f"bpe-beam {_version()}")
    elif first in GROUPS:
        jobs = job_lines({name: JOBS[name].summary for name in GROUPS[first]}, "bpe-beam ")
        if len(argv) == 1 or argv[1] not in _HELP:
            raise UsageError(f"{first} is the first word of these jobs:\n{jobs}")
        print(f"{jobs}\n\nbpe-beam {GROUPS[first][0]} --help shows its options")
    elif not argv:
        return write_message(f"bpe-beam: no job given\n{first_steps()}", 2)
    else:
        names = [*(name for name in JOBS if " " not in name), *GROUPS, COMMAND]
        jobs = ", ".join(names)
        if first.startswith("-"):
            raise UsageError(f"the first word must be a job ({jobs}), got {first}")
        raise UsageError(f"{first!r} is not a job; the jobs are {jobs}{did_you_mean(first, names)}")
    sys.stdout.flush()
    return 0


def _run_job(job: str, settings: Any) -> int:
    """Run a job, show its warnings and its summary, and return the exit code."""
    import msgspec

    from bpe_beam.cli.summary import for_people, format_summary
    from bpe_beam.jobs.output import prepare_file, require_stdout, write_json
    from bpe_beam.progress import Progress
    from bpe_beam.terminal import Terminal

    run: RunSettings = settings.run
    # Progress is written to the stream before the filter.
    progress = Progress(run.progress or ("none" if run.quiet else "auto"), stream=sys.stderr)
    with quiet_beam(run.debug):
        if not JOBS[job].shows_summary:
            require_stdout()
        if run.summary_file is not None:
            from bpe_beam.storage import Storage

            prepare_file(Storage(run.storage_options), run.summary_file, "summary_file")
        name = "dry_run" if settings.only_estimates else job.translate(_MODULE_NAME)
        module = importlib.import_module(f"bpe_beam.jobs.{name}")
        summary = msgspec.to_builtins(module.run(settings, progress))
    for warning in summary.get("warnings") or ():
        write_message(f"bpe-beam {job}: warning: {warning}")
    if job == "inspect":
        shown = dict(summary)
        if shown.get("text_bytes", 0) is None:
            shown |= {"text_bytes": "unknown", "bytes_per_token": "unknown"}
        title = f"bpe-beam inspect {redact(settings.path)}"
        print(format_summary(title, shown, terminal=Terminal(sys.stdout)))
    elif job == "plan" and settings.output != "-":
        print(format_summary("bpe-beam plan", summary, terminal=Terminal(sys.stdout)))
    elif not run.quiet and JOBS[job].shows_summary:
        title, shown = f"bpe-beam {job}", for_people(summary)
        if job == "evaluate" and settings.on_terminal:  # the report has the same tables
            shown = {key: value for key, value in shown.items() if not isinstance(value, dict)}
        write_text(format_summary(title, shown, exact=False, terminal=Terminal(sys.stderr)))
    if run.summary_file is not None:
        write_json(summary, run.summary_file, run.storage_options)
    verdict = JOBS[job].verdict
    return 1 if verdict and not summary[verdict] else 0


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("bpe-beam")
    except metadata.PackageNotFoundError:
        return "of a source tree that is not installed"


if __name__ == "__main__":
    run()
