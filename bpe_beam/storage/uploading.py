"""Uploads to object stores in parts: an object exists only when its upload is finished."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.storage.names import AZURE, protocol_of
from bpe_beam.storage.retry import UPLOAD_PATIENCE_SECONDS, retried

# A store takes an upload in parts: S3 at most 10,000, of equal size on some servers. So 62.5 GiB
# are uploaded in parts that cost little memory, and 1.4 TiB more in large ones.
PART = 16 << 20
_MANY_PARTS = 4000
LARGE_PART = 256 << 20


class Upload:
    """The upload of an object, which exists once `finish` returns, and not before."""

    def __init__(self, fs: Any, path: str, url: str, secrets: Collection[str]) -> None:
        self._fs, self._path, self._url, self._secrets = fs, path, url, secrets
        self._hash = hashlib.sha256()
        self._file = fs.open(path, "wb", block_size=PART)
        if protocol_of(url) in AZURE:
            _repeat_blocks(self._file)
        self._size = 0

    def write(self, data: Any) -> int:
        """Take bytes, and send each part that is full."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            if self._size == PART * _MANY_PARTS:
                self._file.blocksize = LARGE_PART
            taken = rest[: self._file.blocksize - self._file.buffer.tell()]
            self._file.write(taken)
            self._hash.update(taken)
            self._size += len(taken)
            rest = rest[len(taken) :]
        return size

    def close(self) -> None:
        """Do nothing: `finish` or `discard` follows."""

    def finish(self) -> None:
        """Send the last part, and make the object appear.

        A client repeats a request whose answer was lost. If the store carried out the first one,
        some stores answer the second with "no such upload"; then the object itself is compared.
        """
        try:
            self._file.close()
        except FileNotFoundError:
            if not self._is_complete():
                raise
            self._file.closed = True  # an unclosed file of fsspec would try again

    def _is_complete(self) -> bool:
        """Return whether the store has an object of this name with the bytes that were sent."""
        from bpe_beam.storage.remote_file import BLOCK, open_ranges, open_reader  # remote only

        stored = hashlib.sha256()
        try:
            opened = open_reader(
                lambda: open_ranges(self._fs, self._path, self._url), self._url, self._secrets
            )
            with opened[1] as stream:
                while data := stream.read(BLOCK):
                    stored.update(data)
        except DataError:
            return False
        return stored.digest() == self._hash.digest()

    def discard(self) -> None:
        file = self._file
        with contextlib.suppress(Exception):
            file.discard()
        # an unclosed file of fsspec would finish itself when it is garbage
        file.closed = True
        spool = getattr(file, "temp_file", None)  # Hugging Face's
        if spool is not None:
            with contextlib.suppress(Exception):
                spool.close()
                Path(spool.name).unlink()


def _repeat_blocks(file: Any) -> None:
    """Make an upload to Azure repeat a part as long after errors as other stores' clients do.

    Each attempt sends blocks of new names, and the last request lists the blocks of the object:
    blocks of a failed attempt are taken from the list.
    """
    upload_once = file._upload_chunk

    def upload(final: bool = False) -> object:
        blocks = list(file._block_list)

        def attempt() -> object:
            file._block_list[:] = blocks
            return upload_once(final=final)

        return retried(attempt, UPLOAD_PATIENCE_SECONDS)

    file._upload_chunk = upload
