"""What the first argument of a function is: texts, texts by source, files, or counts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage
from bpe_beam.storage.names import local_path

FIRST = "texts_or_paths"

Texts = Iterable[Any]

_LONGEST_NAME = 1000
"""Characters of a text that may be the name of a file."""


@dataclass(frozen=True)
class FirstArgument:
    """The first argument of a function, as messages describe it.

    Attributes:
        name: The parameter.
        kinds: What it may be.
        files: What to do instead of giving names of files as a list of str.
        files_by_source: What to do instead of giving files as the texts of a source.
    """

    name: str
    kinds: str
    files: str
    files_by_source: str


_OF_TRAINING = FirstArgument(
    FIRST,
    "texts, a path, or counts",
    files="give inputs=[...] or Path objects to read files; iter([...]) for names as texts",
    files_by_source="to count files by source, give {inputs} and {sources}",
)


def paths_of(argument: Any, first: FirstArgument = _OF_TRAINING) -> tuple[str, ...] | None:
    """Return the names of files, if the argument names some; None if it is something else."""
    if isinstance(argument, (str, os.PathLike)):
        return (os.fsdecode(argument),)
    if isinstance(argument, (list, tuple)) and argument:
        if all(isinstance(each, os.PathLike) for each in argument):
            return tuple(os.fsdecode(each) for each in argument)
        if isinstance(argument[0], str) and _names_a_file(argument[0]):
            raise UsageError(
                "is a list of str, which are texts, and the first one names a file: "
                f"{argument[0]!r}",
                (first.name,),
                first.files,
            )
    if isinstance(argument, (bytes, bytearray)) or not isinstance(argument, (Iterable, WordCounts)):
        shown = "None" if argument is None else type(argument).__name__
        raise UsageError(
            f"must be {first.kinds}, got {shown}",
            (first.name,),
            "texts are an iterable of str or bytes",
        )
    return None


def sources_of(texts: Any, first: FirstArgument = _OF_TRAINING) -> Mapping[str | None, Texts]:
    """Return texts by source; without sources, the only key is None."""
    if not isinstance(texts, Mapping):
        return {None: texts}
    for name, own in texts.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"must have names of sources as keys, got {name!r}", (first.name,))
        single = (str, bytes, os.PathLike, WordCounts)
        if isinstance(own, single) or paths_of(own, first) is not None:
            raise UsageError(
                f"must have texts for the source {name!r}, got {own!r}",
                (first.name,),
                first.files_by_source,
            )
    return texts


def number_of_texts(sources: Mapping[str | None, Texts]) -> int | None:
    """Return the number of texts of all sources; None if that is not known before they are read."""
    total = 0
    for texts in sources.values():
        if not isinstance(texts, Sized):
            return None
        if isinstance(texts, (list, tuple)) and texts and not isinstance(texts[0], (str, bytes)):
            return None  # its items are lists of texts
        total += len(texts)
    return total


def _names_a_file(text: str) -> bool:
    if len(text) > _LONGEST_NAME or "\n" in text or not text.strip():
        return False
    if "://" in text and not any(map(str.isspace, text)):
        return True
    try:
        if local_path(text).is_file():
            return True
    except (OSError, ValueError):
        return False
    return "/" in text and glob.has_magic(text) and bool(Storage().expand(text))
