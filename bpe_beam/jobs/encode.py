"""The encode job: the ids of one text, on stdout."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec

from bpe_beam.errors import DataError
from bpe_beam.jobs.output import prompt_on_terminal, read_stdin
from bpe_beam.progress import Progress
from bpe_beam.settings.encode import EncodeSettings
from bpe_beam.storage import Storage
from bpe_beam.terminal import Terminal, visible
from bpe_beam.tokenizer.tokenizer import Tokenizer

_BACKGROUNDS = ("on cyan", "on yellow", "on green", "on magenta")


class EncodeSummary(msgspec.Struct, frozen=True):
    """The summary of `encode`."""

    job: str
    text_bytes: int
    characters: int
    tokens: int


def run(settings: EncodeSettings, progress: Progress) -> EncodeSummary:
    """Print the ids of a text on one line, or a table of its tokens."""
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    if tokenizer.spec.warning:
        progress.warn(tokenizer.spec.warning)
    text = _text_of_stdin() if settings.text is None else settings.text
    allowed: Literal["all"] | Collection[str]
    allowed = () if settings.allowed_special == "none" else settings.allowed_special
    added = settings.add_special_tokens
    if settings.show:
        tokens, ids, offsets = tokenizer.encode_with_offsets(
            text, allowed_special=allowed, add_special_tokens=added
        )
        for line in _lines(text, tokens, ids, offsets, Terminal(sys.stdout)):
            print(line)
    else:
        ids = tokenizer.encode(text, allowed_special=allowed, add_special_tokens=added)
        print(*ids)
    return EncodeSummary("encode", len(text.encode("utf-8")), len(text), len(ids))


def _text_of_stdin() -> str:
    """Return standard input without one newline at its end, which a shell's `echo` adds."""
    prompt_on_terminal("the text")
    data = read_stdin()
    try:
        return data.removesuffix(b"\n").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"standard input is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start:,}"
        ) from error


def _lines(
    text: str, tokens: list[str], ids: list[int], offsets: list[tuple[int, int]], terminal: Terminal
) -> Iterator[str]:
    """Yield the text with its tokens in colours, on a terminal that has them, and a table.

    Columns of the table: tokens, ids, offsets in characters, and the text there.
    """
    if terminal.colours and ids:
        yield from terminal.flow(_coloured(text, offsets))
        yield ""
    rows = [("token", "id", "offsets", "text")]
    for token, token_id, (start, end) in zip(tokens, ids, offsets, strict=True):
        # A special token may have control characters, which a terminal would execute.
        shown = token if token.isprintable() else repr(token)
        rows.append((shown, str(token_id), f"{start}-{end}", repr(text[start:end])))
    yield from terminal.table(rows, right=(1, 2), styles=("cyan", "", "dim", ""))


def _coloured(text: str, offsets: list[tuple[int, int]]) -> Iterator[tuple[str, str]]:
    """Yield slices of a text with their styles: neighbouring tokens have different backgrounds.

    Tokens within one character are coloured as one.
    """
    done = number = 0
    for start, end in offsets:
        if end <= done:
            continue
        begin = max(start, done)
        yield visible(text[done:begin]), ""
        yield visible(text[begin:end]), _BACKGROUNDS[number % len(_BACKGROUNDS)]
        done, number = end, number + 1
    yield visible(text[done:]), ""
