"""The objects of a store whose keys match a glob, by the requests of the store's own client.

fsspec's listings take keys for paths of folders: a key with an empty name in it, such as `in//x`,
a key that ends in a slash, and a key `p` next to `p/q` are not in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

from bpe_beam.storage.globs import Part, matches
from bpe_beam.storage.names import AZURE
from bpe_beam.storage.retry import retried

Object = tuple[str, Mapping[str, Any]]
"""A key, and what the store reports of the object, with the names that `stored_file` knows."""

_FOLDER_MARKS = ("hdi_isfolder", "is_directory")
"""The metadata of Azure's blobs that only show a folder, in lower case."""


class _Wanted(NamedTuple):
    """A request for the objects whose keys begin with a prefix.

    Attributes:
        prefix: The prefix.
        delimiter: Of the keys that have it after the prefix, only the start up to it is reported,
            as a folder.
        at: The previous page's `next_page`.
        limit: The number of objects and folders that are enough; None for the store's choice.
    """

    prefix: str
    delimiter: str = ""
    at: str | None = None
    limit: int | None = None


class _Page(NamedTuple):
    """An answer of a store: objects, the common starts of other keys, and where to continue."""

    objects: list[Object]
    folders: list[str]
    next_page: str | None


@dataclass(frozen=True)
class Bucket:
    """The objects of a bucket or container.

    Attributes:
        request: Returns a page of the objects.
    """

    request: Callable[[_Wanted], _Page]

    def matching(self, prefix: str, parts: Sequence[Part]) -> Iterator[Object]:
        """Yield the objects below a prefix whose keys match a glob, in any order.

        Folders that cannot match are not listed, if no `**` comes before them.

        Args:
            prefix: The start of the keys: empty, or with a slash at its end.
            parts: The glob after it, which matches the rest of a key.
        """
        part, rest = parts[0], parts[1:]
        start, is_fixed = part.fixed_start
        if rest and is_fixed:
            yield from self.matching(f"{prefix}{start}/", rest)
        elif part.text == "**":
            for page in self._pages(_Wanted(prefix)):
                for key, info in page.objects:
                    if matches(key[len(prefix) :].split("/"), parts):
                        yield key, info
        else:
            folders: list[str] = []
            for page in self._pages(_Wanted(prefix + start, "/")):
                folders += page.folders
                for key, info in page.objects:
                    if not rest and part.matches(key[len(prefix) :]):
                        yield key, info
            for folder in folders:
                name = folder[len(prefix) :].removesuffix("/")
                if rest and part.matches(name):
                    yield from self.matching(folder, rest)

    def names(self, folder: str) -> set[str]:
        """Return the names of the objects and folders directly below a folder."""
        names = set()
        for page in self._pages(_Wanted(folder, "/")):
            keys = (key for key, _ in page.objects)
            names |= {key[len(folder) :].removesuffix("/") for key in (*keys, *page.folders)}
        return names - {""}

    def is_prefix(self, prefix: str) -> bool:
        """Return whether a key begins with a prefix."""
        return any(
            page.objects or page.folders for page in self._pages(_Wanted(prefix, "/", limit=1))
        )

    def _pages(self, wanted: _Wanted) -> Iterator[_Page]:
        try:
            while True:
                page = retried(partial(self.request, wanted))
                yield page
                if not page.next_page:
                    return
                wanted = wanted._replace(at=page.next_page)
        except FileNotFoundError:  # there is no such bucket
            return


def is_folder_marker(key: str, info: Mapping[str, Any]) -> bool:
    """Return whether an object only shows a folder: consoles make empty ones like `folder/`."""
    return str(info.get("size")) == "0" and (key.endswith("/") or bool(info.get("is_folder")))


def open_bucket(fs: Any, protocol: str, bucket: str) -> Bucket | None:
    """Return the bucket of a store; None if its protocol has file systems with folders."""
    request = _REQUESTS.get(protocol)
    return None if request is None else Bucket(partial(request, fs, bucket))


def _s3_page(fs: Any, bucket: str, wanted: _Wanted) -> _Page:
    more: dict[str, Any] = {"ContinuationToken": wanted.at} if wanted.at else {}
    more |= {"MaxKeys": wanted.limit} if wanted.limit else {}
    where = {"Bucket": bucket, "Prefix": wanted.prefix, "Delimiter": wanted.delimiter}
    answer = fs.call_s3("list_objects_v2", **where, **more, **fs.req_kw)
    return _Page(
        [(each["Key"], {**each, "size": each["Size"]}) for each in answer.get("Contents", ())],
        [each["Prefix"] for each in answer.get("CommonPrefixes", ())],
        answer["NextContinuationToken"] if answer.get("IsTruncated") else None,
    )


def _gs_page(fs: Any, bucket: str, wanted: _Wanted) -> _Page:
    where = {
        "prefix": wanted.prefix or None,
        "delimiter": wanted.delimiter or None,
        "pageToken": wanted.at,
        "maxResults": wanted.limit,
    }
    answer = fs.call("GET", "b/{}/o", bucket, json_out=True, **where)
    objects = [(each["name"], each) for each in answer.get("items", ())]
    return _Page(objects, answer.get("prefixes", []), answer.get("nextPageToken"))


def _azure_page(fs: Any, bucket: str, wanted: _Wanted) -> _Page:
    from azure.core.exceptions import ResourceNotFoundError
    from fsspec.asyn import sync

    async def request() -> _Page:
        page = _Page([], [], None)
        async with fs.service_client.get_container_client(container=bucket) as client:
            where: dict[str, Any] = {"name_starts_with": wanted.prefix, "include": ["metadata"]}
            where |= {"results_per_page": wanted.limit} if wanted.limit else {}
            if wanted.delimiter:
                blobs = client.walk_blobs(delimiter=wanted.delimiter, **where)
            else:
                blobs = client.list_blobs(**where)
            pages = blobs.by_page(continuation_token=wanted.at)
            async for items in pages:
                async for each in items:
                    if hasattr(each, "prefix"):
                        page.folders.append(each.name)
                    else:
                        page.objects.append((each.name, _blob_info(each)))
                break
            return page._replace(next_page=pages.continuation_token)

    try:
        return cast(_Page, sync(fs.loop, request))
    except ResourceNotFoundError as error:
        raise FileNotFoundError(bucket) from error


def _blob_info(blob: Any) -> Mapping[str, Any]:
    metadata = {name.lower(): value for name, value in (blob.metadata or {}).items()}
    is_folder = any(metadata.get(name) == "true" for name in _FOLDER_MARKS)
    return {"size": blob.size, "etag": blob.etag, "is_folder": is_folder}


def _memory_page(fs: Any, _bucket: str, wanted: _Wanted) -> _Page:
    prefix, delimiter = wanted.prefix, wanted.delimiter
    objects: list[Object] = []
    folders: dict[str, None] = {}
    for key in [key for key in fs.store if key.startswith(prefix)]:
        end = key.find(delimiter, len(prefix)) if delimiter else -1
        if end >= 0:
            folders[key[: end + 1]] = None
        else:
            objects.append((key, fs.info(key)))
    return _Page(objects, list(folders), None)


_REQUESTS: dict[str, Callable[[Any, str, _Wanted], _Page]] = {
    "s3": _s3_page,
    "gs": _gs_page,
    **dict.fromkeys(AZURE, _azure_page),
    "memory": _memory_page,
}
