"""The output of `evaluate`: the report as an HTML page, JSON, CSV or text."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from bpe_beam.evaluation.metrics import Metrics, Tally
from bpe_beam.evaluation.report import Report, to_csv
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.jobs.output import STDOUT, prepare_file, write_stdout
from bpe_beam.messages import quoted
from bpe_beam.progress import Progress
from bpe_beam.settings.evaluate import EvaluateSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import json_bytes
from bpe_beam.terminal import Terminal

if TYPE_CHECKING:
    from bpe_beam.evaluation.counted import CountedParts
    from bpe_beam.html_report.figures import Evaluated

_COLUMNS = {
    "bytes_per_token": "bytes/token",
    "tokens_per_word": "tokens/word",
    "words_kept_whole": "kept whole",
    "vocabulary_used_share": "used",
    "rare_vocabulary_share": "rare",
    "renyi_efficiency": "Rényi",
}
"""The figures of the format `text`, and their headings."""

_BY_SOURCE = ("bytes_per_token", "tokens_per_word", "words_kept_whole")
"""The figures of a source: the others depend on its size."""


class ReportOutput:
    """Writes the report of an evaluation in the format of its settings."""

    def __init__(self, settings: EvaluateSettings, storage: Storage, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._storage = storage
        self._evaluated: dict[str, Evaluated] = {}
        self._in_html = settings.chosen_format == "html"
        if self._in_html:  # a sample that cannot be read is refused before any work
            from bpe_beam.html_report.samples import read_samples

            self._samples = read_samples(storage, settings.samples)
        # A wrong name is refused before any work, too.
        prepare_file(storage, settings.file or STDOUT, "output")

    def keep(self, name: str, vocabulary: Vocabulary, total: Tally) -> None:
        """Keep what a page needs of a tokenizer."""
        if self._in_html:
            from bpe_beam.html_report.figures import Evaluated

            self._evaluated[name] = Evaluated(vocabulary, total)

    def write(self, report: Report, words: CountedParts | None) -> None:
        """Write the report to the output, or to stdout without one."""
        output = self._settings.file
        data = self._bytes(report, words)
        if output is None:
            write_stdout(data)
        else:
            self._storage.write_bytes(output, data)

    def _bytes(self, report: Report, words: CountedParts | None) -> bytes:
        kind = self._settings.chosen_format
        if kind == "csv":
            return to_csv(report)
        if kind == "text":
            stream = sys.stdout if self._settings.file is None else io.StringIO()
            return text_of(report, Terminal(stream)).encode()
        values = msgspec.to_builtins(report)
        if kind == "json":
            return json_bytes(values)
        from bpe_beam.html_report.page import page, page_steps

        evaluated = [self._evaluated[one.name] for one in report.tokenizers]
        with self._progress.stage("report", page_steps(len(evaluated), words), "steps") as stage:
            content = (values, evaluated, self._samples, words)
            return page(*content, on_step=lambda: stage.advance(1))


def text_of(report: Report, terminal: Terminal) -> str:
    """Return a few figures of each tokenizer and size as aligned tables: of all text, by source."""
    vocabularies = [
        (quoted(one.name) if one.exact else f"{quoted(one.name)} (not exact)", figures)
        for one in report.tokenizers
        for figures in (*one.curve, one.figures)
    ]
    heading = ("tokenizer", "vocabulary", *_COLUMNS.values())
    rows = [heading, *(_cells(name, one.vocab_size, one.total) for name, one in vocabularies)]
    tables = [terminal.table(rows, right=range(1, len(heading)))]
    sources = sorted({source for _, one in vocabularies for source in one.sources or ()})
    if sources:
        rows = [
            (quoted(source), *_cells(name, one.vocab_size, one.sources[source], _BY_SOURCE))
            for source in sources
            for name, one in vocabularies
            if one.sources and source in one.sources
        ]
        rows.insert(0, ("source", *heading[:2], *(_COLUMNS[key] for key in _BY_SOURCE)))
        tables.append(terminal.table(rows, right=range(2, len(rows[0]))))
    return "\n".join("".join(f"{line}\n" for line in table) for table in tables)


def _cells(
    name: str, vocab_size: int, metrics: Metrics, keys: Iterable[str] = _COLUMNS
) -> tuple[str, ...]:
    values = (getattr(metrics, key, None) for key in keys)
    return name, f"{vocab_size:,}", *("-" if value is None else f"{value:.3f}" for value in values)
