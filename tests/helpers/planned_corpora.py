"""A corpus of a few small files, to be planned."""

from __future__ import annotations

import gzip
from pathlib import Path

import zstandard


def corpus(root: Path) -> list[str]:
    """Write files of several formats and compressions below a folder; return their paths."""
    files = {
        "b.txt": b"one\ntwo\n" * 100,
        "a/1.jsonl": b'{"text": "x"}\n' * 50,
        "a/2.jsonl.gz": gzip.compress(b'{"text": "x"}\n', mtime=0),
        "a/é.ndjson.zst": zstandard.compress(b"{}"),
        "a/empty.txt": b"",
        "z.json": b"{}\n",
        "Z.TXT": b"upper\n",
    }
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [str(root / name) for name in files]
