"""Parts of a remote file, asked for by their bytes, store by store.

Each store has one way that is bound to the version of the object that was found first, where the
store can do that: a part of another version is an error, not a part of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bpe_beam.errors import DataError
from bpe_beam.storage.failures import Changed, EmptyAnswer
from bpe_beam.storage.file_info import Found, content_encoding, found_of
from bpe_beam.storage.names import protocol_of, redact

Fetch = Callable[[int, int], bytes]
"""(start, end) -> those bytes; may answer with fewer or more."""


@dataclass(frozen=True)
class Opened:
    """A remote file to read from.

    Attributes:
        found: Its facts when it was opened.
        fetch: Gives a part of it.
        close: Lets go of what `fetch` holds.
    """

    found: Found
    fetch: Fetch
    close: Callable[[], None]


def open_ranges(fs: Any, path: str, url: str) -> Opened:
    """Opens a remote file for reading by ranges.

    Raises:
        DataError: It is stored with a Content-Encoding that its store undoes on the way, so that
            neither its size nor its parts are what they say.
    """
    protocol = protocol_of(url)
    if protocol == "s3":
        return _open_s3(fs, path, url)
    info = fs.info(path)
    found = found_of(url, info)
    if protocol == "gs":
        _refuse_encoded(info, url)
        generation = info.get("generation")

        def fetch_gs(start: int, end: int) -> bytes:
            return cast(bytes, fs.cat_file(path, start=start, end=end, generation=generation))

        return Opened(found, fetch_gs, _nothing)
    if protocol in ("az", "abfs", "abfss"):
        return Opened(found, _azure_fetch(fs, path, info), _nothing)
    if protocol == "memory":

        def fetch_memory(start: int, end: int) -> bytes:
            return cast(bytes, fs.cat_file(path, start=start, end=end))

        return Opened(found, fetch_memory, _nothing)
    return _open_other(fs, path, found)


def _nothing() -> None:
    pass


def _refuse_encoded(info: Mapping[str, Any], url: str) -> None:
    encoding = content_encoding(info)
    if encoding not in ("", "identity"):
        raise DataError(
            f"cannot read {redact(url)}: it is stored with Content-Encoding {encoding!r}, which "
            "the store undoes on the way; remove that from the metadata; compression is told by "
            "a file's first bytes"
        )


def _open_s3(fs: Any, path: str, url: str) -> Opened:
    # asks for the object by its ETag, each time
    file = fs.open(path, "rb", cache_type="none", fill_cache=False)

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, file._fetch_range(start, end))
        except Exception as error:
            if type(error).__name__ == "FileExpired":
                raise Changed("the file was changed while it was read") from error
            raise

    return Opened(found_of(url, file.details), fetch, file.close)


def _azure_fetch(fs: Any, path: str, info: Mapping[str, Any]) -> Fetch:
    from azure.core import MatchConditions
    from azure.core.exceptions import HttpResponseError
    from fsspec.asyn import sync

    container, blob, version = fs.split_path(path)
    # The quotes belong to it, and listings leave them out.
    etag = '"' + str(info["etag"]).strip('"') + '"'

    async def part(start: int, end: int) -> bytes:
        async with fs.service_client.get_blob_client(container=container, blob=blob) as client:
            stream = await client.download_blob(
                offset=start,
                length=end - start,
                version_id=version,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                max_concurrency=1,
                decompress=False,  # a part cannot be
                **getattr(fs, "_timeout_kwargs", {}),
            )
            return cast(bytes, await stream.readall())

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, sync(fs.loop, part, start, end))
        except HttpResponseError as error:
            if error.status_code == 412:
                raise Changed("the file was changed while it was read") from error
            raise
        except ValueError as error:  # of Azure's client, over an answer without its range
            raise EmptyAnswer(str(error)) from error

    return fetch


def _open_other(fs: Any, path: str, found: Found) -> Opened:
    """Any other of fsspec's: by its own file, opened again after a failure."""
    held: list[Any] = []

    def fetch(start: int, end: int) -> bytes:
        try:
            if not held:
                held.append(_unbuffered(fs, path))
            held[0].seek(start)
            return cast(bytes, held[0].read(end - start))
        except Exception:
            close()
            raise

    def close() -> None:
        if held:
            held.pop().close()

    return Opened(found, fetch, close)


def _unbuffered(fs: Any, path: str) -> Any:
    try:
        return fs.open(path, "rb", cache_type="none")
    except TypeError:  # not each file system knows of caches
        return fs.open(path, "rb")
