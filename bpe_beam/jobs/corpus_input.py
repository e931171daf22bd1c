"""What the jobs that read a corpus share: its plan, what identifies their work, its rejects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from bpe_beam.corpus import Plan, ReadSettings, RejectLimit, make_plan
from bpe_beam.errors import DataError
from bpe_beam.jobs.output import OutputFolder, Receipt
from bpe_beam.jobs.settings import InputSettings
from bpe_beam.storage import Storage
from bpe_beam.transforms.split_work import piece_name, rejects_name

_WORST_FILES = 5


def read_settings(given: InputSettings) -> ReadSettings:
    """How the given files become documents."""
    return ReadSettings(
        input_format=given.input_format,
        text_field=given.text_field,
        id_field=given.id_field,
        document_separator=given.document_separator,
        source_field=given.source_field,
        sources=given.sources,
    )


def plan_of(storage: Storage, given: InputSettings) -> Plan:
    """The plan of the given files.

    Raises:
        UsageError: No such files.
    """
    return make_plan(
        storage,
        list(given.inputs),
        input_format=given.input_format,
        document_separator=given.document_separator,
        range_bytes=given.range_bytes,
    )


def identity(given: InputSettings, plan: Plan) -> dict[str, Any]:
    """What a job's results depend on, of its input; stands in `job.json`."""
    return {
        "reading": {
            "input_format": given.input_format,
            "text_field": given.text_field,
            "id_field": given.id_field,
            "document_separator": given.document_separator,
            **_sources(given),
        },
        "plan": {
            "files": len(plan.files),
            "bytes": plan.size,
            "splits": len(plan.splits),
            "fingerprint": plan.fingerprint(),
        },
    }


def _sources(given: InputSettings) -> dict[str, Any]:
    """How documents are told apart by source; nothing where they are not, as before there was."""
    if given.source_field is not None:
        return {"source_field": given.source_field}
    return {"sources": [list(pair) for pair in given.sources]} if given.sources else {}


def rejects_names(plan: Plan) -> list[str]:
    """The files that rejects may go to, one a split."""
    return [rejects_name(split.index, len(plan.splits)) for split in plan.splits]


def done_splits(folder: OutputFolder, plan: Plan, kind: str) -> dict[int, Receipt]:
    """The splits that an earlier run finished, by number."""
    receipts = {
        split.index: folder.receipt(piece_name(kind, split.index, len(plan.splits)))
        for split in plan.splits
    }
    return {index: receipt for index, receipt in receipts.items() if receipt is not None}


def done_shards(folder: OutputFolder, plan: Plan) -> dict[int, Receipt]:
    """As `done_splits`, of a job that writes a shard a split."""
    return done_splits(folder, plan, "shard")


def all_receipts(folder: OutputFolder, pieces: Iterable[str]) -> dict[str, Receipt]:
    """The receipts of all pieces, once they are finished.

    Raises:
        DataError: One is gone, which a run beside this one has removed.
    """
    receipts = folder.receipts()
    missing = [piece for piece in pieces if piece not in receipts]
    if missing:
        raise DataError(
            f"{folder.url}: the receipt of {missing[0]} is gone: another run of this job works in "
            "the same folder, or has finished there; when it has ended, run this one again"
        )
    return receipts


def sums(facts: Iterable[Mapping[str, Any]], *names: str) -> dict[str, int]:
    """Adds facts of pieces up, by name."""
    rows = list(facts)
    return {name: sum(row[name] for row in rows) for name in names}


def reject_reasons(facts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Rejects by reason, over all pieces."""
    reasons: Counter[str] = Counter()
    for row in facts:
        reasons.update(row["rejects"])
    return dict(sorted(reasons.items()))


def check_documents(
    folder: OutputFolder, given: InputSettings, documents: int, rejects: int, files: list[str]
) -> None:
    """Refuses a corpus without documents, or with too many rejects.

    Args:
        folder: The job's folder.
        given: Tells how many rejects are too many.
        documents: Documents that were read.
        rejects: Records that could not be used.
        files: The rejects' files, relative to the folder.

    Raises:
        DataError: Says what is wrong and where to look.
    """
    if RejectLimit.parse(given.max_rejects).exceeded(rejects, documents + rejects):
        raise DataError(
            f"{rejects:,} of {documents + rejects:,} records could not be used, more than "
            f"--max-rejects {given.max_rejects}; most of them in {_worst(folder, files)}. Look at "
            f"{folder.path('rejects')}, then mend the input, or allow more with --max-rejects: "
            "the same command then goes on from here"
        )
    if documents == 0:
        raise DataError(f"the corpus is empty: no document in {', '.join(given.inputs)}")


def _worst(folder: OutputFolder, files: Iterable[str]) -> str:
    """The input files with the most rejects, one reason each."""
    counts: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for name in files:
        with folder.storage.open(folder.path(name)) as stream:
            for line in stream:
                row = json.loads(line)
                counts[row["file"]] += 1
                reasons.setdefault(row["file"], f"byte {row['offset']}: {row['reason']}")
    return "; ".join(
        f"{name} ({count:,}, the first at {reasons[name]})"
        for name, count in counts.most_common(_WORST_FILES)
    )
