"""Tokenize a split of a window of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Limit
from bpe_beam.errors import DataError
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import SplitTask, require_visible
from bpe_beam.workers.stream.window_log import WindowFolder
from bpe_beam.workers.task_results import TaskResult
from bpe_beam.workers.tokenize_split import TokenizeTask, tokenize_split

STAGE = "stream-tokenize"
"""The progress stage that gets reports."""


@dataclass(frozen=True)
class Stream:
    """The settings of a stream for its watcher and workers; plain and picklable.

    Attributes:
        fingerprint: The stream's fingerprint; its windows carry it.
        settings: The settings of reading and encoding, as manifests have them.
        window_seconds: The time between a window's first file and the window.
        until_idle_seconds: The idle time after which the watcher ends; None: it never ends.
    """

    storage: Storage
    output: str
    fingerprint: str
    watched: Watched
    reading: ReadSettings
    encoding: Encoding
    settings: Mapping[str, Any]
    range_bytes: int | None
    max_rejects: str
    max_lost: str
    poll_seconds: float
    window_seconds: float
    until_idle_seconds: float | None
    shard_format: str = DEFAULT_SHARD_FORMAT


class WindowTask(NamedTuple):
    """The task of tokenizing a split of a window, an element of `split_tasks`.

    It travels as the JSON of this tuple. `folder` is the name of the window's folder.
    """

    folder: str
    fingerprint: str
    split: str


def tokenize_window_split(stream: Stream, element: str) -> TaskResult | None:
    """Write the shard of a window's split, and its receipt; the output is the shard's name.

    Returns None if the receipt exists already.
    """
    window = WindowTask(*json.loads(element))
    split_task = SplitTask.from_json(window.split)
    require_visible(stream.storage, stream.output)
    url = stream.storage.join(stream.output, window.folder)
    folder = WindowFolder(stream.storage, url, window.fingerprint)
    shard = shard_name(split_task.split.index, split_task.splits)
    if folder.is_finished() or folder.read_receipt(shard) is not None:
        return None
    folder.prepare()
    task = TokenizeTask(
        folder=folder,
        reading=stream.reading,
        encoding=stream.encoding,
        splits=split_task.splits,
        shard_format=stream.shard_format,
        stage=STAGE,
        # Without a limit to allow it, the file may come back before the next try.
        lose_changed=Limit.parse(stream.max_lost, "max_lost").numerator > 0,
    )
    try:
        result = tokenize_split(task, window.split)
    except DataError:
        # Another attempt was faster, and the end of the window removed this one's files.
        if not folder.is_finished():
            raise
        return None
    return result._replace(outputs=[f"{window.folder}/{name}" for name in result.outputs])
