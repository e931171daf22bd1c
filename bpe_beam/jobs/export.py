"""The export job: a tokenizer in the form of another library."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bpe_beam.jobs.standard_streams import write_stdout
from bpe_beam.progress import Progress
from bpe_beam.settings.tools import ExportSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local, join
from bpe_beam.tokenizer import (
    published_folder,
    sentencepiece_writing,
    tiktoken_file,
    transformers_files,
)
from bpe_beam.tokenizer.hugging_face_ids import check_ids
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.tokenizer.transformers_files import ModelInput


class ExportSummary(Struct, frozen=True):
    """The summary of `export`: the bytes of the files that were written, by path."""

    job: str
    format: str
    files: dict[str, int]
    warnings: list[str] | None


def run(settings: ExportSettings, _progress: Progress) -> ExportSummary:
    """Write a tokenizer in another form, and the paths of its files to stdout.

    Files that exist are replaced, each atomically.

    Raises:
        UsageError: The tokenizer is not supported, or the form cannot represent it.
    """
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    files = _WRITERS[settings.format](tokenizer, settings.tokenizer, storage)
    if settings.format == "transformers":
        storage.make_folder(settings.output)
        files = {join(settings.output, name): data for name, data in files.items()}
    else:
        (data,) = files.values()
        files = {settings.output: data}
    for path, data in files.items():
        storage.write_bytes(path, data)
    write_stdout("".join(f"{path}\n" for path in files).encode())
    sizes = {path: len(data) for path, data in files.items()}
    warning = tokenizer.spec.file_warning if settings.format == "tokenizer_json" else None
    return ExportSummary("export", settings.format, sizes, [warning] if warning else None)


def _tokenizer_json(tokenizer: Tokenizer, _path: str, _storage: Storage) -> dict[str, bytes]:
    check_ids(tokenizer.spec)
    return {transformers_files.TOKENIZER_FILE: tokenizer.json_bytes}


def _transformers(tokenizer: Tokenizer, path: str, storage: Storage) -> dict[str, bytes]:
    folder = _folder_of(path, storage)
    beside = transformers_files.written_beside(tokenizer.spec, _model_input(folder, storage))
    files = {**_tokenizer_json(tokenizer, path, storage), **beside}
    name = transformers_files.CHAT_TEMPLATE_FILE
    if folder is not None and name in storage.list_names(folder):
        files[name] = storage.read_bytes(join(folder, name))
    return files


def _sentencepiece(tokenizer: Tokenizer, path: str, storage: Storage) -> dict[str, bytes]:
    named = _model_input(_folder_of(path, storage), storage).roles
    roles = {role: token for role, token in named.items() if role in sentencepiece_writing.ROLES}
    data = sentencepiece_writing.write(tokenizer.spec, roles)
    return {sentencepiece_writing.SENTENCEPIECE_FILE: data}


def _tiktoken(tokenizer: Tokenizer, _path: str, _storage: Storage) -> dict[str, bytes]:
    return {".tiktoken": tiktoken_file.write(tokenizer.spec)}


_WRITERS: dict[str, Callable[[Tokenizer, str, Storage], dict[str, bytes]]] = {
    "tokenizer_json": _tokenizer_json,
    "transformers": _transformers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
}


def _folder_of(path: str, storage: Storage) -> str | None:
    """Return the folder of a tokenizer's file, or the path of a folder; None if it has no name."""
    if storage.is_folder(path):
        return path
    folder, slash, _ = path.rpartition("/")
    if not slash and is_local(path):
        return "."
    return folder if slash and not folder.endswith("/") else None


def _model_input(folder: str | None, storage: Storage) -> ModelInput:
    """Return the roles of special tokens and the length of the input that a folder's files name."""
    return ModelInput() if folder is None else published_folder.model_input(folder, storage)
