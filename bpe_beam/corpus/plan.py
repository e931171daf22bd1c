"""Which files a corpus has, and how they are cut into splits: the units of a job's work.

A plan is plain data. It is a function of the files' names (relative to their common folder),
sizes, formats and compressions, and of `range_bytes` alone: not of where the corpus lies, how it
was listed, or who works on it. Equal plans give equal shards, so a plan can be made again rather
than kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bpe_beam.corpus.kinds import HEAD_BYTES, compression_of, format_of
from bpe_beam.corpus.read_settings import (
    WHOLE_FILE,
    check_document_separator,
    check_input_format,
)
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage, redact

MAX_FILES = 1 << 20
MAX_FILE_BYTES = 1 << 44
"""With MAX_FILES: a file's index and an offset in it fit one 64-bit place."""

MIN_RANGE_BYTES = 16 << 20
MAX_RANGE_BYTES = 1 << 30
"""Bounds of the default `range_bytes` (16 MiB and 1 GiB)."""

MAX_SLICES_OF_SPLIT = 10_000
MAX_SLICES_OF_FILE = 1_000_000

_VERSION = 1
_LISTING_THREADS = 32


@dataclass(frozen=True)
class InputFile:
    """A file of the corpus.

    Attributes:
        name: Its path below the plan's root, with `/`.
        size: Its size as stored, in bytes.
        format: One of INPUT_FORMATS, but not "auto".
        compression: One of COMPRESSIONS, by its first bytes.
        tag: What the store tells of its content, so that a change is noticed; "" if nothing. No
            part of what is compared, written or hashed.
    """

    name: str
    size: int
    format: str
    compression: str
    tag: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Slice:
    """Bytes [start, end) of file number `file` of the plan; all of it if it is compressed. The
    records that begin in there belong to the slice."""

    file: int
    start: int
    end: int


@dataclass(frozen=True)
class Split:
    """A unit of work: slices in corpus order. `index` is its place in the plan."""

    index: int
    slices: tuple[Slice, ...]

    @property
    def size(self) -> int:
        """Stored bytes of all slices."""
        return sum(piece.end - piece.start for piece in self.slices)


@dataclass(frozen=True)
class Plan:
    """The files of a corpus in order, and the splits that cover them in the same order.

    Attributes:
        root: The folder (path or URL) that the names start at. No part of what is compared,
            written or hashed.
        files: The files, sorted by name.
        splits: The units of work.
        duplicates: Names of files that the inputs named more than once, sorted; no part of the
            plan's identity.
    """

    root: str = field(repr=False, compare=False)
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]
    duplicates: tuple[str, ...] = field(default=(), compare=False)

    @property
    def size(self) -> int:
        """Stored bytes of all files."""
        return sum(file.size for file in self.files)

    def url(self, file: int) -> str:
        """Where file number `file` is."""
        return Storage().join(self.root, self.files[file].name)

    def to_json(self) -> dict[str, Any]:
        """Plain data: the files, and the splits as lists of [file, start, end]."""
        return {
            "version": _VERSION,
            "files": [
                {
                    "name": file.name,
                    "size": file.size,
                    "format": file.format,
                    "compression": file.compression,
                }
                for file in self.files
            ],
            "splits": [
                [[piece.file, piece.start, piece.end] for piece in split.slices]
                for split in self.splits
            ],
        }

    def fingerprint(self) -> str:
        """SHA-256 of the plan, in hex: equal for equal plans wherever the corpus lies."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def from_json(data: Mapping[str, Any], root: str) -> Plan:
        """Reads what `to_json` made.

        Raises:
            DataError: It is not a plan of this version, or its splits do not lie in its files.
        """
        try:
            if data["version"] != _VERSION:
                raise DataError(f"plan: version {data['version']!r} is not {_VERSION}")
            files = tuple(InputFile(**file) for file in data["files"])
            splits = tuple(
                Split(index, tuple(Slice(*piece) for piece in pieces))
                for index, pieces in enumerate(data["splits"])
            )
            sound = all(
                0 <= piece.start <= piece.end <= files[piece.file].size and piece.file >= 0
                for split in splits
                for piece in split.slices
            ) and all(isinstance(file.name, str) for file in files)
        except (KeyError, TypeError, IndexError) as error:
            raise DataError(f"not a plan: {type(error).__name__}: {error}") from error
        if not sound:
            raise DataError("not a plan: a slice does not lie within its file")
        return Plan(root, files, splits)


def make_plan(
    storage: Storage,
    inputs: Sequence[str],
    *,
    input_format: str = "auto",
    document_separator: str = "\n",
    range_bytes: int | None = None,
) -> Plan:
    """Finds the files and cuts them into splits.

    Files longer than `range_bytes` are cut into equal slices, except compressed ones, and text
    files where each is a document. Neighbours are bundled as long as a split stays within
    `range_bytes` (and 10,000 slices).

    Args:
        storage: The door to storage.
        inputs: Paths, URLs, globs, or `@file`: a list with one of these a line, where blank lines
            and those that begin with `#` are skipped, and relative paths start at the working
            directory.
        input_format: One of INPUT_FORMATS; see `format_of` for "auto".
        document_separator: What stands between the documents of a text file; only "file" matters
            to the plan.
        range_bytes: How many stored bytes a split has at most, if its files can be cut. By
            default a thousandth of the corpus, within 16 MiB and 1 GiB.

    Returns:
        The plan. Files met twice are in it once, and named in `duplicates`.

    Raises:
        UsageError: A setting is wrong, an input matches nothing or is a folder, there are no files
            or too many, or one has a format that cannot be read.
        DataError: Storage fails.
    """
    check_input_format(input_format)
    check_document_separator(document_separator)
    if range_bytes is not None and (isinstance(range_bytes, bool) or range_bytes < 1):
        raise UsageError(f"range-bytes is {range_bytes}; it must be at least 1")
    sizes: dict[str, int] = {}
    repeated: set[str] = set()
    for pattern in _patterns(storage, [inputs] if isinstance(inputs, str) else inputs):
        for url, size in _expand(storage, pattern):
            if url in sizes:
                repeated.add(url)
            sizes[url] = size
    if not sizes:
        raise UsageError("there are no input files: the inputs are empty")
    if len(sizes) > MAX_FILES:
        raise UsageError(f"{len(sizes)} input files; at most {MAX_FILES} can be read in one job")
    for url, size in sizes.items():
        if size > MAX_FILE_BYTES:
            raise UsageError(f"{redact(url)} has {size} bytes; a file has at most {MAX_FILE_BYTES}")
    root, names = _name(list(sizes))
    urls = sorted(sizes, key=names.__getitem__)
    kinds = _kinds(storage, [(url, names[url], sizes[url]) for url in urls], input_format)
    files = tuple(
        InputFile(names[url], sizes[url], *kind) for url, kind in zip(urls, kinds, strict=True)
    )
    if range_bytes is None:
        total = sum(file.size for file in files)
        range_bytes = min(max(total // 1000, MIN_RANGE_BYTES), MAX_RANGE_BYTES)
    pieces = _slices(files, range_bytes, document_separator)
    return Plan(
        root,
        files,
        tuple(_splits(pieces, range_bytes)),
        tuple(sorted(names[url] for url in repeated)),
    )


def _patterns(storage: Storage, inputs: Iterable[str]) -> Iterator[str]:
    for given in inputs:
        if not given.startswith("@"):
            yield given
            continue
        path = given[1:]
        if storage.is_folder(path) or not storage.exists(path):
            raise UsageError(
                f"{given}: there is no list of inputs at {redact(path)!r} "
                "(a file whose own name begins with '@' is given as ./@name)"
            )
        try:
            text = storage.read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{given}: the list is not UTF-8 at byte {error.start}") from None
        for line in text.split("\n"):
            entry = line.removesuffix("\r")
            if entry.strip() and not entry.startswith("#"):
                yield entry


def _expand(storage: Storage, pattern: str) -> list[tuple[str, int]]:
    found = storage.expand(pattern)
    if found:
        return found
    shown = redact(pattern)
    if storage.is_folder(pattern):
        raise UsageError(
            f"input {shown!r} is a folder; name its files with a glob, such as "
            f"{storage.join(shown, '**', '*.jsonl')!r}"
        )
    if storage.exists(pattern):
        raise UsageError(f"input {shown!r} is not a regular file")
    raise UsageError(f"input {shown!r}: no file matches; check the path (a glob wants quotes)")


def _name(urls: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The common folder of all files, and each file's name in it: over several protocols there is
    no such folder, and the URLs are the names."""
    schemes = {url.partition("://")[0] if "://" in url else "" for url in urls}
    if len(schemes) > 1:
        _refuse_secrets(urls)
        return "", {url: url for url in urls}
    scheme = schemes.pop()
    head = f"{scheme}://" if scheme else ""
    paths = {url: url[len(head) :] for url in urls}
    query = ""
    if scheme in ("http", "https"):
        queries = {path.partition("?")[2] for path in paths.values()}
        if len(queries) > 1:
            raise UsageError(
                "the input URLs have different queries (the parts behind '?'); read them in jobs "
                "of their own, or copy the files first"
            )
        query = queries.pop()
        paths = {url: path.partition("?")[0] for url, path in paths.items()}
    shared = _shared_parts([path.split("/")[:-1] for path in paths.values()])
    if not shared:  # not even the host
        _refuse_secrets(urls)
    root = head + "/".join(shared) or "/"
    length = sum(len(part) + 1 for part in shared)
    return root + (f"?{query}" if query else ""), {u: path[length:] for u, path in paths.items()}


def _refuse_secrets(urls: Iterable[str]) -> None:
    for url in urls:
        if redact(url) != url:
            raise UsageError(
                f"input {redact(url)!r} has a password or a query in its URL, which would become "
                "a part of its name; give a password in the storage options, and read files with "
                "queries in a job of their own"
            )


def _shared_parts(folders: Sequence[list[str]]) -> list[str]:
    low, high = min(folders), max(folders)  # what the extremes share, all between them share
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    return low[:shared]


def _kinds(
    storage: Storage, files: Sequence[tuple[str, str, int]], input_format: str
) -> list[tuple[str, str]]:
    """Format and compression of each file; many at a time, as stores answer late."""

    def look(file: tuple[str, str, int]) -> tuple[str, str]:
        url, name, size = file
        head = storage.read_head(url, HEAD_BYTES) if size else b""
        compression = compression_of(head)
        try:
            return format_of(name, head, compression, input_format), compression
        except UsageError as error:
            raise UsageError(f"input {redact(url)!r} {error}") from None

    if len(files) < 8:
        return [look(file) for file in files]
    with ThreadPoolExecutor(_LISTING_THREADS) as pool:
        return list(pool.map(look, files))


def _slices(
    files: Sequence[InputFile], range_bytes: int, document_separator: str
) -> Iterator[Slice]:
    for index, file in enumerate(files):
        whole = file.compression != "none" or (
            file.format == "text" and document_separator == WHOLE_FILE
        )
        count = 1 if whole else max(1, -(-file.size // range_bytes))
        if count > MAX_SLICES_OF_FILE:
            raise UsageError(
                f"range-bytes is {range_bytes}, which cuts {file.name!r} ({file.size} bytes) into "
                f"more than {MAX_SLICES_OF_FILE} slices; give at least "
                f"{-(-file.size // MAX_SLICES_OF_FILE)}"
            )
        for i in range(count):
            yield Slice(index, file.size * i // count, file.size * (i + 1) // count)


def _splits(pieces: Iterable[Slice], range_bytes: int) -> Iterator[Split]:
    index, size = 0, 0
    bundle: list[Slice] = []
    for piece in pieces:
        more = piece.end - piece.start
        if bundle and (size + more > range_bytes or len(bundle) == MAX_SLICES_OF_SPLIT):
            yield Split(index, tuple(bundle))
            index, size, bundle = index + 1, 0, []
        bundle.append(piece)
        size += more
    yield Split(index, tuple(bundle))
