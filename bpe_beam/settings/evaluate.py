"""Settings of `evaluate`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.errors import require
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.settings.common import MESSAGES, RunSettings
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import BadValueError, parse_integers


def _check_sizes(sizes: tuple[int, ...]) -> None:
    for size in sizes:
        if not 1 <= size <= MAX_VOCAB_SIZE:
            raise BadValueError(f"must be from 1 to {MAX_VOCAB_SIZE:,}, got {size:,}")


@dataclass(frozen=True)
class EvaluateSettings(Settings):
    """Settings of `evaluate`: tokenizers, and the counts that they are evaluated on."""

    tokenizers: tuple[str, ...] = option(
        flag="--tokenizer",
        metavar="F",
        kind="many",
        help="tokenizer.json files or the folders that have them; paths or URLs.",
    )
    counts: str = option(metavar="DIR", help="Folder that count wrote.")
    vocab_sizes: tuple[int, ...] = option(
        (),
        metavar="N,N,...",
        kind="list",
        help="Also show what the first merges would do: vocabularies of these sizes. For BPE.",
        parse=parse_integers,
        check=_check_sizes,
    )
    output: str | None = option(
        None,
        metavar="F",
        help="Write the report to a path or URL that ends in .json or .csv (default: JSON on "
        "stdout).",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

    def check(self) -> None:
        """Refuse an output of another format, and a runner."""
        require(
            self.output is None or self.output.endswith((".json", ".csv")),
            f"must end in .json or .csv, got {self.output!r}",
            "output",
        )
        require(
            self.run.in_process and not self.run.runner_options,
            "evaluate runs in this process: it has no runner and no flags of a runner",
        )
