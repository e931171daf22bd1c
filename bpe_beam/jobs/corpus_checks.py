"""Checks that enough of a corpus could be read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bpe_beam.corpus.first_records import TRIED_RECORDS, tried_in_vain
from bpe_beam.corpus.limits import Limit
from bpe_beam.corpus.losses import FileLoss, lost_records
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.record_names import names_in
from bpe_beam.errors import DataError
from bpe_beam.jobs.corpus_input import read_settings
from bpe_beam.messages import and_more, first_few, format_bytes
from bpe_beam.settings.common import InputSettings
from bpe_beam.storage import Storage

_WORST_FILES = 5
_SHOWN_FILES = 10
_SHOWN_BYTES = 80
_ARRAYS = " (JSON Lines have an object on each line; jq -c '.[]' makes them of an array)"


def check_first_records(storage: Storage, plan: Plan, given: InputSettings) -> None:
    """Refuse a corpus whose first records all fail for one reason, before the rest is read.

    Nothing is read if a tenth of the records, or two thousand, may be rejects.

    Args:
        storage: The storage client.
        plan: The plan.
        given: The input settings, with the limit of rejects.

    Raises:
        DataError: Names the reason, a record, and what to do.
    """
    limit = Limit.parse(given.max_rejects)
    if not limit.exceeded(TRIED_RECORDS, 10 * TRIED_RECORDS):
        return
    tried = tried_in_vain(storage, plan, read_settings(given))
    if tried is None or tried.first is None:
        return
    first, files = tried.first, len(tried.files)
    begins = f", which begins {first.data[:_SHOWN_BYTES]!r}" if first.data else ""
    arrays = _ARRAYS if first.data.startswith(b"[") else ""
    raise DataError(
        f"{tried.records:,} records, the first of {files:,} of the {len(plan.files):,} files, all "
        f"fail for one reason: {first.reason}{names_in(first.to_json(), given.text_field)}. The "
        f"first is in {first.file} at {first.position}{begins}. No more was read",
        remedy=f"check {{text_field}} and {{input_format}}{arrays}, or read everything with "
        "{max_rejects} 10% or more",
    )


class CorpusTotals(NamedTuple):
    """What a manifest says of the corpus.

    Attributes:
        documents: The documents that were read.
        rejects: Rows of `rejects/`, by reason: records that could not be used, and losses.
        lost: What is lost of each damaged file.
        sources: The sources of the documents; None without sources.
    """

    documents: int
    rejects: Mapping[str, int]
    lost: Sequence[FileLoss]
    sources: Collection[str] | None


def check_documents(
    storage: Storage,
    url: str,
    given: InputSettings,
    totals: CorpusTotals,
    stored_bytes: int,
    files: Sequence[str],
) -> None:
    """Refuse a corpus without documents, with too many rejects, or with too large losses.

    Args:
        storage: The storage client.
        url: The job's folder.
        given: The limits of rejects and losses.
        totals: What was read.
        stored_bytes: The size of all files.
        files: The rejects' files, relative to the folder.

    Raises:
        DataError: Says what is wrong and where to look.
    """
    documents, rejects = totals.documents, sum(totals.rejects.values())
    rows = _Rows(storage, url, files, given.text_field)
    where = storage.join(url, "rejects")
    found = totals.lost
    lost = sum(loss.bytes for loss in found)
    if Limit.parse(given.max_lost, "max_lost").exceeded(lost, stored_bytes):
        raise DataError(
            f"{given.max_lost} is exceeded: {_lost_in_words(found, stored_bytes)}: "
            f"{rows.losses(found)}. Each loss has a line in {where}",
            ("max_lost",),
            "get intact copies of these files, leave them out with {exclude}, or allow the loss "
            "with {max_lost}: the same command then resumes",
        )
    records = documents + rejects - sum(loss.positions for loss in found)
    bad = records - documents
    if Limit.parse(given.max_rejects).exceeded(bad, records):
        raise DataError(
            f"{given.max_rejects} is exceeded: {bad:,} of {records:,} records could not be used, "
            f"most of them in {rows.worst()}. They are listed in {where}",
            ("max_rejects",),
            "repair the input, or allow more with {max_rejects}: the same command then resumes"
            if documents
            else f"check {{text_field}} and {{input_format}}{_ARRAYS}",
        )
    if documents == 0 and rejects:
        raise DataError(
            f"there is no document: none of the {rejects:,} records could be used; most of them in "
            f"{rows.worst()}. They are listed in {where}"
        )
    if documents == 0:
        raise DataError(f"the corpus is empty: no document in {', '.join(given.inputs)}")


def _lost_in_words(losses: Sequence[FileLoss], stored_bytes: int) -> str:
    """Return how much was lost, in a sentence: "1.2 MB of 24 MB (5%) are lost, in 2 files"."""
    lost = sum(loss.bytes for loss in losses)
    share = f"{100 * lost / stored_bytes:.3g}%" if stored_bytes else "all"
    records = lost_records(losses)
    known = f", {records:,} records" if records else ""
    count = len(losses)
    return (
        f"{format_bytes(lost)} of the {format_bytes(stored_bytes)} of the input ({share}) are "
        f"lost, in {count:,} damaged file{'' if count == 1 else 's'}{known}"
    )


def losses_summary(losses: Sequence[FileLoss]) -> dict[str, Any] | None:
    """Return what a summary says of the losses in a manifest; None where nothing was lost."""
    if not losses:
        return None
    return {
        "bytes": sum(loss.bytes for loss in losses),
        "files": len(losses),
        "records": lost_records(losses),
        "names": first_few([loss.file for loss in losses], _SHOWN_FILES),
    }


def loss_warnings(losses: Sequence[FileLoss], stored_bytes: int) -> list[str]:
    """Return the warning about losses that the limit allowed.

    Args:
        losses: The losses in the job's manifest.
        stored_bytes: The size of all files.
    """
    if not losses:
        return []
    lost = _lost_in_words(losses, stored_bytes)
    return [f"{lost}; documents that came of them before the damage showed are kept"]


class _Rows:
    """The rows of the files of rejects, for messages; read on demand."""

    def __init__(self, storage: Storage, url: str, files: Iterable[str], text_field: str) -> None:
        self._storage = storage
        self._urls = [storage.join(url, *name.split("/")) for name in files]
        self._text_field = text_field

    def worst(self) -> str:
        """Return the input files with the most rejects, one reason each, as text."""
        counts: Counter[str] = Counter()
        first: dict[str, dict[str, Any]] = {}
        for row in self._rows():
            if "lost_bytes" in row:
                continue
            counts[row["file"]] += 1
            first.setdefault(row["file"], row)
        return "; ".join(
            f"{name} ({count:,}, the first at {self._first(first[name], not number)})"
            for number, (name, count) in enumerate(counts.most_common(_WORST_FILES))
        )

    def losses(self, losses: Iterable[FileLoss]) -> str:
        """Return the files that lost most, one reason each, as text."""
        worst = sorted(losses, key=lambda loss: (-loss.bytes, loss.file))
        shown = worst[:_WORST_FILES]
        names = {loss.file for loss in shown}
        first: dict[str, dict[str, Any]] = {}
        for row in self._rows():
            if row["file"] in names and "lost_bytes" in row:
                first.setdefault(row["file"], row)
        texts = [f"{loss.file} ({format_bytes(loss.bytes)}{_why(first, loss)})" for loss in shown]
        more = len(worst) - len(shown)
        return "; ".join(texts) + (f"; {and_more(more)} files" if more else "")

    def _first(self, row: dict[str, Any], with_names: bool) -> str:
        names = names_in(row, self._text_field) if with_names else ""
        return f"{_position(row)}: {row['reason']}{names}"

    def _rows(self) -> Iterable[dict[str, Any]]:
        for url in self._urls:
            with self._storage.open(url) as stream:
                for line in stream:
                    yield json.loads(line)


def _position(row: dict[str, Any]) -> str:
    if "row" in row:
        return f"row {row['row']}"
    return "the whole file" if row["offset"] is None else f"byte {row['offset']}"


def _why(first: dict[str, dict[str, Any]], loss: FileLoss) -> str:
    row = first.get(loss.file)
    return "" if row is None else f" at {_position(row)}: {row['reason']}: {row['detail'][:300]}"
