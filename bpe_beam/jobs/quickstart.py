"""The quickstart job: train, tokenize and verify once, on the sources of the standard library."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import TOKENIZER_FILE
from bpe_beam.jobs import tokenize, train, verify
from bpe_beam.jobs.tokenize.documents import TokenizeSummary
from bpe_beam.jobs.train.summary import TrainSummary
from bpe_beam.jobs.verify import VerifySummary
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.quickstart import QuickstartSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.storage import Storage

VOCAB_SIZE = 8000
END_OF_TEXT = "<|endoftext|>"


class QuickstartSummary(Struct, frozen=True, kw_only=True):
    """The summary of `quickstart`, with the summaries of its three jobs."""

    job: str = "quickstart"
    warnings: list[str] | None
    corpus: str
    tokenizer: str
    tokens_folder: str
    documents: int
    text_bytes: int
    tokens: int
    bytes_per_token: float | None
    rejects: int
    shards_whole: bool
    train: TrainSummary
    tokenize: TokenizeSummary
    verify: VerifySummary
    next: list[str]


def run(settings: QuickstartSettings, progress: Progress) -> QuickstartSummary:
    """Train on the sources, tokenize them, verify the shards."""
    storage = Storage(settings.run.storage_options)
    trained = storage.join(settings.output, "tokenizer")
    tokens = storage.join(settings.output, "tokens")
    # Python's own tests have some files that are not UTF-8 on purpose: they are rejects.
    corpus = InputSettings(inputs=_sources(), document_separator="file", max_rejects="1%")
    run_settings = replace(settings.run, summary_file=None)
    training = train.run(
        TrainSettings(
            output=trained,
            vocab_size=VOCAB_SIZE,
            input=corpus,
            special_tokens=(END_OF_TEXT,),
            run=run_settings,
        ),
        progress,
    )
    tokenizer = storage.join(trained, TOKENIZER_FILE)
    tokenizing = tokenize.run(
        TokenizeSettings(
            input=corpus, tokenizer=tokenizer, output=tokens, append=END_OF_TEXT, run=run_settings
        ),
        progress,
    )
    assert isinstance(tokenizing, TokenizeSummary)  # this corpus is not for templates
    # verify runs in this process, whatever runner wrote the shards.
    here = replace(run_settings, runner=None, runner_options=())
    verifying = verify.run(VerifySettings((tokens,), run=here), progress)
    return QuickstartSummary(
        warnings=[*(training.warnings or ()), *(tokenizing.warnings or ())] or None,
        corpus=f"{tokenizing.files:,} sources of Python's standard library",
        tokenizer=tokenizer,
        tokens_folder=tokens,
        documents=tokenizing.documents,
        text_bytes=tokenizing.text_bytes,
        tokens=tokenizing.tokens,
        bytes_per_token=tokenizing.bytes_per_token,
        rejects=tokenizing.rejects,
        shards_whole=verifying.whole,
        train=training,
        tokenize=tokenizing,
        verify=verifying,
        next=[
            command("encode", "--tokenizer", tokenizer, "--show", "def hello():"),
            command("inspect", tokens),
            "bpe-beam train --input 'YOUR/*.jsonl.gz' --vocab-size 32000 --output tokenizer",
        ],
    )


def _sources() -> tuple[str, ...]:
    """Return the `.py` files of the standard library, without installed packages."""
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("site-packages", "dist-packages")]
        sources += [str(Path(folder, name)) for name in files if name.endswith(".py")]
    if not sources:
        raise UsageError(f"this Python has no sources in {root}: give other text to bpe-beam train")
    return tuple(sorted(sources))
