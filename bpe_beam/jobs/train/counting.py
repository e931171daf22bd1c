"""Counting the corpus of a train job, into the folder `counts` of its output."""

from __future__ import annotations

import msgspec

from bpe_beam.corpus.plan import Plan
from bpe_beam.folders.output_folder import COUNTS
from bpe_beam.jobs import count
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.jobs.train.summary import MEASURED, Rows
from bpe_beam.progress import Progress
from bpe_beam.settings.count import CountSettings
from bpe_beam.training.recipe import DEFAULT_TIE_BREAK

_OF_INPUT_FILES = (
    "files_excluded",
    "duplicate_inputs",
    "links_not_followed",
    "files_passed_over",
    "by_format",
    "files_read_by_one_worker",
)
"""The rows of the count job's summary about the input, which this job's summary repeats."""


def counting_settings(plan: TrainingPlan) -> CountSettings:
    """Return the settings of counting the corpus into the output."""
    settings = plan.settings
    assert settings.input is not None
    return CountSettings(
        input=settings.input,
        output=plan.storage.join(settings.folder, COUNTS),
        run=settings.run,
        normalizer=settings.corpus_normalizer,
        pretokenizer=settings.corpus_pretokenizer,
        special_tokens=plan.extracted,
        tie_break=settings.tie_break or DEFAULT_TIE_BREAK,
    )


def count_corpus(plan: TrainingPlan, corpus: Plan, progress: Progress) -> Rows:
    """Count the corpus, and return rows of the count job's summary."""
    summary = msgspec.to_builtins(
        count.run(counting_settings(plan), progress, plan=corpus, added_tokens=plan.added_tokens)
    )
    return {key: summary[key] for key in (*_OF_INPUT_FILES, *MEASURED) if key in summary}
