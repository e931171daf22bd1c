"""The corpus cut into splits: the plan of a job's work.

The plan follows from the files' names, sizes and formats and from `range_bytes` alone. Nothing of a
file is looked at but its first bytes: where a compressed file has its units, the workers find out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from bpe_beam.corpus.boundaries import is_speculative
from bpe_beam.corpus.formats import input_format as format_named
from bpe_beam.corpus.listing import list_files
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import (
    WHOLE_FILE,
    check_document_separator,
    check_input_format,
)
from bpe_beam.corpus.streams.units import CUTTABLE
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

MIN_RANGE_BYTES = 16 << 20
MAX_RANGE_BYTES = 1 << 30
"""Bounds of the default `range_bytes` (16 MiB and 1 GiB)."""

MAX_SLICES_OF_SPLIT = 10_000
MAX_SLICES_OF_FILE = 1_000_000

_FACTS_CHARACTERS = 250
"""What is said of a slice and its file besides the name, at most."""


def make_plan(
    storage: Storage,
    inputs: Sequence[str],
    *,
    input_format: str = "auto",
    document_separator: str = "\n",
    range_bytes: int | None = None,
    exclude: Sequence[str] = (),
    cut_compressed: bool = True,
) -> Plan:
    """Finds the files and cuts them into splits.

    Files longer than `range_bytes` are cut into equal slices, but for those that can only be read
    from their start, see `can_be_cut`. Neighbours are bundled as long as a split stays within
    `range_bytes` (and 10,000 slices).

    Args:
        storage: The storage client.
        inputs: Paths, URLs, globs, or `@file`: a list with one of these a line, where blank lines
            and those that begin with `#` are skipped, and relative paths start at the working
            directory.
        input_format: One of INPUT_FORMAT_CHOICES; see `format_of` for "auto".
        document_separator: What stands between the documents of a text file; only "file" matters
            to the plan.
        range_bytes: How many stored bytes a split has at most, if its files can be cut. By
            default a thousandth of the corpus, within 16 MiB and 1 GiB.
        exclude: Files to leave out, named like the inputs.
        cut_compressed: Cut gzip and zstd files, too. Behind the first cut of such a file documents
            have no place in the corpus.

    Returns:
        The plan. Files named twice are in it once, and named in `duplicates`.

    Raises:
        UsageError: A setting is wrong, an input matches nothing or is a folder, there are no files
            or too many, or one has a format that cannot be read.
        DataError: Storage fails.
    """
    check_input_format(input_format)
    check_document_separator(document_separator)
    if range_bytes is not None and (isinstance(range_bytes, bool) or range_bytes < 1):
        raise UsageError(f"range-bytes is {range_bytes}; it must be at least 1")
    listing = list_files(
        storage, [inputs] if isinstance(inputs, str) else inputs, exclude, input_format
    )
    plan = plan_of_files(
        listing.root,
        listing.files,
        document_separator=document_separator,
        range_bytes=range_bytes,
        cut_compressed=cut_compressed,
    )
    return replace(plan, duplicates=listing.duplicates, excluded=listing.excluded)


def plan_of_files(
    root: str,
    files: tuple[InputFile, ...],
    *,
    document_separator: str,
    range_bytes: int | None,
    cut_compressed: bool = True,
    speculative: bool = True,
    split_characters: int | None = None,
) -> Plan:
    """Cuts files that are known, as `make_plan` does.

    Args:
        root: The folder that their names start at.
        files: The files, sorted by name.
        document_separator: As in `make_plan`, and the two below.
        range_bytes: How many stored bytes a split has at most, or None.
        cut_compressed: Cut gzip and zstd files, too.
        speculative: Also cut files in whose middle a reader must guess where records begin; their
            slices must then be proven to be contiguous; see `boundaries.py`.
        split_characters: How many characters the names and places of a split's slices have at
            most, for those who send splits in one slice_. A single slice may have more.
    """
    if range_bytes is None:
        total = sum(file.size for file in files)
        range_bytes = min(max(total // 1000, MIN_RANGE_BYTES), MAX_RANGE_BYTES)
    whole = frozenset() if speculative else frozenset(filter(is_speculative, files))
    pieces = _slices(files, range_bytes, document_separator, cut_compressed, whole)
    if split_characters is None:
        splits = _splits(pieces, range_bytes)
    else:
        widths = [len(json.dumps(file.name)) + _FACTS_CHARACTERS for file in files]
        splits = _splits(pieces, range_bytes, widths, split_characters)
    return Plan(root, files, tuple(splits), range_bytes=range_bytes)


def can_be_cut(file: InputFile, document_separator: str, cut_compressed: bool = True) -> bool:
    """Whether slices in the middle of a file can be read without the bytes before.

    A compressed file can where it may have many units (members, frames) and where a record's
    beginning shows in the bytes behind a unit's: a separator of several bytes could lie across.
    """
    format_ = format_named(file.format)
    if not format_.splittable or (format_.separated and document_separator == WHOLE_FILE):
        return False
    if file.compression == "none":
        return True
    if file.compression not in CUTTABLE or not cut_compressed:
        return False
    if format_.separated:
        return len(document_separator.encode()) == 1
    return format_.splittable_units


def _slices(
    files: Sequence[InputFile],
    range_bytes: int,
    document_separator: str,
    cut_compressed: bool = True,
    whole: Collection[InputFile] = (),
) -> Iterator[Slice]:
    for index, file in enumerate(files):
        cut = can_be_cut(file, document_separator, cut_compressed) and file not in whole
        count = max(1, -(-file.size // range_bytes)) if cut else 1
        if count > MAX_SLICES_OF_FILE:
            raise UsageError(
                f"range-bytes is {range_bytes}, which cuts {file.name!r} ({file.size} bytes) into "
                f"more than {MAX_SLICES_OF_FILE} slices; give at least "
                f"{-(-file.size // MAX_SLICES_OF_FILE)}"
            )
        for i in range(count):
            yield Slice(index, file.size * i // count, file.size * (i + 1) // count)


def _splits(
    pieces: Iterable[Slice],
    range_bytes: int,
    widths: Sequence[int] | None = None,
    max_width: int = 0,
) -> Iterator[Split]:
    index, size, width = 0, 0, 0
    bundle: list[Slice] = []
    for slice_ in pieces:
        more = slice_.end - slice_.start
        wider = widths[slice_.file] if widths else 0
        full = len(bundle) == MAX_SLICES_OF_SPLIT or width + wider > max_width
        if bundle and (size + more > range_bytes or full):
            yield Split(index, tuple(bundle))
            index, size, width, bundle = index + 1, 0, 0, []
        bundle.append(slice_)
        size += more
        width += wider
    yield Split(index, tuple(bundle))
