"""Which files the inputs name: globs and lists expanded, what is excluded left out, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bpe_beam.corpus.file_types import HEAD_BYTES, compression_of, format_of
from bpe_beam.corpus.plan import MAX_FILE_BYTES, MAX_FILES, InputFile
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.names import absolute, escape_glob

_LISTING_THREADS = 32

_PASSED_OVER = (".", "_")
"""In a folder given as an input, names that begin so are no corpus: hidden files, and what other
programs keep beside their data, such as `_SUCCESS` and `_temporary/`."""

_MAX_NAME = 8192
"""Of a path or URL, in characters: twice what Linux takes."""


@dataclass(frozen=True)
class Listing:
    """The files of a corpus.

    Attributes:
        root: The folder (path or URL) that their names start at.
        files: The files, sorted by name.
        duplicates: Names of files that the inputs named more than once, sorted.
        excluded: How many files were left out by `exclude`.
    """

    root: str
    files: tuple[InputFile, ...]
    duplicates: tuple[str, ...]
    excluded: int


def list_files(
    storage: Storage, inputs: Sequence[str], exclude: Sequence[str], input_format: str
) -> Listing:
    """Finds the files that the inputs name and nothing excludes.

    Args:
        storage: The storage client.
        inputs: Paths, URLs, globs, folders, or `@file` lists.
        exclude: The same, of files to leave out; what matches nothing excludes nothing.
        input_format: One of INPUT_FORMAT_CHOICES.

    Raises:
        UsageError: An input matches nothing, no file is left or too many, or one
            has a format that cannot be read.
        DataError: Storage fails.
    """
    found: dict[str, StoredFile] = {}
    repeated: set[str] = set()
    for pattern in _patterns(storage, inputs):
        for file in _expand(storage, pattern):
            if file.url in found:
                repeated.add(file.url)
            found[file.url] = file
    left_out = {
        file.url
        for pattern in _patterns(storage, exclude)
        for file in storage.expand(pattern) or _all_below(storage, pattern)
    }
    sizes = {url: file for url, file in found.items() if url not in left_out}
    excluded = len(found) - len(sizes)
    if not sizes:
        raise UsageError(
            f"there are no input files: all {excluded} are excluded"
            if excluded
            else "there are no input files: the inputs are empty"
        )
    if len(sizes) > MAX_FILES:
        raise UsageError(f"{len(sizes)} input files; at most {MAX_FILES} can be read in one job")
    for url, file in sizes.items():
        if file.size > MAX_FILE_BYTES:
            raise UsageError(
                f"{redact(url)} has {file.size} bytes; a file has at most {MAX_FILE_BYTES}"
            )
    root, names = _name(list(sizes))
    urls = sorted(sizes, key=names.__getitem__)
    files = described(storage, [(names[url], sizes[url]) for url in urls], input_format)
    duplicates = tuple(sorted(names[url] for url in repeated if url in sizes))
    return Listing(root, files, duplicates, excluded)


def described(
    storage: Storage, named: Sequence[tuple[str, StoredFile]], input_format: str
) -> tuple[InputFile, ...]:
    """Files as a plan has them, each with its name there; looks at their first bytes.

    Raises:
        UsageError: One has a format that cannot be read.
        DataError: Storage fails.
    """
    types = _types(storage, [(file.url, name, file.size) for name, file in named], input_format)
    return tuple(
        InputFile(name, file.size, *kind, file.tag)
        for (name, file), kind in zip(named, types, strict=True)
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
        for number, line in enumerate(text.split("\n"), start=1):
            entry = line.removesuffix("\r")
            if len(entry) > _MAX_NAME:
                raise UsageError(
                    f"{given}: line {number:,} begins with {entry[:40]!r} and is no name of a "
                    "file: a list has one path, URL or glob on each line"
                )
            if entry.strip() and not entry.startswith("#"):
                yield entry


def _expand(storage: Storage, pattern: str) -> list[StoredFile]:
    found = storage.expand(pattern)
    if found:
        return found
    shown = redact(pattern)
    if storage.is_folder(pattern):
        return _files_below(storage, pattern)
    if storage.exists(pattern):
        raise UsageError(f"input {shown!r} is not a regular file")
    raise UsageError(f"input {shown!r}: no file matches; check the path (a glob wants quotes)")


def _all_below(storage: Storage, folder: str) -> list[StoredFile]:
    return storage.expand(storage.join(escape_glob(absolute(folder)), "**", "*"))


def visible_below(storage: Storage, folder: str) -> list[StoredFile]:
    """List the files of a folder and of the folders below it, except hidden and auxiliary ones.

    Args:
        storage: The storage client.
        folder: The folder; if there is none, there are no files.
    """
    below = len(absolute(folder).rstrip("/")) + 1
    return [
        file
        for file in _all_below(storage, folder)
        if not any(name.startswith(_PASSED_OVER) for name in file.url[below:].split("/"))
    ]


def _files_below(storage: Storage, folder: str) -> list[StoredFile]:
    files = visible_below(storage, folder)
    if not files:
        raise UsageError(
            f"input {redact(folder)!r} is a folder without files to read; files and folders whose "
            f"names begin with {' or '.join(_PASSED_OVER)} are left out"
        )
    return files


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


def _types(
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
