"""Token shards: their formats, their manifest, their check, and reading them in a training loop.

`open` returns the documents of a tokens folder, a TokenDataset; its `sequences` are TokenSequences,
and a TokenIterator reads either of them, in batches or not.
"""

# The classes are imported when they are first used: most of those who import this package read a
# module of it, and need none of them.

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe_beam.shards.dataset import TokenDataset, TokenSequences
    from bpe_beam.shards.token_view import TokenIterator
    from bpe_beam.storage import PathName

__all__ = ["TokenDataset", "TokenIterator", "TokenSequences", "open"]


def open(
    url: PathName | Sequence[PathName] | Mapping[str, PathName | Sequence[PathName]],
    *,
    mixture: PathName | Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Mapping[str, Any]] | None = None,
    memory: int | None = None,
) -> TokenDataset:
    """Open a finished tokens folder of any format, for reading at any position.

    Only the manifest and the sizes of the files are read now. Local shards are mapped into memory,
    remote ones are read by blocks and read ahead.

    The output of `stream-tokenize` is one data set of its finished windows, in their order, before
    the first open one. `d.refresh()` and `d.follow()` add the windows that finish later. Its
    manifests are read now, and the sizes of files when they are opened.

    With a mixture, the documents are those that `bpe-beam mix` would write of several folders, in
    the same order, and nothing is written. The documents are selected now, which reads the ids of
    all documents that have none of their own, and takes 100 bytes of memory for each document.

    Args:
        url: Path, or URL of any protocol of fsspec, of the folder, or of a stream's output. With a
            mixture, tokens folders, as `bpe_beam.mix` takes them; a mapping has the folder of each
            source, or several.
        mixture: The options of the mixture by name, such as `{"tokens": "10B", "share": {"web":
            0.6, "code": 0.4}}`, or the path of a YAML file with them.
        storage_options: Settings of fsspec's file systems by protocol, such as
            `{"s3": {"endpoint_url": "http://..."}}`.
        memory: The maximum bytes of blocks of remote files in memory; also of groups of rows, in
            which Parquet is decoded. At least 1 MiB; default 64 MiB.

    Returns:
        The documents: `len(d)`, `d[i]`, `d[10:20]`, `for ids in d`, `d.batches(n)`,
        `d.shuffled(seed)`, `d.part(rank, ranks)`, `d.sequences(length)`, `d.to_torch()`,
        `d.to_arrow()`.

    Raises:
        UsageError: An argument is out of range, or the folder is of another kind.
        DataError: The folder is missing, not finished, or damaged, or no window is finished.
    """
    from bpe_beam.shards.dataset import MEMORY, open_dataset
    from bpe_beam.storage import Storage, path_name

    storage = Storage(storage_options or {})
    memory = MEMORY if memory is None else memory
    if mixture is None:
        return open_dataset(storage, path_name(url, "url"), memory=memory)  # type: ignore[arg-type]
    from bpe_beam.shards.mixed_reader import open_mixture

    pairs: list[tuple[str | None, Any]]
    pairs = (
        [(str(n), each) for n, each in url.items()] if isinstance(url, Mapping) else [(None, url)]
    )
    folders = [
        (name, path_name(each, "url"))
        for name, value in pairs
        for each in (value if isinstance(value, list | tuple) else [value])
    ]
    options = mixture if isinstance(mixture, Mapping) else path_name(mixture, "mixture")
    return open_mixture(storage, folders, options, memory)


def __getattr__(name: str) -> object:
    """Return a class of the package, or `bpe_beam.mix`."""
    if name == "mix":
        # A job, which this room does not import before someone asks for it here.
        return importlib.import_module("bpe_beam.api.mix").mix
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bpe_beam.shards import dataset, token_view

    globals()[name] = {**vars(token_view), **vars(dataset)}[name]
    return globals()[name]


def __dir__() -> list[str]:
    """Return the names of the package, also of what is not imported yet."""
    return sorted({*globals(), *__all__})
