"""Reading a file in slices, and the documents that are expected of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from bpe_beam.corpus.batches import BATCH_SCHEMA
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.storage import Storage

STORAGE = Storage()
BOM = b"\xef\xbb\xbf"


@dataclass
class Found:
    """The documents and rejects of a reading."""

    documents: list[tuple[int, str]] = field(default_factory=list)  # (position in the file, text)
    ids: list[str | None] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.documents]

    def add(self, rows: pa.RecordBatch) -> None:
        """Check a batch, and add its documents."""
        rows.validate(full=True)
        assert rows.schema == BATCH_SCHEMA
        assert len(rows)
        self.batches.append(rows)
        places = rows.column("place").to_pylist()
        self.documents += zip(places, rows.column("text").to_pylist(), strict=True)
        self.ids += rows.column("id").to_pylist()
        self.sources += rows.column("source").to_pylist()

    @property
    def bad(self) -> list[tuple[int | None, str]]:
        return [(reject.offset, reject.reason) for reject in self.rejects]


def read(plan: Plan, splits: Iterable[Split], read_settings: ReadSettings, batch: int) -> Found:
    found = Found()
    for split in splits:
        for rows in read_split(
            STORAGE, plan, split, read_settings, found.rejects.append, batch_bytes=batch
        ):
            found.add(rows)
    return found


def cut(plan: Plan, cuts: Iterable[int]) -> list[Split]:
    """Return the splits of the plan's one file, sliced at these offsets."""
    edges = [0, *sorted(cuts), plan.size]
    pieces = itertools.pairwise(edges)
    return [Split(i, (Slice(0, *edge),)) for i, edge in enumerate(pieces)]


def read_file(
    path: Path, *, cuts: Iterable[int] = (), batch: int = 1 << 20, **options: Any
) -> Found:
    read_settings = ReadSettings(**options)
    plan = make_plan(
        STORAGE,
        [str(path)],
        input_format=read_settings.input_format,
        document_separator=read_settings.document_separator,
    )
    return read(plan, cut(plan, cuts), read_settings, batch)


def expected_text(data: bytes, separator: bytes) -> tuple[list[tuple[int, str]], list[int]]:
    """Return the expected texts: split from the left, no record after the last separator."""
    at = len(BOM) if data.startswith(BOM) else 0
    records = data[at:].split(separator)
    if not records[-1]:
        records.pop()
    good, bad = [], []
    for record in records:
        text = record
        if separator == b"\n" and at + len(record) < len(data):
            text = record.removesuffix(b"\r")
        try:
            good.append((at, text.decode()))
        except UnicodeDecodeError:
            bad.append(at)
        at += len(record) + len(separator)
    return good, bad


def expected_json(
    line: bytes, text_field: str = "text", id_field: str = "id", source_field: str = ""
) -> Any:
    """By Python's `json`: (id, text), the reason of a reject, or None for a blank line; with a
    source field (id, text, source). Fields are names with dots between them."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def value_of(field: str) -> Any:
        found = value
        for name in field.split("."):
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
        return (found,)

    def name_of(field: str) -> str | None:
        found = value_of(field)
        if found is None:
            return None
        return found[0][0] if isinstance(found[0], tuple) else found[0]  # type: ignore[no-any-return]

    if not line.strip(b" \t\r\n"):
        return None
    try:
        decoded = line.decode()
    except UnicodeDecodeError:
        return "invalid UTF-8"
    try:
        # numbers as they stand, in a type of their own
        value = json.loads(
            decoded, parse_constant=refuse, parse_int=lambda n: (n,), parse_float=lambda n: (n,)
        )
    except ValueError:
        return "broken JSON"
    if not isinstance(value, dict):
        return "not a JSON object"
    text = value_of(text_field)
    if text is None:
        return "field missing"
    if not isinstance(text[0], str):
        return "field not a string"
    names = [name_of(field) for field in (id_field, source_field) if field]
    names = [name if isinstance(name, str) else None for name in names]
    try:
        "".join([text[0], *(name or "" for name in names)]).encode()
    except UnicodeEncodeError:
        return "lone surrogate"
    return (names[0], text[0], names[1] or "other") if source_field else (names[0], text[0])


def check_json(path: Path, lines: list[bytes], batch: int = 1 << 20, **fields: Any) -> None:
    """Check that these lines are read as expected."""
    path.write_bytes(b"\n".join(lines))
    found = read_file(path, batch=batch, input_format="jsonl", **fields)
    good, ids, sources, bad, offset = [], [], [], [], 0
    for line in lines:
        expected = expected_json(line, **fields)
        if isinstance(expected, tuple):
            ids.append(expected[0])
            good.append((offset, expected[1]))
            sources.append(expected[2] if "source_field" in fields else path.name)
        elif expected is not None:
            bad.append((offset, expected, line))
        offset += len(line) + 1
    assert found.documents == good
    assert found.ids == ids
    assert found.sources == sources
    assert [(r.offset, r.reason, r.data) for r in found.rejects] == bad
