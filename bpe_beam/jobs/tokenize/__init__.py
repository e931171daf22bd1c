"""The tokenize job: a corpus and a tokenizer to a folder of token shards."""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import structs

from bpe_beam.corpus.plan import Plan
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.jobs.corpus.summary import TemplateSummary
from bpe_beam.jobs.tokenize.documents import (
    TokenizeInputs,
    TokenizeSummary,
    read_inputs,
    tokenize_documents,
)
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import limit_of
from bpe_beam.storage import Storage


def run(
    settings: TokenizeSettings, progress: Progress, *, plan: Plan | None = None
) -> TokenizeSummary | TemplateSummary:
    """Tokenize a corpus in the mode that the settings choose; each mode has its own imports."""
    inputs = read_inputs(settings, plan)
    tokenize = _to_one_format if len(settings.formats) == 1 else _to_each_format
    return tokenize(inputs, progress)


def _to_one_format(inputs: TokenizeInputs, progress: Progress) -> TokenizeSummary | TemplateSummary:
    if inputs.settings.arranging.arrangement is not None:
        from bpe_beam.jobs.tokenize.arrange import tokenize_arranged

        return tokenize_arranged(inputs, progress)
    return tokenize_documents(inputs, progress)


def _to_each_format(inputs: TokenizeInputs, progress: Progress) -> TokenizeSummary:
    """Tokenize a corpus to a folder for each format below the output, in one pass over the text.

    The text is tokenized to one of the formats, whose shards are then converted to the others. Each
    is a separate job that resumes by itself, and a folder for `verify`.
    """
    from bpe_beam.jobs import convert
    from bpe_beam.settings.convert import ConvertSettings

    started = time.monotonic()
    settings, storage = inputs.settings, inputs.storage
    if storage.exists(storage.join(settings.output, JOB_FILE)):
        raise UsageError(
            f"{settings.output} has the shards of one format; several have a folder each",
            ("output",),
            "give another {output}",
        )
    # Formats with a place for labels first: the others take what they need of them.
    first, *others = sorted(settings.formats, key=lambda name: not shard_format(name).labelled)
    folders = {name: storage.join(settings.output, name) for name in settings.formats}
    one = structs.replace(settings, formats=(first,), output=folders[first])
    limit = limit_of(map(shard_format, settings.formats))
    summary = _to_one_format(structs.replace(inputs, settings=one, limit=limit), progress)
    assert isinstance(summary, TokenizeSummary)  # settings refuse a template of several formats
    finished = [*_folders_of_shards(storage, folders[first])]
    converted = [
        convert.run(
            ConvertSettings(
                folders=(storage.join(folders[first], *inside),),
                output=storage.join(folders[name], *inside),
                run=settings.run,
                format=name,
            ),
            progress,
        )
        for name in others
        for inside in finished
    ]
    summary = structs.replace(
        summary,
        output=settings.output,
        formats=folders,
        seconds=round(time.monotonic() - started, 3),
    )
    if not finished:
        return summary  # of a dry run
    shards, size = summary.shards or 0, summary.shards_bytes or 0
    return structs.replace(
        summary,
        shards=shards + sum(each.shards for each in converted),
        shards_bytes=size + sum(each.shards_bytes for each in converted),
        next=[command("verify", settings.output)],
    )


def _folders_of_shards(storage: Storage, output: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of the finished folders of shards in an output: itself, or some below it."""
    for inside in ((), *((name,) for name in storage.list_names(output))):
        if storage.exists(storage.join(output, *inside, MANIFEST_FILE)):
            yield inside
