"""What makes local files survive a power cut.

A file that was written and renamed may be empty after a power cut: the disk may have the new name
and not the bytes. So the bytes are forced to disk first (`sync_file`), then the file is renamed. A
job that relies on the name also forces the folder to disk (`sync_folder`).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}
"""The errors of file systems and devices that have nothing to sync, or no way to do so."""


def sync_file(descriptor: int) -> None:
    """Force the bytes of an open file to disk, where the file system can.

    Raises:
        OSError: The disk is full or fails.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise


def sync_folder(path: Path) -> None:
    """Force the names in a folder to disk; do nothing if it is missing or may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)
