"""The decode job: the text of ids, on stdout."""

from __future__ import annotations

import sys

import msgspec

from bpe_beam.errors import DataError
from bpe_beam.jobs.output import prompt_on_terminal, read_stdin, write_stdout
from bpe_beam.progress import Progress
from bpe_beam.settings.decode import DecodeSettings
from bpe_beam.settings.parsing import parse_ids
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer


class DecodeSummary(msgspec.Struct, frozen=True):
    """The summary of `decode`."""

    job: str
    tokens: int
    text_bytes: int


def run(settings: DecodeSettings, _progress: Progress) -> DecodeSummary:
    """Write the text of ids to stdout, with a newline on a terminal."""
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    ids = settings.ids
    if ids is None:
        prompt_on_terminal("the ids")
        try:
            ids = parse_ids(read_stdin().decode("ascii", "backslashreplace"))
        except ValueError as error:
            raise DataError(f"standard input {error}") from None
    data = tokenizer.decode_bytes(ids)
    write_stdout(data + b"\n" if sys.stdout.isatty() else data)
    return DecodeSummary("decode", len(ids), len(data))
