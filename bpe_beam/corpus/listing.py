"""The files that the inputs name, each once: globs and lists expanded, without excluded files."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bpe_beam.corpus.auxiliary_files import ABOUT_DATA, HIDDEN, is_auxiliary
from bpe_beam.corpus.file_types import first_bytes, format_of
from bpe_beam.corpus.plan import MAX_FILE_BYTES, MAX_FILES, InputFile, Plan
from bpe_beam.corpus.streams.stored import ignore
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.messages import list_few
from bpe_beam.storage import Storage, StoredFile, redact
from bpe_beam.storage.names import (
    absolute,
    absolute_glob,
    bucket_url,
    escape_glob,
    is_glob,
    is_local,
    join,
    local_path,
    one_spelling,
)
from bpe_beam.storage.retry import REQUESTS_AT_ONCE
from bpe_beam.storage.stored_file import LinkReport

_FEW_FILES = 8
_MAX_TASK_FILES = 256

_MAX_NAME = 8192  # characters: twice the limit of Linux


def list_files(
    storage: Storage,
    inputs: Sequence[str],
    exclude: Sequence[str],
    input_format: str,
    outputs: Sequence[str] = (),
) -> Plan:
    """Return the files that the inputs name, without the excluded ones, as a plan without splits.

    A file and links to it are one input.
    """
    files: dict[str, StoredFile] = {}
    repeated: set[str] = set()
    links: dict[str, str] = {}
    passed_over: set[str] = set()
    for pattern in _patterns(storage, inputs):
        for file in _expand(storage, pattern, links, passed_over):
            if file.url in files:
                repeated.add(file.url)
            files[file.url] = file
    listed = set(files)
    real = RealNames()
    left_out = real.excluded(storage, _patterns(storage, exclude))
    files = {url: file for url, file in files.items() if left_out.isdisjoint(real.names(url))}
    excluded = len(listed) - len(files)

    def is_output(url: str) -> bool:
        return any(real.is_below(url, output) for output in outputs)

    written = [url for url in files if is_output(url)]
    for url in written:
        del files[url]
    if not files:
        shown = ", ".join(map(redact, inputs))
        why = f"all {excluded} are excluded" if excluded else f"nothing is listed in {shown}"
        if written:
            count = f"{len(written):,}"
            why = f"{count} are in {redact(outputs[0])}, the output; give an output elsewhere"
        raise UsageError(f"there are no input files: {why}")
    linked = real.without_links(files)
    _require_few_and_small(files)
    root, names = root_and_names(list(files))
    named = sorted((names[url], file) for url, file in files.items())
    duplicates = [names[url] for url in repeated if url in files]
    duplicates += [f"{url} (a link to {names[target]})" for url, target in linked.items()]
    not_read = [redact(url) for url in passed_over - listed if not is_output(url)]
    return Plan(
        root,
        described(storage, named, input_format),
        (),
        tuple(sorted(duplicates)),
        excluded,
        links=tuple(f"{path} ({reason})" for path, reason in sorted(links.items())),
        passed_over=tuple(sorted(not_read)),
    )


def _require_few_and_small(files: Mapping[str, StoredFile]) -> None:
    if len(files) > MAX_FILES:
        raise UsageError(f"{len(files)} input files; at most {MAX_FILES} can be read in one job")
    for url, file in files.items():
        if file.size > MAX_FILE_BYTES:
            limit = f"a file has at most {MAX_FILE_BYTES}"
            raise UsageError(f"{redact(url)} has {file.size} bytes; {limit}")


class RealNames:
    """The names of local files without links; URLs of stores have one name.

    An entry is the name of a file in a folder without links; the file may be a link itself.
    """

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._names: dict[str, tuple[str, str]] = {}

    def entry(self, url: str) -> str:
        """Return the name of the entry; a URL as it is."""
        if not is_local(url):
            return url
        folder, _, name = url.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or "/").rstrip("/")
        return f"{self._folders[folder]}/{name}"

    def excluded(self, storage: Storage, patterns: Iterable[str]) -> set[str]:
        """Return the entries of the files to leave out: see `_expand_excluded`."""
        files = (file for pattern in patterns for file in _expand_excluded(storage, pattern))
        return {self.entry(file.url) for file in files}

    def names(self, url: str) -> tuple[str, str]:
        """Return the name of the entry, and the name of the file that it is or leads to."""
        if not is_local(url):
            return url, url
        if url not in self._names:
            entry = self.entry(url)
            linked = os.path.islink(entry)  # noqa: PTH114 (Path takes longer)
            self._names[url] = entry, os.path.realpath(entry) if linked else entry
        return self._names[url]

    def is_below(self, url: str, output: str) -> bool:
        """Return whether a file is an output, or below it."""
        if is_local(url) != is_local(output):
            return False
        if is_local(output):
            if output not in self._folders:
                self._folders[output] = os.path.realpath(local_path(output))
            whole = self._folders[output]
        else:
            whole = one_spelling(output)
        whole = f"{whole.rstrip('/')}/"
        return any(f"{name.rstrip('/')}/".startswith(whole) for name in self.names(url))

    def without_links(self, files: dict[str, StoredFile]) -> dict[str, str]:
        """Remove all but one name of each file; return the removed names with the one that stays.

        The name without links stays, or the first in order.
        """
        chosen: dict[str, str] = {}
        for url in sorted(files, key=lambda url: (url != self.names(url)[1], url)):
            chosen.setdefault(self.names(url)[1], url)
        removed = {url: chosen[self.names(url)[1]] for url in files}
        removed = {url: target for url, target in removed.items() if url != target}
        for url in removed:
            del files[url]
        return removed


def _expand_excluded(storage: Storage, pattern: str) -> list[StoredFile]:
    """Return the files to leave out: those that match, and those below folders that match."""
    if is_glob(pattern) and not storage.exists(pattern):
        files = [] if pattern.endswith("/") else storage.expand(pattern)
        if "**" in pattern and not pattern.endswith("/"):
            return files
        return files + storage.expand(join(absolute_glob(pattern), "**", "*"))
    return storage.expand(pattern) or storage.expand(glob_below(pattern))


def described(
    storage: Storage, named: Sequence[tuple[str, StoredFile]], input_format: str
) -> tuple[InputFile, ...]:
    """Return files as a plan has them, after a look at their first bytes."""

    def describe(named_file: tuple[str, StoredFile]) -> InputFile:
        name, file = named_file
        read_head = partial(storage.read_head, file.url, size=file.size)
        compression, head = first_bytes(read_head, name, file.size)
        try:
            format_ = format_of(name, head, compression, input_format)
        except UsageError as error:
            problem = f"input {redact(file.url)!r} {error.problem}"
            raise UsageError(problem, remedy=error.remedy) from None
        return InputFile(name, file.size, format_, compression, file.tag)

    if len(named) < _FEW_FILES:
        return tuple(map(describe, named))
    # A task of a pool takes 1.5 kB until all are done.
    count = max(1, min(_MAX_TASK_FILES, len(named) // (8 * REQUESTS_AT_ONCE)))
    tasks = [named[start : start + count] for start in range(0, len(named), count)]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:  # stores answer late
        described = pool.map(lambda task: list(map(describe, task)), tasks)
        return tuple(itertools.chain.from_iterable(described))


def _patterns(storage: Storage, inputs: Iterable[str]) -> Iterator[str]:
    for entry in inputs:
        if not entry.startswith("@"):
            yield entry
            continue
        path = entry[1:]
        if storage.is_folder(path) or not storage.exists(path):
            hint = "write ./@name for a file whose name begins with '@'"
            raise UsageError(f"{entry}: there is no list of inputs at {redact(path)!r} ({hint})")
        try:
            text = storage.read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{entry}: the list is not UTF-8 at byte {error.start}") from None
        for number, line in enumerate(text.split("\n"), start=1):
            line = line.removesuffix("\r")
            if len(line) > _MAX_NAME:
                raise UsageError(
                    f"{entry}: line {number:,} begins with {line[:40]!r} and is not a file "
                    "name: a list has one path, URL or glob on each line"
                )
            if line.strip() and not line.startswith("#"):
                yield line


def _expand(
    storage: Storage, pattern: str, links: dict[str, str], passed_over: set[str]
) -> list[StoredFile]:
    """Return the files of an input; add the links not followed, and the files passed over."""
    shown, unfollowed = redact(pattern), dict[str, str]()
    folders = pattern.endswith("/") and is_glob(pattern) and not storage.exists(pattern)
    files = [] if folders else storage.expand(pattern, unfollowed.setdefault)
    folders = folders or (not files and storage.is_folder(pattern))
    if folders:
        files = visible_below(storage, pattern, unfollowed.setdefault, passed_over.add)
    elif files and not storage.exists(pattern):
        files = without_job_folders(files, pattern, passed_over.add)
    links.update(unfollowed)
    if files:
        return files
    if written := [path for path in passed_over if path.endswith("/")]:
        raise UsageError(
            f"input {shown!r}: all files are in folders that jobs wrote: "
            f"{list_few(sorted(map(redact, written)))}",
            remedy="to read such files as text, name them by a glob that begins with the folder",
        )
    if unfollowed:
        named = list_few([f"{path} ({reason})" for path, reason in unfollowed.items()])
        raise UsageError(f"input {shown!r}: only links that are not followed: {named}")
    if folders:
        raise UsageError(
            f"input {shown!r} is a folder without files to read; files and folders whose names "
            f"begin with {' or '.join(HIDDEN)}, and files named {ABOUT_DATA}, are left out (a glob "
            "reads them)"
        )
    if storage.exists(pattern):
        raise UsageError(f"input {shown!r} is not a regular file")
    if (bucket := bucket_url(pattern)) is not None and not storage.exists(bucket):
        raise UsageError(
            f"input {shown!r}: there is no bucket {redact(bucket)}",
            remedy="check its name, and the endpoint or account in {storage_options}",
        )
    advice = "quote a glob, and end a glob of folders with a slash"
    raise UsageError(f"input {shown!r}: no file matches; check the path ({advice})")


def glob_below(folder: str) -> str:
    """Return the glob of all files of a folder and of the folders below it."""
    return join(escape_glob(absolute(folder)), "**", "*")


def visible_below(
    storage: Storage,
    folder: str,
    on_link: LinkReport = lambda _path, _reason: None,
    on_passed_over: Callable[[str], None] = ignore,
) -> list[StoredFile]:
    """Return the files of a folder and all folders below it, except hidden and auxiliary ones."""
    pattern = glob_below(folder)
    if is_glob(folder) and not storage.is_folder(folder):
        pattern = join(absolute_glob(folder), "**", "*")
    depth = pattern.split("/").index("**")

    def visible(path: str) -> bool:
        return not is_auxiliary(path.split("/")[depth:])

    def report(path: str, reason: str) -> None:
        if visible(path):
            on_link(path, reason)

    files = []
    for file in without_job_folders(storage.expand(pattern, report), folder, on_passed_over):
        if visible(file.url):
            files.append(file)
        else:
            on_passed_over(file.url)
    return files


def without_job_folders(
    files: Sequence[StoredFile], pattern: str, on_folder: Callable[[str], None] = ignore
) -> list[StoredFile]:
    """Return files without those in folders that jobs of this package wrote.

    On a store, a folder is one of them if its `__job` or `__manifest` is among the files.
    """
    named = absolute(pattern).rstrip("/").split("/")
    marks = (JOB_FILE, MANIFEST_FILE)
    names = (file.url.rpartition("/") for file in files)
    listed = {folder for folder, _, name in names if name in marks}

    @functools.cache
    def is_written(folder: str) -> bool:
        here = is_local(folder) and any(Path(folder, mark).exists() for mark in marks)
        return here or folder in listed

    @functools.cache
    def job_folder(folder: str) -> str | None:
        parts = folder.split("/")
        fixed = len(shared_parts([parts, named]))
        folders = ("/".join(parts[:count]) for count in range(fixed + 1, len(parts) + 1))
        return next(filter(is_written, folders), None)

    others = []
    for file in files:
        if (written := job_folder(file.url.rpartition("/")[0])) is None:
            others.append(file)
        else:
            on_folder(f"{written}/")
    return others


def shared_parts(folders: Iterable[list[str]]) -> list[str]:
    """Return the names that the paths of all folders begin with."""
    folders = list(folders)
    low, high = min(folders), max(folders)  # all folders between them begin with the same names
    pairs = zip(low, high, strict=False)
    return [one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]


def root_parts(folder: list[str]) -> list[str]:
    """Return a folder of a store, or the one above it where keys have slashes in a row.

    So `join` makes the URL of a file of the root and its name, such as `/x` for `in//x`.
    """
    while folder and not folder[-1]:
        folder = folder[:-1]
    return folder


def root_and_names(urls: Sequence[str]) -> tuple[str, dict[str, str]]:
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
            advice = "read them in separate jobs, or copy the files first"
            raise UsageError(f"the input URLs have different queries (after '?'); {advice}")
        query = queries.pop()
        paths = {url: path.partition("?")[0] for url, path in paths.items()}
    # the key of an object may end in a slash
    shared = shared_parts(path.rstrip("/").split("/")[:-1] for path in paths.values())
    shared = shared if not scheme else root_parts(shared)
    if not shared:  # not even the host
        _refuse_secrets(urls)
    root = head + "/".join(shared) or "/"
    length = sum(len(part) + 1 for part in shared)
    return root + (f"?{query}" if query else ""), {u: path[length:] for u, path in paths.items()}


def _refuse_secrets(urls: Iterable[str]) -> None:
    for url in urls:
        if redact(url) != url:
            raise UsageError(
                f"input {redact(url)!r} has a password or a query in its URL, which its name "
                "would show; give a password in the storage options, and read files with "
                "queries in a separate job"
            )
