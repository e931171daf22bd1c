"""The content of a disk after a power cut, at each moment of a run.

A disk has only what was flushed to it: the bytes of a file as of its last sync, and
the names in a folder as they were when that was. There are two disks: `late`, which has no
name that was not synced, and `early`, which has every name at once but bytes only when they were
synced, as file systems do that write names first.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

Files = dict[str, bytes]
"""Content by the name relative to the disk's top; folders have names that end with a slash."""


@dataclass
class Disk:
    """A folder that is watched while something writes in it.

    Attributes:
        top: The folder.
        early: The content of the disk that has names early, at each moment.
        late: The content of the disk that has them late.
    """

    top: Path
    early: list[Files] = field(default_factory=list)
    late: list[Files] = field(default_factory=list)
    _bytes: dict[int, bytes] = field(default_factory=dict)
    _names: dict[int, dict[str, tuple[int, bool]]] = field(default_factory=dict)
    _held: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def watched(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Record until the block ends; what exists before is on disk already."""
        for path in (self.top, *self.top.rglob("*")):
            opened = os.open(path, os.O_RDONLY)
            self._sync(opened)
            os.close(opened)
        real = os.fsync

        def fsync(opened: int) -> None:
            with self._lock:
                self._look()
                real(opened)
                self._sync(opened)
                self._look()

        try:
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", fsync)
                yield
            self._look()
        finally:
            for opened in self._held:
                os.close(opened)

    def _sync(self, opened: int) -> None:
        # Held open, so that no other file gets its number when it is removed.
        self._held.append(os.dup(opened))
        known = os.fstat(opened)
        if stat.S_ISDIR(known.st_mode):
            self._names[known.st_ino] = self._entries(opened)
        elif stat.S_ISREG(known.st_mode):
            self._bytes[known.st_ino] = Path(f"/dev/fd/{opened}").read_bytes()

    def _entries(self, folder: int | Path) -> dict[str, tuple[int, bool]]:
        with os.scandir(folder) as entries:
            return {each.name: (each.inode(), each.is_dir()) for each in entries}

    def _look(self) -> None:
        early: Files = {}
        late: Files = {}
        self._walk_early(self.top, "", early)
        self._walk_late(self.top.stat().st_ino, "", late)
        self.early.append(early)
        self.late.append(late)

    def _walk_early(self, folder: Path, name: str, found: Files) -> None:
        with contextlib.suppress(FileNotFoundError):
            for below, (number, is_folder) in self._entries(folder).items():
                if is_folder:
                    found[f"{name}{below}/"] = b""
                    self._walk_early(folder / below, f"{name}{below}/", found)
                else:
                    found[name + below] = self._bytes.get(number, b"")

    def _walk_late(self, folder: int, name: str, found: Files) -> None:
        for below, (number, is_folder) in self._names.get(folder, {}).items():
            if is_folder:
                found[f"{name}{below}/"] = b""
                self._walk_late(number, f"{name}{below}/", found)
            else:
                found[name + below] = self._bytes.get(number, b"")


def write_files(files: Files, folder: Path) -> None:
    """Write the content of a disk to a folder."""
    for name, content in sorted(files.items()):
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
