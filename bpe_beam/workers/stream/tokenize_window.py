"""What a worker does with one split of a window of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe_beam.corpus.limits import Limit
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.errors import DataError
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage import Storage
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.split_task import SplitWork, require_seen
from bpe_beam.workers.stream.window_log import WindowFolder
from bpe_beam.workers.tokenize_split import MadeShard, TokenizeTask, tokenize_split

STAGE = "stream-tokenize"
"""The progress stage that is reported to."""


@dataclass(frozen=True)
class Stream:
    """All that watcher and workers need to know; plain and picklable.

    Attributes:
        storage: The door to storage.
        output: The stream's folder.
        fingerprint: The stream's: its windows carry it.
        watched: Where files come.
        reading: How files become documents.
        encoding: How documents become ids.
        settings: Both, as manifests hold them.
        range_bytes: How finely files are cut, or None.
        max_rejects: How many rejects a window may have.
        max_lost: How many stored bytes of a window may be lost.
        poll_seconds: Time between two looks.
        window_seconds: A window is made so long after its first file was ready.
        until_idle_seconds: End when there was nothing to do for so long; None: never.
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


@dataclass(frozen=True)
class WindowWork:
    """One split of a window, as it travels to a worker."""

    folder: str
    fingerprint: str
    work: SplitWork

    def to_json(self) -> str:
        """The element."""
        return json.dumps([self.folder, self.fingerprint, self.work.to_json()], ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> WindowWork:
        """What `to_json` wrote."""
        folder, fingerprint, work = json.loads(text)
        return WindowWork(folder, fingerprint, SplitWork.from_json(work))


def tokenize_window_split(stream: Stream, element: str) -> MadeShard | None:
    """Writes a window's shard, and records it; None if that was done before.

    Raises:
        DataError: Storage fails, or a file is not as it was when its window was made.
    """
    given = WindowWork.from_json(element)
    work = given.work
    require_seen(stream.storage, stream.output)
    url = stream.storage.join(stream.output, given.folder)
    folder = WindowFolder(stream.storage, url, given.fingerprint)
    if folder.is_done(shard_name(work.split.index, work.splits)):
        return None
    folder.prepare()
    task = TokenizeTask(
        folder,
        stream.reading,
        stream.encoding,
        work.splits,
        stage=STAGE,
        # Without a limit to allow it, the file may come back before the next try.
        lose_changed=Limit.parse(stream.max_lost, "max_lost").numerator > 0,
    )
    try:
        made = tokenize_split(task, work.to_json())
    except DataError:
        # Another attempt was quicker, and the window's end took this one's files away.
        if not folder.is_finished():
            raise
        return None
    return made._replace(name=f"{given.folder}/{made.name}")
