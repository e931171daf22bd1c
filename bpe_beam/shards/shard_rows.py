"""The rows of a tokens folder's manifest: its shards, and the splits without tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bpe_beam.folders.file_info import FileInfo
from bpe_beam.messages import shortened
from bpe_beam.shards.numbering import shard_name
from bpe_beam.storage.json_fields import check_sha256, read_object

_TOKENLESS = {"split": int, "slices": list, "documents": int, "text_bytes": int, "rejects": int}
_SHARD = {"name": str, **_TOKENLESS, "tokens": int, "files": list}
_SOURCE = {"documents": int, "text_bytes": int, "tokens": int}
_SLICE = {"file": str, "start": int, "end": int}
_FILE = {"name": str, "bytes": int, "sha256": str}


@dataclass(frozen=True)
class SourceSlice:
    """A part of an input file.

    Attributes:
        file: its name, relative to the input's root.
        start: the first byte, in the stored file.
        end: the byte after the last.
    """

    file: str
    start: int
    end: int


@dataclass(frozen=True)
class SourceTotals:
    """What a shard, or a run, has of one source; as in `Shard`."""

    documents: int
    text_bytes: int
    tokens: int


@dataclass(frozen=True)
class TokenlessSplit:
    """A split of the plan in which there was no token: no shard is written of it.

    Attributes:
        split: the split's number in the plan, from 0.
        slices, documents, text_bytes, rejects, sources: as in `Shard`; the documents are empty.
    """

    split: int
    slices: tuple[SourceSlice, ...]
    documents: int
    text_bytes: int
    rejects: int
    sources: Mapping[str, SourceTotals] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the split as JSON values, keys in the order of the file."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {**values, "slices": list(values["slices"])}


@dataclass(frozen=True)
class Shard:
    """One shard: the tokens of one split of the plan.

    Attributes:
        name: `shard-00003-of-00012`: its number among the shards, and how many there are.
        split: the split's number in the plan, from 0.
        slices: what was read, in order.
        documents: how many documents it holds.
        text_bytes: their text before tokenization, in bytes of UTF-8.
        tokens: how many ids it holds, appended and prepended ones included.
        rejects: how many records of its slices could not be used.
        files: what was written.
        sources: what it has of each source, in the order of their names; None where sources were
            not counted separately.
    """

    name: str
    split: int
    slices: tuple[SourceSlice, ...]
    documents: int
    text_bytes: int
    tokens: int
    rejects: int
    files: tuple[FileInfo, ...]
    sources: Mapping[str, SourceTotals] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the shard as JSON values, keys in the order of the file."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {**values, "slices": list(values["slices"]), "files": list(values["files"])}


@dataclass(frozen=True)
class Totals:
    """The sums over all shards."""

    shards: int
    documents: int
    text_bytes: int
    tokens: int
    rejects: int

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(sum, zip(vars(self).values(), vars(other).values(), strict=True)))

    @staticmethod
    def of(shards: Iterable[Shard], tokenless: Iterable[TokenlessSplit] = ()) -> Totals:
        """Return the sums over shards and over splits without tokens."""
        rows = [(1, s.documents, s.text_bytes, s.tokens, s.rejects) for s in shards]
        rows += [(0, s.documents, s.text_bytes, 0, s.rejects) for s in tokenless]
        return Totals(*map(sum, zip(*rows, strict=True))) if rows else Totals(0, 0, 0, 0, 0)


def read_file(value: object, place: str) -> FileInfo:
    """Return what a row says of a file; `place` is where the row is, for errors."""
    fields = read_object(value, place, _FILE)
    check_sha256(fields["sha256"], f"{place}.sha256")
    return FileInfo(**fields)


def _split_fields(
    value: object, place: str, types: Mapping[str, type], sources: bool
) -> dict[str, Any]:
    """Return the fields of a row, its slices and sources read."""
    fields = read_object(value, place, {**types, "sources": dict} if sources else types)
    if sources:
        fields["sources"] = {
            source: SourceTotals(**read_object(facts, f"{place}.sources[{source!r}]", _SOURCE))
            for source, facts in fields["sources"].items()
        }
    slices = []
    for number, row in enumerate(fields["slices"]):
        piece = SourceSlice(**read_object(row, f"{place}.slices[{number}]", _SLICE))
        if piece.end < piece.start:
            raise ValueError(
                f"{place}.slices[{number}].end is {piece.end}; expected {piece.start} or more"
            )
        slices.append(piece)
    return {**fields, "slices": tuple(slices)}


def read_tokenless(value: object, index: int, sources: bool) -> TokenlessSplit:
    """Return a split without tokens.

    Args:
        value: The row's JSON values.
        index: The row's number in its list.
        sources: Whether rows have sources.

    Raises:
        ValueError: The row is not such a split.
    """
    place = f"splits_without_tokens[{index}]"
    return TokenlessSplit(**_split_fields(value, place, _TOKENLESS, sources))


def read_shard(
    value: object, index: int, count: int, suffixes: tuple[str, ...], sources: bool
) -> Shard:
    """Return a shard.

    Args:
        value: The row's JSON values.
        index: The shard's number.
        count: The number of shards.
        suffixes: What the names of its files end in.
        sources: Whether rows have sources.

    Raises:
        ValueError: The row is not such a shard.
    """
    place = f"shards[{index}]"
    fields = _split_fields(value, place, _SHARD, sources)
    name = shard_name(index, count)
    if fields["name"] != name:
        raise ValueError(f"{place}.name is {shortened(fields['name'])}; expected {name!r}")
    files = []
    for number, row in enumerate(fields["files"]):
        file = read_file(row, f"{place}.files[{number}]")
        # Only these names are opened by whoever follows the manifest; none can lead elsewhere.
        if number >= len(suffixes) or file.name != f"{name}{suffixes[number]}":
            raise ValueError(
                f"{place}.files[{number}].name is {shortened(file.name)}; expected "
                f"{' and '.join(name + suffix for suffix in suffixes)}, in this order"
            )
        files.append(file)
    if len(files) != len(suffixes):
        raise ValueError(f"{place}.files has {len(files)} files; expected {len(suffixes)}")
    return Shard(**{**fields, "files": tuple(files)})
