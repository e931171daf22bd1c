"""The plan job: the files that the inputs name, and their splits.

Only the first bytes of each file are read.
"""

from __future__ import annotations

import statistics

from bpe_beam.corpus.plan import Plan, Split
from bpe_beam.corpus.split_planning import can_be_cut
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.corpus.summary import inputs_summary
from bpe_beam.jobs.output import prepare_file, write_json
from bpe_beam.messages import first_few, format_bytes, quoted
from bpe_beam.progress import Progress
from bpe_beam.settings.plan import PlanSettings
from bpe_beam.storage import Storage

_FEW = 5


def run(settings: PlanSettings, _progress: Progress) -> dict[str, object]:
    """Return the figures of a plan, and write it as JSON if the settings name an output."""
    storage = Storage(settings.run.storage_options)
    if settings.output is not None:
        prepare_file(storage, settings.output, "output")
    plan = corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    summary = {"job": "plan", **_figures(plan, settings.input.document_separator)}
    if settings.output is not None:
        write_json(plan.to_json(), settings.output, settings.run.storage_options)
    return summary


def _figures(plan: Plan, separator: str) -> dict[str, object]:
    sizes = sorted(split.size for split in plan.splits)
    largest = sorted(plan.files, key=lambda file: (-file.size, file.name))[:_FEW]
    large = [file for file in plan.files if file.size > plan.range_bytes]
    alone = [file.name for file in large if not can_be_cut(file, separator)]
    return {
        **inputs_summary(plan, alone),
        "bytes": plan.size,
        "largest_files": [f"{quoted(each.name)} ({format_bytes(each.size)})" for each in largest],
        "range_bytes": plan.range_bytes,
        "splits": len(plan.splits),
        "smallest_split_bytes": sizes[0],
        "median_split_bytes": round(statistics.median(sizes)),
        "largest_split_bytes": sizes[-1],
        "first_splits": [_split(plan, split) for split in plan.splits[:_FEW]],
        "fingerprint": plan.fingerprint(),
    }


def _split(plan: Plan, split: Split) -> str:
    """Return a split in words: its size and slices."""
    names = [
        f"{quoted(plan.files[each.file].name)}[{each.start}:{each.end}]" for each in split.slices
    ]
    return f"{format_bytes(split.size)}: {' '.join(first_few(names, _FEW))}"
