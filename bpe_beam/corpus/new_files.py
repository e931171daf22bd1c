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

from bpe_beam.corpus.listing import visible_below
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.names import (
    OBJECT_STORES,
    SCHEME,
    WEB,
    absolute,
    absolute_glob,
    escape_glob,
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
        folders: Folders whose files are watched, except hidden and auxiliary ones.
        exclude: The same, of files to leave out.
        own: What the names of files begin with that are in the output folder.
    """

    root: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @staticmethod
    def of(
        storage: Storage,
        patterns: Sequence[str],
        exclude: Sequence[str] = (),
        output: str | None = None,
    ) -> Watched:
        """Check patterns; files need not be there yet.

        Args:
            storage: The storage client.
            patterns: Paths, URLs, globs or folders, of one store. A folder that is not there yet
                is known by a slash at its end.
            exclude: The same, of files to leave out.
            output: The folder that is written to: what matches there is left out, too.

        Raises:
            UsageError: A list, the web, patterns of several stores, or one that looks in the output
                folder only.
        """
        for pattern in (*patterns, *exclude):
            if pattern.startswith("@"):
                raise UsageError(
                    f"input {pattern}: a list does not grow; give a folder or a glob to watch"
                )
            if protocol_of(pattern) in WEB:
                raise UsageError(f"input {redact(pattern)}: the web cannot be watched")
        if len({_parts(pattern)[0] for pattern in patterns}) > 1:
            raise UsageError("the inputs are on several stores; watch each in a job of its own")
        whole = {p for p in (*patterns, *exclude) if p.endswith("/") or storage.is_folder(p)}
        looked_for = tuple(absolute_glob(p) for p in patterns if p not in whole)
        left_out = tuple(
            storage.join(escape_glob(absolute(p)), "**", "*") if p in whole else absolute_glob(p)
            for p in exclude
        )
        starts = [
            _parts(pattern) if pattern in whole else _fixed_folder(pattern) for pattern in patterns
        ]
        folders = tuple(
            scheme + "/".join(path) or "/"
            for pattern, (scheme, path) in zip(patterns, starts, strict=True)
            if pattern in whole
        )
        paths = [path for _, path in starts]
        shared = 0
        low, high = min(paths), max(paths)  # what the extremes share, all between them share
        while shared < min(len(low), len(high)) and low[shared] == high[shared]:
            shared += 1
        root = starts[0][0] + "/".join(low[:shared]) or "/"
        if output is None:
            return Watched(root, looked_for, left_out, folders=folders)
        for pattern, (scheme, path) in zip(patterns, starts, strict=True):
            if any(names_below(output, scheme + "/".join(path) or "/")):
                raise UsageError(
                    f"input {redact(pattern)} is in the output folder {redact(output)}; give an "
                    "output folder elsewhere"
                )
        own = sorted(set(names_below(root, output)))
        return Watched(root, looked_for, left_out, tuple(own), folders)

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

    def look(self, storage: Storage) -> Iterator[tuple[str, StoredFile]]:
        """Yield the files that are there now with their names, each at least once.

        Empty files are left out: they hold nothing yet.

        Cost: one listing for each pattern or folder; the memory of the files of one.
        """
        left_out = {file.url for pattern in self.exclude for file in storage.expand(pattern)}
        length = len(self.root.rstrip("/")) + 1
        for file in self._listed(storage):
            own = file.url.startswith(self.own, length)
            if file.size and file.url not in left_out and not own:
                yield file.url[length:], file

    def _listed(self, storage: Storage) -> Iterator[StoredFile]:
        for pattern in self.patterns:
            yield from storage.expand(pattern)
        for folder in self.folders:
            yield from visible_below(storage, folder)


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


def _parts(url: str) -> tuple[str, list[str]]:
    """Return the scheme, and the parts of the path, without a slash at its end."""
    if is_local(url):
        return "", str(local_path(url)).rstrip("/").split("/")
    match = SCHEME.match(url)
    path = url[match.end() if match else 0 :]
    return f"{protocol_of(url)}://", path.rstrip("/").split("/")


def _fixed_folder(pattern: str) -> tuple[str, list[str]]:
    """Return the scheme, and the parts of the path before the first glob and the name."""
    scheme, parts = _parts(pattern)
    parts = parts[:-1]
    glob = (i for i, part in enumerate(parts) if re.search(r"[*?\[]", part))
    return scheme, parts[: next(glob, len(parts))]
