"""The folders of a mixture: their sources, and what their manifests say that these have."""

from __future__ import annotations

from msgspec import Struct

from bpe_beam.errors import UsageError
from bpe_beam.folders.receipts import side_by_side
from bpe_beam.jobs import folder_checks
from bpe_beam.settings.mix import MixSettings
from bpe_beam.shards.manifest import ENCODING, Manifest, read_manifest
from bpe_beam.shards.mixture import MixtureOptions, read_mixture
from bpe_beam.shards.mixture_documents import InputFolder, source_of_all
from bpe_beam.shards.windows import chosen_folders
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.names import absolute


class SourceSize(Struct, frozen=True):
    """What a source has in one epoch."""

    documents: int
    tokens: int


class MixInputs(Struct, frozen=True):
    """The folders that are mixed, with their manifests, and the size of each source in them."""

    folders: list[InputFolder]
    manifests: list[Manifest]
    sizes: dict[str, SourceSize]

    @property
    def first(self) -> Manifest:
        """The manifest of the first folder: all share its tokenizer and settings of encoding."""
        return self.manifests[0]


def read_inputs(settings: MixSettings, storage: Storage) -> MixInputs:
    """Return the folders; refuse folders that cannot be mixed."""
    named = [_named(each, storage) for each in settings.folders]
    typed = tuple(folder for _, folder in named)
    folder_checks.refuse_twice(typed, "its documents would appear twice")
    folder_checks.refuse_own_folder(settings.output, typed)
    short = folder_checks.short_names(typed)
    pairs = [
        (name, name or short[number], folder)
        for number, (name, argument) in enumerate(named)
        for folder in chosen_folders(storage, [argument], readable=True).folders
    ]
    urls = [folder for _, _, folder in pairs]
    folder_checks.refuse_equal(urls, "its documents would appear twice")
    manifests = side_by_side(lambda folder: read_manifest(storage, folder), urls)
    for url, manifest in zip(urls, manifests, strict=True):
        if manifest.sequences is not None:
            raise UsageError(
                f"must be folders of documents, got {redact(url)}, which has sequences",
                ("folders",),
                "give the folder that the sequences were made of",
            )
    folder_checks.refuse_unlike(
        urls,
        [folder_checks.kind_of_tokens(each, ENCODING) for each in manifests],
        "these shards cannot be mixed",
        "tokenize with the same tokenizer and settings",
    )
    folders = []
    sizes: dict[str, SourceSize] = {}
    for (name, fallback, url), manifest in zip(pairs, manifests, strict=True):
        source = name or source_of_all(manifest, fallback)
        folders.append(InputFolder(absolute(url), manifest.format, source))
        for own, totals in manifest.texts_by_source.items():
            key = source if source is not None else str(own)
            known = sizes.get(key, SourceSize(0, 0))
            sizes[key] = SourceSize(
                known.documents + totals.documents, known.tokens + totals.tokens
            )
    return MixInputs(folders, manifests, sizes)


def _named(value: str, storage: Storage) -> tuple[str | None, str]:
    """Return the name and the folder of NAME=FOLDER; without a name it is None."""
    name, equals, folder = value.partition("=")
    if not (equals and name and folder) or "/" in name or storage.exists(value):
        return None, value
    return name, folder


def read_options(settings: MixSettings, storage: Storage) -> MixtureOptions:
    """Return the options of the mixture: of its file, unless the command has them too."""
    if settings.mixture is None:
        return settings.options
    return read_mixture(storage, settings.mixture).replaced_by(settings.options)
