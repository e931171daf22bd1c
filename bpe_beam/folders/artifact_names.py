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
    """Return the name of a file of a task, without its suffix.

    Args:
        task: The task's name.
        part: The number of the file among those with one suffix, from 0.
    """
    return f"{task}-part-{part}" if part else task


def name_of_first_part(name: str) -> str:
    """Return the name of the first file with the suffix of a file, of the same task."""
    return _PART.sub("", name)
