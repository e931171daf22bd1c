"""What jobs say about each source at their end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from bpe_beam.corpus.read_settings import OTHER_SOURCE

if TYPE_CHECKING:
    from bpe_beam.counts.manifest import CountsManifest
    from bpe_beam.settings.common import InputSettings
    from bpe_beam.shards.manifest import Manifest


def source_facts(
    manifest: CountsManifest, tokens: Mapping[str, int | None] | None = None
) -> dict[str, dict[str, Any]] | None:
    """What each source of counts has; None without sources.

    Args:
        manifest: The counts.
        tokens: Tokens of each source, where they are known.
    """
    if manifest.sources is None:
        return None
    rows = {
        name: {
            "documents": totals.documents,
            "text_bytes": totals.text_bytes,
            "words": totals.words,
            "unique_words": totals.unique_words,
        }
        for name, totals in manifest.sources.items()
    }
    return with_shares(rows, tokens)


def shard_source_facts(manifest: Manifest) -> dict[str, dict[str, Any]] | None:
    """What each source of shards has; None without sources."""
    if manifest.sources is None:
        return None
    rows = {
        name: {"documents": facts.documents, "text_bytes": facts.text_bytes}
        for name, facts in manifest.sources.items()
    }
    return with_shares(rows, {name: facts.tokens for name, facts in manifest.sources.items()})


def source_warnings(given: InputSettings, sources: Collection[str] | None) -> list[str]:
    """What of the sources that were named was never met: a misspelt name goes unseen otherwise.

    Args:
        given: Names the sources, if anything does.
        sources: Those that documents were of.
    """
    found = sources or ()
    if given.source_field is not None and set(found) == {OTHER_SOURCE}:
        return [f"no document names its source in {given.source_field!r}: all are {OTHER_SOURCE!r}"]
    missing = sorted({name for name, _ in given.sources}.difference(found))
    return [f"no document is of --source {', '.join(missing)}"] if missing else []


def with_shares(
    rows: Mapping[str, Mapping[str, int]], tokens: Mapping[str, int | None] | None
) -> dict[str, dict[str, Any]]:
    """Facts by source, with each one's share of the text; and, where tokens are told, the bytes
    that one has."""
    total = sum(row["text_bytes"] for row in rows.values())
    facts: dict[str, dict[str, Any]] = {}
    for name, row in rows.items():
        size = row["text_bytes"]
        facts[name] = {**row, "share": size / total if total else None}
        if tokens is not None:
            made = tokens[name]
            facts[name] |= {"tokens": made, "bytes_per_token": size / made if made else None}
    return facts
