"""Settings that several jobs share: how a job runs, and the files that it reads.

The command line, YAML files and calls from Python all use them, so an invalid setting is refused in
one place, before anything is read or written. These modules import no Beam, Arrow or NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.corpus.read_settings import FieldOfFiles
from bpe_beam.corpus.rejects import Limit
from bpe_beam.errors import require
from bpe_beam.progress import MODES as PROGRESS_MODES
from bpe_beam.settings import parsing
from bpe_beam.settings.dataflow import is_dataflow, require_no_secrets
from bpe_beam.settings.field import MAIN, MAX_INT64, Option, Settings, option
from bpe_beam.settings.parsing import BadValueError
from bpe_beam.shards.formats import TRAINER_COLUMNS
from bpe_beam.tokenizer.components.normalizers import NORMALIZERS, normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import PRETOKENIZERS, pretokenizer_from_name

# Beam's DirectRunner tries to download another runner and falls back silently, so jobs run
# FnApiRunner itself under either name. In lower case, without "runner", as Beam allows.
IN_PROCESS_RUNNERS = ("fnapi", "direct")

MAX_RANGE_BYTES = 2**44
"""The maximum size of a split, in bytes (16 TiB): positions in a file have 44 bits."""

MAX_WORKERS = 1024  # the maximum number of threads of a job in this process

DEFAULT_NORMALIZER = "none"

DEFAULT_PRETOKENIZER = "gpt2"

OUTPUT_FORMATS = ("text", "json")  # forms of a result on stdout

AllowedSpecial = Literal["none", "all"] | tuple[str, ...]

READING = "reading text"
RUNNING = "running"

MESSAGES = ("quiet", "debug", "summary_file", "storage_options")
"""The options of RunSettings that every job has."""

WRITING = ("overwrite", "progress", *MESSAGES)
"""The options of RunSettings for jobs that write a folder in this process."""

LISTING = ("inputs", "exclude", "input_format", "document_separator", "range_bytes")
"""The options of InputSettings that the plan depends on."""


CONFIG = Option(
    "YAML file of options. Its keys are the long options, and runner_options for the flags of the "
    "runner. Options on the command line win. Repeat for more; later files win.",
    "F.yaml",
    kind="repeat",
    group=RUNNING,
    name="config",
    flag="--config",
)
"""An option of every job that is not a setting: its files set the other options."""


def _check_name(from_name: Callable[[str], object], name: str) -> None:
    parsing.check_text(name)
    from_name(name)


def _check_special_tokens(tokens: tuple[str, ...]) -> None:
    parsing.check_text(tokens)
    repeated = sorted({token for token in tokens if tokens.count(token) > 1})
    if repeated:
        raise BadValueError(f"must not repeat {', '.join(map(repr, repeated))}")


def _check_sources(sources: tuple[tuple[str, str], ...]) -> None:
    for pair in sources:
        parsing.check_text(pair)
    names = len({source for source, _ in sources})
    if names >= 1000:
        raise BadValueError(f"must name at most 999 sources, got {names:,}")


class RunSettings(Settings, frozen=True):
    """Settings of a run; no artifact depends on them.

    `runner_options` are flags of the runner: `--name=value` or `--name`.
    """

    GROUP = RUNNING

    runner: str | None = option(
        None,
        metavar="R",
        help="Beam runner, such as FlinkRunner (default: this process, without Beam).",
    )
    workers: int | None = option(
        None,
        help="Number of threads in this process (default: the number of cores).",
        between=(1, MAX_WORKERS),
    )
    runner_options: tuple[str, ...] = ()
    overwrite: bool = option(
        False,
        help="Remove what an earlier job wrote to the output folder, and nothing else.",
    )
    progress: str | None = option(
        None,
        choices=PROGRESS_MODES,
        help="How to show progress on stderr. auto: a bar on a terminal, plain lines elsewhere. "
        "json: one JSON object per line (default: auto).",
    )
    quiet: bool = option(
        False,
        help="Show no summary, and no progress unless --progress is set. Warnings and errors are "
        "still shown.",
    )
    debug: bool = option(False, help="Show tracebacks and Beam's own messages.")
    summary_file: str | None = option(
        None,
        metavar="F",
        help="Write the summary with all figures as JSON to this path or URL; - is stdout.",
    )
    storage_options: Mapping[str, Mapping[str, Any]] = option(
        {},
        metavar="JSON",
        kind="mapping",
        help='Options of storage clients by protocol, as JSON or @FILE, such as {"s3": '
        '{"endpoint_url": ...}}. Not needed if the usual environment variables of the cloud are '
        "set.",
        parse=parsing.parse_storage_options,
        check=parsing.check_storage_options,
    )

    def check(self) -> None:
        if self.workers is not None:
            require(
                self.in_process,
                f"sets the threads of this process, and has no effect with {self.runner}",
                "workers",
                remedy="use the flags of the runner",
            )
            require(
                not any(o.partition("=")[0] == "--direct_num_workers" for o in self.runner_options),
                "and --direct_num_workers exclude each other",
                "workers",
            )
        for flag in self.runner_options:
            require(
                flag.startswith("--"),
                f"must be flags such as --name, got {flag!r}",
                "runner_options",
            )
        require(
            not self.in_process or self.runner_flag("--direct_running_mode") != "multi_processing",
            "--direct_running_mode must be multi_threading or in_memory, got multi_processing: "
            "Beam waits forever for a killed worker process",
            remedy="without flags of a runner, the job uses worker processes where they help",
        )
        require_no_secrets(self.runner, self.storage_options)

    def runner_flag(self, name: str) -> str | None:
        """Return the last value of a flag of the runner; None if it is not set."""
        start = f"{name}="
        values = [flag[len(start) :] for flag in self.runner_options if flag.startswith(start)]
        return values[-1] if values else None

    @property
    def makes_template(self) -> bool:
        """Whether the job writes a template of Dataflow instead of running."""
        return self.runner_flag("--template_location") is not None

    @property
    def is_local(self) -> bool:
        """Whether the local engine runs the job.

        Flags of a runner without `runner` mean Beam's runner in this process.
        """
        return self.runner is None and not self.runner_options

    @property
    def is_dataflow(self) -> bool:
        """Whether Dataflow runs the job."""
        return is_dataflow(self.runner)

    @property
    def in_process(self) -> bool:
        """Whether the job runs in this process: on the local engine, or on Beam's FnApiRunner."""
        name = (self.runner or "direct").lower().rpartition(".")[2]
        return name.removesuffix("runner") in IN_PROCESS_RUNNERS


class InputSettings(Settings, frozen=True):
    """The files that a job reads, and the rules that turn them into documents.

    `sources` are (name, glob) pairs.
    """

    GROUP = READING

    inputs: tuple[str, ...] = option(
        flag="--input",
        metavar="P",
        kind="many",
        help="Input files: paths, URLs, folders, globs ('data/**/*.jsonl.zst'), or @FILE, a file "
        "that lists them, one per line.",
        group=MAIN,
        check=parsing.check_not_empty,
    )
    input_format: str = option(
        "auto",
        choices=INPUT_FORMAT_CHOICES,
        help="Format of the files. auto detects it from the first bytes and the name: .jsonl, "
        ".parquet, .arrow, .csv, .tsv, .warc, .wet, .tar; any other file is text. Files "
        "compressed with gzip, zstd, bzip2, xz, LZMA or LZ4 are decompressed.",
        identity="always",
    )
    text_field: FieldOfFiles = option(
        "text",
        metavar="[NAME=]FIELD",
        kind="pairs",
        help="Field or column that contains the text. Use dots for nested fields, as in "
        r"meta.body, and \. for a dot in a name. NAME=FIELD, such as code=content, applies only to "
        "the files of NAME: a source (see --source), a folder or a glob. Repeat for more.",
        parse=parsing.parse_field,
        check=parsing.check_field,
        identity="always",
    )
    id_field: FieldOfFiles = option(
        "id",
        metavar="[NAME=]FIELD",
        kind="pairs",
        help="Field or column that contains the document's id, written like --text-field.",
        parse=parsing.parse_field,
        check=parsing.check_field,
        identity="always",
    )
    document_separator: str = option(
        "\n",
        metavar="S",
        help=r"End of a document in text files. Write \n \t \r \\ \xNN for characters that a shell "
        "cannot pass. Write file to make each file one document.",
        parse=parsing.parse_separator,
        default_help=r"\n, a newline",
        identity="always",
    )
    range_bytes: int | None = option(
        None,
        metavar="SIZE",
        help="Maximum size of a split, the input of one task, such as 64MB. Output files depend "
        "on this size and on the input, never on the workers (default: a thousandth of the corpus, "
        "but at least 16MiB and at most 1GiB).",
        parse=parsing.parse_size,
        between=(1, MAX_RANGE_BYTES),
    )
    max_rejects: str = option(
        "0.1%",
        metavar="N|P%",
        help="Maximum number of unusable records, or their maximum share of all records. The job "
        "fails if there are more.",
        check=partial(Limit.parse, name="max_rejects"),
    )
    max_lost: str = option(
        "0",
        metavar="N|P%",
        help="Maximum number of stored bytes that damaged files may lose: a size such as 10MB, or "
        "a share of all bytes. The job fails if more are lost.",
        parse=parsing.parse_share_or_size,
        check=partial(Limit.parse, name="max_lost"),
    )
    exclude: tuple[str, ...] = option(
        (),
        metavar="P",
        kind="many",
        help="Input files to skip, written like --input.",
        check=parsing.check_not_empty,
    )
    source_field: FieldOfFiles | None = option(
        None,
        metavar="[NAME=]FIELD",
        kind="pairs",
        help="Field or column that contains the document's source, for counts by source, written "
        "like --text-field. Cannot be used with --source.",
        parse=parsing.parse_field,
        check=parsing.check_field,
        identity="if set",
    )
    sources: tuple[tuple[str, str], ...] = option(
        (),
        flag="--source",
        metavar="NAME=GLOB",
        kind="pairs",
        help="Source of the documents in files whose name matches GLOB, for counts by source. The "
        "first match decides; without a match the source is named other. Repeat for more.",
        parse=parsing.parse_pairs,
        check=_check_sources,
        identity="if set",
    )

    def check(self) -> None:
        require(
            self.source_field is None or not self.sources,
            "exclude each other",
            "source_field",
            "sources",
            remedy="give one of them",
        )

    @property
    def by_source(self) -> bool:
        """Whether documents are counted by source."""
        return self.source_field is not None or bool(self.sources)


def dry_run_option() -> Any:
    return option(
        False,
        help="Write nothing. Show what would be read, and estimate time, memory and storage by "
        "running the job on a sample.",
    )


def output_option(what: str) -> Any:
    """Return the required option `--output` for a folder of, for example, "counts"."""
    return option(metavar="DIR", help=f"Folder for the {what}.")


def tokenizer_option(**more: Any) -> Any:
    """Return the required option `--tokenizer`; `more` are other attributes of Option."""
    return option(
        help="Tokenizer: tokenizer.json, a SentencePiece .model, a tekken.json, or a folder that "
        "contains one of them; a path or URL.",
        **{"metavar": "F", **more},
    )


def normalizer_option(default: str | None, **more: Any) -> Any:
    """Return the option `--normalizer`; `more` are other attributes of Option."""
    return option(
        default,
        metavar="NAME",
        help=f"Normalizer of the text: {', '.join(NORMALIZERS)}, or several joined by +, such as "
        "nfkc+lowercase.",
        check=partial(_check_name, normalizer_from_name),
        default_help=DEFAULT_NORMALIZER,
        **more,
    )


def pretokenizer_option(default: str | None, **more: Any) -> Any:
    """Return the option `--pretokenizer`; `more` are other attributes of Option."""
    return option(
        default,
        metavar="NAME",
        help="Pre-tokenizer, the rule that splits text into words: "
        f"{', '.join(PRETOKENIZERS)}, or regex:PATTERN. gpt2 and cl100k split words of Hindi, Thai "
        "and other languages at vowel signs; o200k does not. +digits_right groups the digits of a "
        "number from the right: 12 and 345 for 12345. +end_spaces makes one word of the spaces and "
        "line breaks at the end of a text, like newer versions of tiktoken.",
        check=partial(_check_name, pretokenizer_from_name),
        default_help=DEFAULT_PRETOKENIZER,
        **more,
    )


def special_tokens_option(help: str, **more: Any) -> Any:
    """Return the option `--special-token`; `more` are other attributes of Option."""
    return option(
        (),
        flag="--special-token",
        metavar="T",
        kind="repeat",
        help=f"{help} Repeat for more.",
        check=_check_special_tokens,
        **more,
    )


def allowed_special_option(**more: Any) -> Any:
    """Return the option `--allowed-special`, with other attributes of Option."""
    return option(
        "none",
        metavar="none|all|T,T",
        kind="list",
        help=r"Special tokens to recognise in the text; all others are plain text. Write \, for a "
        r"comma in a token, and \none for a token named none.",
        parse=parsing.parse_allowed_special,
        check=_check_allowed_special,
        **more,
    )


def columns_option(default: Any, help: str, **more: Any) -> Any:
    return option(
        default,
        metavar="NAME,NAME",
        kind="list",
        help=help,
        choices=TRAINER_COLUMNS,
        parse=parsing.parse_columns,
        **more,
    )


def counts_folder_option() -> Any:
    """Return the argument `FOLDER`."""
    return option(flag="folder", metavar="DIR", help="Folder that count wrote.")


def chosen_sources_option(what: str, **more: Any) -> Any:
    """Return the option `--source`; its names are sorted, each once."""
    return option(
        None,
        flag="--source",
        metavar="NAME",
        kind="repeat",
        help=f"Source to {what} (default: all). Repeat for more.",
        parse=lambda texts: tuple(sorted(set(texts))),
        **more,
    )


def min_count_option(what: str, **more: Any) -> Any:
    return option(
        1,
        help=f"{what} words whose total count over the chosen sources is below N.",
        between=(1, MAX_INT64),
        **more,
    )


def _check_allowed_special(allowed: AllowedSpecial) -> None:
    if isinstance(allowed, tuple):
        parsing.check_text(allowed)
    elif allowed not in ("none", "all"):
        raise BadValueError(f"must be one of none, all, got {allowed!r}")
