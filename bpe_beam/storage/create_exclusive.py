"""Files that are written once: of several who write one at the same moment, one succeeds."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

from bpe_beam.storage.client import Storage
from bpe_beam.storage.connect import connect, secrets_of
from bpe_beam.storage.failures import named_errors, retried
from bpe_beam.storage.local import sync_file, sync_folder
from bpe_beam.storage.moving import rename
from bpe_beam.storage.names import OBJECT_STORES, attempt_name, is_local, local_path, protocol_of


def write_once(storage: Storage, url: str, data: bytes) -> bool:
    """Writes a file unless there is one of this name.

    Of those who write different bytes at once, one gets True, where the store has writes that only
    create: local disks (by hard links), s3, gs, az. On other stores the last one wins, and whoever
    asks after that is told so; two that ask within the same moment may both be told True. The file
    appears whole or not at all, as with `Storage.create`.

    Args:
        storage: The door to storage.
        url: The file to be. Its folder must exist (object stores have none).
        data: What it is to hold.

    Returns:
        Whether the file now holds these bytes.

    Raises:
        DataError: Storage fails.
    """
    if is_local(url):
        with named_errors("write", url):
            return _link(local_path(url), data)
    hidden = secrets_of(storage.options)
    with named_errors("write", url, hidden):
        fs, path = connect(storage.options, url)
        create = _create if protocol_of(url) in OBJECT_STORES else _rename
        return retried(lambda: create(fs, path, data))


def creates_only(storage: Storage, folder: str) -> bool:
    """Whether a store can create a file and refuse to replace one, which `write_once` rests on.

    Some servers that look like S3 take the condition and ignore it, which shows when it is tried.

    Args:
        storage: The storage client.
        folder: Where files are to be created. One is written there, and removed.

    Raises:
        DataError: Storage fails.

    Cost: five requests.
    """
    # The name of a job.json that was never completed: what a killed job leaves of it is removed.
    url = storage.join(folder, attempt_name("job.json"))
    if is_local(url):
        return True
    if protocol_of(url) not in OBJECT_STORES:
        return False
    with named_errors("write", url, secrets_of(storage.options)):
        fs, path = connect(storage.options, url)
        try:
            retried(lambda: _create(fs, path, b"first"))
            with contextlib.suppress(OSError, TypeError, ValueError, NotImplementedError):
                fs.pipe_file(path, b"second", mode="create")
            return bool(retried(lambda: fs.cat_file(path)) == b"first")
        finally:
            storage.remove(url)


def _link(path: Path, data: bytes) -> bool:
    """A link appears whole or not at all, and never in place of another."""
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


def _rename(fs: Any, path: str, data: bytes) -> bool:
    """Where a file is written in place, and so could be torn."""
    if not fs.exists(path):
        attempt = attempt_name(path)
        try:
            fs.pipe_file(attempt, data)
            if not fs.exists(path):
                try:
                    rename(fs, attempt, path)
                except OSError:
                    if not fs.exists(path):  # else somebody was quicker
                        raise
        finally:
            with contextlib.suppress(Exception):  # mostly, it is not there any more
                fs.rm_file(attempt)
    return bool(fs.cat_file(path) == data)


def _create(fs: Any, path: str, data: bytes) -> bool:
    if not fs.exists(path):
        try:
            fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            pass
        except OSError as error:
            # what s3fs makes of some servers' refusal
            if error.errno != errno.EINVAL or not fs.exists(path):
                raise
        except (TypeError, ValueError, NotImplementedError):
            fs.pipe_file(path, data)  # a file system that knows no such mode
    return bool(fs.cat_file(path) == data)
