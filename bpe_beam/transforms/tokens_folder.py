"""The folder that one run of `WriteTokens` claims, writes and completes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.folders.output_folder import DOCUMENTS
from bpe_beam.folders.receipts import WORK
from bpe_beam.shards.formats import LABELLED_FORMAT, PLAIN_FORMAT, shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.manifest import index_names, read_manifest
from bpe_beam.shards.shard_rows import Arrangement
from bpe_beam.storage import Storage
from bpe_beam.transforms import claimed_folder


@dataclass(frozen=True)
class TokensFolder(claimed_folder.ClaimedFolder):
    """A folder of shards."""

    storage: Storage
    url: str
    shards: int
    format: str
    number: str  # the number of the run that claims the folder
    arrangement: Arrangement | None = None

    transform: ClassVar[str] = "WriteTokens"

    @property
    def shards_url(self) -> str:
        """The folder of the shards of documents, which are temporary if these are arranged."""
        return self.url if self.arrangement is None else self.path(f"{WORK}/{DOCUMENTS}")

    @property
    def shards_format(self) -> str:
        """The format of the shards of documents: with labels if the final shards store them."""
        if self.arrangement is None:
            return self.format
        labelled = shard_format(self.format).labelled and not self.arrangement.sequence_length
        return LABELLED_FORMAT if labelled else PLAIN_FORMAT

    def shards_origin(self, origin: ShardOrigin) -> ShardOrigin:
        """Return the origin for the shards of documents: temporary ones need no columns."""
        return origin if self.arrangement is None else replace(origin, columns=())

    @property
    def fixed_names(self) -> frozenset[str]:
        return _fixed_names(self.format)


def remove_earlier_run(storage: Storage, folder: str) -> None:
    """See `claimed_folder.remove_earlier_run`."""

    def finished() -> JobRecord | None:
        manifest = read_manifest(storage, folder)
        if manifest.has_plan:  # of a job, which keeps its `__job`
            return None
        files = [file.name for shard in manifest.shards for file in shard.files]
        names = _fixed_names(manifest.format).union(files)
        return claimed_folder.record_of(TokensFolder.transform, names)

    claimed_folder.remove_earlier_run(storage, folder, finished)


def _fixed_names(format_name: str) -> frozenset[str]:
    return frozenset({SHARDS_TOKENIZER_FILE, *index_names(format_name)})
