"""`tokenize` to several formats: a folder of shards each, of one pass over the text.

The text is tokenized to one of the formats, whose shards are then converted to the others. Each is
a job of its own that resumes by itself, and a folder that `verify` knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from msgspec import structs

from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, MANIFEST_FILE
from bpe_beam.jobs import convert
from bpe_beam.jobs.corpus.job import CorpusSummary
from bpe_beam.messages import command
from bpe_beam.progress import Progress
from bpe_beam.settings.convert import ConvertSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardLimit, limit_of
from bpe_beam.storage import Storage


def tokenize_to_each(
    settings: TokenizeSettings,
    progress: Progress,
    tokenize: Callable[[TokenizeSettings, ShardLimit | None], CorpusSummary],
) -> CorpusSummary:
    """Tokenize a corpus to folders of several formats below the output.

    Returns:
        The summary of the tokenization, with the folders of all formats, and the shards of all.
    """
    started = time.monotonic()
    storage = Storage(settings.run.storage_options)
    if storage.exists(storage.join(settings.output, JOB_FILE)):
        raise UsageError(
            f"{settings.output} holds the shards of one format; several have a folder each",
            ("output",),
            "give another {output}",
        )
    # Those with a place for labels first: the others take from them what they need.
    first, *others = sorted(
        settings.formats, key=lambda name: shard_format(name).labelled_writer is None
    )
    folders = {name: storage.join(settings.output, name) for name in settings.formats}
    one = replace(settings, formats=(first,), output=folders[first])
    summary = tokenize(one, limit_of(map(shard_format, settings.formats)))
    made = [*_folders_of_shards(storage, folders[first])]
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
        for inside in made
    ]
    if converted:
        shards, size = summary.shards, summary.shards_bytes
        assert isinstance(shards, int)
        assert isinstance(size, int)
        summary = structs.replace(
            summary,
            shards=shards + sum(each.shards for each in converted),
            shards_bytes=size + sum(each.shards_bytes for each in converted),
        )
    return structs.replace(
        summary,
        output=settings.output,
        formats=folders,
        seconds=round(time.monotonic() - started, 3),
        next=[command("verify", settings.output)] if made else summary.next,
    )


def _folders_of_shards(storage: Storage, output: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of the finished folders of shards in an output: itself, or some below it."""
    for inside in ((), *((name,) for name in storage.list_names(output))):
        if storage.exists(storage.join(output, *inside, MANIFEST_FILE)):
            yield inside
