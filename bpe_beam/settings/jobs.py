"""The jobs of the command line: their purposes, examples, and classes of settings."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from bpe_beam.settings.field import Option, Settings


class Job(msgspec.Struct, frozen=True, dict=True):
    """One job of the command line."""

    # Module and class of its settings in `bpe_beam.settings`. A command imports the settings of its
    # own job only.
    settings_name: str
    summary: str  # its purpose in a line
    example: str  # command lines that work unchanged
    note: str = ""  # the end of its help
    # The key of the summary that decides between the exit codes 0 and 1; any error gives 2. Empty:
    # the exit codes of all other jobs.
    verdict: str = ""
    resumes: bool = True  # whether the same command continues an interrupted job that has a summary

    @cached_property
    def settings(self) -> type[Settings]:
        module, _, name = f"bpe_beam.settings.{self.settings_name}".rpartition(".")
        settings: type[Settings] = getattr(importlib.import_module(module), name)
        return settings

    @cached_property
    def options(self) -> dict[str, Option]:
        """Its options by flag, in the order of its help."""
        from bpe_beam.settings.common import CONFIG
        from bpe_beam.settings.field import options_of

        return {option.flag: option for option in (*options_of(self.settings), CONFIG)}

    @property
    def has_runner(self) -> bool:
        """Whether it takes a Beam runner and flags of the runner."""
        return "--runner" in self.options

    @property
    def shows_summary(self) -> bool:
        """Whether it ends with a summary on stderr; other jobs print their result."""
        return not {"--runner", "--overwrite", "--full"}.isdisjoint(self.options)


JOBS: dict[str, Job] = {
    "count": Job(
        "count.CountSettings",
        "count the words of a corpus once, for any number of trainings",
        "bpe-beam count --input 'data/*.jsonl.gz' --output counts/",
    ),
    "train": Job(
        "train.TrainSettings",
        "train a tokenizer from counts or from a corpus",
        "bpe-beam train --input 'data/*.jsonl.gz' --vocab-size 32000 --output tok/\n"
        "  bpe-beam train --counts counts/ --vocab-size 128000 --output tok/\n"
        "  bpe-beam train --config configs/wordpiece_30k.yaml \\\n"
        "      --input 'data/*.jsonl.gz' --output tok/",
        "Writes tokenizer.json (Hugging Face's format), vocab.json and summary.json; for BPE also "
        "merges.txt, for WordPiece vocab.txt.",
    ),
    "tokenize": Job(
        "tokenize.TokenizeSettings",
        "turn a corpus into token shards",
        "bpe-beam tokenize --tokenizer tok/tokenizer.json --input 'data/*.jsonl.gz' \\\n"
        "      --append '<|endoftext|>' --output tokens/",
    ),
    "stream-tokenize": Job(
        "stream_tokenize.StreamTokenizeSettings",
        "turn files into token shards as they arrive, each file once",
        "bpe-beam stream-tokenize --runner FlinkRunner --flink_master localhost:8081 \\\n"
        "      --tokenizer tok/tokenizer.json --input 's3://bucket/in/**/*.jsonl' --output out/",
        "Requires a runner that supports streaming. Each window is a folder that verify can check.",
    ),
    "convert": Job(
        "convert.ConvertSettings",
        "write token shards again, in another format or another number of shards",
        "bpe-beam convert tokens/ --format parquet --output tokens-parquet/\n"
        "  bpe-beam convert tokens-1/ tokens-2/ --shards 64 --output tokens/",
        "Nothing is tokenized again, and the corpus is not needed. A worker has one batch of "
        "documents in memory.",
    ),
    "mix": Job(
        "mix.MixSettings",
        "write exactly so many tokens of each source, from token shards of any format",
        "bpe-beam mix --input web=tokens-web/ code=tokens-code/ --tokens 10B \\\n"
        "      --share web=0.6,code=0.4 --sequence-length 4097 --output mixed/\n"
        "  bpe-beam mix --input tokens/ --mixture mixture.yaml --dry-run --output mixed/",
        "Which documents are taken depends on the documents and the seed, not on their files, "
        "shards or formats.",
    ),
    "verify": Job(
        "verify.VerifySettings",
        "read every shard back and check it",
        "bpe-beam verify tokens/",
        "Exit code 1 if any check fails.",
    ),
    "blend": Job(
        "blend.BlendSettings",
        "print the weighted list of shards that Megatron-LM reads",
        "bpe-beam blend web/ books/ --weights 0.8,0.2 --sequences sequences.json",
        "Give the list to Megatron with --data-args-path, and the file of --sequences with "
        "--per-dataset-sequences-path.",
    ),
    "evaluate": Job(
        "evaluate.EvaluateSettings",
        "measure tokenizers on a corpus: tokens per word, words kept whole, unused tokens",
        "bpe-beam evaluate --counts counts/ --tokenizer tok-32k/ tok-64k/ --output report.json\n"
        "  bpe-beam evaluate --counts counts/ --tokenizer tok-128k/ --vocab-sizes 16k,32k,64k",
        "With --counts this takes seconds, whatever the size of the corpus.",
        resumes=False,
    ),
    "diff": Job(
        "diff.DiffSettings",
        "show the differences between two tokenizers, and the words that they encode differently",
        "bpe-beam diff tok-old/ tok-new/ --counts counts/",
        "Exit code 0 if nothing differs, 1 if something differs, 2 after an error.",
        verdict="same",
    ),
    "encode": Job(
        "encode.EncodeSettings",
        "convert a text to token ids, on one line",
        "bpe-beam encode --tokenizer tok/tokenizer.json --show 'Hello, world'",
    ),
    "decode": Job(
        "decode.DecodeSettings",
        "convert token ids to text",
        "bpe-beam decode --tokenizer tok/tokenizer.json 15496 11 995",
        "Writes the bytes of the text unchanged; on a terminal also a newline.",
    ),
    "export": Job(
        "export.ExportSettings",
        "write a tokenizer in the format of another library, with the same ids",
        "bpe-beam export tok/ --format sentencepiece --output tokenizer.model\n"
        "  bpe-beam export tokenizer.model --format transformers --output tok-hf/",
        "Refuses a format that cannot represent the tokenizer, and says why. The files next to the "
        "tokenizer decide the roles of special tokens. A .tiktoken file contains neither the "
        "special tokens nor the pre-tokenizer.",
    ),
    "inspect": Job(
        "inspect.InspectSettings",
        "show the content of a tokenizer, a counts folder or a folder of shards",
        "bpe-beam inspect tok/tokenizer.json",
    ),
    "plan": Job(
        "plan.PlanSettings",
        "show the files that a job would read, and its splits",
        "bpe-beam plan --input 'data/**/*.jsonl.zst'",
        "Reads only the first bytes of each file.",
    ),
    "counts merge": Job(
        "counts.merge.MergeCountsSettings",
        "add counts folders up, as if all their texts had been counted together",
        "bpe-beam counts merge counts-2023/ counts-2024/ --output counts/",
        "All folders must have the same normalizer, pre-tokenizer and special tokens. Either all "
        "or none of them must be counted by source.",
    ),
    "counts show": Job(
        "counts.show.ShowCountsSettings",
        "print the most frequent words of a counts folder, with their counts by source",
        "bpe-beam counts show counts/ --top 50",
    ),
    "counts filter": Job(
        "counts.filter.FilterCountsSettings",
        "write a counts folder without rare words, or with only some sources",
        "bpe-beam counts filter counts/ --min-count 2 --output counts-2/",
    ),
    "doctor": Job(
        "doctor.DoctorSettings",
        "show which runners, stores and extras work on this machine, and what is missing",
        "bpe-beam doctor\n  bpe-beam doctor s3://bucket/corpus --format json",
        "Shows no secrets, and sends requests only to the stores of the given paths. Exit code 1 "
        "if something required fails.",
        verdict="works",
    ),
    "quickstart": Job(
        "quickstart.QuickstartSettings",
        "try train, tokenize and verify on the sources of Python's standard library",
        "bpe-beam quickstart",
    ),
}

GROUPS = {
    first: [name for name in JOBS if name.startswith(f"{first} ")]
    for first in dict.fromkeys(name.split()[0] for name in JOBS if " " in name)
}
"""The jobs of two words, by the first."""
