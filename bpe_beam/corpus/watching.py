"""Files that come over time: where they are looked for, and under which names they are known.

A plan names files from the folder that all of them share, which another file can change. Here that
folder follows from the patterns alone, so a file has the same name whenever it is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bpe_beam.errors import UsageError
from bpe_beam.storage import Found, Storage, redact
from bpe_beam.storage.names import OBJECT_STORES, SCHEME, WEB, is_local, local_path, protocol_of


@dataclass(frozen=True)
class Watched:
    """Where files are looked for. Made by `of`.

    Attributes:
        root: The folder that their names start at.
        patterns: Paths, URLs or globs.
        exclude: The same, of files to leave out.
    """

    root: str
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @staticmethod
    def of(storage: Storage, patterns: Sequence[str], exclude: Sequence[str] = ()) -> Watched:
        """Checks patterns; files need not be there yet.

        Args:
            storage: The door to storage.
            patterns: Paths, URLs or globs, of one store.
            exclude: The same, of files to leave out.

        Raises:
            UsageError: A list, a folder, the web, or patterns of several stores.
        """
        for pattern in (*patterns, *exclude):
            if pattern.startswith("@"):
                raise UsageError(f"input {pattern}: a list does not grow; give a glob to watch")
            if protocol_of(pattern) in WEB:
                raise UsageError(f"input {redact(pattern)}: the web cannot be watched")
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
        root = folders[0][0] + "/".join(low[:shared])
        return Watched(root or "/", tuple(patterns), tuple(exclude))

    @property
    def appears_whole(self) -> bool:
        """Whether the store shows a file only when it is complete."""
        return protocol_of(self.root) in OBJECT_STORES

    def look(self, storage: Storage) -> dict[str, Found]:
        """The files that are there now, by name. Empty ones are left out: they hold nothing yet.

        Cost: one listing for each pattern; the memory of what it finds.
        """
        left_out = {file.url for pattern in self.exclude for file in storage.expand(pattern)}
        length = len(self.root.rstrip("/")) + 1
        return {
            file.url[length:]: file
            for pattern in self.patterns
            for file in storage.expand(pattern)
            if file.size and file.url not in left_out
        }


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
