"""Small corpora that tests make themselves: seeded, in several scripts, in every kind of file."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_WORDS = """\
the of and to in that it's they'll we've I'm don't you're one two three house houses
tokenizer tokenizers token tokens 7 12 333 1,234 3.14 2024 -- ... (see) [1] x=y a/b
größer Straße naïve él està là một nơi привет мир мира слова العربية كلمة हिन्दी शब्द
你好 世界 中文 こんにちは 世界の 한국어 ภาษาไทย 😀 👍🏽 👩\u200d👩\u200d👧 e\u0301
"""
_SYLLABLES = "ba de gi ko lu mar nes tir pon qua str ing ли сто ка 東 京 大"
# Runs of spaces and other white space are words of their own.
_GAPS = (" ",) * 12 + ("  ", "   ", "\t", "\u00a0", " \r")


def documents(count: int, seed: int = 0, words: int = 20) -> list[str]:
    """Return texts of one line each; some are empty, some begin or end with a space.

    Args:
        count: The number of texts.
        seed: Other seeds give other texts.
        words: How many words a text has at most.
    """
    made = random.Random(seed)
    known, syllables = _WORDS.split(), _SYLLABLES.split()

    def word() -> str:
        if made.random() < 0.7:
            return made.choice(known)
        return "".join(made.choices(syllables, k=made.randint(2, 4)))

    def text() -> str:
        return "".join(word() + made.choice(_GAPS) for _ in range(made.randint(0, words)))

    # Before a newline a carriage return would belong to it.
    return [text().rstrip("\r") for _ in range(count)]


def write(path: Path, texts: Sequence[str]) -> Path:
    """Write documents in the format and compression of the file's name: one of FORMATS, or a text a
    line.

    Args:
        path: The file to be; its folder is made. `.gz`, `.zst`, `.bz2`, `.xz`, or plain; `.gz` and
            `.zst` with `members` in the name have one of a few records each, cut anywhere.
        texts: One document each.

    Returns:
        The path.
    """
    packed = path.suffix in PACKERS
    kind = (path.with_suffix("") if packed else path).suffix
    data = FORMATS.get(kind, _lines)(texts)
    if packed:
        size = MEMBER_BYTES if "members" in path.name else max(1, len(data))
        pieces = [data[at : at + size] for at in range(0, len(data), size)] or [data]
        data = b"".join(map(PACKERS[path.suffix], pieces))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


MEMBER_BYTES = 1000


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": _gzip,
    ".zst": zstandard.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def _lines(texts: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in texts).encode()


def _jsonl(texts: Sequence[str]) -> bytes:
    rows = ({"id": f"{i}", "text": text} for i, text in enumerate(texts))
    return _lines([json.dumps(row, ensure_ascii=False) for row in rows])


def _table(texts: Sequence[str]) -> pa.Table:
    return pa.table(
        {"id": [f"{i}" for i in range(len(texts))], "text": pa.array(texts, pa.string())}
    )


def _parquet(texts: Sequence[str]) -> bytes:
    out = io.BytesIO()
    pq.write_table(_table(texts), out, row_group_size=40)
    return out.getvalue()


def _arrow(texts: Sequence[str]) -> bytes:
    out = io.BytesIO()
    table = _table(texts)
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=30)
    return out.getvalue()


def _arrow_stream(texts: Sequence[str]) -> bytes:
    out = io.BytesIO()
    table = _table(texts)
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=30)
    return out.getvalue()


def _delimited(delimiter: str) -> Callable[[Sequence[str]], bytes]:
    def write_rows(texts: Sequence[str]) -> bytes:
        out = io.StringIO(newline="")
        rows = csv.writer(out, delimiter=delimiter)
        rows.writerow(["id", "text"])
        rows.writerows((i, text) for i, text in enumerate(texts))
        return out.getvalue().encode()

    return write_rows


def _wet(texts: Sequence[str]) -> bytes:
    return b"".join(
        b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:%d>\r\n"
        b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n" % (i, len(text), text)
        for i, text in enumerate(text.encode() for text in texts)
    )


def _tar(texts: Sequence[str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for i, text in enumerate(texts):
            info = tarfile.TarInfo(f"{i}.txt")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


FORMATS: dict[str, Callable[[Sequence[str]], bytes]] = {
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".arrows": _arrow_stream,
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".wet": _wet,
    ".tar": _tar,
}
