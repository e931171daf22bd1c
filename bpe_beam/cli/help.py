"""The pages of help that name jobs, and the layout of all help: terminal width, wrapped lines."""

from __future__ import annotations

import itertools
import os
import sys
import textwrap
from collections.abc import Mapping

from bpe_beam.settings.jobs import JOBS
from bpe_beam.terminal import columns_of, wrapped_command

COMMAND = "completion"  # the command that is no job: it has no settings

COMMAND_SUMMARY = "print a script for completion in bash, zsh or fish"

_OVERVIEW_JOBS = ("quickstart", "count", "train", "tokenize", "verify", "encode")
"""The jobs whose examples the overview shows."""


def overview() -> str:
    """Return the page of `bpe-beam --help`."""
    examples = "\n".join(commands(JOBS[name].example) for name in _OVERVIEW_JOBS)
    text = "\n\n".join(
        (
            "usage: bpe-beam JOB [options] [runner flags]",
            "Learn subword tokenizers from corpora of any size, and turn them into token shards, "
            "on Apache Beam: in process, or on any runner.",
            f"jobs:\n{job_lines({name: job.summary for name, job in JOBS.items()})}\n"
            f"{job_lines({COMMAND: COMMAND_SUMMARY})}",
            "Options of every job: --config F.yaml, --quiet, --debug, --summary-file F, "
            "--storage-options JSON. bpe-beam JOB --help shows the rest; bpe-beam --version the "
            "version.",
            f"examples:\n{examples}",
            "Exit codes: 0 done, 1 the job ran and failed, 2 wrong usage or settings.",
        )
    )
    return wrapped(text, help_columns()) + "\n"


def job_lines(summaries: Mapping[str, str], before: str = "") -> str:
    """Return lines with the name and the summary of each job."""
    columns = help_columns()
    lines = []
    for name, summary in summaries.items():
        command = f"{before}{name}"
        if columns >= 70:
            width = len(before) + 15
            lines.append(wrapped(f"{command:{width}} {summary}", columns, "  ", " " * (width + 3)))
        else:
            lines += [f"  {command}", wrapped(summary, columns, " " * 6)]
    return "\n".join(lines)


def commands(example: str) -> str:
    """Return an example, indented; a long command continues after a backslash."""
    lines = [wrapped_command(line, help_columns()) for line in f"  {example}".splitlines()]
    return "\n".join(itertools.chain(*lines))


def first_steps() -> str:
    """Return the commands to begin with, for a command line without a job."""
    return (
        "try everything on text that every machine has:\n"
        f"{commands(JOBS['quickstart'].example)}\n"
        "train a tokenizer from your own text:\n"
        f"{commands(JOBS['train'].example.splitlines()[0])}\n"
        "all jobs, and the options of one:\n"
        "  bpe-beam --help\n"
        "  bpe-beam train --help"
    )


def help_columns() -> int:
    """Return the width of help: the terminal's less one column, from 40 to 100."""
    # Not by `shutil`, which imports libraries of compression; a parser asks for each option.
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() else 0
    return max(40, min(100, (width or columns_of(sys.stdout)) - 1))


def wrapped(text: str, columns: int, indent: str = "", later: str | None = None) -> str:
    """Return a text in lines of at most `columns` columns; its indented lines are not wrapped."""
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
