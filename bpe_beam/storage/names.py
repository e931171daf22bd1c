"""Names of files: local paths, and URLs by protocol."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from bpe_beam.errors import UsageError, require

PathName: TypeAlias = "str | os.PathLike[str]"
"""A path as str or Path; or a URL as str, since a Path would join its slashes."""

WEB = ("http", "https")
AZURE = ("az", "abfs", "abfss")
OBJECT_STORES = ("s3", "gs", *AZURE, "hf", *WEB)
"""Stores whose folders are only prefixes of names, and whose uploads appear when they are complete.

A folder at the top is a bucket, which this package neither makes nor removes."""
NAMED_BY_KEYS = ("s3", "gs", *AZURE)
"""Stores whose files are objects with keys: slashes in a row, or at the end, are part of a name."""

SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)://")
# Two spellings of one protocol, where the rest of the URL means the same.
_SPELLINGS = {"s3a": "s3", "gcs": "gs"}

_ATTEMPT = re.compile(r"(.+)\.attempt-[0-9a-f]{12}", re.DOTALL)


def attempt_name(name: str) -> str:
    """Return a new name, `NAME.attempt-<12 hex digits>`, for a file until it is complete."""
    return f"{name}.attempt-{os.urandom(6).hex()}"


def attempted_name(name: str) -> str | None:
    """Return the final name of the file whose attempt has this name; None if it is no attempt."""
    match = _ATTEMPT.fullmatch(name)
    return match and match[1]


def path_name(path: PathName, parameter: str = "path") -> str:
    """Return a path or URL that a caller gave, as str."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    require(isinstance(name, str), f"must be a path or a URL, got {path!r}", parameter)
    return name


def protocol_of(url: str) -> str:
    """Return the protocol of a URL, in one spelling; `file` for a path."""
    scheme = SCHEME.match(url)
    return _SPELLINGS.get(scheme[1], scheme[1]) if scheme else "file"


def redact(url: str) -> str:
    """Return the URL without user, password and query, which may be secret."""
    scheme = SCHEME.match(url)
    if scheme is None:
        return url
    head, rest = url[: scheme.end()], url[scheme.end() :]
    host, slash, path = rest.partition("/")
    if scheme[1] in WEB:
        path = path.partition("?")[0]
    user, at, address = host.rpartition("@")
    # abfss://container@account is an address; a password has a colon before it
    secret = at and (":" in user or scheme[1] in WEB)
    return head + (address if secret else host) + slash + path


def one_spelling(url: str) -> str:
    """Return a URL with its protocol in one spelling; a path as it is."""
    scheme = SCHEME.match(url)
    return f"{protocol_of(url)}://{url[scheme.end() :]}" if scheme else url


def store_path(url: str) -> str:
    """Return BUCKET/KEY for the URL of an object, with the key as it is; see `NAMED_BY_KEYS`.

    On Azure the host is the container, CONTAINER@ACCOUNT.dfs.core.windows.net, or the account
    alone, with the container after it.
    """
    host, slash, key = url.partition("://")[2].partition("/")
    if protocol_of(url) in AZURE:
        container, at, _ = host.rpartition("@")
        if not at and host.endswith(".dfs.core.windows.net"):
            return key
        host = container if at else host
    return host + slash + key


def bucket_url(url: str) -> str | None:
    """Return the URL of the bucket or container of an object; None where files have no keys."""
    if protocol_of(url) not in NAMED_BY_KEYS:
        return None
    bucket, key = split_key(store_path(url))
    whole = one_spelling(url)
    return whole.removesuffix(key).rstrip("/") if bucket else None


def split_key(path: str) -> tuple[str, str]:
    """Return the bucket and the key of BUCKET/KEY."""
    bucket, _, key = path.partition("/")
    return bucket, key


def is_local(url: str) -> bool:
    """Return whether a URL is a path, or has the protocol `file`."""
    return protocol_of(url) == "file"


def local_path(url: str) -> Path:
    """Return the absolute path of a local file, without dots and doubled slashes.

    So each file has one name. Links are kept: a corpus may be laid out by the names of links. `~`
    and `~user` at the start are home folders.
    """
    name = _without_tilde(url.removeprefix("file://"))
    path = Path("/" + name.lstrip("/")) if name.startswith("/") else Path(name).absolute()
    if ".." not in path.parts:
        return path
    # the name before ".." may be a link
    below = len(path.parts) - path.parts[::-1].index("..")
    return Path(os.path.realpath(Path(*path.parts[:below]))).joinpath(*path.parts[below:])


def real_path(url: str) -> Path:
    """Return the path of a local file without links, as far as they lead somewhere."""
    # `Path.resolve` raises RuntimeError for a link to itself, in Python before 3.13.
    return Path(os.path.realpath(local_path(url)))


def _without_tilde(name: str) -> str:
    """Return a path with the home folder in place of `~` or `~user`.

    A shell expands only a `~` at the start of a word without quotes, not the one of `--output=~/x`.
    """
    if not name.startswith("~"):
        return name
    try:
        return str(Path(name).expanduser())
    except RuntimeError:
        if name.split("/")[0] != "~":
            return name  # no user has this name
        raise UsageError(
            f"{name}: the home folder is unknown; set HOME, or write ./~ for a file of this name"
        ) from None


def absolute_glob(pattern: str) -> str:
    """Return a pattern with an absolute path; a URL as it is.

    Glob characters in the name of the working directory match themselves.
    """
    if not is_local(pattern):
        return pattern
    below = pattern.removeprefix("file://")
    tilde, slash, rest = below.partition("/")
    if tilde.startswith("~"):
        below = escape_glob(_without_tilde(tilde)) + slash + rest
    return str(local_path(str(Path(escape_glob(str(Path.cwd())), below))))


def is_glob(pattern: str) -> bool:
    """Return whether a name is a glob; the web uses characters of globs for other things."""
    return escape_glob(pattern) != pattern and protocol_of(pattern) not in WEB


def escape_glob(url: str) -> str:
    """Return the pattern that only this path or URL matches, with `*`, `?` and `[` escaped."""
    scheme = SCHEME.match(url)
    start = scheme.end() if scheme else 0
    return url[:start] + re.sub(r"[*?[]", r"[\g<0>]", url[start:])


def escape_existing(pattern: str, exists: Callable[[str], bool]) -> str:
    """Return a glob whose first parts match only themselves, as far as they exist."""
    parts = pattern.split("/")
    for number, part in enumerate(parts):
        if re.search(r"[*?[]", part):
            if part == "**" or not exists("/".join(parts[: number + 1])):
                break
            parts[number] = escape_glob(part)
    return "/".join(parts)


def absolute(url: str) -> str:
    """Return the absolute path of a local file, for workers in other folders; a URL as it is."""
    return str(local_path(url)) if is_local(url) else url


def parent(url: str) -> str:
    """Return the folder of a path or URL. A web query stays after the path."""
    if is_local(url):
        return str(local_path(url).parent)
    path, mark, query = url.partition("?") if protocol_of(url) in WEB else (url, "", "")
    return path.rpartition("/")[0] + mark + query


def join(folder: str, *names: str) -> str:
    """Return the path or URL of a name below a folder. A web query stays after the path."""
    query = ""
    if protocol_of(folder) in WEB:
        folder, mark, rest = folder.partition("?")
        query = mark + rest
    for name in names:
        folder = name if not folder else folder + ("" if folder.endswith("/") else "/") + name
    return folder + query
