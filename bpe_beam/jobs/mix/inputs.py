"""What a mixture is made of: the folders and the options, as the command names them."""

from __future__ import annotations

from bpe_beam.folders.folder_checks import refuse_own_folder
from bpe_beam.settings.mix import MixSettings
from bpe_beam.shards.mixture import MixtureOptions, read_mixture
from bpe_beam.shards.mixture_folders import MixedFolders, mixed_folders
from bpe_beam.storage import Storage


def read_inputs(settings: MixSettings, storage: Storage) -> MixedFolders:
    """Return the folders; refuse folders that cannot be mixed."""
    named = [_named(each, storage) for each in settings.folders]
    refuse_own_folder(settings.output, tuple(folder for _, folder in named))
    return mixed_folders(storage, named)


def _named(value: str, storage: Storage) -> tuple[str | None, str]:
    """Return the name and the folder of NAME=FOLDER; without a name it is None."""
    name, equals, folder = value.partition("=")
    if not (equals and name and folder) or storage.exists(value):
        return None, value
    if "/" in name and not storage.exists(folder):  # a glob such as data/lang=*/tokens
        return None, value
    return name, folder


def read_options(settings: MixSettings, storage: Storage) -> MixtureOptions:
    """Return the options of the mixture: of its file, unless the command has them too."""
    if settings.mixture is None:
        return settings.options
    return read_mixture(storage, settings.mixture).replaced_by(settings.options)
