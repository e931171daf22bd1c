"""The jobs of the command line: what each does, and the settings that its options are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bpe_beam.settings.common import RUNNING
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.counts import (
    FilterCountsSettings,
    MergeCountsSettings,
    ShowCountsSettings,
)
from bpe_beam.settings.field import Option, Settings, options_of
from bpe_beam.settings.stream import StreamTokenizeSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.tools import (
    DecodeSettings,
    EncodeSettings,
    InspectSettings,
    PlanSettings,
    QuickstartSettings,
)
from bpe_beam.settings.train import TrainSettings
from bpe_beam.settings.verify import VerifySettings

CONFIG = Option(
    "YAML file of options: long options as keys, runner_options for the runner's flags. Options on "
    "the command line win. Repeat for more; later files win.",
    "F.yaml",
    kind="repeat",
    group=RUNNING,
    name="config",
    flag="--config",
)
"""The option of every job that is no setting: the others are read from its files."""


@dataclass(frozen=True)
class Job:
    """One job of the command line.

    Attributes:
        settings: The class of its settings.
        summary: What it does, in a line.
        example: Command lines that can be used as they are.
        note: More for the end of its help.
    """

    settings: type[Settings]
    summary: str
    example: str
    note: str = ""

    @cached_property
    def options(self) -> dict[str, Option]:
        """Its options by flag, in the order of its help."""
        return {option.flag: option for option in (*options_of(self.settings), CONFIG)}


JOBS: dict[str, Job] = {
    "count": Job(
        CountSettings,
        "count the words of a corpus, once, for any number of trainings",
        "bpe-beam count --input 'data/*.jsonl.gz' --output counts/",
    ),
    "train": Job(
        TrainSettings,
        "train a tokenizer from counts or from a corpus",
        "bpe-beam train --input 'data/*.jsonl.gz' --vocab-size 32000 --output tok/\n"
        "  bpe-beam train --counts counts/ --vocab-size 128000 --output tok/\n"
        "  bpe-beam train --config configs/wordpiece_30k.yaml \\\n"
        "      --input 'data/*.jsonl.gz' --output tok/",
        "Writes tokenizer.json (Hugging Face's format), vocab.json, summary.json; for BPE "
        "merges.txt, for WordPiece vocab.txt.",
    ),
    "tokenize": Job(
        TokenizeSettings,
        "turn a corpus into token shards",
        "bpe-beam tokenize --tokenizer tok/tokenizer.json --input 'data/*.jsonl.gz' \\\n"
        "      --append '<|endoftext|>' --output tokens/",
    ),
    "stream-tokenize": Job(
        StreamTokenizeSettings,
        "turn files into token shards as they arrive, each once",
        "bpe-beam stream-tokenize --runner FlinkRunner --flink_master localhost:8081 \\\n"
        "      --tokenizer tok/tokenizer.json --input 's3://bucket/in/**/*.jsonl' --output out/",
        "Needs a runner that streams. Each window is a folder for verify.",
    ),
    "verify": Job(
        VerifySettings,
        "read every shard back and check it",
        "bpe-beam verify tokens/",
        "Exit code 1 if any check fails.",
    ),
    "encode": Job(
        EncodeSettings,
        "text to token ids, on one line",
        "bpe-beam encode --tokenizer tok/tokenizer.json --show 'Hello, world'",
    ),
    "decode": Job(
        DecodeSettings,
        "token ids to text",
        "bpe-beam decode --tokenizer tok/tokenizer.json 15496 11 995",
        "Writes the bytes of the text as they are, and a newline after them on a terminal only.",
    ),
    "inspect": Job(
        InspectSettings,
        "show what a tokenizer, a counts folder or a folder of shards contains",
        "bpe-beam inspect tok/tokenizer.json",
    ),
    "plan": Job(
        PlanSettings,
        "show which files a job would read, and its splits",
        "bpe-beam plan --input 'data/**/*.jsonl.zst'",
        "Reads only the first bytes of each file.",
    ),
    "counts merge": Job(
        MergeCountsSettings,
        "add counts folders up, as if their corpora had been counted at once",
        "bpe-beam counts merge counts-2023/ counts-2024/ --output counts/",
        "They must have the same normalizer, pre-tokenizer and special tokens, and all or none of "
        "them must be by source.",
    ),
    "counts show": Job(
        ShowCountsSettings,
        "print the most frequent words of a counts folder, with the counts of each source",
        "bpe-beam counts show counts/ --top 50",
    ),
    "counts filter": Job(
        FilterCountsSettings,
        "write a counts folder without rare words, or with some sources only",
        "bpe-beam counts filter counts/ --min-count 2 --output counts-2/",
    ),
    "quickstart": Job(
        QuickstartSettings,
        "try it all on the Python standard library's sources: train, tokenize, verify",
        "bpe-beam quickstart",
    ),
}

RUNNING_JOBS = frozenset(name for name, job in JOBS.items() if "--runner" in job.options)
"""The jobs that have a Beam runner and its flags."""

SUMMARY_JOBS = frozenset(
    name for name, job in JOBS.items() if {"--runner", "--overwrite"} & job.options.keys()
)
"""The jobs whose summary is shown on stderr at their end; the others print their result."""

GROUPS = {
    first: [name for name in JOBS if name.startswith(f"{first} ")]
    for first in dict.fromkeys(name.split()[0] for name in JOBS if " " in name)
}
"""The jobs of two words, by the first."""
