"""Every option of every job, declared once: for the parser, the help, and the keys of YAML files.

Defaults stand in `settings.py` alone; the help reads them there.
"""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.progress import MODES as PROGRESS_MODES
from bpe_beam.settings import common as settings
from bpe_beam.settings.common import InputSettings, QuickstartSettings, TokenizeSettings
from bpe_beam.settings.counts_options import FILTERING, MERGING, SHOWING
from bpe_beam.settings.option import Option, choice
from bpe_beam.settings.stream import StreamTokenizeSettings
from bpe_beam.settings.train import TrainSettings as Train
from bpe_beam.settings.train_options import LEARNING
from bpe_beam.shards.formats import SHARD_FORMATS
from bpe_beam.tokenizer.normalizers import NORMALIZERS
from bpe_beam.tokenizer.pretokenizers import PRETOKENIZERS
from bpe_beam.training.recipe import TIE_BREAKS


@dataclass(frozen=True)
class Job:
    """One job of the command line.

    Attributes:
        summary: What it does, in a line.
        groups: Its options under the headings of its help.
        example: Command lines that work.
        note: More for the end of its help.
    """

    summary: str
    groups: dict[str, tuple[Option, ...]]
    example: str
    note: str = ""

    @property
    def options(self) -> dict[str, Option]:
        """Its options by flag."""
        return {option.flag: option for group in self.groups.values() for option in group}

    @property
    def typed(self) -> dict[str, str]:
        """How its options are typed, by key."""
        return {
            option.key: option.flag if option.flag[0] == "-" else option.key.upper()
            for option in self.options.values()
        }


_INPUT = Option(
    "--input",
    "P",
    "paths, URLs, folders, globs ('data/**/*.jsonl.zst'), or @FILE, a list of them, one a line",
    "many",
)
_READING = (
    Option(
        "--exclude",
        "P",
        "files to leave out, named like the inputs",
        "many",
    ),
    Option(
        "--input-format",
        choice(INPUT_FORMAT_CHOICES),
        "auto goes by the file's first bytes and its name: .jsonl, .parquet, .arrow, .csv, .tsv, "
        ".warc, .wet, .tar; the rest is text. What gzip, zstd, bzip2, xz, LZMA or LZ4 packed is "
        f"unpacked (default {InputSettings.input_format})",
    ),
    Option(
        "--text-field",
        "NAME",
        "field or column of the text; dots lead into records of records, as in meta.body, and one "
        rf"that is part of a name is written \. (default {InputSettings.text_field})",
    ),
    Option(
        "--id-field",
        "NAME",
        f"field or column of the id, written so too (default {InputSettings.id_field})",
    ),
    Option(
        "--document-separator",
        "S",
        r"text files: what ends a document, with \n \t \r \\ \xNN for what a shell cannot hold; "
        r"the word file makes each file one document (default \n, a newline)",
    ),
    Option(
        "--range-bytes",
        "N",
        "how finely files are cut, e.g. 64MB; what is made follows from this and the input, never "
        "from workers (default: the corpus's size over 1,000, from 16MB to 1GB)",
    ),
    Option(
        "--max-rejects",
        "N|P%",
        "how many records may be unusable, as a number or as a share of all; beyond it the job "
        f"fails (default {InputSettings.max_rejects.replace('%', '%%')})",
    ),
    Option(
        "--max-lost",
        "N|P%",
        "how many stored bytes may be lost in damaged files, as a size such as 10MB or as a share "
        "of all; beyond it the job fails (default 0: none)",
    ),
    Option(
        "--source",
        "NAME=GLOB",
        "documents of files whose name matches are of this source, and are counted by source; the "
        "first that matches; repeat for more; the rest is of the source other",
        "pairs",
    ),
    Option(
        "--source-field",
        "NAME",
        "field or column of the document's source, to count by source, instead of --source",
    ),
)
_COMMON = (
    Option(
        "--config",
        "F.yaml",
        "settings from a file: long options as keys, runner_options for the runner's flags; "
        "options given here win; may be repeated, later files win",
        "repeat",
    ),
    Option(
        "--quiet",
        "",
        "show no summary, and no progress unless --progress asks for it; warnings and errors are "
        "still shown",
        "switch",
    ),
    Option("--debug", "", "show tracebacks and Beam's own messages", "switch"),
    Option(
        "--summary-file",
        "F",
        "write the summary as JSON, with all figures, to a path or URL; - is stdout",
    ),
    Option(
        "--storage-options",
        "JSON",
        "options of file systems by protocol, as JSON or @FILE: "
        '{"s3": {"endpoint_url": ...}}; the clouds\' usual variables work without it',
    ),
)
_PROGRESS = Option(
    "--progress",
    choice(PROGRESS_MODES),
    "how progress is shown on stderr; auto is a bar on a terminal, and elsewhere plain lines; "
    "json is a JSON object a line, for programs (default auto)",
)
_RUNNER = Option("--runner", "R", "a Beam runner, e.g. FlinkRunner (default: in process)")
_RUNNING = (
    _RUNNER,
    Option("--workers", "N", "threads, in process (default: one a core)"),
)
_OVERWRITE = Option(
    "--overwrite", "", "remove what an earlier job wrote in the output folder, only that", "switch"
)
_SPECIAL = Option(
    "--special-token",
    "T",
    "a token to be cut out of the text, never counted or merged; repeat for more",
    "repeat",
)
_CUTTING = (
    Option(
        "--normalizer",
        "NAME",
        f"what is done to the text: {', '.join(NORMALIZERS)}, or several joined by +, "
        "such as nfkc+lowercase (default none)",
    ),
    Option(
        "--pretokenizer",
        "NAME",
        f"how the text is cut into words: {', '.join(PRETOKENIZERS)}, or regex:PATTERN "
        "(default gpt2)",
    ),
)
_TOKENIZER = Option(
    "--tokenizer", "F", "a tokenizer.json, or the folder that holds it, path or URL", required=True
)
_ALLOWED = Option(
    "--allowed-special",
    "none|all|T,T",
    "special tokens that count as such where they stand in the text; the others are plain text "
    "(default none)",
)

_OF_RECORDS = ("text_field", "id_field", "source_field", "source", "max_rejects", "max_lost")
_FRAMING = (
    Option("--append", "TOKEN", "put this token after each document"),
    Option("--prepend", "TOKEN", "put this token before each document"),
    _ALLOWED,
)

_LISTING = tuple(option for option in _READING if option.key not in _OF_RECORDS)
"""What a plan follows from."""

_MODEL, *_LEARNING = LEARNING

JOBS: dict[str, Job] = {
    "count": Job(
        "count the words of a corpus, once, for any number of trainings",
        {
            "main options": (
                _INPUT,
                Option("--output", "DIR", "folder of the counts", required=True),
                *_CUTTING,
                _SPECIAL,
                Option(
                    "--tie-break",
                    choice(TIE_BREAKS),
                    "the tie rule of trainings to come: first_seen also keeps where each word "
                    "occurs first (default lowest_id)",
                ),
            ),
            "reading text": _READING,
            "running": (*_RUNNING, _OVERWRITE, _PROGRESS, *_COMMON),
        },
        "bpe-beam count --input 'data/*.jsonl.gz' --output counts/",
    ),
    "train": Job(
        "learn a tokenizer, from counts or from a corpus",
        {
            "main options": (
                _INPUT,
                Option("--output", "DIR", "folder of the tokenizer", required=True),
                Option(
                    "--vocab-size", "N", "entries in all, special tokens included", required=True
                ),
                Option("--counts", "DIR", "learn from what count wrote, instead of from --input"),
                _MODEL,
                *_CUTTING,
                Option(
                    "--special-token",
                    "T",
                    "a token to be cut out of the text, first in the vocabulary; repeat for more; "
                    "with --counts, one more than those that count cut",
                    "repeat",
                ),
            ),
            "learning": (
                *_LEARNING,
                Option(
                    "--driver-memory",
                    "SIZE",
                    "what the learner may hold; words beyond it stay on storage and are learned "
                    f"from in rounds on the workers (default {Train.driver_memory // 10**9}GB)",
                ),
                Option(
                    "--merge-rounds",
                    choice(settings.MERGE_ROUNDS),
                    "learn in this process, or in rounds on the workers; the merges are the same "
                    "(default auto: by --driver-memory)",
                ),
            ),
            "reading text": _READING,
            "running": (*_RUNNING, _OVERWRITE, _PROGRESS, *_COMMON),
        },
        "bpe-beam train --input 'data/*.jsonl.gz' --vocab-size 32000 --output tok/\n"
        "  bpe-beam train --counts counts/ --vocab-size 128000 --output tok/\n"
        "  bpe-beam train --config configs/wordpiece_30k.yaml \\\n"
        "      --input 'data/*.jsonl.gz' --output tok/",
        "Writes tokenizer.json (Hugging Face's format), vocab.json, summary.json; for BPE "
        "merges.txt, for WordPiece vocab.txt.",
    ),
    "tokenize": Job(
        "turn a corpus into token shards",
        {
            "main options": (
                _INPUT,
                _TOKENIZER,
                Option("--output", "DIR", "folder of the shards", required=True),
                Option(
                    "--format",
                    choice(SHARD_FORMATS),
                    f"(default {TokenizeSettings.format})",
                ),
                *_FRAMING,
            ),
            "reading text": _READING,
            "running": (*_RUNNING, _OVERWRITE, _PROGRESS, *_COMMON),
        },
        "bpe-beam tokenize --tokenizer tok/tokenizer.json --input 'data/*.jsonl.gz' \\\n"
        "      --append '<|endoftext|>' --output tokens/",
    ),
    "stream-tokenize": Job(
        "turn files into token shards as they come, each once",
        {
            "main options": (
                _INPUT,
                _TOKENIZER,
                Option("--output", "DIR", "folder of the windows", required=True),
                *_FRAMING,
            ),
            "watching": (
                Option(
                    "--poll-seconds",
                    "N",
                    "time between two looks at the inputs "
                    f"(default {StreamTokenizeSettings.poll_seconds})",
                ),
                Option(
                    "--window-seconds",
                    "N",
                    "files that come within so long are one window, a folder of shards "
                    f"(default {StreamTokenizeSettings.window_seconds})",
                ),
                Option(
                    "--until-idle-seconds",
                    "N",
                    "end when there was nothing to do for so long (default: go on for ever)",
                ),
            ),
            "reading text": _READING,
            "running": (_RUNNER, _PROGRESS, *_COMMON),
        },
        "bpe-beam stream-tokenize --runner FlinkRunner --flink_master localhost:8081 \\\n"
        "      --tokenizer tok/tokenizer.json --input 's3://bucket/in/**/*.jsonl' --output out/",
        "Needs a runner that streams. Each window is a folder that verify proves.",
    ),
    "verify": Job(
        "read every shard back and prove it whole",
        {
            "main options": (
                Option("folder", "DIR", "what tokenize wrote", required=True),
                Option(
                    "--full", "", "also encode the corpus again and compare each token", "switch"
                ),
                Option(
                    "--input",
                    "P",
                    "the corpus, where it stands now, to compare its files with those tokenized; "
                    "paths, URLs, folders, globs, or @FILE",
                    "many",
                ),
            ),
            "running": (*_RUNNING, _PROGRESS, *_COMMON),
        },
        "bpe-beam verify tokens/",
        "Exit code 1 if anything does not stand.",
    ),
    "encode": Job(
        "text to token ids, on one line",
        {
            "main options": (
                Option(
                    "text",
                    "TEXT",
                    "the text, after -- if it begins with a dash; without it, stdin is read: "
                    "UTF-8, as it is, but for one newline at its end",
                ),
                _TOKENIZER,
                _ALLOWED,
                Option(
                    "--add-special-tokens",
                    "",
                    "insert those of the tokenizer's post-processor, such as [CLS] and [SEP]",
                    "switch",
                ),
                Option("--show", "", "a table of tokens, ids and places instead", "switch"),
            ),
            "running": _COMMON,
        },
        "bpe-beam encode --tokenizer tok/tokenizer.json --show 'Hello, world'",
    ),
    "decode": Job(
        "token ids to text",
        {
            "main options": (
                Option(
                    "ids",
                    "ID ...",
                    "ids, between spaces or commas; without any, stdin is read",
                    "many",
                ),
                _TOKENIZER,
            ),
            "running": _COMMON,
        },
        "bpe-beam decode --tokenizer tok/tokenizer.json 15496 11 995",
        "Writes the bytes of the text as they are, and a newline after them on a terminal only.",
    ),
    "inspect": Job(
        "say what a tokenizer, a counts folder or a folder of shards holds",
        {
            "main options": (
                Option(
                    "path", "PATH", "a tokenizer.json, or a folder that a job wrote", required=True
                ),
            ),
            "running": _COMMON,
        },
        "bpe-beam inspect tok/tokenizer.json",
    ),
    "plan": Job(
        "say which files the inputs name, and how they are cut into splits",
        {
            "main options": (
                _INPUT,
                Option(
                    "--output", "F", "write the whole plan as JSON to a path or URL; - is stdout"
                ),
            ),
            "reading text": _LISTING,
            "running": _COMMON,
        },
        "bpe-beam plan --input 'data/**/*.jsonl.zst'",
        "Reads no more of the files than their first bytes.",
    ),
    "counts merge": Job(
        "add counts folders up, as if their corpora had been counted at once",
        {"main options": MERGING, "running": (_OVERWRITE, _PROGRESS, *_COMMON)},
        "bpe-beam counts merge counts-2023/ counts-2024/ --output counts/",
        "They must be made with the same normalizer, pre-tokenizer and special tokens, and all by "
        "source or none.",
    ),
    "counts show": Job(
        "print the most frequent words of a counts folder, with the counts of each source",
        {"main options": SHOWING, "running": _COMMON},
        "bpe-beam counts show counts/ --top 50",
    ),
    "counts filter": Job(
        "write a counts folder anew without rare words, or with some sources only",
        {"main options": FILTERING, "running": (_OVERWRITE, _PROGRESS, *_COMMON)},
        "bpe-beam counts filter counts/ --min-count 2 --output counts-2/",
    ),
    "quickstart": Job(
        "try it all on the Python standard library's sources: train, tokenize, verify",
        {
            "main options": (
                Option(
                    "--output",
                    "DIR",
                    f"folder of all that is made (default {QuickstartSettings.output})",
                ),
            ),
            "running": (*_RUNNING, _OVERWRITE, _PROGRESS, *_COMMON),
        },
        "bpe-beam quickstart",
    ),
}

RUNNING_JOBS = frozenset(name for name, job in JOBS.items() if "--runner" in job.options)
"""The jobs that take a Beam runner and its flags."""

SUMMED_UP_JOBS = RUNNING_JOBS | {
    name for name, job in JOBS.items() if _OVERWRITE.flag in job.options
}
"""The jobs whose summary is shown; what the others print is their result."""

GROUPS = {
    first: [name for name in JOBS if name.startswith(f"{first} ")]
    for first in dict.fromkeys(name.split()[0] for name in JOBS if " " in name)
}
"""The jobs of two words, by the first."""
