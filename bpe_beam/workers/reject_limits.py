"""The check that enough of a corpus, or of a window of a stream, is usable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import FileLoss, Limit, RejectReason, lost_records, names_in
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import REJECTS
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.messages import and_more, format_bytes
from bpe_beam.storage.json_file import JsonObject

_WORST_FILES = 5
_MEND_FILES = "get intact copies of these files, leave them out with {exclude}, or "

ARRAYS = " (JSON Lines have an object on each line; jq -c '.[]' makes them of an array)"


class CorpusTotals(NamedTuple):
    """A manifest's facts about the corpus."""

    documents: int
    rejects: Mapping[str, int]  # rows of `__rejects/`, by reason: unusable records, and losses
    lost: Sequence[FileLoss]
    sources: Collection[str] | None = None
    dropped: int = 0  # empty documents that were left out

    @property
    def unusable(self) -> int:
        """The number of unusable records."""
        return sum(self.rejects.values()) - sum(loss.positions for loss in self.lost)


class WindowSums(NamedTuple):
    """The amounts of windows that the limits of a stream count."""

    documents: int = 0
    unusable: int = 0  # records
    lost_bytes: int = 0
    stored_bytes: int = 0

    @staticmethod
    def of(totals: CorpusTotals, stored_bytes: int) -> WindowSums:
        """Return the amounts of a corpus or window."""
        lost = sum(loss.bytes for loss in totals.lost)
        return WindowSums(totals.documents, totals.unusable, lost, stored_bytes)

    def plus(self, other: WindowSums) -> WindowSums:
        """Return the sums of both."""
        return WindowSums(*map(sum, zip(self, other, strict=True)))


def check_limits(
    folder: TaskFolder,
    totals: CorpusTotals,
    stored_bytes: int,
    files: Iterable[str],
    *,
    max_rejects: str,
    max_lost: str,
    reading: ReadSettings,
) -> None:
    """Refuse a corpus with too many rejects, or with too large losses."""
    limits = max_rejects, max_lost
    error = exceeded_limit(folder, totals, stored_bytes, files, limits, reading)
    if error is not None:
        raise error


def exceeded_limit(
    folder: TaskFolder,
    totals: CorpusTotals,
    stored_bytes: int,
    files: Iterable[str],
    limits: tuple[str, str],
    reading: ReadSettings,
    earlier: WindowSums | None = None,
) -> DataError | None:
    """Return the error of too many rejects, or of too large losses; None within `limits`.

    Args:
        folder: The folder of the job or window, which has the files of rejects.
        totals: What the folder's manifest says about the corpus.
        stored_bytes: The size of its input.
        files: The names of the files of rejects.
        limits: `max_rejects` and `max_lost`.
        reading: The settings of reading.
        earlier: For a window of a stream, the sums of the windows before it, which count too.
    """
    max_rejects, max_lost = limits
    window = earlier is not None
    where = folder.path(REJECTS)
    documents, bad, lost_bytes, stored = WindowSums.of(totals, stored_bytes).plus(
        earlier or WindowSums()
    )
    if Limit.parse(max_lost, "max_lost").exceeded(lost_bytes, stored):
        before = ""
        if earlier is not None and earlier.lost_bytes:
            of_earlier = format_bytes(earlier.stored_bytes)
            before = (
                f", after {format_bytes(earlier.lost_bytes)} of {of_earlier} in earlier windows"
            )
        return DataError(
            f"{max_lost} is exceeded: {lost_in_words(totals.lost, stored_bytes)}{before}: "
            f"{_greatest_losses(folder, files, totals.lost)}. Each loss has a line in {where}",
            ("max_lost",),
            ("" if window else _MEND_FILES)
            + "allow the loss with {max_lost}: the same command then resumes",
        )
    if Limit.parse(max_rejects).exceeded(bad, documents + bad):
        remedy = "allow more with {max_rejects}: the same command then resumes"
        if not window and totals.documents:
            remedy = f"repair the input, or {remedy}"
            if RejectReason.FIELD_MISSING.value in totals.rejects:
                other = "name the field of files that lack it with {text_field} FILE=FIELD"
                remedy = f"{other}, {remedy}"
        elif not window:
            remedy = f"check {{text_field}} and {{input_format}}{ARRAYS}"
        more = ""
        if earlier is not None and any(earlier):
            more = f", {totals.unusable:,} of them in this window"
        return DataError(
            f"{max_rejects} is exceeded: {bad:,} of {documents + bad:,} records are unusable"
            f"{more}. {files_with_rejects(folder, files, reading)}. All are listed in {where}",
            ("max_rejects",),
            remedy,
        )
    return None


def lost_in_words(losses: Sequence[FileLoss], stored_bytes: int) -> str:
    """Return the losses as a sentence: "1.2 MB of 24 MB (5%) are lost, in 2 files"."""
    lost = sum(loss.bytes for loss in losses)
    share = f"{100 * lost / stored_bytes:.3g}%" if stored_bytes else "all"
    records = lost_records(losses)
    known = f", {records:,} records" if records else ""
    count = len(losses)
    return (
        f"{format_bytes(lost)} of the {format_bytes(stored_bytes)} of the input ({share}) are "
        f"lost, in {count:,} damaged file{'' if count == 1 else 's'}{known}"
    )


def files_with_rejects(folder: TaskFolder, files: Iterable[str], reading: ReadSettings) -> str:
    """Return the input files with the most rejects, each with its first reason, as text."""
    counts: Counter[str] = Counter()
    first: dict[str, JsonObject] = {}
    for row in _rows(folder, files):
        if "lost_bytes" not in row:
            counts[row["file"]] += 1
            first.setdefault(row["file"], row)
    texts = []
    for number, (name, count) in enumerate(counts.most_common(_WORST_FILES)):
        row = first[name]
        names = "" if number else names_in(row, reading.text_field_of(name))
        detail = names or (f", {row['detail'][:300]}" if row["detail"] else "")
        reason = f"{_position(row)}: {row['reason']}{detail}"
        records = "record" if count == 1 else "records"
        texts.append(f"{name}: {count:,} {records}, first at {reason}")
    return "; ".join(texts)


def _greatest_losses(folder: TaskFolder, files: Iterable[str], losses: Sequence[FileLoss]) -> str:
    """Return the files with the greatest losses, each with its first reason, as text."""
    shown = sorted(losses, key=lambda loss: (-loss.bytes, loss.file))[:_WORST_FILES]
    why = dict.fromkeys((loss.file for loss in shown), "")
    for row in _rows(folder, files):
        if "lost_bytes" in row and why.get(row["file"]) == "":
            why[row["file"]] = f" at {_position(row)}: {row['reason']}: {row['detail'][:300]}"
    texts = [f"{loss.file} ({format_bytes(loss.bytes)}{why[loss.file]})" for loss in shown]
    more = len(losses) - len(shown)
    return "; ".join([*texts, f"{and_more(more)} files"] if more else texts)


def _rows(folder: TaskFolder, files: Iterable[str]) -> Iterator[JsonObject]:
    for name in files:
        with folder.storage.open(folder.path(name)) as stream:
            yield from map(json.loads, stream)


def _position(row: JsonObject) -> str:
    if "row" in row:
        return f"row {row['row']}"
    return "the whole file" if row["offset"] is None else f"byte {row['offset']}"
