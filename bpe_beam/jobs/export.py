"""The export job: a tokenizer in the form of another library."""

from __future__ import annotations

from msgspec import Struct

from bpe_beam.jobs.output import write_stdout
from bpe_beam.progress import Progress
from bpe_beam.settings.export import ExportSettings
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.files import sentencepiece_file, tiktoken_file, transformers_files
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
    storage, format_name = Storage(settings.run.storage_options), settings.format
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    if format_name == "transformers":
        files = tokenizer.pretrained_files()
        files = transformers_files.write_folder(settings.output, files, storage)
    else:
        data = _file(tokenizer, format_name)
        storage.write_bytes(settings.output, data)
        files = {settings.output: data}
    write_stdout("".join(f"{path}\n" for path in files).encode())
    sizes = {path: len(data) for path, data in files.items()}
    warning = tokenizer.file_warning if format_name == "tokenizer_json" else None
    return ExportSummary("export", format_name, sizes, [warning] if warning else None)


def _file(tokenizer: Tokenizer, format_name: str) -> bytes:
    """Return the content of the one file of a format."""
    if format_name == "tiktoken":
        return tiktoken_file.write(tokenizer.spec)
    if format_name == "sentencepiece":
        named = tokenizer.roles
        roles = {role: named[role] for role in sentencepiece_file.ROLES if role in named}
        return sentencepiece_file.write(tokenizer.spec, roles)
    check_ids(tokenizer.spec)
    return tokenizer.json_bytes
