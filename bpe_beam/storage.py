"""The one door to storage: local paths, and any protocol of fsspec by its URL.

A path without `scheme://` is local, and is taken as it stands: `#`, `%`, `::`, spaces and glob
characters are characters like others. A file appears under its name whole or not at all: it is
written beside it under an attempt's own name and then moved, so that a killed process leaves no
half of a file, and two attempts at the same file do not disturb each other.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from bpe_beam.errors import DataError, UsageError

_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)://")
_WEB = ("http", "https")
# Stores of objects: their folders are only names' beginnings, and what fsspec calls a folder at
# the top is a bucket, which is not ours to make or remove.
_OBJECT_STORES = ("s3", "gs", "az", "abfs", "abfss", "adl", "hf", *_WEB)
# Two spellings of one protocol, where the rest of the URL means the same.
_SPELLINGS = {"s3a": "s3", "gcs": "gs"}
_WRITE_BUFFER = 1 << 20


def redact(url: str) -> str:
    """The URL without what may be secret: user, password, query. A local path as it is."""
    scheme = _URL.match(url)
    if scheme is None:
        return url
    head, rest = url[: scheme.end()], url[scheme.end() :]
    host, slash, path = rest.partition("/")
    if scheme[1] in _WEB:
        path = path.partition("?")[0]
    user, at, place = host.rpartition("@")
    # abfss://container@account is an address; a password has a colon before it
    return head + (place if at and ":" in user else host) + slash + path


@contextlib.contextmanager
def named_errors(verb: str, url: str) -> Iterator[None]:
    """Turns what storage raises inside the block into an error of ours that names the path, as in
    "cannot <verb> <url>: no space left on device"."""
    try:
        yield
    except (UsageError, DataError):
        raise
    except OSError as error:
        # of a file that is not there the stores only repeat the path
        missing = "No such file or directory" if isinstance(error, FileNotFoundError) else ""
        why = error.strerror or missing or _without_secrets(error, url) or type(error).__name__
        raise DataError(f"cannot {verb} {redact(url)}: {why}") from error
    except Exception as error:
        if _is_local(url):
            if isinstance(error, ValueError):  # a NUL in a path
                raise UsageError(f"cannot {verb} {url!r}: {error}") from error
            raise
        # the clouds' libraries raise types of their own
        why = f"{type(error).__name__}: {_without_secrets(error, url)}"
        raise DataError(f"cannot {verb} {redact(url)}: {why}") from error


def _without_secrets(error: Exception, url: str) -> str:
    """What the error says, which may repeat the URL."""
    return str(error).replace(url, redact(url))


@dataclass(frozen=True)
class Storage:
    """Reads and writes files anywhere. Plain data: it pickles, and opens connections when used.

    Attributes:
        options: Settings of fsspec's file systems by protocol, such as
            `{"s3": {"endpoint_url": "http://..."}}`. May hold secrets: never shown or logged.

    Every method raises DataError, naming the path, where storage fails (no permission, no space,
    no connection), and UsageError where a path or protocol cannot work at all.
    """

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        for protocol, settings in self.options.items():
            if not isinstance(settings, Mapping):
                raise UsageError(
                    f"storage options: the value of {protocol!r} is a {type(settings).__name__}; "
                    'give an object of settings by protocol, like {"s3": {"endpoint_url": "..."}}'
                )

    # ---- looking ----

    def expand(self, pattern: str) -> list[tuple[str, int]]:
        """Lists the files that a path, URL or glob means.

        `*` and `?` stand for parts of a name, `[ab]` for one character, `**` for any number of
        folders. Names that begin with a dot are met only by a pattern that has such a name. A
        file that exists under the pattern's own name is meant by it, whatever characters it has.

        Args:
            pattern: What to look for. A relative path starts at the working directory.

        Returns:
            (absolute path or URL, size in bytes), sorted; empty if nothing matches. Folders and
            special files never match.

        Raises:
            UsageError: `**` is part of a longer name, or a name found is not UTF-8.
        """
        parts = str(_local(pattern)).split("/") if _is_local(pattern) else pattern.split("/")
        for part in parts:
            if "**" in part and part != "**":
                raise UsageError(
                    f"{redact(pattern)}: '**' stands for whole folders, as in 'data/**/*.jsonl', "
                    f"and cannot be a part of the name {part!r}"
                )
        with named_errors("list", pattern):
            found = _expand_local(parts) if _is_local(pattern) else self._expand_url(pattern)
        for url, _ in found:
            try:
                url.encode()
            except UnicodeEncodeError:
                raise UsageError(
                    f"{os.fsencode(url)!r}: a file name that is not UTF-8 cannot stand in a "
                    "manifest; rename the file"
                ) from None
        return sorted(set(found))

    def size(self, url: str) -> int:
        """The size of a file in bytes."""
        with named_errors("read", url):
            if _is_local(url):
                return _local(url).stat().st_size
            fs, path = self._remote(url)
            return _size_of(fs.info(path), url)

    def exists(self, url: str) -> bool:
        """True if there is a file or folder of this name."""
        with named_errors("look for", url):
            if _is_local(url):
                return _local(url).exists()
            return self._kind(url) is not None

    def is_folder(self, url: str) -> bool:
        """True if there is a folder of this name."""
        with named_errors("look for", url):
            if _is_local(url):
                return _local(url).is_dir()
            return self._kind(url) == "directory"

    def list_names(self, folder: str) -> list[str]:
        """The plain names directly in a folder, files and folders, sorted; [] if there is none."""
        with named_errors("list", folder):
            try:
                if _is_local(folder):
                    return sorted(path.name for path in _local(folder).iterdir())
                fs, path = self._remote(folder)
                # some stores list the folder itself as an empty object
                return sorted(
                    {
                        name.rstrip("/").rpartition("/")[2]
                        for name in fs.ls(path, detail=False)
                        if name.rstrip("/") != path.rstrip("/")
                    }
                )
            except FileNotFoundError:
                return []

    def join(self, folder: str, *names: str) -> str:
        """The path or URL of a name below a folder. A web query stays behind the path."""
        query = ""
        if _protocol(folder) in _WEB:
            folder, mark, rest = folder.partition("?")
            query = mark + rest
        for name in names:
            folder = name if not folder else folder + ("" if folder.endswith("/") else "/") + name
        return folder + query

    # ---- reading ----

    def open(self, url: str) -> BinaryIO:
        """Opens a file for reading bytes, seekable where the file system allows it."""
        with named_errors("read", url):
            if _is_local(url):
                return _local(url).open("rb")
            fs, path = self._remote(url)
            return cast(BinaryIO, fs.open(path, "rb"))

    def read_bytes(self, url: str) -> bytes:
        """The whole content of a file."""
        with named_errors("read", url), self.open(url) as stream:
            return stream.read()

    def read_head(self, url: str, count: int) -> bytes:
        """The first `count` bytes of a file, or all if it has fewer; reads no more than it must."""
        with named_errors("read", url):
            if _is_local(url):
                with _local(url).open("rb", buffering=0) as stream:
                    return stream.read(count)
            fs, path = self._remote(url)
            # a server without ranges answers with the whole file
            return cast(bytes, fs.cat_file(path, start=0, end=count))[:count]

    # ---- writing ----

    def write_bytes(self, url: str, data: bytes) -> None:
        """Writes a file at once: it appears whole or not at all."""
        with self.create(url) as stream:
            stream.write(data)

    @contextlib.contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        """Opens a new file for writing; it appears under its name when the block ends well.

        Until then it is `<url>.attempt-<12 hex digits>`, removed if the block raises. What stood
        under the name is replaced. On object stores the move is a copy within the store.

        Args:
            url: The file to be. Its folder must exist (object stores have none).

        Yields:
            A buffered stream of bytes.
        """
        attempt = f"{url}.attempt-{secrets.token_hex(6)}"
        with named_errors("write", url):
            destination = _Destination(self._open_new(attempt), url)
        buffered = io.BufferedWriter(destination, _WRITE_BUFFER)
        try:
            yield cast(BinaryIO, buffered)
            buffered.close()
            with named_errors("write", url):
                self._publish(attempt, url)
        except BaseException:
            with contextlib.suppress(Exception):
                buffered.close()
            with contextlib.suppress(Exception):
                self.remove(attempt)
            raise

    def remove(self, url: str) -> None:
        """Removes a file; nothing happens if there is none."""
        with named_errors("remove", url), contextlib.suppress(FileNotFoundError):
            if _is_local(url):
                _local(url).unlink()
            else:
                fs, path = self._remote(url)
                fs.rm_file(path)

    def make_folder(self, url: str) -> None:
        """Makes a folder and those above it, where the store has folders."""
        with named_errors("make folder", url):
            if _is_local(url):
                _local(url).mkdir(parents=True, exist_ok=True)
            elif _protocol(url) not in _OBJECT_STORES:
                fs, path = self._remote(url)
                fs.makedirs(path, exist_ok=True)

    def remove_folder_if_empty(self, url: str) -> None:
        """Removes a folder that holds nothing; otherwise nothing happens."""
        with named_errors("remove", url):
            if _is_local(url):
                try:
                    _local(url).rmdir()
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                        raise
            elif _protocol(url) not in _OBJECT_STORES and not self.list_names(url):
                fs, path = self._remote(url)
                with contextlib.suppress(FileNotFoundError):
                    fs.rmdir(path)

    # ---- within ----

    def _remote(self, url: str) -> tuple[Any, str]:
        """The file system of a URL, and what it calls the URL. Listings are not kept: others
        write to the same store."""
        import fsspec  # only where it is needed: local work starts faster without it

        protocol = _protocol(url)
        try:
            kind = fsspec.get_filesystem_class(protocol)
        except ValueError:
            raise UsageError(f"{redact(url)}: the protocol {protocol!r} is unknown") from None
        except ImportError as error:
            raise UsageError(f"{redact(url)}: {error}") from None
        names = kind.protocol if isinstance(kind.protocol, tuple | list) else (kind.protocol,)
        settings: dict[str, Any] = {}
        for name in (*names, protocol):  # the URL's own spelling counts most
            settings.update(self.options.get(name, {}))
        settings = {**kind._get_kwargs_from_urls(url), **settings}
        fs = fsspec.filesystem(protocol, **settings)
        fs.invalidate_cache()
        return fs, cast(str, kind._strip_protocol(url))

    def _kind(self, url: str) -> str | None:
        """ "file", "directory", or None. fsspec's own `exists` takes any failure for a no."""
        fs, path = self._remote(url)
        try:
            return cast(str, fs.info(path)["type"])
        except FileNotFoundError:
            return None

    def _expand_url(self, pattern: str) -> list[tuple[str, int]]:
        fs, path = self._remote(pattern)
        if self._kind(pattern) == "file":
            return [(_url_of(fs, pattern, path, path), _size_of(fs.info(path), pattern))]
        # "?" begins a query on the web
        if not re.search(r"[*\[]" if _protocol(pattern) in _WEB else r"[*?\[]", path):
            return []
        dotted = any(part.startswith(".") for part in path.split("/"))
        fixed = path[: cast(re.Match[str], re.search(r"[*?\[]", path)).start()].rpartition("/")[0]
        return [
            (_url_of(fs, pattern, path, name), _size_of(info, pattern))
            for name, listed in fs.glob(path, detail=True).items()
            # a web page tells no sizes
            for info in (listed if listed.get("size") is not None else fs.info(name),)
            if info["type"] == "file" and (dotted or "/." not in "/" + name[len(fixed) :])
        ]

    def _open_new(self, attempt: str) -> BinaryIO:
        if _is_local(attempt):
            return _local(attempt).open("xb", buffering=0)
        fs, path = self._remote(attempt)
        return cast(BinaryIO, fs.open(path, "wb"))

    def _publish(self, attempt: str, url: str) -> None:
        if _is_local(url):
            _local(attempt).replace(_local(url))
            return
        fs, source = self._remote(attempt)
        _, target = self._remote(url)
        if re.search(r"[*?\[]", source):  # fsspec's mv takes these for a glob
            fs.cp_file(source, target)
            fs.rm_file(source)
        else:
            fs.mv(source, target)


class _Destination(io.RawIOBase):
    """Where a stream's bytes go, so that a failing write names the file."""

    def __init__(self, stream: BinaryIO, url: str) -> None:
        super().__init__()
        self._stream, self._url = stream, url

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with named_errors("write", self._url):
            return self._stream.write(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with named_errors("write", self._url):
                self._stream.close()


def _protocol(url: str) -> str:
    scheme = _URL.match(url)
    return _SPELLINGS.get(scheme[1], scheme[1]) if scheme else "file"


def _is_local(url: str) -> bool:
    return _protocol(url) == "file"


def _local(url: str) -> Path:
    """The absolute path of a local file, without dots and doubled slashes, so that one file has
    one name. Links are kept: it is under their names that a corpus is laid out."""
    path = Path("/" + str(Path(url.removeprefix("file://")).absolute()).lstrip("/"))
    if ".." not in path.parts:
        return path
    # what stands before ".." may be a link to elsewhere
    below = len(path.parts) - path.parts[::-1].index("..")
    return Path(*path.parts[:below]).resolve().joinpath(*path.parts[below:])


def _url_of(fs: Any, pattern: str, stripped: str, found: str) -> str:
    """The URL of a name that a file system found: what stood before the path in the pattern
    (protocol, host), then the name."""
    pattern = pattern.rstrip("/")
    if pattern.endswith(stripped):
        head = pattern[: len(pattern) - len(stripped)]
        scheme = _URL.match(head)
        return (f"{_protocol(head)}://{head[scheme.end() :]}" if scheme else head) + found
    return cast(str, fs.unstrip_protocol(found))


def _size_of(info: Mapping[str, Any], url: str) -> int:
    size = info.get("size")
    if size is None:
        raise DataError(f"{redact(url)}: the server does not tell the file's size")
    return int(size)


def _expand_local(parts: Sequence[str]) -> list[tuple[str, int]]:
    path = Path("/".join(parts))
    if path.is_file():
        return [(str(path), path.stat().st_size)]
    magic = next((i for i, part in enumerate(parts) if re.search(r"[*?\[]", part)), None)
    if magic is None:
        return []
    dotted = any(part.startswith(".") for part in parts[magic:])
    return list(_walk("/".join(parts[:magic]) + "/", parts[magic:], dotted))


def _walk(folder: str, parts: Sequence[str], dotted: bool) -> Iterator[tuple[str, int]]:
    """The files below `folder` (with its slash) whose path matches the parts of a glob. `**`
    does not follow links to folders, which may lead round in a circle; a named part does."""
    part, rest = parts[0], parts[1:]
    if part == "**" and rest:
        yield from _walk(folder, rest, dotted)
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return
    matches = re.compile("" if part == "**" else fnmatch.translate(part)).match
    for entry in entries:
        if (entry.name.startswith(".") and not dotted) or not matches(entry.name):
            continue
        below = f"{folder}{entry.name}/"
        if part == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(below, parts, dotted)
            elif not rest and entry.is_file():
                yield entry.path, entry.stat().st_size
        elif not rest:
            if entry.is_file():
                yield entry.path, entry.stat().st_size
        elif entry.is_dir():
            yield from _walk(below, rest, dotted)
