"""What a job's worker is handed: one split of the plan, and where it leaves what it made of it."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import pyarrow as pa

from bpe_beam import progress
from bpe_beam.corpus import boundaries as edges_json
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.readers import read_split
from bpe_beam.corpus.rejects import Reject, RejectWriter
from bpe_beam.corpus.slices import Edges
from bpe_beam.errors import DataError
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local
from bpe_beam.workers import metric_names as measures

WORK = "work"
"""The folder for temporary files, within a job's, a run's or a window's folder."""

_BLOCK_BYTES = 1 << 20


class Receipts(Protocol):
    """The folder of a run of a job as its workers know it; picklable."""

    @property
    def storage(self) -> Storage:
        """The door to storage."""

    @property
    def url(self) -> str:
        """The run's folder."""

    def write_receipt(
        self, piece: str, files: Iterable[Mapping[str, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Records a finished piece: its files (`name`, `bytes`, `sha256`), and what is known."""


@dataclass(frozen=True)
class SplitWork:
    """One split, with just those files of the plan that it reads.

    A plan of a million files is too large to hand to every worker; an element carries its own.

    Attributes:
        plan: The plan's root and, under their numbers, the files of this split.
        split: The split.
        splits: How many splits the whole plan has.
    """

    plan: Plan
    split: Split
    splits: int

    def to_json(self) -> str:
        """The element that travels."""
        numbers = sorted({piece.file for piece in self.split.slices})
        return json.dumps(
            {
                "root": self.plan.root,
                "files": {i: list(vars(self.plan.files[i]).values()) for i in numbers},
                "index": self.split.index,
                "slices": [[piece.file, piece.start, piece.end] for piece in self.split.slices],
                "splits": self.splits,
            },
            ensure_ascii=False,
        )

    @staticmethod
    def from_json(text: str) -> SplitWork:
        """What `to_json` wrote."""
        row = json.loads(text)
        files = {int(number): InputFile(*values) for number, values in row["files"].items()}
        split = Split(row["index"], tuple(Slice(*piece) for piece in row["slices"]))
        # By number as in the whole plan: places in the corpus are made of the files' numbers.
        return SplitWork(Plan(row["root"], cast(Any, files), (split,)), split, row["splits"])


def works_of(plan: Plan, done: Collection[int] = ()) -> list[str]:
    """The splits of a plan as elements, but for those that are done; the largest first, so that no
    worker is left alone with one at the end."""
    splits = len(plan.splits)
    left = [split for split in plan.splits if split.index not in done]
    left.sort(key=lambda split: (-split.size, split.index))
    return [SplitWork(plan, split, splits).to_json() for split in left]


def require_seen(storage: Storage, *folders: str) -> None:
    """Refuse folders that the process which launched this work has, and this worker does not see.

    Args:
        storage: The storage client.
        *folders: Absolute paths or URLs. Nothing is asked about URLs: their folders are only names.

    Raises:
        DataError: A local folder is not there.
    """
    for folder in filter(is_local, folders):
        if not storage.is_folder(folder):
            raise DataError(
                f"the worker on {socket.gethostname()} does not see the folder {folder}: workers "
                "read and write files themselves, so give a folder that is mounted under this name "
                "on every machine, or the URL of a store"
            )


def read_texts(
    storage: Storage,
    work: SplitWork,
    settings: ReadSettings,
    on_reject: Callable[[Reject], None],
    on_edges: Callable[[Edges], None],
    stage: str,
    *,
    lose_changed: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a split, see `read_split`, for jobs that need the texts alone.

    Args:
        storage: The storage client.
        work: The split.
        settings: How files become documents.
        on_reject: Called for each record that cannot be used.
        on_edges: Called at the end of each slice whose bounds had to be guessed.
        stage: The progress stage, in bytes, that gets the stored bytes as they are read.
        lose_changed: See `read_split`.
    """
    return read_split(
        storage,
        work.plan,
        work.split,
        settings,
        on_reject,
        on_edges,
        only_text=True,
        on_read=lambda count: progress.report(stage, done=count),
        lose_changed=lose_changed,
    )


def reading_facts(plan: Plan, split: Split, seen: Iterable[Edges]) -> dict[str, Any]:
    """What a receipt says of the reading of a split: its slices, the tags of their files, and
    where the slices' records began and ended, if that had to be guessed."""
    return {
        "slices": [[piece.file, piece.start, piece.end] for piece in split.slices],
        "tags": [plan.files[piece.file].tag for piece in split.slices],
        "edges": [edges_json.to_json(edge) for edge in seen],
    }


def restored_facts(split: Split) -> dict[str, Any]:
    """As `reading_facts`, of a split of a finished job, whose slices have been proven to meet."""
    slices = [[piece.file, piece.start, piece.end] for piece in split.slices]
    return {"slices": slices, "tags": None, "edges": None}


def was_read(facts: Mapping[str, Any], plan: Plan, split: Split) -> bool:
    """Whether a receipt's facts are of these slices of these files; restored ones know no tags."""
    now = reading_facts(plan, split, ())
    same_files = facts.get("tags") in (None, now["tags"])
    return same_files and bool(facts.get("slices") == now["slices"])


def piece_name(kind: str, number: int, of: int) -> str:
    """The name of a piece of work, and of its receipt: `counts-00003-of-00012`."""
    return f"{kind}-{number:05}-of-{of:05}"


def rejects_name(split: int, splits: int) -> str:
    """The file of a split's rejects in a job's folder."""
    return f"rejects/{piece_name('rejects', split, splits)}.jsonl"


def reject_writer(receipts: Receipts, work: SplitWork) -> RejectWriter:
    """The writer of a split's rejects, in a run's folder."""
    name = rejects_name(work.split.index, work.splits)
    return RejectWriter(receipts.storage, receipts.storage.join(receipts.url, *name.split("/")))


def file_facts(receipts: Receipts, name: str) -> dict[str, Any]:
    """A written file of a run's folder as receipts name it. Cost: reads it once."""
    digest = hashlib.sha256()
    size = 0
    url = receipts.storage.join(receipts.url, *name.split("/"))
    with receipts.storage.open(url) as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return {"name": name, "bytes": size, "sha256": digest.hexdigest()}


def split_values(documents: int, size: int, started: float) -> dict[str, int]:
    """What distributions get of a split: documents, bytes of text, and its time since `started`, by
    `time.monotonic`."""
    return {
        measures.SPLIT_DOCUMENTS: documents,
        measures.SPLIT_TEXT_BYTES: size,
        measures.SPLIT_MILLISECONDS: round(1000 * (time.monotonic() - started)),
    }


def text_bytes(batch: pa.RecordBatch) -> int:
    """UTF-8 bytes of the texts of a batch of documents."""
    text = batch.column("text")
    offsets = text.buffers()[1]
    if offsets is None or len(text) == 0:
        return 0
    bounds = memoryview(offsets).cast("q")
    return int(bounds[text.offset + len(text)] - bounds[text.offset])
