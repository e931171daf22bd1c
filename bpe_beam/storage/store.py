"""The protocol that local files and remote stores share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from bpe_beam.storage.stored_file import StoredFile


class Store(Protocol):
    """Files of one kind of storage. `Storage` documents each method under the same name."""

    def expand(self, pattern: str) -> list[StoredFile]:
        """Return the files that a path, URL or glob means, in any order."""

    def stat(self, url: str) -> StoredFile:
        """Return the size and the tag of a file."""

    def exists(self, url: str) -> bool:
        """Return whether a file or folder has this name."""

    def is_folder(self, url: str) -> bool:
        """Return whether a folder has this name."""

    def list_names(self, folder: str) -> list[str]:
        """Return the names directly in a folder, sorted; [] if there is no such folder."""

    def open_with_stat(self, url: str) -> tuple[StoredFile, BinaryIO]:
        """Open a file for reading, and return its description at that moment with the stream."""

    def read_head(self, url: str, count: int) -> bytes:
        """Return the first bytes of a file.

        Args:
            url: The file.
            count: The number of bytes; a shorter file is returned whole.
        """

    def create(self, url: str) -> AbstractContextManager[BinaryIO]:
        """Open a new file for writing; it appears when the block ends without an error."""

    def move(self, source: str, target: str) -> None:
        """Give a file another name in the same store.

        Args:
            source: The file.
            target: Its new name.
        """

    def remove(self, url: str) -> None:
        """Remove a file if it exists."""

    def make_folder(self, url: str) -> None:
        """Make a folder and those above it, where the store has folders."""

    def remove_folder_if_empty(self, url: str) -> None:
        """Remove a folder without names in it."""
