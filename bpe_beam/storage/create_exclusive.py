"""Files that are written once: if several writers race, one of them succeeds."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

from bpe_beam.errors import DataError
from bpe_beam.storage.client import Storage
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.names import OBJECT_STORES, attempt_name, is_local, local_path, protocol_of
from bpe_beam.storage.retry import retried
from bpe_beam.storage.writing import sync_file, sync_folder


def write_once(storage: Storage, url: str, data: bytes) -> bool:
    """Write a file unless one of this name exists; return whether it now has this content.

    If several writers race with different bytes, exactly one gets True on stores with conditional
    writes: local disks (by hard links), s3, gs, az. On other stores the last writer wins, and two
    calls at the same moment may both return True. The file appears complete or not at all.
    """
    if is_local(url):
        with named_errors("write", url):
            return _link(local_path(url), data)
    if protocol_of(url) in OBJECT_STORES:
        with named_errors("write", url, storage.remote.secrets):
            fs, path = storage.remote.connect(url)
            return retried(lambda: _create(fs, path, data))
    if not storage.exists(url):
        try:
            storage.write_bytes(url, data)
        except DataError:
            if not storage.exists(url):  # no other writer was first
                raise
    return storage.read_bytes(url) == data


def creates_only(storage: Storage, folder: str) -> bool:
    """Return whether a store has conditional writes, on which `write_once` relies.

    Some servers with the interface of S3 accept the condition and ignore it, so this writes a file,
    and removes it: five requests.
    """
    # An attempt at __job: the next job removes the attempts of killed jobs.
    url = storage.join(folder, attempt_name("__job"))
    if is_local(url):
        return True
    if protocol_of(url) not in OBJECT_STORES:
        return False
    with named_errors("write", url, storage.remote.secrets):
        fs, path = storage.remote.connect(url)
        try:
            retried(lambda: _create(fs, path, b"first"))
            with contextlib.suppress(OSError, TypeError, ValueError, NotImplementedError):
                fs.pipe_file(path, b"second", mode="create")
            return bool(retried(lambda: fs.cat_file(path)) == b"first")
        finally:
            storage.remove(url)


def _link(path: Path, data: bytes) -> bool:
    """Write by a hard link, which appears complete or not at all and never replaces a file."""
    if not path.exists():
        attempt = path.with_name(attempt_name(path.name))
        try:
            with attempt.open("wb") as file:
                file.write(data)
                file.flush()
                sync_file(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(attempt, path)
        finally:
            attempt.unlink(missing_ok=True)
        sync_folder(path.parent)
    return path.read_bytes() == data


def _create(fs: Any, path: str, data: bytes) -> bool:
    if not fs.exists(path):
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            pass
        except OSError as error:
            # s3fs's error for the refusal of some servers
            if error.errno != errno.EINVAL or not fs.exists(path):
                raise
        except (TypeError, ValueError, NotImplementedError):
            fs.pipe_file(path, data)  # a file system without this mode
    return bool(fs.cat_file(path) == data)
