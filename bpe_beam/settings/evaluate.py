"""Settings of `evaluate`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import PurePosixPath

from bpe_beam.errors import UsageError, require
from bpe_beam.settings.common import MESSAGES, InputSettings, RunSettings, pretokenizer_option
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import BadValueError, parse_integers
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

FORMATS = ("html", "json", "csv", "text")
_ENDINGS = {".html": "html", ".json": "json", ".csv": "csv", ".txt": "text"}


VocabSize = int | tuple[str, int]  # a size, or the name of a tokenizer and a size of it


def _parse_sizes(texts: Sequence[str]) -> tuple[VocabSize, ...]:
    """Return the sizes of lists such as `16k,32k` or `a=16k,32k,b=8k`."""
    sizes: list[VocabSize] = []
    for text in texts:
        name = ""
        numbers = parse_integers([re.sub("[^,]*=", "", text)])
        for item, size in zip(text.split(","), numbers, strict=True):
            name = item.rpartition("=")[0] or name
            sizes.append((name, size) if name else size)
    return tuple(sizes)


def _check_sizes(sizes: tuple[VocabSize, ...]) -> None:
    for size in (one if isinstance(one, int) else one[1] for one in sizes):
        if not 1 <= size <= MAX_VOCAB_SIZE:
            raise BadValueError(f"must be from 1 to {MAX_VOCAB_SIZE:,}, got {size:,}")


class EvaluateSettings(Settings, frozen=True):
    """Settings of `evaluate`: tokenizers, and the counts or texts to evaluate them on.

    A tokens folder contains its tokenizer.
    """

    tokenizers: tuple[str, ...] = option(
        (),
        flag="--tokenizer",
        metavar="[NAME=]F",
        kind="many",
        help="Tokenizers: tokenizer.json, a SentencePiece .model, a tekken.json, a .tiktoken "
        "file, or folders with a tokenizer; paths or URLs. NAME is the name in the report "
        "(default: its file or folder).",
    )
    tiktoken_pretokenizers: tuple[str, ...] = option(
        (),
        flag="--tiktoken-pretokenizer",
        metavar="[NAME=]P",
        kind="many",
        help="Pre-tokenizer for .tiktoken files, which do not contain one: a value of train's "
        "--pretokenizer. NAME= limits it to one tokenizer. OpenAI's files need none.",
    )
    counts: str | None = option(
        None,
        metavar="DIR",
        help="Folder that count wrote, to evaluate on its counts instead of --input.",
    )
    tokens: tuple[str, ...] = option(
        (),
        metavar="DIR",
        kind="many",
        help="Folders that tokenize wrote, to evaluate their tokens and tokenizers instead of "
        "--input.",
    )
    input: InputSettings | None = part(InputSettings, None)
    pretokenizer: str | None = pretokenizer_option(None)
    work: str | None = option(
        None,
        metavar="DIR",
        help="Folder that keeps the counts of --input. A killed run resumes from it, and a later "
        "run takes seconds. Required with --runner.",
        default_help="a temporary folder",
    )
    vocab_sizes: tuple[VocabSize, ...] = option(
        (),
        metavar="[NAME=]N,N,...",
        kind="list",
        help="Also show smaller vocabularies of these sizes, made of the first merges. Only for "
        "BPE. NAME= limits the sizes to one tokenizer. Sizes without NAME= apply to the "
        "tokenizers that train wrote, or to all tokenizers if none of them is from train.",
        parse=_parse_sizes,
        check=_check_sizes,
    )
    parallel: str | None = option(
        None,
        metavar="SOURCE",
        help="If all sources are translations of one text: show the number of tokens of each "
        "source divided by the number of tokens of SOURCE.",
    )
    mixture: str | None = option(
        None,
        metavar="F.yaml",
        help="File of a mixture, as mix reads it: show the bytes per token and the tokens per word "
        "of the sources in the shares of the mixture.",
    )
    output: str | None = option(
        None,
        metavar="F",
        help="Write the report to this path or URL, which ends in .html, .json, .csv or .txt; - "
        "is stdout (default: stdout, as text on a terminal and as JSON elsewhere).",
    )
    format: str | None = option(
        None,
        metavar="FORMAT",
        help="Format of the report. html: one page for a browser. json: all figures. csv: a row "
        "for each tokenizer, size and source. text: a few figures of each tokenizer.",
        default_help="by the ending of --output; on stdout, text on a terminal and json elsewhere",
        choices=FORMATS,
    )
    samples: tuple[str, ...] = option(
        (),
        flag="--sample",
        metavar="F",
        kind="many",
        help="Text files whose tokens the HTML report shows, up to 10,000 characters each; paths "
        "or URLs (default: a few lines in several languages).",
    )
    run: RunSettings = part(
        RunSettings, RunSettings(), only=("runner", "workers", "overwrite", "progress", *MESSAGES)
    )

    @property
    def file(self) -> str | None:
        """The path or URL of the report; None: stdout."""
        return None if self.output == "-" else self.output

    @property
    def ending(self) -> str:
        """The ending of the output's name, such as ".json"."""
        return PurePosixPath(self.file or "").suffix

    @property
    def chosen_format(self) -> str:
        """The format of the report: without an output, text for people and JSON for programs."""
        return self.format or _ENDINGS.get(self.ending, "text" if self.on_terminal else "json")

    @property
    def on_terminal(self) -> bool:
        return self.output is None and sys.stdout is not None and sys.stdout.isatty()

    def check(self) -> None:
        self._check_source()
        require(
            self.format is not None or self.file is None or self.ending in _ENDINGS,
            f"must end in {', '.join(_ENDINGS)}, got {self.output!r}",
            "output",
            remedy="or give {format}",
        )
        require(
            not self.run.overwrite or self.work is not None,
            "has no effect without a folder for counts: a report always replaces an older one",
            "overwrite",
            remedy="set {work}",
        )
        require(
            not self.samples or self.chosen_format == "html",
            "has no effect on reports other than HTML",
            "samples",
        )

    def _check_source(self) -> None:
        sources = {"counts": self.counts, "tokens": self.tokens, "inputs": self.input}
        chosen = [name for name, value in sources.items() if value]
        if len(chosen) != 1:
            raise UsageError(
                "exclude each other" if chosen else "are all missing",
                tuple(chosen or sources),
                "give {counts}, a folder that count wrote; {tokens}, folders that tokenize wrote; "
                "or {inputs}, a corpus",
            )
        require(
            bool(self.tokenizers) != bool(self.tokens),
            "has no effect with a tokens folder, which contains its tokenizer"
            if self.tokens
            else "is missing",
            "tokenizers",
        )
        if self.input is not None:
            require(
                self.run.runner is None or self.work is not None,
                "must be set with a runner: its workers write to this folder",
                "work",
            )
            require_reachable(
                self.run.runner, inputs=self.input.inputs, work=filter(None, [self.work])
            )
            return
        for name in ("work", "pretokenizer"):
            self.require_effect(name, False, "texts", "{inputs}")
        require(
            self.run.in_process and not self.run.runner_options,
            "has no effect on counts and tokens, which are evaluated in this process",
            "runner",
        )
