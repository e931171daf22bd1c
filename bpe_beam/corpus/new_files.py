"""Files that arrive over time: the patterns and folders of a stream, and the names of its files.

A plan names files from the folder that all of them share, which another file can change. Here that
folder follows from the patterns alone, so a file has the same name whenever it is listed.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bpe_beam.corpus.listing import (
    RealNames,
    root_parts,
    shared_parts,
    visible_below,
    without_job_folders,
)
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile, names, redact


@dataclass(frozen=True)
class Watched:
    """The patterns and folders in which a stream looks for files. Made by `of`.

    Attributes:
        root: The folder at which the names of files start.
        patterns: Paths, URLs or globs; `exclude` has such names of files to leave out.
        folders: Folders whose files are watched, except hidden and auxiliary ones.
        output: The folder whose files are left out.
    """

    root: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    output: str | None = None
    folders: tuple[str, ...] = ()

    @staticmethod
    def of(
        storage: Storage,
        patterns: Sequence[str],
        exclude: Sequence[str] = (),
        output: str | None = None,
    ) -> Watched:
        """Return what to watch, after a check of the patterns; files may come later."""
        for pattern in (*patterns, *exclude):
            if pattern.startswith("@"):
                problem = "a list does not grow; give a folder or a glob to watch"
                raise UsageError(f"input {pattern}: {problem}")
            if names.protocol_of(pattern) in names.WEB:
                raise UsageError(f"input {redact(pattern)}: the web cannot be watched")
        if len({_parts(pattern)[0] for pattern in patterns}) > 1:
            raise UsageError("the inputs are on several stores; watch each in a separate job")
        named = (*patterns, *exclude)
        globs = {p for p in named if names.is_glob(p) and not storage.is_folder(p)}
        whole = {p for p in named if p.endswith("/") or (p not in globs and storage.is_folder(p))}
        starts = {p: _start(p, is_glob=p in globs, is_folder=p in whole) for p in patterns}
        urls = {pattern: _url(*parts) for pattern, parts in starts.items()}
        scheme, shared = _parts(patterns[0])[0], shared_parts(path for _, path in starts.values())
        root = _url(scheme, root_parts(shared) if scheme else shared)

        def absolute(pattern: str) -> str:
            if pattern in whole - globs:
                return names.absolute(pattern)
            # A slash at the end says that the glob is of folders.
            slash = "/" if pattern in whole and names.is_local(pattern) else ""
            return names.absolute_glob(pattern) + slash

        if output is not None:
            real = RealNames()
            for pattern, url in urls.items():
                if real.is_below(url, output):
                    problem = f"is in the output folder {redact(output)}; give an output elsewhere"
                    raise UsageError(f"input {redact(pattern)} {problem}")
        return Watched(
            root,
            patterns=tuple(names.absolute_glob(p) for p in patterns if p not in whole),
            exclude=tuple(map(absolute, exclude)),
            output=None if output is None else names.absolute(output),
            folders=tuple(absolute(p) for p in patterns if p in whole),
        )

    @property
    def appears_whole(self) -> bool:
        """Whether the store shows a file only when it is complete."""
        return names.protocol_of(self.root) in names.OBJECT_STORES

    @property
    def root_fingerprint(self) -> str:
        """The SHA-256 of the root, a store's URL or the absolute path of a folder without links."""
        if names.is_local(self.root):
            root = str(names.real_path(self.root))
        else:
            scheme, path = _parts(self.root)
            root = scheme + "/".join(path).strip("/")
        return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()

    def look(self, storage: Storage) -> Iterator[tuple[str, StoredFile]]:
        """Yield the names and the files that exist now, each at least once.

        Empty files are left out: they may still be written.

        Cost: one listing for each pattern or folder; the memory of the files of one.
        """
        real = RealNames()
        left_out = real.excluded(storage, self.exclude)
        length = len(self.root.rstrip("/")) + 1
        for file in self._listed(storage):
            is_output = self.output is not None and real.is_below(file.url, self.output)
            if file.size and not is_output and left_out.isdisjoint(real.names(file.url)):
                yield file.url[length:], file

    def _listed(self, storage: Storage) -> Iterator[StoredFile]:
        for pattern in self.patterns:
            yield from without_job_folders(storage.expand(pattern), pattern)
        for folder in self.folders:
            yield from visible_below(storage, folder)


def _parts(url: str) -> tuple[str, list[str]]:
    """Return the scheme, and the names of the path, without a slash at its end."""
    if names.is_local(url):
        return "", str(names.local_path(url)).rstrip("/").split("/")
    match = names.SCHEME.match(url)
    path = url[match.end() if match else 0 :]
    return f"{names.protocol_of(url)}://", path.removesuffix("/").split("/")


def _url(scheme: str, path: Sequence[str]) -> str:
    return scheme + "/".join(path) or "/"


def _start(pattern: str, *, is_glob: bool, is_folder: bool) -> tuple[str, list[str]]:
    """Return the scheme, and the path of the folder at which the names of files start.

    This is a folder itself, or the folder of a file; of a glob, the folder before its first glob
    character.
    """
    scheme, parts = _parts(pattern)
    parts = parts if is_folder else parts[:-1]
    fixed = itertools.takewhile(lambda part: names.escape_glob(part) == part, parts)
    return scheme, [*fixed] if is_glob else parts
