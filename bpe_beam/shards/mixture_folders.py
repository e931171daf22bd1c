"""The folders of a mixture: their sources, and what their manifests say that these have."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from bpe_beam.errors import UsageError, require
from bpe_beam.folders import folder_checks
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.shards.folder_reader import finished_manifest
from bpe_beam.shards.manifest import ENCODING, Manifest, kind_of_tokens
from bpe_beam.shards.mixture_documents import InputFolder, source_of_all
from bpe_beam.shards.windows import chosen_folders
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute


class SourceSize(Struct, frozen=True):
    """What a source has in one epoch."""

    documents: int
    tokens: int


class MixedFolders(Struct, frozen=True):
    """The folders that are mixed, with their manifests, and the size of each source in them."""

    folders: list[InputFolder]
    manifests: list[Manifest]
    sizes: dict[str, SourceSize]

    @property
    def first(self) -> Manifest:
        """The manifest of the first folder: all share its tokenizer and settings of encoding."""
        return self.manifests[0]


def check_name(name: str | None) -> None:
    """Refuse a source that NAME=FOLDER cannot name."""
    require(
        name is None or (name != "" and "=" not in name),
        f"must have names of sources without =, got {name!r}",
        "folders",
    )


def mixed_folders(storage: Storage, named: Sequence[tuple[str | None, str]]) -> MixedFolders:
    """Return the folders that pairs of a source, or None, and a folder mean.

    A folder may be a glob or the output of a stream. Without a source, documents have their own
    sources; where they have none, it is the short name of the folder.

    Raises:
        UsageError: The folders cannot be mixed, with the parameter `folders`.
    """
    require(bool(named), "must have a folder", "folders")
    for name, _ in named:
        check_name(name)
    typed = [folder for _, folder in named]
    folder_checks.refuse_twice(typed, "its documents would appear twice")
    short = folder_checks.short_names(typed)
    rows = [
        (name, fallback, folder)
        for (name, argument), fallback in zip(named, short, strict=True)
        for folder in chosen_folders(storage, [argument], readable=True).folders
    ]
    urls = [folder for _, _, folder in rows]
    folder_checks.refuse_equal(urls, "its documents would appear twice")
    manifests = side_by_side(lambda folder: finished_manifest(storage, folder), urls)
    for url, manifest in zip(urls, manifests, strict=True):
        if manifest.sequences is not None:
            raise UsageError(
                f"must be folders of documents, got {redact(url)}, which has sequences",
                ("folders",),
                "give the folder that the sequences were made of",
            )
    folder_checks.refuse_unlike(
        urls,
        [kind_of_tokens(each, ENCODING) for each in manifests],
        "these shards cannot be mixed",
        "tokenize with the same tokenizer and settings",
    )
    folders = []
    sizes: dict[str, SourceSize] = {}
    for (name, fallback, url), manifest in zip(rows, manifests, strict=True):
        source = name or source_of_all(manifest, fallback)
        folders.append(InputFolder(absolute(url), manifest.format, source))
        for own, totals in manifest.texts_by_source.items():
            key = source if source is not None else str(own)
            known = sizes.get(key, SourceSize(0, 0))
            sizes[key] = SourceSize(
                known.documents + totals.documents, known.tokens + totals.tokens
            )
    return MixedFolders(folders, manifests, sizes)
