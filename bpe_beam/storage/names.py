"""Names of files: local paths, and URLs by protocol."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

WEB = ("http", "https")
OBJECT_STORES = ("s3", "gs", "az", "abfs", "abfss", "hf", *WEB)
"""Their folders are only names' beginnings, what fsspec calls a folder at the top is a bucket,
which is not ours to make or remove, and an upload appears whole when it is completed."""

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
    return None if match is None else match[1]


def redact(url: str) -> str:
    """The URL without what may be secret: user, password, query. A local path as it is."""
    scheme = SCHEME.match(url)
    if scheme is None:
        return url
    head, rest = url[: scheme.end()], url[scheme.end() :]
    host, slash, path = rest.partition("/")
    if scheme[1] in WEB:
        path = path.partition("?")[0]
    user, at, place = host.rpartition("@")
    # abfss://container@account is an address; a password has a colon before it
    secret = at and (":" in user or scheme[1] in WEB)
    return head + (place if secret else host) + slash + path


def protocol_of(url: str) -> str:
    """The protocol of a URL, in one spelling; `file` for a path."""
    scheme = SCHEME.match(url)
    return _SPELLINGS.get(scheme[1], scheme[1]) if scheme else "file"


def is_local(url: str) -> bool:
    """True for a path, or a `file://` URL."""
    return protocol_of(url) == "file"


def local_path(url: str) -> Path:
    """The absolute path of a local file, without dots and doubled slashes, so that one file has
    one name. Links are kept: it is under their names that a corpus is laid out."""
    path = Path("/" + str(Path(url.removeprefix("file://")).absolute()).lstrip("/"))
    if ".." not in path.parts:
        return path
    # what stands before ".." may be a link to elsewhere
    below = len(path.parts) - path.parts[::-1].index("..")
    return Path(*path.parts[:below]).resolve().joinpath(*path.parts[below:])


def absolute_glob(pattern: str) -> str:
    """The same pattern with an absolute path, or the URL; the working directory's own name may hold
    characters of globs, which match themselves."""
    if not is_local(pattern):
        return pattern
    below = pattern.removeprefix("file://")
    return str(local_path(str(Path(escape_glob(str(Path.cwd())), below))))


def escape_glob(url: str) -> str:
    """The pattern that only this path or URL matches, with `*`, `?` and `[` as plain characters."""
    scheme = SCHEME.match(url)
    start = scheme.end() if scheme else 0
    return url[:start] + re.sub(r"[*?[]", r"[\g<0>]", url[start:])


def absolute(url: str) -> str:
    """The name by which another process finds a file: the absolute path of a local one; a URL as it
    is. Workers of a cluster have working directories of their own."""
    return str(local_path(url)) if is_local(url) else url


def join(folder: str, *names: str) -> str:
    """The path or URL of a name below a folder. A web query stays behind the path."""
    query = ""
    if protocol_of(folder) in WEB:
        folder, mark, rest = folder.partition("?")
        query = mark + rest
    for name in names:
        folder = name if not folder else folder + ("" if folder.endswith("/") else "/") + name
    return folder + query


def url_of(fs: Any, pattern: str, stripped: str, found: str) -> str:
    """The URL of a name that a file system found: what stood before the path in the pattern
    (protocol, host), then the name."""
    pattern = pattern.rstrip("/")
    if pattern.endswith(stripped):
        head = pattern[: len(pattern) - len(stripped)]
        scheme = SCHEME.match(head)
        return (f"{protocol_of(head)}://{head[scheme.end() :]}" if scheme else head) + found
    scheme = SCHEME.match(pattern)
    host = pattern[scheme.end() :].partition("/")[0] if scheme else ""
    if "@" in host:  # CONTAINER@ACCOUNT, where the container is the first part of the name
        return f"{protocol_of(pattern)}://{host}/{found.partition('/')[2]}"
    return cast(str, fs.unstrip_protocol(found))
