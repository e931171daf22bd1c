"""The names of the files that jobs write and other rooms look for."""

from __future__ import annotations

import re

JOB_FILE = "job.json"
"""The first file of a folder: the job's settings, and the names of all files that it may write."""

MANIFEST_FILE = "manifest.json"
"""The last file of a folder of counts or shards: what the folder holds."""

TOKENIZER_FILE = "tokenizer.json"
"""A tokenizer, in its own folder or beside the shards that it made."""

INDEX_FILE = "index.json"
"""The list of a folder's shards as readers of some formats need it."""

PARTS = ("train", "validation")
"""The folders of shards in the output of a job that divides its documents."""

TOKEN_COUNTS_FILE = "token_counts.parquet"
"""How often each id occurs in a folder of shards."""

_PART = re.compile(r"-part-[0-9]+(?=\.|$)")


def part_name(task: str, part: int) -> str:
    """Return the name of what a task writes, without the end that says what it is.

    Args:
        task: The task's name.
        part: Which it is of several of the same kind, from 0.
    """
    return f"{task}-part-{part}" if part else task


def name_of_first_part(name: str) -> str:
    """Return the name that a file would have if it were the first of its kind of its task."""
    return _PART.sub("", name)
