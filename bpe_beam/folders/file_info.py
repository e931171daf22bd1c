"""A file of a folder, as receipts, manifests and summaries describe it."""

from __future__ import annotations

import builtins
import hashlib

from msgspec import Struct

from bpe_beam.folders.artifact_names import SUMMARY_FILE
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import HashingFile
from bpe_beam.storage.json_file import Count, Sha256, read_signed, to_struct


class FileInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """One file as it was written; the name is relative to the folder, with `/`."""

    name: str
    bytes: Count
    sha256: Sha256

    @staticmethod
    def of(name: str, data: builtins.bytes) -> FileInfo:
        return FileInfo(name, len(data), hashlib.sha256(data).hexdigest())

    @staticmethod
    def written(name: str, file: HashingFile) -> FileInfo:
        """Return the description of a file from the bytes written to it so far."""
        return FileInfo(name, file.bytes, file.sha256)


class TrainedFiles(Struct, frozen=True):
    """The files of a tokenizer, and the fingerprint of the job in `__job`."""

    files: tuple[FileInfo, ...]
    job_fingerprint: Sha256


def read_trained_files(storage: Storage, folder: str) -> TrainedFiles:
    """Return the files of a folder that `train` wrote, as its summary lists them."""
    url = storage.join(folder, SUMMARY_FILE)
    values = read_signed(storage.read_bytes(url), redact(url))
    return to_struct(values, TrainedFiles, redact(url))
