"""Files that come over time: where they are looked for, and under which names they are known.

A plan names files from the folder that all of them share, which another file can change. Here that
folder follows from the patterns alone, so a file has the same name whenever it is found.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bpe_beam.errors import UsageError
from bpe_beam.storage import Found, Storage, redact
from bpe_beam.storage.names import (
    OBJECT_STORES,
    SCHEME,
    WEB,
    absolute_glob,
    is_local,
    local_path,
    protocol_of,
)


@dataclass(frozen=True)
class Watched:
    """Where files are looked for. Made by `of`.

    Attributes:
        root: The folder that their names start at.
        patterns: Paths, URLs or globs.
        exclude: The same, of files to leave out.
        own: What the names of files begin with that are in the output folder.
    """

    root: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @staticmethod
    def of(
        storage: Storage,
        patterns: Sequence[str],
        exclude: Sequence[str] = (),
        output: str | None = None,
    ) -> Watched:
        """Checks patterns; files need not be there yet.

        Args:
            storage: The door to storage.
            patterns: Paths, URLs or globs, of one store.
            exclude: The same, of files to leave out.
            output: The folder that is written to: what matches there is left out, too.

        Raises:
            UsageError: A list, a folder, the web, patterns of several stores, or one that looks in
                the output folder only.
        """
        for pattern in (*patterns, *exclude):
            if pattern.startswith("@"):
                raise UsageError(f"input {pattern}: a list does not grow; give a glob to watch")
            if protocol_of(pattern) in WEB:
                raise UsageError(f"input {redact(pattern)}: the web cannot be watched")
        looked_for, left_out = (
            tuple(map(absolute_glob, patterns)),
            tuple(map(absolute_glob, exclude)),
        )
        folders = [_fixed_folder(pattern) for pattern in patterns]
        if len({scheme for scheme, _ in folders}) > 1:
            raise UsageError("the inputs are on several stores; watch each in a job of its own")
        for pattern in patterns:
            if storage.is_folder(pattern):
                glob = storage.join(redact(pattern), "**", "*.jsonl")
                raise UsageError(
                    f"input {redact(pattern)} is a folder; watch a glob, such as {glob!r}"
                )
        paths = [path for _, path in folders]
        shared = 0
        low, high = min(paths), max(paths)  # what the extremes share, all between them share
        while shared < min(len(low), len(high)) and low[shared] == high[shared]:
            shared += 1
        root = folders[0][0] + "/".join(low[:shared]) or "/"
        if output is None:
            return Watched(root, looked_for, left_out)
        for pattern, (scheme, path) in zip(patterns, folders, strict=True):
            if any(names_below(output, scheme + "/".join(path) or "/")):
                raise UsageError(
                    f"input {redact(pattern)} is in the output folder {redact(output)}; give an "
                    "output folder elsewhere"
                )
        own = sorted(set(names_below(root, output)))
        return Watched(root, looked_for, left_out, tuple(own))

    @property
    def appears_whole(self) -> bool:
        """Whether the store shows a file only when it is complete."""
        return protocol_of(self.root) in OBJECT_STORES

    @property
    def root_fingerprint(self) -> str:
        """The SHA-256 of the root, which tells it from others and does not show it.

        A store's URL gives the same on every machine, a local folder by its absolute path without
        links. What storage options say, such as an endpoint, is no part of it.
        """
        if is_local(self.root):
            root = os.path.realpath(local_path(self.root))
        else:
            match = SCHEME.match(self.root)
            path = self.root[match.end() if match else 0 :]
            root = f"{protocol_of(self.root)}://{path.strip('/')}"
        return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()

    def look(self, storage: Storage) -> Iterator[tuple[str, Found]]:
        """Yield the files that are there now with their names, each at least once.

        Empty files are left out: they hold nothing yet.

        Cost: one listing for each pattern; the memory of one pattern's files.
        """
        left_out = {file.url for pattern in self.exclude for file in storage.expand(pattern)}
        length = len(self.root.rstrip("/")) + 1
        for pattern in self.patterns:
            for file in storage.expand(pattern):
                own = file.url.startswith(self.own, length)
                if file.size and file.url not in left_out and not own:
                    yield file.url[length:], file


def names_below(folder: str, other: str) -> Iterator[str]:
    """Under which names, with a slash behind, a folder is found at or below another."""
    for above in _spellings(folder):
        for below in _spellings(other):
            if below.startswith(above):
                yield below[len(above) :] or "/"


def _spellings(folder: str) -> set[str]:
    """A folder's URL with a slash behind; on disk also as it is without links."""
    if is_local(folder):
        path = local_path(folder)
        return {f"{str(each).rstrip('/')}/" for each in (path, os.path.realpath(path))}
    match = SCHEME.match(folder)
    rest = folder[match.end() if match else 0 :]
    return {f"{protocol_of(folder)}://{rest.rstrip('/')}/"}


def _fixed_folder(pattern: str) -> tuple[str, list[str]]:
    """The scheme, and the parts of the path that stand before the first glob and the name."""
    if is_local(pattern):
        scheme, path = "", str(local_path(pattern))
    else:
        match = SCHEME.match(pattern)
        scheme, path = f"{protocol_of(pattern)}://", pattern[match.end() if match else 0 :]
    parts = path.split("/")[:-1]
    glob = (i for i, part in enumerate(parts) if re.search(r"[*?\[]", part))
    return scheme, parts[: next(glob, len(parts))]
