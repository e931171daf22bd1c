"""The names of the files that jobs write and other rooms look for.

Files that are not data have names that readers of whole folders leave out: Arrow, pandas and Spark
leave out a leading `_`, `datasets` folders with a leading `__` and files without an ending that it
knows, globs take files by their ending.
"""

from __future__ import annotations

import re

JOB_FILE = "__job"
"""The first file of a folder: the job's settings, and the names of all files that it may write."""

MANIFEST_FILE = "__manifest"
"""The last file of a folder of counts or shards: what the folder holds."""

SUMMARY_FILE = "summary.json"
"""The last file of a folder that `train` writes: its summary, and the other files."""

TOKENIZER_FILE = "tokenizer.json"
"""A tokenizer in a folder of its own."""

WINDOW_FILE = "__window"
"""The first file of a window of a stream: the files that it reads, and their splits."""

PANE_FILE = "__pane"
"""The first file of a window that a pipeline writes: the window of time, and its shards."""

WATCHERS = "__watchers"
"""The folder of a stream's output with a report of each of its watchers."""

INDEX_FILE = "index.json"
"""The list of a folder's shards as readers of some formats need it."""

SHARDS_TOKENIZER_FILE = "__tokenizer"
"""The tokenizer of a folder of shards, in the form of `tokenizer.json`."""

REJECTS = "__rejects"
"""The folder of records that could not be used."""

PARTS = ("train", "validation")
"""The folders of shards in the output of a job that divides its documents."""

TOKEN_COUNTS_FILE = "__token_counts"
"""The counts of each id in a folder of shards."""

_PART = re.compile(r"-part-[0-9]+(?=\.|$)")


def part_name(task: str, part: int) -> str:
    """Return the name of a file of a task, without its suffix."""
    return f"{task}-part-{part}" if part else task


def name_of_first_part(name: str) -> str:
    """Return the name of the first file with the suffix of a file, of the same task."""
    return _PART.sub("", name)
