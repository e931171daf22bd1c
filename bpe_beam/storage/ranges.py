"""Ranges of bytes of a remote file, store by store.

Where a store can do so, each request is bound to the version of the object that was opened: a
range of another version is an error, not a part of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from bpe_beam.errors import DataError
from bpe_beam.storage.names import AZURE, protocol_of, redact
from bpe_beam.storage.retry import EmptyAnswerError, FileChangedError
from bpe_beam.storage.stored_file import StoredFile, stored_file

Fetch = Callable[[int, int], bytes]
"""(start, end) -> the bytes from start to end, but for faults of the store: fewer or more."""


@dataclass(frozen=True)
class RangeSource:
    """A remote file from which ranges are read.

    Attributes:
        file: Its description when it was opened.
        fetch: Returns a range of its bytes.
        close: Closes the connections of `fetch`.
    """

    file: StoredFile
    fetch: Fetch
    close: Callable[[], object] = lambda: None


def open_ranges(fs: Any, path: str, url: str) -> RangeSource:
    """Return a remote file, opened for reading by ranges.

    Args:
        fs: The file system.
        path: The file's path there.
        url: Its URL.

    Raises:
        DataError: The file has a Content-Encoding that its store decodes on the way, so that
            neither its size nor its ranges are those of the content.
    """
    protocol = protocol_of(url)
    if protocol == "s3":
        return _open_s3(fs, path, url)
    info = fs.info(path)
    file = stored_file(url, info)
    if protocol in AZURE:
        return RangeSource(file, _azure_fetch(fs, path, info))
    if protocol not in ("gs", "memory"):
        return _open_other(fs, path, file)
    _refuse_encoded(info, url)
    version = {"generation": info.get("generation")} if protocol == "gs" else {}

    def fetch(start: int, end: int) -> bytes:
        return cast(bytes, fs.cat_file(path, start=start, end=end, **version))

    return RangeSource(file, fetch)


def _refuse_encoded(info: Mapping[str, Any], url: str) -> None:
    encoding = str(info.get("contentEncoding") or "")
    if encoding not in ("", "identity"):
        raise DataError(
            f"cannot read {redact(url)}: its Content-Encoding is {encoding!r}, which the store "
            "decodes on the way; remove it from the metadata: compression is recognised by a "
            "file's first bytes"
        )


def _open_s3(fs: Any, path: str, url: str) -> RangeSource:
    # s3fs binds each request to the ETag
    reader = fs.open(path, "rb", cache_type="none", fill_cache=False)

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, reader._fetch_range(start, end))
        except Exception as error:
            if type(error).__name__ == "FileExpired":
                raise FileChangedError("the file was changed while it was read") from error
            raise

    return RangeSource(stored_file(url, reader.details), fetch, reader.close)


def _azure_fetch(fs: Any, path: str, info: Mapping[str, Any]) -> Fetch:
    from azure.core import MatchConditions
    from azure.core.exceptions import HttpResponseError
    from fsspec.asyn import sync

    container, blob, version = fs.split_path(path)
    # The quotes are part of an ETag; listings leave them out.
    etag = '"' + str(info["etag"]).strip('"') + '"'

    async def download(start: int, end: int) -> bytes:
        async with fs.service_client.get_blob_client(container=container, blob=blob) as client:
            stream = await client.download_blob(
                offset=start,
                length=end - start,
                version_id=version,
                etag=etag,
                match_condition=MatchConditions.IfNotModified,
                max_concurrency=1,
                decompress=False,  # a range alone cannot be decompressed
                **getattr(fs, "_timeout_kwargs", {}),
            )
            return cast(bytes, await stream.readall())

    def fetch(start: int, end: int) -> bytes:
        try:
            return cast(bytes, sync(fs.loop, download, start, end))
        except HttpResponseError as error:
            if error.status_code == 412:
                raise FileChangedError("the file was changed while it was read") from error
            raise
        except ValueError as error:  # Azure's client, for an answer without its range
            raise EmptyAnswerError(str(error)) from error

    return fetch


def _open_other(fs: Any, path: str, file: StoredFile) -> RangeSource:
    """Open a file of any other file system by its own reader, which is replaced after a failure."""
    opened: list[Any] = []

    def fetch(start: int, end: int) -> bytes:
        try:
            if not opened:
                opened.append(_unbuffered(fs, path))
            opened[0].seek(start)
            return cast(bytes, opened[0].read(end - start))
        except Exception:
            close()
            raise

    def close() -> None:
        if opened:
            opened.pop().close()

    return RangeSource(file, fetch, close)


def _unbuffered(fs: Any, path: str) -> Any:
    try:
        return fs.open(path, "rb", cache_type="none")
    except TypeError:  # some file systems have no such option
        return fs.open(path, "rb")
