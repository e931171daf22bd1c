"""The files of a folder that `train` wrote, as its summary lists them."""

from __future__ import annotations

from msgspec import Struct

from bpe_beam.folders.artifact_names import SUMMARY_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import Sha256, read_signed, to_struct


class TrainedFiles(Struct, frozen=True):
    """The files of a tokenizer, and the fingerprint of the job in `__job`."""

    files: tuple[FileInfo, ...]
    job_fingerprint: Sha256


def read_trained_files(storage: Storage, folder: str) -> TrainedFiles:
    """Return the files that a summary lists."""
    url = storage.join(folder, SUMMARY_FILE)
    values = read_signed(storage.read_bytes(url), redact(url))
    return to_struct(values, TrainedFiles, redact(url))
