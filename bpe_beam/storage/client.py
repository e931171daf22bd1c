"""The one door to storage: local paths, and any protocol of fsspec by its URL.

A path without `scheme://` is local, and is taken as it stands: `#`, `%`, `::`, spaces and glob
characters are characters like others. A file appears under its name whole or not at all: a killed
process leaves no half of a file, and two attempts at the same file do not disturb each other.

What may pass (see `failures.retried`) is tried again: opening and each part that is read, listing,
looking, removing, moving, and writing a file at once. A file that is written as a stream is
held in parts by the cloud's own library, which tries each of them again.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from bpe_beam.errors import UsageError
from bpe_beam.storage import names
from bpe_beam.storage.failures import CONNECTING, named_errors, retried
from bpe_beam.storage.file_info import Found, found_of
from bpe_beam.storage.local import (
    expand_local,
    make_local_folder,
    stat_local,
    sync_folder,
)
from bpe_beam.storage.names import (
    OBJECT_STORES,
    WEB,
    is_local,
    local_path,
    protocol_of,
    redact,
)

# Modules for writing and for stores are imported where they are used: a process that reads a local
# file starts faster without them.
if TYPE_CHECKING:
    from bpe_beam.storage.ranges import Opened

T = TypeVar("T")


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
        if self.options:
            from bpe_beam.storage.connect import check_protocols

            check_protocols(self.options)

    # ---- looking ----

    def expand(self, pattern: str) -> list[Found]:
        """Lists the files that a path, URL or glob means.

        `*` and `?` stand for parts of a name, `[ab]` for one character, `**` for any number of
        folders. Names that begin with a dot are met only by a pattern that has such a name. A
        file that exists under the pattern's own name is meant by it, whatever characters it has.

        Args:
            pattern: What to look for. A relative path starts at the working directory.

        Returns:
            The files, sorted; empty if nothing matches. Folders and special files never match.

        Raises:
            UsageError: `**` is part of a longer name, or a name found is not UTF-8.
        """
        for part in pattern.split("/"):
            if "**" in part and part != "**":
                raise UsageError(
                    f"{redact(pattern)}: '**' stands for whole folders, as in 'data/**/*.jsonl', "
                    f"and cannot be a part of the name {part!r}"
                )
        if is_local(pattern):
            with named_errors("list", pattern):
                found = expand_local(pattern)
        else:
            found = self._asked("list", pattern, lambda: self._expand_url(pattern))
        for file in found:
            try:
                file.url.encode()
            except UnicodeEncodeError:
                raise UsageError(
                    f"{os.fsencode(file.url)!r}: a file name that is not UTF-8 cannot stand in a "
                    "manifest; rename the file"
                ) from None
        return sorted(set(found))

    def stat(self, url: str) -> Found:
        """The size of a file and a tag that changes with its content.

        Raises:
            DataError: There is no such file, or the server does not tell its size.
        """
        if is_local(url):
            with named_errors("read", url):
                return stat_local(local_path(url))
        return self._asked("read", url, lambda: self._stat_url(url))

    def size(self, url: str) -> int:
        """The size of a file in bytes."""
        return self.stat(url).size

    def exists(self, url: str) -> bool:
        """True if there is a file or folder of this name."""
        if is_local(url):
            with named_errors("look for", url):
                return local_path(url).exists()
        return self._kind(url) is not None

    def is_folder(self, url: str) -> bool:
        """True if there is a folder of this name."""
        if is_local(url):
            with named_errors("look for", url):
                return local_path(url).is_dir()
        return self._kind(url) == "directory"

    def list_names(self, folder: str) -> list[str]:
        """The plain names directly in a folder, files and folders, sorted; [] if there is none."""
        if is_local(folder):
            with named_errors("list", folder):
                try:
                    return sorted(path.name for path in local_path(folder).iterdir())
                except FileNotFoundError:
                    return []
        return self._asked("list", folder, lambda: self._names_at(folder))

    def join(self, folder: str, *names_below: str) -> str:
        """The path or URL of a name below a folder. A web query stays behind the path."""
        return names.join(folder, *names_below)

    # ---- reading ----

    def open(self, url: str) -> BinaryIO:
        """Opens a file for reading bytes; seekable.

        A remote file is read by ranges of up to 4 MiB, one of which is in memory. Each is held to
        its length, and to the file's tag on the stores that can (s3, gs, az, the web): what ends
        short is read again and then an error, and so is a file that changes meanwhile. A web
        server without ranges is read from the start, anew for each step back.
        """
        return self.open_found(url)[1]

    def open_found(self, url: str) -> tuple[Found, BinaryIO]:
        """Opens a file for reading, as `open` does, and says what it was at that moment."""
        if is_local(url):
            with named_errors("read", url):
                stream = local_path(url).open("rb")
                return stat_local(local_path(url), stream.fileno()), stream
        from bpe_beam.storage.reading import open_reader

        return open_reader(lambda: self._ranges(url), url, self._secrets)

    def read_bytes(self, url: str) -> bytes:
        """The whole content of a file."""
        with named_errors("read", url, self._secrets), self.open(url) as stream:
            return stream.read()

    def read_head(self, url: str, count: int) -> bytes:
        """The first `count` bytes of a file, or all if it has fewer; reads no more than it must."""
        if is_local(url):
            with named_errors("read", url), local_path(url).open("rb", buffering=0) as stream:
                return stream.read(count)

        from bpe_beam.storage.reading import read_part

        def head() -> bytes:
            opened = self._ranges(url)
            try:
                return read_part(opened, 0, min(count, opened.found.size))
            finally:
                opened.close()

        with named_errors("read", url, self._secrets):
            return retried(head)

    # ---- writing ----

    def write_bytes(self, url: str, data: bytes) -> None:
        """Writes a file at once: it appears whole or not at all."""

        def write() -> None:
            with self.create(url) as stream:
                stream.write(data)

        def holds() -> bool:
            return self.exists(url) and self.read_bytes(url) == data

        if is_local(url):
            write()
            return
        from bpe_beam.storage.writing import write_again

        write_again(write, holds)

    @contextlib.contextmanager
    def create(self, url: str) -> Iterator[BinaryIO]:
        """Opens a new file for writing; it appears under its name when the block ends well.

        If the block raises, or the process is killed, nothing appears, and what stood under the
        name stays. Else it is replaced, in one step.

        On object stores (s3, gs, az, hf) the bytes go up in parts of 16 MiB, one of which is in
        memory, and the upload is completed at the end and taken back if the block raises; a killed
        process can leave parts that only the store sees. Elsewhere the file is
        `<url>.attempt-<12 hex digits>` until it is moved, and is removed if the block raises.
        A local file's bytes are on disk before its name appears, so that a power cut leaves no
        empty file; `sync_folders` makes the name itself survive one.
        A device or a pipe, such as /dev/null, is never replaced: it gets the bytes as they come.

        Args:
            url: The file to be. Its folder must exist (object stores have none).

        Yields:
            A buffered stream of bytes.

        Raises:
            UsageError: The web cannot be written to.
        """
        protocol = protocol_of(url)
        if protocol in WEB:
            raise UsageError(f"{redact(url)}: {protocol}:// can be read only; write elsewhere")
        from bpe_beam.storage.writing import is_outlet, uploading, write_straight

        writing: contextlib.AbstractContextManager[BinaryIO]
        if is_local(url) and is_outlet(local_path(url)):
            writing = write_straight(local_path(url), url)
        elif protocol in OBJECT_STORES:
            writing = uploading(*self._remote(url), url, self._secrets)
        else:
            writing = self._write_attempt(url)
        with writing as stream:
            yield stream

    def move(self, source: str, target: str) -> None:
        """Gives a file another name in the same store, in place of what stood under it.

        One step on local disk; on object stores a copy within the store, which is complete before
        the source goes. A move that was broken off is taken up again by the same call: where the
        source is gone and the target stands, nothing happens.

        Args:
            source: The file.
            target: Its new name. Its folder must exist.

        Raises:
            DataError: There is neither, or the store made a copy of another size.
        """
        if is_local(source):
            from bpe_beam.storage.moving import move_local

            with named_errors("move", source):
                move_local(local_path(source), local_path(target))
        else:
            with named_errors("move", source, self._secrets):
                self._move_url(source, target)

    def remove(self, url: str) -> None:
        """Removes a file; nothing happens if there is none."""
        if is_local(url):
            with named_errors("remove", url):
                local_path(url).unlink(missing_ok=True)
        else:
            self._asked("remove", url, lambda: self._remove_url(url))

    def make_folder(self, url: str) -> None:
        """Makes a folder and those above it, where the store has folders."""
        if is_local(url):
            with named_errors("make folder", url):
                make_local_folder(local_path(url))
        elif protocol_of(url) not in OBJECT_STORES:
            fs, path = self._remote(url)
            self._asked("make folder", url, lambda: fs.makedirs(path, exist_ok=True))

    def sync_folders(self, *urls: str) -> None:
        """Make what was created in, or moved to, folders survive a power cut.

        The files' content is on disk already when their names appear; this is for the names.
        On stores nothing is to do, and nothing for a folder that is not there.
        """
        for url in filter(is_local, urls):
            with named_errors("sync", url):
                sync_folder(local_path(url))

    def remove_folder_if_empty(self, url: str) -> None:
        """Removes a folder that holds nothing; otherwise nothing happens."""
        if is_local(url):
            with named_errors("remove", url):
                try:
                    local_path(url).rmdir()
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                        raise
        elif protocol_of(url) not in OBJECT_STORES and not self.list_names(url):
            fs, path = self._remote(url)
            with named_errors("remove", url, self._secrets), contextlib.suppress(FileNotFoundError):
                fs.rmdir(path)

    # ---- within ----

    @cached_property
    def _secrets(self) -> frozenset[str]:
        if not self.options:
            return frozenset()
        from bpe_beam.storage.connect import secrets_of

        return secrets_of(self.options)

    def _asked(self, verb: str, url: str, call: Callable[[], T]) -> T:
        """What a call to a store gives, if need be after some attempts."""
        with named_errors(verb, url, self._secrets):
            return retried(call)

    def _remote(self, url: str, *, known: bool = False) -> tuple[Any, str]:
        from bpe_beam.storage.connect import connect

        with named_errors(CONNECTING, url, self._secrets):
            return connect(self.options, url, known=known)

    def _kind(self, url: str) -> str | None:
        """ "file", "directory", or None. fsspec's own `exists` takes any failure for a no."""

        def kind() -> str | None:
            try:
                if protocol_of(url) in WEB:
                    self._stat_url(url)
                    return "file"
                fs, path = self._remote(url)
                info = fs.info(path)
                if info["type"] == "file":
                    found_of(url, info)  # an empty answer looks like a file without a size
                return cast(str, info["type"])
            except FileNotFoundError:
                return None

        return self._asked("look for", url, kind)

    def _stat_url(self, url: str) -> Found:
        fs, path = self._remote(url, known=True)
        if protocol_of(url) in WEB:
            from bpe_beam.storage.web import stat_web

            return stat_web(fs, path)
        info = fs.info(path)
        if info["type"] != "file":
            raise IsADirectoryError("it is a folder")
        return found_of(url, info)

    def _ranges(self, url: str) -> Opened:
        fs, path = self._remote(url, known=True)
        if protocol_of(url) in WEB:
            from bpe_beam.storage.web import open_web

            return open_web(fs, path)
        from bpe_beam.storage.ranges import open_ranges

        return open_ranges(fs, path, url)

    def _names_at(self, folder: str) -> list[str]:
        fs, path = self._remote(folder)
        try:
            listed = fs.ls(path, detail=False)
        except FileNotFoundError:
            return []
        # some stores list the folder itself as an empty object
        here = path.rstrip("/")
        return sorted(
            {name.rstrip("/").rpartition("/")[2] for name in listed if name.rstrip("/") != here}
        )

    def _expand_url(self, pattern: str) -> list[Found]:
        fs, path = self._remote(pattern)
        web = protocol_of(pattern) in WEB
        if self._kind(pattern) == "file":
            return [self._stat_url(names.url_of(fs, pattern, path, path))]
        magic = re.search(r"[*\[]" if web else r"[*?\[]", path)  # "?" begins a query on the web
        if magic is None:
            return []
        dotted = any(part.startswith(".") for part in path.split("/"))
        fixed = path[: magic.start()].rpartition("/")[0]
        try:
            listed = fs.glob(path, detail=True)
        except FileNotFoundError:  # not even the bucket
            return []
        found = []
        for name, info in listed.items():
            # consoles make objects like "folder/", so that one sees a folder
            if info["type"] != "file" or name.endswith("/"):
                continue
            if "/." in "/" + name[len(fixed) :] and not dotted:
                continue
            url = names.url_of(fs, pattern, path, name)
            # a web page tells no sizes
            found.append(self._stat_url(url) if web else found_of(url, info))
        return found

    def _remove_url(self, url: str) -> None:
        fs, path = self._remote(url)
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(path)

    @contextlib.contextmanager
    def _write_attempt(self, url: str) -> Iterator[BinaryIO]:
        from bpe_beam.storage.writing import WRITE_BUFFER, Destination

        attempt = names.attempt_name(url)
        with named_errors("write", url, self._secrets):
            new = self._open_new(attempt)
        destination = Destination(new, url, self._secrets, synced=is_local(url))
        buffered = io.BufferedWriter(destination, WRITE_BUFFER)
        try:
            yield cast(BinaryIO, buffered)
            buffered.close()
            with named_errors("write", url, self._secrets):
                self._publish(attempt, url)
        except BaseException:
            destination.synced = False
            with contextlib.suppress(Exception):
                buffered.close()
            with contextlib.suppress(Exception):
                self.remove(attempt)
            raise

    def _open_new(self, attempt: str) -> BinaryIO:
        if is_local(attempt):
            return local_path(attempt).open("xb", buffering=0)
        fs, path = self._remote(attempt)
        return cast(BinaryIO, fs.open(path, "wb"))

    def _publish(self, attempt: str, url: str) -> None:
        if is_local(url):
            local_path(attempt).replace(local_path(url))
            return
        from bpe_beam.storage.moving import rename

        fs, source = self._remote(attempt)
        rename(fs, source, self._remote(url)[1])

    def _move_url(self, source: str, target: str) -> None:
        from bpe_beam.storage.moving import move_remote

        fs, path = self._remote(source)
        move_remote(
            fs,
            path,
            self._remote(target)[1],
            lambda path: found_of(source, fs.info(path)).size,
            copies=protocol_of(source) in OBJECT_STORES,
        )
