"""The files that the inputs name: globs and lists expanded, exclusions left out, each file once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from bpe_beam.corpus.file_types import HEAD_BYTES, compression_of, format_of
from bpe_beam.corpus.plan import MAX_FILE_BYTES, MAX_FILES, InputFile, Plan
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.names import absolute, escape_glob, join

_LISTING_THREADS = 32
_FEW_FILES = 8

_PASSED_OVER = (".", "_")
"""The first characters of names that are passed over in a folder: hidden files, and files that
other programs keep beside their data, such as `_SUCCESS` and `_temporary/`."""

_MAX_NAME = 8192
"""The length of a path or URL, in characters: twice the limit of Linux."""


def list_files(
    storage: Storage, inputs: Sequence[str], exclude: Sequence[str], input_format: str
) -> Plan:
    """Return the files that the inputs name, without the excluded ones, as a plan without splits.

    Args:
        storage: The storage client.
        inputs: Paths, URLs, globs, folders, or `@file` lists.
        exclude: The same for the files to leave out; a pattern that matches nothing is allowed.
        input_format: One of INPUT_FORMAT_CHOICES.

    Raises:
        UsageError: An input matches nothing, no file is left or too many, or one has a format that
            cannot be read.
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
        for file in storage.expand(pattern) or storage.expand(glob_below(pattern))
    }
    files = {url: file for url, file in found.items() if url not in left_out}
    excluded = len(found) - len(files)
    if not files:
        why = f"all {excluded} are excluded" if excluded else "the inputs are empty"
        raise UsageError(f"there are no input files: {why}")
    if len(files) > MAX_FILES:
        raise UsageError(f"{len(files)} input files; at most {MAX_FILES} can be read in one job")
    for url, file in files.items():
        if file.size > MAX_FILE_BYTES:
            raise UsageError(
                f"{redact(url)} has {file.size} bytes; a file has at most {MAX_FILE_BYTES}"
            )
    root, names = _name(list(files))
    named = sorted((names[url], file) for url, file in files.items())
    duplicates = tuple(sorted(names[url] for url in repeated if url in files))
    return Plan(root, described(storage, named, input_format), (), duplicates, excluded)


def described(
    storage: Storage, named: Sequence[tuple[str, StoredFile]], input_format: str
) -> tuple[InputFile, ...]:
    """Return files as a plan has them, after a look at their first bytes.

    Args:
        storage: The storage client.
        named: The files, each with its name in the plan.
        input_format: See `list_files`.

    Raises:
        UsageError: A file has a format that cannot be read.
    """

    def describe(named_file: tuple[str, StoredFile]) -> InputFile:
        name, file = named_file
        head = storage.read_head(file.url, HEAD_BYTES) if file.size else b""
        compression = compression_of(head)
        try:
            format_ = format_of(name, head, compression, input_format)
        except UsageError as error:
            problem = f"input {redact(file.url)!r} {error.problem}"
            raise UsageError(problem, remedy=error.remedy) from None
        return InputFile(name, file.size, format_, compression, file.tag)

    if len(named) < _FEW_FILES:
        return tuple(map(describe, named))
    with ThreadPoolExecutor(_LISTING_THREADS) as pool:  # stores answer late
        return tuple(pool.map(describe, named))


def _patterns(storage: Storage, inputs: Iterable[str]) -> Iterator[str]:
    for entry in inputs:
        if not entry.startswith("@"):
            yield entry
            continue
        path = entry[1:]
        if storage.is_folder(path) or not storage.exists(path):
            raise UsageError(
                f"{entry}: there is no list of inputs at {redact(path)!r} "
                "(write ./@name for a file whose own name begins with '@')"
            )
        try:
            text = storage.read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{entry}: the list is not UTF-8 at byte {error.start}") from None
        for number, line in enumerate(text.split("\n"), start=1):
            line = line.removesuffix("\r")
            if len(line) > _MAX_NAME:
                raise UsageError(
                    f"{entry}: line {number:,} begins with {line[:40]!r} and is no name of a "
                    "file: a list has one path, URL or glob on each line"
                )
            if line.strip() and not line.startswith("#"):
                yield line


def _expand(storage: Storage, pattern: str) -> list[StoredFile]:
    found = storage.expand(pattern)
    if found:
        return found
    shown = redact(pattern)
    if not storage.is_folder(pattern):
        if storage.exists(pattern):
            raise UsageError(f"input {shown!r} is not a regular file")
        raise UsageError(f"input {shown!r}: no file matches; check the path (quote a glob)")
    found = visible_below(storage, pattern)
    if not found:
        raise UsageError(
            f"input {shown!r} is a folder without files to read; files and folders whose names "
            f"begin with {' or '.join(_PASSED_OVER)} are left out"
        )
    return found


def glob_below(folder: str) -> str:
    """Return the glob of all files of a folder and of the folders below it."""
    return join(escape_glob(absolute(folder)), "**", "*")


def visible_below(storage: Storage, folder: str) -> list[StoredFile]:
    """Return the files of a folder and of the folders below it, except hidden and auxiliary ones.

    Args:
        storage: The storage client.
        folder: The folder; if it does not exist, there are no files.
    """
    below = len(absolute(folder).rstrip("/")) + 1
    return [
        file
        for file in storage.expand(glob_below(folder))
        if not any(name.startswith(_PASSED_OVER) for name in file.url[below:].split("/"))
    ]


def shared_parts(folders: Iterable[list[str]]) -> list[str]:
    """Return the names that the paths of all folders begin with."""
    folders = list(folders)
    low, high = min(folders), max(folders)  # all folders between them begin with the same names
    pairs = zip(low, high, strict=False)
    return [one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]


def _name(urls: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the common folder of all files, and each file's name below it.

    Files of several protocols have no such folder: their names are the URLs.
    """
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
                "the input URLs have different queries (the parts after '?'); read them in jobs "
                "of their own, or copy the files first"
            )
        query = queries.pop()
        paths = {url: path.partition("?")[0] for url, path in paths.items()}
    shared = shared_parts(path.split("/")[:-1] for path in paths.values())
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
