"""The definition of a format of input files: recognising, splitting and reading them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa

from bpe_beam.corpus.formats import INPUT_FORMATS
from bpe_beam.corpus.slices import SliceRequest


class InputFormat(msgspec.Struct, frozen=True):
    """A format of input files.

    Attributes:
        name: Its name for `--input-format` and in plans, and the name of its module.
        read: Yields the batches of a slice, of BATCH_SCHEMA and of 1 to MAX_BATCH_ROWS documents.
            Raises DataError if storage fails, the file is not as long as planned, has an invalid
            header, or no column of texts.
        endings: The ends of the names of such files, with the dot and in lower case.
        columnar: Whether a file has columns of rows. Such a file compresses by itself, its magic
            bytes rule out every other format, and rows give the positions of documents.
        splittable: Whether a slice in the middle of an uncompressed file can be read.
        splittable_units: Whether a slice that begins with a gzip member or a zstd frame can be
            read: the bytes after the unit's start show where a record begins.
        separated: Whether documents end at the document separator of the settings. The separator
            "file" makes a file one document; units are splittable if it is a single byte.
        archive: Whether a file contains files, each of them a document.
        speculative: Whether the reader has to guess where the records of a slice in the middle of
            an uncompressed file begin; see `boundaries.py` for the proof.
        recognises: Returns whether the first bytes of a content, decompressed, show the format;
            None: only the name shows it.
        check_head: Raises UsageError if the first bytes of the content show that it is another
            format or an unread form of this one; None if nothing is checked.
    """

    name: str
    read: Callable[[SliceRequest], Iterator[pa.RecordBatch]]
    endings: tuple[str, ...] = ()
    columnar: bool = False
    splittable: bool = True
    splittable_units: bool = False
    separated: bool = False
    archive: bool = False
    speculative: bool = False
    recognises: Callable[[bytes], bool] | None = None
    check_head: Callable[[bytes], None] | None = None


@functools.cache
def input_format(name: str) -> InputFormat:
    """Return the format with this name, one of INPUT_FORMATS."""
    if name not in INPUT_FORMATS:
        raise ValueError(f"format must be one of {', '.join(INPUT_FORMATS)}, got {name!r}")
    format_: InputFormat = importlib.import_module(f"bpe_beam.corpus.formats.{name}").FORMAT
    return format_
