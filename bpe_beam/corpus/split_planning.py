"""The corpus divided into splits: the plan of a job's tasks.

Only the first bytes of a file are read: the workers find the units of a compressed file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from bpe_beam.corpus.boundaries import is_speculative
from bpe_beam.corpus.formats.interface import input_format as format_named
from bpe_beam.corpus.listing import list_files
from bpe_beam.corpus.plan import InputFile, Plan, Slice, Split
from bpe_beam.corpus.read_settings import WHOLE_FILE
from bpe_beam.corpus.streams import UNIT_START
from bpe_beam.errors import require
from bpe_beam.storage import Storage

MIN_RANGE_BYTES = 16 << 20
MAX_RANGE_BYTES = 1 << 30
"""Bounds of the default `range_bytes` (16 MiB and 1 GiB)."""

MAX_SLICES_OF_SPLIT = 10_000
MAX_SLICES_OF_FILE = 1_000_000

_SLICE_CHARACTERS = 250
"""An upper bound of the characters that a slice and its file take in a task's JSON, without the
file's name."""


def make_plan(
    storage: Storage,
    inputs: Sequence[str],
    *,
    input_format: str = "auto",
    document_separator: str = "\n",
    range_bytes: int | None = None,
    exclude: Sequence[str] = (),
    cut_compressed: bool = True,
    outputs: Sequence[str] = (),
) -> Plan:
    """Return the plan of the files that the inputs name.

    Files longer than `range_bytes` are divided into equal slices if `can_be_cut` allows it.
    Adjacent slices share a split as long as it stays within `range_bytes` and MAX_SLICES_OF_SPLIT.
    """
    if range_bytes is not None:
        require(range_bytes >= 1, f"must be at least 1, got {range_bytes}", "range_bytes")
    listed = list_files(storage, inputs, exclude, input_format, outputs)
    plan = plan_of_files(
        listed.root,
        listed.files,
        document_separator=document_separator,
        range_bytes=range_bytes,
        cut_compressed=cut_compressed,
    )
    return replace(listed, splits=plan.splits, range_bytes=plan.range_bytes)


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
    """Return the plan of files that are known, divided as `make_plan` does."""
    if range_bytes is None:
        total = sum(file.size for file in files)
        range_bytes = min(max(total // 1000, MIN_RANGE_BYTES), MAX_RANGE_BYTES)
    slices: list[Slice] = []
    for number, file in enumerate(files):
        cut = can_be_cut(file, document_separator, cut_compressed)
        if cut and (speculative or not is_speculative(file)):
            slices += _slices_of(number, file, range_bytes)
        else:
            slices.append(Slice(number, 0, file.size))
    lengths = [0] * len(files)
    if split_characters is not None:
        lengths = [len(json.dumps(file.name)) + _SLICE_CHARACTERS for file in files]
    splits = _splits(slices, range_bytes, lengths, split_characters or 0)
    return Plan(root, files, tuple(splits), range_bytes=range_bytes)


def can_be_cut(file: InputFile, document_separator: str, cut_compressed: bool = True) -> bool:
    """Return whether slices in the middle of a file can be read without the bytes before.

    A compressed file must be able to have many units (members, frames), and the bytes after a
    unit's start must show where a record begins: a separator of several bytes could lie across two
    units.
    """
    format_ = format_named(file.format)
    if not format_.splittable or (format_.separated and document_separator == WHOLE_FILE):
        return False
    if file.compression == "none":
        return True
    splittable = format_.splittable_units or (
        format_.separated and len(document_separator.encode()) == 1
    )
    return cut_compressed and file.compression in UNIT_START and splittable


def _slices_of(number: int, file: InputFile, range_bytes: int) -> Iterator[Slice]:
    """Yield equal slices of a file of at most `range_bytes`, or one of an empty file."""
    count = max(1, -(-file.size // range_bytes))
    divided = f"{file.name!r} ({file.size} bytes) into over {MAX_SLICES_OF_FILE} slices"
    minimum = -(-file.size // MAX_SLICES_OF_FILE)
    message = f"must be at least {minimum}, got {range_bytes}, which divides {divided}"
    require(count <= MAX_SLICES_OF_FILE, message, "range_bytes")
    for i in range(count):
        yield Slice(number, file.size * i // count, file.size * (i + 1) // count)


def _splits(
    slices: Iterable[Slice], range_bytes: int, lengths: Sequence[int], max_characters: int
) -> Iterator[Split]:
    """Yield splits of adjacent slices, as large as `range_bytes` and `max_characters` allow.

    `lengths` has the characters that a slice of each file takes in a task.
    """
    index, size, characters = 0, 0, 0
    bundle: list[Slice] = []
    for slice_ in slices:
        more = slice_.end - slice_.start
        length = lengths[slice_.file]
        full = len(bundle) == MAX_SLICES_OF_SPLIT or characters + length > max_characters
        if bundle and (size + more > range_bytes or full):
            yield Split(index, tuple(bundle))
            index, size, characters, bundle = index + 1, 0, 0, []
        bundle.append(slice_)
        size += more
        characters += length
    yield Split(index, tuple(bundle))
