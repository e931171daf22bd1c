"""The tokenize job: a corpus and a tokenizer to a folder of token shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe_beam.corpus.plan import Plan
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import TokenizeSettings

if TYPE_CHECKING:
    from bpe_beam.jobs.corpus.summary import TemplateSummary
    from bpe_beam.jobs.tokenize.documents import TokenizeSummary


def run(
    settings: TokenizeSettings, progress: Progress, *, plan: Plan | None = None
) -> TokenizeSummary | TemplateSummary:
    """Tokenize a corpus in the mode that the settings choose; each mode has its own imports."""
    from bpe_beam.jobs.tokenize.inputs import read_inputs

    inputs = read_inputs(settings, plan)
    if len(settings.formats) > 1:
        from bpe_beam.jobs.tokenize.several_formats import tokenize_to_each

        return tokenize_to_each(inputs, progress)
    if settings.arranging.arrangement is not None:
        from bpe_beam.jobs.tokenize.arrange import tokenize_arranged

        return tokenize_arranged(inputs, progress)
    from bpe_beam.jobs.tokenize.documents import tokenize_documents

    return tokenize_documents(inputs, progress)
