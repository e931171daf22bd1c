"""Summaries of jobs over a corpus: its files, its sources, losses, and warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct
from msgspec.structs import asdict

from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.read_settings import OTHER_SOURCE, pairs_of
from bpe_beam.corpus.rejects import FileLoss, lost_records
from bpe_beam.messages import first_few, format_bytes, list_few
from bpe_beam.workers.reject_limits import lost_in_words

if TYPE_CHECKING:
    from bpe_beam.corpus.plan import InputFile, Plan
    from bpe_beam.settings.common import InputSettings
    from bpe_beam.shards.manifest import Manifest

_SHOWN_FILES = 10
_IN_ARCHIVES = "in tar archives: hidden files, README, LICENSE and their like"


Rows = dict[str, Any]  # rows of a summary: values by the names of its fields

SourceFigures = dict[str, dict[str, object]]  # figures of each source by name


class Losses(Struct, frozen=True):
    """The losses in damaged files; `names` are the first ones."""

    bytes: int
    files: int
    records: int | None  # the number of lost records, as far as it is known
    names: list[str]


class CorpusSummary(Struct, frozen=True, kw_only=True):
    """The rows that the summaries of `count` and `tokenize` share."""

    job: str
    output: str
    was_finished_before: bool | None
    warnings: list[str] | None
    files: int
    files_excluded: int | None
    duplicate_inputs: list[str] | None
    links_not_followed: list[str] | None
    files_passed_over: list[str] | None
    by_format: dict[str, str]
    files_read_by_one_worker: list[str] | None
    documents: int
    text_bytes: int
    rejects: int
    rejects_by_reason: dict[str, int] | None
    lost: Losses | None
    seconds: float
    next: Sequence[str]
    runner: str | None
    workers: int | None
    text_bytes_per_second: int | None
    counters: dict[str, int] | None
    distributions: dict[str, object] | None


class TemplateSummary(Struct, frozen=True):
    """The summary of a job that was only described, as a template of the runner."""

    job: str
    output: str
    template: str | None


def inputs_summary(plan: Plan, not_split: Sequence[str]) -> Rows:
    passed_over = first_few(plan.passed_over, _SHOWN_FILES)
    if any(input_format(name).archive for name in {file.format for file in plan.files}):
        passed_over.append(_IN_ARCHIVES)
    return {
        "files": len(plan.files),
        "files_excluded": plan.excluded or None,
        "duplicate_inputs": first_few(plan.duplicates, _SHOWN_FILES) or None,
        "links_not_followed": first_few(plan.links, _SHOWN_FILES) or None,
        "files_passed_over": passed_over or None,
        "by_format": _by_format(plan.files),
        "files_read_by_one_worker": first_few(not_split, _SHOWN_FILES) or None,
    }


def _by_format(files: Iterable[InputFile]) -> dict[str, str]:
    """Return the number and size of the files of each format, in words."""
    sums: dict[str, list[int]] = {}
    for file in files:
        packed = "" if file.compression == "none" else f" in {file.compression}"
        row = sums.setdefault(f"{file.format}{packed}", [0, 0])
        row[0] += 1
        row[1] += file.size
    return {
        kind: f"{count:,} {'file' if count == 1 else 'files'}, {format_bytes(size)}"
        for kind, (count, size) in sorted(sums.items())
    }


def losses_summary(losses: Sequence[FileLoss]) -> Losses | None:
    """Return the losses in a manifest as a summary has them; None if there are none."""
    if not losses:
        return None
    return Losses(
        bytes=sum(loss.bytes for loss in losses),
        files=len(losses),
        records=lost_records(losses),
        names=first_few([loss.file for loss in losses], _SHOWN_FILES),
    )


def loss_warnings(losses: Sequence[FileLoss], stored_bytes: int) -> list[str]:
    """Return the warning about losses that the limit allowed."""
    if not losses:
        return []
    lost = lost_in_words(losses, stored_bytes)
    return [f"{lost}; documents that were read before the damage are kept"]


def source_figures(
    sources: Mapping[str, Any] | None, tokens: Mapping[str, int | None] | None = None
) -> SourceFigures | None:
    """Return the totals of each source, with its share of the text; None without sources.

    Where `tokens`, or the totals themselves, have the number of tokens, also the bytes per token.
    """
    if sources is None:
        return None
    rows = {name: asdict(totals) for name, totals in sources.items()}
    total = sum(row["text_bytes"] for row in rows.values())
    for name, row in rows.items():
        size, count = row["text_bytes"], row.pop("tokens", UNSET)
        row["share"] = size / total if total else None
        if tokens is not None:
            count = tokens[name]
        if count is not UNSET:
            row |= {"tokens": count, "bytes_per_token": size / count if count else None}
    return rows


def source_warnings(input_settings: InputSettings, sources: Collection[str] | None) -> list[str]:
    """Return a warning about sources without a document, whose names may be misspelt."""
    existing = sources or ()
    if input_settings.source_field is not None and set(existing) == {OTHER_SOURCE}:
        fields = list_few([repr(field) for _, field in pairs_of(input_settings.source_field)])
        return [f"no document names its source in {fields}: all are {OTHER_SOURCE!r}"]
    missing = sorted(pair for pair in input_settings.sources if pair[0] not in existing)
    if not missing:
        return []
    named = list_few([f"{name} ({glob})" for name, glob in missing])
    return [
        f"no document has the source {named}; a glob is compared with the file's name below the "
        "folder that all inputs are in, and the first that matches decides"
    ]


def mixed_figures(manifest: Manifest) -> SourceFigures:
    """Return the table of the sources of a mixture: what was asked, and what was taken."""
    mixture = manifest.mixture
    assert mixture
    sizes = manifest.texts_by_source
    asked = sum(each.target for each in mixture.sources.values())
    total = sum(each.tokens for each in sizes.values())
    table: SourceFigures = {}
    for name, each in mixture.sources.items():
        size = sizes.get(name)
        tokens = 0 if size is None else size.tokens
        table[name] = {
            "tokens_asked": each.target,
            "tokens": tokens,
            "share_asked": round(each.target / asked, 6),
            "share": round(tokens / total, 6) if total else None,
            "documents": 0 if size is None else size.documents,
            "epochs": round(tokens / each.tokens, 3),
            "tokens_there": each.tokens,
            "duplicates_dropped": each.dropped or None,
            "identity": each.identity,
        }
    return table
