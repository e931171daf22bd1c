"""Files put into a storage, and what it lists."""

from __future__ import annotations

from bpe_beam.storage import Storage


def fill(storage: Storage, folder: str, *names: str) -> None:
    """Write files below a folder; each contains its own name."""
    for name in names:
        url = storage.join(folder, *name.split("/"))
        storage.make_folder(url.rpartition("/")[0])
        storage.write_bytes(url, name.encode())


def listed(storage: Storage, pattern: str) -> list[tuple[str, int]]:
    """Return URL and size of each file that matches a pattern."""
    return [(found.url, found.size) for found in storage.expand(pattern)]
