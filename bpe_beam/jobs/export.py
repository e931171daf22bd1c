"""The export job: a tokenizer in the form of another library."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from bpe_beam.jobs.output import write_stdout
from bpe_beam.progress import Progress
from bpe_beam.settings.export import ExportSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.files import sentencepiece_writing, tiktoken_file, transformers_files
from bpe_beam.tokenizer.files.hugging_face_ids import check_ids
from bpe_beam.tokenizer.tokenizer import Tokenizer


class ExportSummary(Struct, frozen=True):
    """The summary of `export`: the bytes of the files that were written, by path."""

    job: str
    format: str
    files: dict[str, int]
    warnings: list[str] | None


def run(settings: ExportSettings, _progress: Progress) -> ExportSummary:
    """Write a tokenizer in another form, and the paths of its files to stdout.

    Files that exist are replaced, each atomically.
    """
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    files = _WRITERS[settings.format](tokenizer)
    if settings.format == "transformers":
        files = transformers_files.write_folder(settings.output, files, storage)
    else:
        (data,) = files.values()
        storage.write_bytes(settings.output, data)
        files = {settings.output: data}
    write_stdout("".join(f"{path}\n" for path in files).encode())
    sizes = {path: len(data) for path, data in files.items()}
    warning = tokenizer.file_warning if settings.format == "tokenizer_json" else None
    return ExportSummary("export", settings.format, sizes, [warning] if warning else None)


def _tokenizer_json(tokenizer: Tokenizer) -> dict[str, bytes]:
    check_ids(tokenizer.spec)
    return {transformers_files.TOKENIZER_FILE: tokenizer.json_bytes}


def _transformers(tokenizer: Tokenizer) -> dict[str, bytes]:
    return tokenizer.pretrained_files()


def _sentencepiece(tokenizer: Tokenizer) -> dict[str, bytes]:
    named = tokenizer.roles
    roles = {role: named[role] for role in sentencepiece_writing.ROLES if role in named}
    data = sentencepiece_writing.write(tokenizer.spec, roles)
    return {sentencepiece_writing.SENTENCEPIECE_FILE: data}


def _tiktoken(tokenizer: Tokenizer) -> dict[str, bytes]:
    return {".tiktoken": tiktoken_file.write(tokenizer.spec)}


_WRITERS: dict[str, Callable[[Tokenizer], dict[str, bytes]]] = {
    "tokenizer_json": _tokenizer_json,
    "transformers": _transformers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
}
