"""The folder that one run of `WriteTokens` claims, writes and completes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.folders.job_json import JobRecord
from bpe_beam.shards.manifest import index_names, read_manifest
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

    transform: ClassVar[str] = "WriteTokens"

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
