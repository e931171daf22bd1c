"""What a job is told to do: frozen settings, checked when they are made.

The command line, a YAML file and a launcher all end here, so a setting that cannot work is refused
in one place, before anything is read or written. Light on purpose: no Beam, Arrow or NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.engines.dataflow import require_no_secrets, require_reachable
from bpe_beam.progress import MODES as PROGRESS_MODES
from bpe_beam.settings.checks import (
    require,
    require_allowed_special,
    require_choice,
    require_normalizer,
    require_pretokenizer,
    require_sources,
    require_special_tokens,
    require_text,
)
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS

MERGE_ROUNDS = ("auto", "local", "distributed")

# DirectRunner is Beam's alias: it tries to download another runner and falls back in silence, so
# jobs run FnApiRunner itself under either name. In lower case, without "runner", as Beam allows.
IN_PROCESS_RUNNERS = ("fnapi", "direct")

MAX_RANGE_BYTES = 2**44
"""A place in a file is kept in 44 bits."""


@dataclass(frozen=True)
class RunSettings:
    """How a job runs, whatever it does; no artifact depends on any of it.

    Attributes:
        runner: A Beam runner by name; None is in process.
        workers: How many work at once in process; None is one a core. Other runners have flags of
            their own.
        runner_options: Flags for the runner, each whole: `--name=value` or `--name`.
        overwrite: Remove what an earlier job wrote in the output folder.
        quiet: No summary on stderr, and no progress unless `progress` says so.
        progress: How progress is shown, one of `PROGRESS_MODES`; None is auto, or none if quiet.
        debug: Tracebacks and Beam's own messages.
        summary_file: Where the summary goes as JSON; `-` is stdout.
        storage_options: Options of file systems by protocol. May hold secrets: never shown.
    """

    runner: str | None = None
    workers: int | None = None
    runner_options: tuple[str, ...] = ()
    overwrite: bool = False
    quiet: bool = False
    progress: str | None = None
    debug: bool = False
    summary_file: str | None = None
    storage_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Checks each setting, and those that exclude one another."""
        if self.runner is not None:
            require_text("runner", self.runner)
        if self.progress is not None:
            require_choice("progress", self.progress, PROGRESS_MODES)
        if self.summary_file is not None:
            require(self.summary_file != "", "summary_file must not be empty; - is stdout")
        if self.workers is not None:
            require(
                1 <= self.workers <= 1024,
                f"workers must be between 1 and 1,024, not {self.workers:,}",
            )
            require(
                self.in_process,
                f"workers counts what works in process and does nothing with the runner "
                f"{self.runner}; use the runner's own flags",
            )
            require(
                not any(o.partition("=")[0] == "--direct_num_workers" for o in self.runner_options),
                "workers and --direct_num_workers say the same thing: give one of them",
            )
        for option in self.runner_options:
            require(option.startswith("--"), f"runner_options: {option!r} is not a flag")
        for protocol, options in self.storage_options.items():
            require(
                isinstance(protocol, str) and isinstance(options, Mapping),
                "storage_options must be options by protocol, such as "
                '{"s3": {"endpoint_url": "http://localhost:9000"}}',
            )
        require_no_secrets(self.runner, self.storage_options)

    @property
    def in_process(self) -> bool:
        """Whether the job runs in this process, on threads or processes of its own."""
        name = (self.runner or "direct").lower().rpartition(".")[2]
        return name.removesuffix("runner") in IN_PROCESS_RUNNERS


def _require_limit(name: str, limit: str, what: str, example: str) -> None:
    """Refuses what is neither a number nor a share of at most 100%."""
    share = re.fullmatch(r"([0-9]{1,18})(?:(?:\.([0-9]{1,9}))?%)?", limit)
    require(
        share is not None,
        f"{name} must be a number of {what} such as {example}, or a share of them such as "
        f"0.1%, not {limit!r}",
    )
    if share and limit.endswith("%"):
        whole, fraction = int(share[1]), int(share[2] or 0)
        require(
            whole < 100 or (whole == 100 and fraction == 0),
            f"{name} must be at most 100%, not {limit}",
        )


@dataclass(frozen=True)
class InputSettings:
    """What is read, and how it becomes documents.

    Attributes:
        inputs: Paths, URLs, globs or `@file` lists.
        input_format: One of `INPUT_FORMAT_CHOICES`; auto goes by the file's name.
        text_field: JSON field of the text.
        id_field: JSON field of the document's id.
        document_separator: What ends a document of a text file; `file` makes each file one.
        range_bytes: How finely files are cut, in bytes; None goes by the corpus's size.
        max_rejects: How many records may be unusable: a number, or a share such as `0.1%`.
        max_lost: How many stored bytes may be lost in damaged files: a number, or a share.
        exclude: Files to leave out, named like the inputs.
        source_field: JSON field that names a document's source; or
        sources: (name, glob) of sources by files' names in the plan: the first that matches. With
            either, sources are told apart; not with both.
    """

    inputs: tuple[str, ...]
    input_format: str = "auto"
    text_field: str = "text"
    id_field: str = "id"
    document_separator: str = "\n"
    range_bytes: int | None = None
    max_rejects: str = "0.1%"
    max_lost: str = "0"
    exclude: tuple[str, ...] = ()
    source_field: str | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require(bool(self.inputs), "input names no file, folder or glob")
        require(all(self.inputs), "input must not be an empty string")
        require(all(self.exclude), "exclude must not be an empty string")
        require_choice("input_format", self.input_format, INPUT_FORMAT_CHOICES)
        require_text("text_field", self.text_field)
        require_text("id_field", self.id_field)
        require_text("document_separator", self.document_separator)
        if self.range_bytes is not None:
            require(
                1 <= self.range_bytes <= MAX_RANGE_BYTES,
                f"range_bytes must be between 1 and {MAX_RANGE_BYTES:,} (16 TiB), "
                f"not {self.range_bytes:,}",
            )
        require_sources(self.source_field, self.sources)
        _require_limit("max_rejects", self.max_rejects, "records", "10")
        _require_limit("max_lost", self.max_lost, "stored bytes", "1MB")

    @property
    def by_source(self) -> bool:
        """Whether documents are told apart by source."""
        return self.source_field is not None or bool(self.sources)


@dataclass(frozen=True)
class PlanSettings:
    """A corpus, to be listed and cut.

    Attributes:
        input: What is read.
        output: Where the plan goes as JSON; `-` is stdout; None: only what it comes to is shown.
        run: Only what concerns messages and storage.
    """

    input: InputSettings
    output: str | None = None
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        if self.output is not None:
            require_text("output", self.output)


@dataclass(frozen=True)
class CountSettings:
    """Corpus to word counts.

    Attributes:
        input: What is read.
        output: Folder of the counts.
        run: How the job runs.
        normalizer: One of `NORMALIZERS`, or several joined by `+`.
        pretokenizer: One of `PRETOKENIZERS`, or `regex:PATTERN`.
        special_tokens: Cut out of the text and not counted.
        with_places: Keep where each word occurs first, which the tie rule `first_seen` needs.
    """

    input: InputSettings
    output: str
    run: RunSettings = RunSettings()
    normalizer: str = "none"
    pretokenizer: str = "gpt2"
    special_tokens: tuple[str, ...] = ()
    with_places: bool = False

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("output", self.output)
        require_normalizer(self.normalizer)
        require_pretokenizer(self.pretokenizer)
        require_special_tokens(self.special_tokens)
        require_reachable(self.run.runner, input=self.input.inputs, output=(self.output,))


@dataclass(frozen=True)
class TokenizeSettings:
    """Corpus and tokenizer to token shards.

    Attributes:
        input: What is read.
        tokenizer: A `tokenizer.json`.
        output: Folder of the shards.
        run: How the job runs.
        format: One of `SHARD_FORMATS`.
        append: Token put after each document, or None.
        prepend: Token put before each document, or None.
        allowed_special: Special tokens that count as such where they stand in the text: `none`,
            `all`, or a tuple of them; the others are plain text.
    """

    input: InputSettings
    tokenizer: str
    output: str
    run: RunSettings = RunSettings()
    format: str = DEFAULT_SHARD_FORMAT
    append: str | None = None
    prepend: str | None = None
    allowed_special: Literal["none", "all"] | tuple[str, ...] = "none"

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("tokenizer", self.tokenizer)
        require_text("output", self.output)
        require_choice("format", self.format, SHARD_FORMATS)
        for name, token in (("append", self.append), ("prepend", self.prepend)):
            if token is not None:
                require_text(name, token)
        require_allowed_special(self.allowed_special)
        require_reachable(self.run.runner, input=self.input.inputs, output=(self.output,))


@dataclass(frozen=True)
class VerifySettings:
    """A folder of shards, to be proved whole.

    Attributes:
        folder: What `tokenize` wrote.
        full: Encode the corpus again and compare each token.
        input: The corpus, where it stands now; or None. Needed to be `full`.
        run: How the job runs; in process only.
    """

    folder: str
    full: bool = False
    input: InputSettings | None = None
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("folder", self.folder)
        require(
            self.run.in_process and not self.run.runner_options,
            "verify runs in this process: it takes no runner and no flags of one",
        )


@dataclass(frozen=True)
class QuickstartSettings:
    """A trial of everything on text that every machine has.

    Attributes:
        output: Folder of all that is made.
        run: How the jobs run.
    """

    output: str = "bpe-beam-quickstart"
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("output", self.output)


@dataclass(frozen=True)
class EncodeSettings:
    """One text to ids.

    Attributes:
        tokenizer: A `tokenizer.json`.
        text: The text; None reads standard input.
        allowed_special: As in `TokenizeSettings`.
        add_special_tokens: Whether to insert those of the post-processor.
        show: A table of tokens, ids and places instead of a line of ids.
        run: Only what concerns messages and storage.
    """

    tokenizer: str
    text: str | None = None
    allowed_special: Literal["none", "all"] | tuple[str, ...] = "none"
    add_special_tokens: bool = False
    show: bool = False
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("tokenizer", self.tokenizer)
        if self.text:
            require_text("text", self.text)
        require_allowed_special(self.allowed_special)


@dataclass(frozen=True)
class DecodeSettings:
    """Some ids to text.

    Attributes:
        tokenizer: A `tokenizer.json`.
        ids: The ids as typed, several in one text or not; None reads standard input.
        run: Only what concerns messages and storage.
    """

    tokenizer: str
    ids: tuple[str, ...] | None = None
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("tokenizer", self.tokenizer)


@dataclass(frozen=True)
class InspectSettings:
    """Something that a job made, to be looked at.

    Attributes:
        path: A tokenizer file, a counts folder or a folder of shards.
        run: Only what concerns messages and storage.
    """

    path: str
    run: RunSettings = RunSettings()

    def __post_init__(self) -> None:
        """Checks each setting."""
        require_text("path", self.path)
