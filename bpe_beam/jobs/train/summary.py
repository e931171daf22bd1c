"""The summary of a train job: its fields, and the figures and next commands in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET, UnsetType

from bpe_beam import _native
from bpe_beam.counts.part_files import read_part
from bpe_beam.counts.word_table import string_buffers, weighted_total
from bpe_beam.folders.artifact_names import SUMMARY_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.jobs.corpus import summary
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.jobs.train.trainer import Trainer
from bpe_beam.messages import command
from bpe_beam.settings.field import typed_options
from bpe_beam.settings.train import TrainingSettings
from bpe_beam.storage.json_file import Sha256, read_signed, to_struct
from bpe_beam.tokenizer.encoding.native_encoder import make_model
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe

_SHOWN_INPUTS = 3

MEASURED = ("runner", "workers", "counters", "distributions")
"""The rows of the count job's summary and of a trainer that say how pipelines ran."""

OF_THE_FILE = ("files", "job_fingerprint")  # the rows that only `summary.json` has

OF_INPUT_FILES = (
    "files_excluded",
    "duplicate_inputs",
    "links_not_followed",
    "files_passed_over",
    "by_format",
    "files_read_by_one_worker",
)
"""The rows of the count job's summary about the input, which this job's summary repeats."""


class TrainSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a training; UNSET is left out of the JSON."""

    job: str = "train"
    output: str
    was_finished_before: bool | UnsetType = UNSET
    counts: str
    warnings: list[str] | None
    files_excluded: int | UnsetType | None = UNSET
    duplicate_inputs: Any = UNSET
    links_not_followed: Any = UNSET
    files_passed_over: Any = UNSET
    by_format: Any = UNSET
    files_read_by_one_worker: Any = UNSET
    documents: int
    text_bytes: int
    words: int
    unique_words: int
    sources: dict[str, summary.Rows] | None
    weights: dict[str, summary.Rows] | None = None
    rejects: int
    lost: Any = None
    model: str
    vocab_size: int
    merges: int
    last_merge_count: int | float | None  # how often the pair occurs; with weights maybe a fraction
    bytes_per_token: float | UnsetType | None = UNSET
    weighted_bytes_per_token: float | UnsetType | None = UNSET
    fingerprint: str
    merge_rounds: str
    merge_rounds_because: str | UnsetType = UNSET
    rounds: Any = UNSET
    passes: int | UnsetType = UNSET  # of a training of pieces over the words
    pieces_by_pass: Sequence[int] | UnsetType = UNSET  # before the first pass, and after each
    jobs: int | UnsetType = UNSET
    counting_seconds: float | UnsetType | None = UNSET
    learning_seconds: float | UnsetType = UNSET
    seconds: float = 0.0
    # How the pipelines of this run ran, if any did; so `workers`, `counters` and `distributions`
    runner: str | UnsetType = UNSET
    workers: int | UnsetType | None = UNSET
    counters: dict[str, int] | UnsetType | None = UNSET
    distributions: summary.Rows | UnsetType | None = UNSET
    next: list[str]
    files: list[FileInfo] | UnsetType = UNSET  # the tokenizer's files; only in `summary.json`
    job_fingerprint: Sha256 | UnsetType = UNSET  # as in `__job`; only in `summary.json`


def summary_of(
    trainer: Trainer,
    learned: TrainingResult,
    tokenizer: Tokenizer,
    warnings: list[str],
    counting: summary.Rows,
) -> TrainSummary:
    """Return the summary without files, times and what was measured."""
    settings, counts = trainer.plan.settings, trainer.plan.counts
    assert counts is not None
    manifest, weights = counts.manifest, counts.weights
    sizes = {name: totals.text_bytes for name, totals in (manifest.sources or {}).items()}
    unit = 1 if weights is None else weights.unit
    last = int(learned.counts[-1]) if len(learned.counts) else None
    mean = bytes_per_token(learned)
    return TrainSummary(
        output=settings.folder,
        counts=counts.folder,
        warnings=warnings or None,
        **{name: value for name, value in counting.items() if name not in MEASURED},
        documents=manifest.documents,
        text_bytes=manifest.text_bytes,
        words=manifest.words,
        unique_words=manifest.unique_words,
        sources=summary.source_figures(
            manifest.sources, _tokens_by_source(trainer.plan, tokenizer)
        ),
        weights=None if weights is None else weights.summary(sizes),
        rejects=sum(manifest.rejects.values()),
        lost=summary.losses_summary(manifest.lost),
        model=settings.model,
        vocab_size=tokenizer.vocab_size,
        merges=len(learned.merges),
        last_merge_count=last if last is None or unit == 1 else last / unit,
        bytes_per_token=mean if weights is None else UNSET,
        weighted_bytes_per_token=UNSET if weights is None else mean,
        passes=len(learned.sizes) - 1 if learned.sizes else UNSET,
        pieces_by_pass=learned.sizes or UNSET,
        fingerprint=tokenizer.fingerprint,
        **trainer.summary,
        next=next_commands(settings),
    )


def measured_rows(counting: summary.Rows, training: summary.Rows) -> summary.Rows:
    """Return the rows about the pipelines of counting and of training; their names differ."""
    measured = {name: counting[name] for name in MEASURED if name in counting} | {**training}
    for name in ("counters", "distributions") if measured else ():
        measured[name] = {**(counting.get(name) or {}), **(training.get(name) or {})} or None
    return measured


def read_summary(data: bytes) -> TrainSummary:
    return to_struct(read_signed(data, SUMMARY_FILE), TrainSummary, SUMMARY_FILE)


def bytes_per_token(learned: TrainingResult) -> float | None:
    """Return the bytes of the counted words over the number of their tokens."""
    mean = None if learned.totals is None else learned.totals.bytes_per_token
    return None if mean is None else round(mean, 4)


def next_commands(settings: TrainingSettings) -> list[str]:
    tokenizer = f"{settings.folder}/tokenizer.json"
    reading = ["--input", "INPUT"]
    if settings.input is not None and len(settings.input.inputs) <= _SHOWN_INPUTS:
        reading = typed_options(settings.input)
    around = [
        word
        for flag, role in (("--prepend", "bos_token"), ("--append", "eos_token"))
        if (token := settings.roles.get(role)) is not None
        for word in (flag, token)
    ]
    return [
        command("inspect", tokenizer),
        command("encode", "--tokenizer", tokenizer, "--show", "Hello world"),
        command("tokenize", "--tokenizer", tokenizer, *reading, *around, "--output", "tokens"),
    ]


def _tokens_by_source(plan: TrainingPlan, tokenizer: Tokenizer) -> dict[str, int | None] | None:
    """Return the number of tokens that the counted words of each source become.

    Special tokens in the text aside, its documents have so many. Each unique word is encoded once.
    """
    assert plan.counts is not None
    recipe, manifest = plan.recipe, plan.counts.manifest
    if manifest.sources is None or any(step.min_count > 1 for step in manifest.filtered or ()):
        return None
    encoder = _native.Encoder(_native.Pipeline([], None, []), make_model(tokenizer.spec))
    ending = recipe.end_of_word_symbol if isinstance(recipe, BpeRecipe) else ""
    tokens: dict[str, int | None] = dict.fromkeys(manifest.sources, 0)
    for part in manifest.parts:
        counted = read_part(plan.storage, plan.counts.folder, manifest, part)
        for source, words in counted.items():
            before = tokens[str(source)]
            more = None if before is None else _tokens(encoder, words, ending)
            tokens[str(source)] = None if before is None or more is None else before + more
    return tokens


def _tokens(encoder: _native.Encoder, words: pa.Table, ending: str) -> int | None:
    """Return the number of tokens of counted words; None if one of them cannot be encoded."""
    texts = words["word"].combine_chunks()
    if ending:  # the tokenizer's normalizer adds it to the words
        import pyarrow.compute as pc  # slow to import: only for such tokenizers

        texts = pc.binary_join_element_wise(
            texts, *(pa.scalar(t, texts.type) for t in (ending, ""))
        )
    data, offsets = string_buffers(texts)
    try:
        _, ends = encoder.encode_batch(data, offsets)
    except _native.MissingSymbolError:
        return None
    return weighted_total(np.diff(ends), words["count"].to_numpy())
