"""The rows of a tokens folder's manifest: its shards, splits without tokens, and arrangement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import astuple

from bpe_beam.corpus.rejects import FileLoss
from bpe_beam.folders.artifact_names import PARTS
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.storage.json_file import Count

MAX_SEED = 2**32 - 1  # the greatest seed of an order

SHARD_TOKENS = 1 << 25
"""The maximum tokens of a shard, unless it is one row; a worker has them in memory."""

MAX_SEQUENCE_LENGTH = 1 << 22
"""The maximum tokens of a sequence: a plan has some rows for each, and takes minutes beyond."""


class SourceSlice(Struct, frozen=True, forbid_unknown_fields=True):
    """A slice of an input file.

    `file` is relative to the input's root; `start` is the first stored byte, `end` the one after
    the last.
    """

    file: str
    start: Count
    end: Count

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError(f"end must be at least start, {self.start}, got {self.end}")


class SourceTotals(Struct, frozen=True, forbid_unknown_fields=True):
    """The totals of one source in a shard or a run; see `Shard`."""

    documents: Count
    text_bytes: Count
    tokens: Count


def added_sources(
    rows: Iterable[dict[str, SourceTotals] | None],
) -> dict[str, SourceTotals] | None:
    """Return the totals of each source over all rows, sorted by name; None if no row has any."""
    rows_of: dict[str, list[SourceTotals]] = {}
    known = False
    for row in rows:
        known = known or row is not None
        for name, totals in (row or {}).items():
            rows_of.setdefault(name, []).append(totals)
    if not known:
        return None
    return {
        name: SourceTotals(*map(sum, zip(*map(astuple, rows_of[name]), strict=True)))
        for name in sorted(rows_of)
    }


class DocumentChanges(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The numbers of documents that rules changed, and of documents with doubled tokens."""

    dropped: Count = 0  # empty documents that were left out
    cut: Count = 0  # long documents that lost tokens
    split: Count = 0  # long documents that became several
    # Documents whose text begins with a token that is put before each document, or ends with one
    # that is put after each: it appears twice.
    doubled: Count = 0

    def __add__(self, other: DocumentChanges) -> DocumentChanges:
        return DocumentChanges(*map(sum, zip(astuple(self), astuple(other), strict=True)))


NO_CHANGES = DocumentChanges()


class TokenlessSplit(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A split of the plan without tokens: it has no shard.

    Attributes:
        split: The split's number in the plan, from 0.
        slices, documents, text_bytes, rejects, sources, changes: See `Shard`; the documents are
            empty.
    """

    tokens: ClassVar[int] = 0
    files: ClassVar[tuple[FileInfo, ...]] = ()

    split: Count
    slices: tuple[SourceSlice, ...]
    documents: Count
    text_bytes: Count
    rejects: Count
    sources: dict[str, SourceTotals] | None = None
    changes: DocumentChanges | None = None

    @property
    def name(self) -> str:
        """The split in messages."""
        return f"split {self.split}"


class Shard(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One shard: the tokens of one split of the plan."""

    name: str  # `shard-00003-of-00012`: its number among the shards, and the number of shards
    split: Count  # the split's number in the plan, from 0
    slices: tuple[SourceSlice, ...]  # the slices of input files that were read, in order
    documents: Count
    text_bytes: Count  # the text of its documents before tokenization, in bytes of UTF-8
    tokens: Count  # the number of its ids, appended and prepended ones included
    rejects: Count  # the number of records of its slices that could not be used
    files: tuple[FileInfo, ...]  # its files, in the order of the format's suffixes
    # What it has of each source, sorted by name; None without sources.
    sources: dict[str, SourceTotals] | None = None
    changes: DocumentChanges | None = None  # see `DocumentChanges`; None if all of it is 0


class Arrangement(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The order of documents, and the sequences made of them, as `__job` has them."""

    # The maximum tokens of a sequence; None: documents stay as they are.
    sequence_length: Annotated[int, Meta(ge=1)] | None = None
    # `concatenate` or `best_fit`; None without sequences.
    packing: Literal["concatenate", "best_fit"] | None = None
    # The maximum slices of documents in a sequence; None: no limit.
    max_documents_per_sequence: Annotated[int, Meta(ge=1)] | None = None
    # The token that fills each sequence; None: sequences may be shorter.
    pad_token: str | None = None
    # Chooses the order of documents or sequences; None: the order of the corpus.
    shuffle_seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    # The share of the documents that are for validation, such as `0.5%`.
    validation_share: str | None = None
    shard_tokens: Annotated[int, Meta(ge=1)] = SHARD_TOKENS  # about the maximum tokens of a shard
    # What decides whether a document is for validation: its `text`, its `id`, or of a mixture its
    # `tokens`.
    validation_by: Literal["text", "id", "tokens"] = "id"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that documents are divided into; one empty name if undivided."""
        return ("",) if self.validation_share is None else PARTS

    @property
    def rows(self) -> str:
        """The kind of the rows in words; rows with equal words are read alike."""
        if self.sequence_length is None:
            return "documents"
        pad = "" if self.pad_token is None else f", padded with {self.pad_token}"
        return f"sequences of {self.sequence_length:,} tokens, {self.packing}{pad}"

    @property
    def is_best_fit(self) -> bool:
        """True if sequences are planned from the lengths of all documents."""
        return self.packing == "best_fit"


class ArrangedCorpus(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The corpus whose documents were arranged, for training and validation together.

    Its fields are as in `Shard`, and `rejects` and `lost` as `Rejects` of a manifest has them.
    """

    text_bytes: Count
    rejects: dict[str, Count] = {}
    lost: tuple[FileLoss, ...] = ()
    sources: dict[str, SourceTotals] | None = None
    changes: DocumentChanges | None = None


class PartTexts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The size of the texts of a part of a corpus, in UTF-8, and its totals by source."""

    text_bytes: Count
    sources: dict[str, SourceTotals] | None = None


class ArrangedPart(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The facts of a manifest about shards whose documents were arranged."""

    settings: Arrangement
    # The corpus; None of sequences of several folders that were joined.
    corpus: ArrangedCorpus | None = None
    documents: Count  # the number of documents that the shards are made of
    tokens: Count  # the number of tokens of these documents, without padding
    padding: Count = 0  # the number of padding tokens in the shards
    part: str = ""  # `train` or `validation`; empty if documents were not divided
    texts: PartTexts | None = None  # the texts of these documents, if documents were divided
    # Of documents for validation that were chosen by their ids, those whose text is in
    # `train`, too; an estimate if there are over MAX_TEXTS documents in both parts.
    overlap: Count | None = None

    @property
    def figures(self) -> dict[str, int]:
        """The figures of a part in a summary.

        With documents for validation: how many of them have a text that is in training, too. A
        division by texts leaves none.
        """
        rows = {"documents": self.documents, "tokens": self.tokens}
        if self.part == PARTS[1] and self.settings.validation_by != "id":
            rows["documents_also_in_train"] = 0
        elif self.overlap is not None:
            rows["documents_also_in_train"] = self.overlap
        return rows

    @property
    def own_texts(self) -> PartTexts:
        """The texts of the documents that the shards are made of; 0 bytes if unknown."""
        if self.part or self.corpus is None:
            return self.texts or PartTexts(0)
        return PartTexts(self.corpus.text_bytes, self.corpus.sources)

    @staticmethod
    def joined(parts: Sequence[ArrangedPart]) -> ArrangedPart:
        """Return what a manifest says of the shards of several folders, one after the other.

        The result names no seed and no corpus.
        """
        first = parts[0]
        limits = {part.settings.max_documents_per_sequence for part in parts}
        names = {part.part for part in parts}
        return ArrangedPart(
            settings=Arrangement(
                sequence_length=first.settings.sequence_length,
                packing=first.settings.packing,
                max_documents_per_sequence=limits.pop() if len(limits) == 1 else None,
                pad_token=first.settings.pad_token,
            ),
            documents=sum(part.documents for part in parts),
            tokens=sum(part.tokens for part in parts),
            padding=sum(part.padding for part in parts),
            part=names.pop() if len(names) == 1 else "",
        )


class Totals(Struct, frozen=True, forbid_unknown_fields=True):
    """The sums over all shards and all splits without tokens; see `Shard`."""

    shards: Count
    documents: Count
    text_bytes: Count
    tokens: Count
    rejects: Count

    def __add__(self, other: Totals) -> Totals:
        return Totals(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @staticmethod
    def of(shards: Iterable[Shard], tokenless: Iterable[TokenlessSplit] = ()) -> Totals:
        """Return the sums."""
        rows: list[Shard | TokenlessSplit] = [*shards, *tokenless]
        return Totals(
            shards=sum(isinstance(row, Shard) for row in rows),
            documents=sum(row.documents for row in rows),
            text_bytes=sum(row.text_bytes for row in rows),
            tokens=sum(row.tokens for row in rows),
            rejects=sum(row.rejects for row in rows),
        )


def shard_row(
    files: tuple[FileInfo, ...], tokens: int, split: int, **known: Any
) -> Shard | TokenlessSplit:
    """Return the row of a shard with these files, or without files of a split without tokens.

    Of the fields that both have, unknown ones are 0 or empty.
    """
    row = {"split": split, "slices": (), "documents": 0, "text_bytes": 0, "rejects": 0, **known}
    if not files:
        return TokenlessSplit(**row)
    return Shard(name=files[0].name.partition(".")[0], tokens=tokens, files=files, **row)


def manifest_rows(rows: Iterable[Shard | TokenlessSplit]) -> Mapping[str, Any]:
    """Return the fields of a manifest that follow from its rows, by name."""
    rows = list(rows)
    shards = tuple(row for row in rows if isinstance(row, Shard))
    tokenless = tuple(row for row in rows if isinstance(row, TokenlessSplit))
    return {"shards": shards, "tokenless": tokenless, "totals": Totals.of(shards, tokenless)}
