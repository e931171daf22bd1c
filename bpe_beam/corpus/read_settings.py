"""The settings of readers: how files become documents."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass

from bpe_beam import _native
from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.errors import UsageError, require_choice

WHOLE_FILE = "file"
"""The document separator that makes each text file one document."""

MAX_SOURCES = 1000
"""The most sources of a corpus."""

MAX_PATH_DEPTH: int = _native.MAX_PATH_DEPTH
"""The most names that lead to a field."""

OTHER_SOURCE = "other"
"""The source of documents that match no rule."""


@dataclass(frozen=True)
class ReadSettings:
    r"""How files become documents.

    Attributes:
        input_format: One of INPUT_FORMAT_CHOICES; "auto" goes by a file's first bytes and name.
        text_field: The field of a record with the text; see `field_path`.
        id_field: The field with the id, a string or a number; it may be missing.
        source_field: The field that names the document's source; a record without it is of the
            source OTHER_SOURCE. None: sources go by files.
        sources: (name, glob) pairs: a file's documents are of the source of the first glob that
            its name in the plan matches (`*` matches `/` too), OTHER_SOURCE if none does. Empty:
            the source is the file's name.
        document_separator: The end of a document of a text file. With the default, a newline, a
            `\r` before it is not part of the document either. "file": each file is a document.

    Raises:
        UsageError: A setting is refused.
    """

    input_format: str = "auto"
    text_field: str = "text"
    id_field: str = "id"
    document_separator: str = "\n"
    source_field: str | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        require_choice("input_format", self.input_format, INPUT_FORMAT_CHOICES)
        _require_text("document_separator", self.document_separator)
        for name in ("text_field", "id_field", "source_field"):
            if name != "source_field" or self.source_field is not None:
                field_path(getattr(self, name), name)
        if self.source_field is not None and self.sources:
            raise UsageError("exclude each other: give one of them", ("source_field", "sources"))
        names = len({name for name, _ in self.sources})
        if names >= MAX_SOURCES:
            message = f"must name at most {MAX_SOURCES - 1} sources, got {names:,}"
            raise UsageError(message, ("sources",))
        for pair in self.sources:
            for text in pair:
                _require_text("sources", text)

    @property
    def paths(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The paths of text, id and source, see `field_path`.

        That of the source is empty if no field names it.
        """
        source = () if self.source_field is None else field_path(self.source_field)
        return field_path(self.text_field), field_path(self.id_field), source

    @property
    def names_sources(self) -> bool:
        """Whether the settings define sources."""
        return self.source_field is not None or bool(self.sources)

    def source_of(self, file: str) -> str:
        """Return the source of a file's documents, unless a field of theirs names it.

        Args:
            file: The file's name in the plan.
        """
        if self.source_field is not None:
            return OTHER_SOURCE
        if not self.sources:
            return file
        for name, pattern in self.sources:
            if fnmatch.fnmatchcase(file, pattern):
                return name
        return OTHER_SOURCE


@functools.lru_cache(maxsize=64)
def field_path(field: str, name: str = "text_field") -> tuple[str, ...]:
    r"""Return the names that lead to a field, from the outermost record in.

    Args:
        field: The names with dots between them (`meta.body`); a dot that is part of a name is
            written `\.`, a backslash `\\`.
        name: The parameter, for errors.

    Raises:
        UsageError: The field is no text, a name in it is empty, a backslash has no meaning, or
            there are over MAX_PATH_DEPTH names.
    """
    _require_text(name, field)
    if re.fullmatch(r"(?:[^\\]|\\[\\.])*", field, re.DOTALL) is None:
        raise UsageError(
            f"must have no lone backslash, got {field!r}",
            (name,),
            r"write \\ for a backslash, and \. for a dot in a name",
        )
    names = [""]
    for token in re.findall(r"\\.|[^\\]", field, re.DOTALL):
        if token == ".":
            names.append("")
        else:
            names[-1] += token[-1]
    if "" in names:
        remedy = r"write \. for a dot that is part of a name"
        raise UsageError(f"must have no empty name between dots, got {field!r}", (name,), remedy)
    if len(names) > MAX_PATH_DEPTH:
        message = f"must lead through at most {MAX_PATH_DEPTH} names, got {len(names)}: {field!r}"
        raise UsageError(message, (name,))
    return tuple(names)


def _require_text(name: str, value: object) -> None:
    """Refuse a value that is no text, empty, or has a lone surrogate."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"must be a text of at least one character, got {value!r}", (name,))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"must be valid UTF-8, got {value!r}", (name,)) from None
