"""The kind of the first argument: texts, texts by source, files, or counts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sized
from typing import Any

from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.field import own_options
from bpe_beam.storage import Storage
from bpe_beam.storage.names import local_path

FIRST = "texts_or_paths"

Texts = Iterable[Any]

_MAX_NAME = 1000  # the maximum number of characters of a text that may be the name of a file


_OF_FILES = tuple(option.name for option in own_options(InputSettings))


def files_in(
    argument: object, values: Mapping[str, Any], name: str = FIRST
) -> tuple[str, ...] | None:
    """Return the files that the first argument names; refuse options that do not fit it."""
    files = paths_of(argument, name)
    both = [each for each in ("inputs", "counts") if each in values]
    if both:
        raise UsageError("exclude each other", (name, both[0]), "give one of them")
    if files is None:
        refuse_reading_options(values)
    return files


def refuse_reading_options(values: Mapping[str, Any]) -> None:
    """Refuse options about reading files where none are read."""
    about_files = [name for name in _OF_FILES if name in values]
    if about_files:
        raise UsageError(
            "has no effect on texts or counts: it is about reading files", (about_files[0],)
        )


def paths_of(argument: object, name: str = FIRST) -> tuple[str, ...] | None:
    """Return the names of files in the argument; None if it is not a name of files."""
    if isinstance(argument, (str, os.PathLike)):
        return (os.fsdecode(argument),)
    if isinstance(argument, (list, tuple)) and argument:
        if all(isinstance(each, os.PathLike) for each in argument):
            return tuple(os.fsdecode(each) for each in argument)
        if isinstance(argument[0], str) and _names_a_file(argument[0]):
            raise UsageError(
                "is a list of str, which are texts, and the first one names a file: "
                f"{argument[0]!r}",
                (name,),
                "give inputs=[...] or Path objects to read files; iter([...]) for names as texts",
            )
    if isinstance(argument, (bytes, bytearray)) or not isinstance(argument, (Iterable, WordCounts)):
        shown = "None" if argument is None else type(argument).__name__
        raise UsageError(
            f"must be texts, a path, or counts, got {shown}",
            (name,),
            "texts are an iterable of str or bytes",
        )
    return None


def sources_of(texts: Any, name: str = FIRST) -> Mapping[str | None, Texts]:
    """Return texts by source; without sources, the only key is None."""
    if not isinstance(texts, Mapping):
        return {None: texts}
    for source, argument in texts.items():
        if not isinstance(source, str) or not source:
            raise UsageError(f"must have names of sources as keys, got {source!r}", (name,))
        single = (str, bytes, os.PathLike, WordCounts)
        if isinstance(argument, single) or paths_of(argument, name) is not None:
            raise UsageError(
                f"must have texts for the source {source!r}, got {argument!r}",
                (name,),
                "for files by source, give {inputs} and {sources}",
            )
    return texts


def number_of_texts(sources: Mapping[str | None, Texts]) -> int | None:
    """Return the number of texts of all sources; None if it is unknown before they are read."""
    total = 0
    for texts in sources.values():
        if not isinstance(texts, Sized):
            return None
        if isinstance(texts, (list, tuple)) and texts and not isinstance(texts[0], (str, bytes)):
            return None  # its items are lists of texts
        total += len(texts)
    return total


def _names_a_file(text: str) -> bool:
    if len(text) > _MAX_NAME or "\n" in text or not text.strip():
        return False
    if "://" in text and not any(map(str.isspace, text)):
        return True
    try:
        if local_path(text).is_file():
            return True
    except (OSError, ValueError):
        return False
    return "/" in text and glob.has_magic(text) and bool(Storage().expand(text))
