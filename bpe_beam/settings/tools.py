"""Settings of the small jobs: plan, quickstart, verify, diff, doctor and more."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.errors import require
from bpe_beam.settings.common import LISTING, MESSAGES, InputSettings, RunSettings, tokenizer_option
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import check_utf8, parse_ids
from bpe_beam.settings.tokenize import AllowedSpecial, allowed_special_option


@dataclass(frozen=True)
class PlanSettings(Settings):
    """Settings of `plan`: a corpus whose plan is shown."""

    input: InputSettings = part(InputSettings, only=LISTING)
    output: str | None = option(
        None, metavar="F", help="Write the whole plan as JSON to a path or URL; - is stdout."
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class QuickstartSettings(Settings):
    """Settings of `quickstart`: train, tokenize and verify on text that every machine has."""

    output: str = option("bpe-beam-quickstart", metavar="DIR", help="Folder of everything made.")
    run: RunSettings = part(RunSettings, RunSettings())


@dataclass(frozen=True)
class VerifySettings(Settings):
    """Settings of `verify`: folders that are read back."""

    folders: tuple[str, ...] = option(
        flag="folder",
        metavar="DIR",
        kind="many",
        help="Folders that tokenize, convert, WriteTokens, count or train wrote. Of a folder with "
        "one folder for each format, or with train and validation, all are verified.",
    )
    full: bool = option(False, help="Also encode the corpus again and compare each token.")
    input: InputSettings | None = part(
        InputSettings,
        None,
        only=("inputs",),
        helps={
            "inputs": "The corpus, where it is now, to compare its files with those that were "
            "tokenized: paths, URLs, folders, globs, or @FILE."
        },
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

    def check(self) -> None:
        """Refuse a Beam runner, and a full comparison without the corpus."""
        require(
            self.run.in_process and not self.run.runner_options,
            "verify runs in this process: it has no runner and no flags of a runner",
        )


OUTPUT_FORMATS = ("text", "json")
"""How a result is written to stdout."""

MAX_TOP_WORDS = 1_000_000


@dataclass(frozen=True)
class DiffSettings(Settings):
    """Settings of `diff`: two tokenizers, and counts whose words both encode."""

    a: str = option(
        flag="a",
        metavar="A",
        help="The first tokenizer: a file or the folder that has it; a path or URL.",
    )
    b: str = option(flag="b", metavar="B", help="The second tokenizer.")
    counts: str | None = option(
        None,
        metavar="DIR",
        help="Folder that count wrote: also compare how the tokenizers encode its words.",
    )
    top: int = option(
        20,
        help="Number of words to show that are encoded differently, the most frequent first.",
        between=(1, MAX_TOP_WORDS),
    )
    format: str = option(
        "text",
        choices=OUTPUT_FORMATS,
        help="How to write the differences to stdout: json has all of them, text the first of "
        "each kind.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=("workers", "progress", *MESSAGES))

    def check(self) -> None:
        """Refuse a runner."""
        require(
            self.run.in_process and not self.run.runner_options,
            "diff runs in this process: it has no runner and no flags of a runner",
        )


@dataclass(frozen=True)
class DoctorSettings(Settings):
    """Settings of `doctor`: what works on this machine."""

    paths: tuple[str, ...] = option(
        (),
        flag="paths",
        metavar="PATH",
        kind="many",
        help="Paths or URLs that must be there, such as a bucket of a job to come.",
    )
    format: str = option("text", choices=OUTPUT_FORMATS, help="How to write the result to stdout.")
    timeout: int = option(
        60, help="Time limit of each check, in seconds; all run at once.", between=(1, 3600)
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class EncodeSettings(Settings):
    """Settings of `encode`: a text to ids."""

    tokenizer: str = tokenizer_option()
    text: str | None = option(
        None,
        flag="text",
        metavar="TEXT",
        help="The text, after -- if it begins with a dash. Without it stdin is read as UTF-8, "
        "without one newline at its end.",
        check=check_utf8,
    )
    allowed_special: AllowedSpecial = allowed_special_option()
    add_special_tokens: bool = option(
        False,
        help="Insert the special tokens of the tokenizer's post-processor, such as [CLS] and "
        "[SEP].",
    )
    show: bool = option(False, help="Print a table of tokens, ids and offsets.")
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class DecodeSettings(Settings):
    """Settings of `decode`: ids to text."""

    tokenizer: str = tokenizer_option()
    ids: tuple[int, ...] | None = option(
        None,
        flag="ids",
        metavar="ID ...",
        kind="many",
        help="Ids, separated by spaces or commas. Without them stdin is read.",
        parse=lambda texts: parse_ids(" ".join(texts)),
        check=lambda ids: None,
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


EXPORT_FORMATS = ("tokenizer_json", "transformers", "sentencepiece", "tiktoken")
"""The forms of a tokenizer that `export` writes."""


@dataclass(frozen=True)
class ExportSettings(Settings):
    """Settings of `export`: a tokenizer to write in another form."""

    tokenizer: str = option(
        flag="tokenizer",
        metavar="TOKENIZER",
        help="The tokenizer: tokenizer.json, a SentencePiece .model, a tekken.json, or a folder "
        "with a tokenizer; a path or URL.",
    )
    output: str = option(metavar="PATH", help="File to write; with transformers a folder.")
    format: str = option(
        choices=EXPORT_FORMATS,
        help="Form of the tokenizer: tokenizer_json is Hugging Face's file, transformers a folder "
        "that AutoTokenizer opens, sentencepiece a .model file, tiktoken a .tiktoken file.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class BlendSettings(Settings):
    """Settings of `blend`: folders of Megatron shards as a list for Megatron-LM."""

    folders: tuple[str, ...] = option(
        flag="folders", metavar="DIR", kind="many", help="Folder of Megatron shards."
    )
    weights: tuple[str, ...] | None = option(
        None,
        metavar="W,W,...",
        kind="list",
        help="Weights of the folders, one each, such as 0.3,0.7: which share of the training's "
        "samples is from each. 0 leaves a folder out.",
        default_help="none: Megatron goes by the sizes",
        parse=lambda texts: tuple(weight for text in texts for weight in text.split(",")),
    )
    sequences: str | None = option(
        None,
        metavar="F",
        help="Write the numbers of sequences and documents of each shard to a path or URL, for "
        "Megatron's --per-dataset-sequences-path.",
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)


@dataclass(frozen=True)
class InspectSettings(Settings):
    """Settings of `inspect`: a tokenizer, a counts folder or a folder of shards to show."""

    path: str = option(
        flag="path", metavar="PATH", help="A tokenizer.json, or a folder that a job wrote."
    )
    run: RunSettings = part(RunSettings, RunSettings(), only=MESSAGES)
