"""How files become documents: the settings of readers."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass

from bpe_beam import _native
from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.errors import UsageError

WHOLE_FILE = "file"
"""The document separator that makes each text file one document."""

MAX_SOURCES = 1000
"""The most sources of a corpus."""

MAX_PATH_DEPTH: int = _native.MAX_PATH_DEPTH
"""A field may lie so many names deep."""

OTHER_SOURCE = "other"
"""The source of documents that no rule gives one."""


@dataclass(frozen=True)
class ReadSettings:
    r"""How files become documents.

    Attributes:
        input_format: One of INPUT_FORMAT_CHOICES; "auto" goes by a file's first bytes and name.
        text_field: The field of a record that holds the text; see `field_path`.
        id_field: The field that holds the id, a string or a number; it may be missing.
        source_field: The field that names the document's source; a record without it is of the
            source OTHER_SOURCE. None: sources go by files.
        sources: (name, glob) pairs: a file's documents are of the source of the first glob that
            its name in the plan matches (`*` stands for `/` too), OTHER_SOURCE if none does. Empty:
            the source is the file's name.
        document_separator: What ends a document of a text file. With the default, a newline, a
            `\r` before it is not part of the document either. "file": each file is a document.

    Raises:
        UsageError: A setting cannot work.
    """

    input_format: str = "auto"
    text_field: str = "text"
    id_field: str = "id"
    document_separator: str = "\n"
    source_field: str | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_input_format(self.input_format)
        check_document_separator(self.document_separator)
        for option, value in (
            ("text-field", self.text_field),
            ("id-field", self.id_field),
            ("source-field", "source" if self.source_field is None else self.source_field),
        ):
            if not isinstance(value, str) or not value:
                raise UsageError(f"{option} is {value!r}; it must be the name of a field")
            _check_text(option, value)
            _check_path(option, value)
        if self.source_field is not None and self.sources:
            raise UsageError("source-field and source exclude each other: give one of them")
        if len({name for name, _ in self.sources}) >= MAX_SOURCES:
            raise UsageError(f"source names over {MAX_SOURCES - 1} sources")
        for name, pattern in self.sources:
            if not name or not pattern:
                raise UsageError(f"source is '{name}={pattern}'; give NAME=GLOB")
            _check_text("source", name + pattern)

    @property
    def paths(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The paths of text, id and source, see `field_path`; that of the source is empty if no
        field names it."""
        source = () if self.source_field is None else field_path(self.source_field)
        return field_path(self.text_field), field_path(self.id_field), source

    @property
    def names_sources(self) -> bool:
        """Whether sources were asked for."""
        return self.source_field is not None or bool(self.sources)

    def source_of(self, file: str) -> str:
        """The source of a file's documents that no field of theirs names, by the file's name in
        the plan."""
        if self.source_field is not None:
            return OTHER_SOURCE
        if not self.sources:
            return file
        for name, pattern in self.sources:
            if fnmatch.fnmatchcase(file, pattern):
                return name
        return OTHER_SOURCE


@functools.lru_cache(maxsize=64)
def field_path(field: str) -> tuple[str, ...]:
    r"""The names that lead to a field, from the outermost record in.

    Args:
        field: The names with dots between them (`meta.body`); a dot that is part of a name stands
            as `\.`, a backslash as `\\`.

    Raises:
        UsageError: A name is empty, a backslash stands before something else, or there are over
            MAX_PATH_DEPTH names.
    """
    if re.fullmatch(r"(?:[^\\]|\\[\\.])*", field, re.DOTALL) is None:
        raise UsageError(r"it has a lone backslash; \\ stands for one, \. for a dot in a name")
    tokens = re.findall(r"\\.|[^\\]", field, re.DOTALL)
    names = [""]
    for token in tokens:
        if token == ".":
            names.append("")
        else:
            names[-1] += token[-1]
    if "" in names:
        raise UsageError(r"a name of it is empty; a dot that is part of a name is written \.")
    if len(names) > MAX_PATH_DEPTH:
        raise UsageError(f"it has {len(names)} names; a field is at most {MAX_PATH_DEPTH} deep")
    return tuple(names)


def _check_path(option: str, value: str) -> None:
    try:
        field_path(value)
    except UsageError as error:
        raise UsageError(f"{option} is {value!r}: {error}") from None


def _check_text(option: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{option} is {value!r}, which is not text") from None


def check_input_format(input_format: str) -> None:
    """Raises UsageError unless it is one of INPUT_FORMAT_CHOICES."""
    if input_format not in INPUT_FORMAT_CHOICES:
        raise UsageError(
            f"input-format is {input_format!r}; it can be {', '.join(INPUT_FORMAT_CHOICES[:-1])} "
            f"or {INPUT_FORMAT_CHOICES[-1]}"
        )


def check_document_separator(separator: str) -> None:
    """Raises UsageError unless it can stand between documents."""
    if not isinstance(separator, str) or not separator:
        raise UsageError(
            f"document-separator is {separator!r}; it must have at least one character "
            "('file' makes each file a document)"
        )
    try:
        separator.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"document-separator is {separator!r}: half a surrogate pair cannot stand in a file"
        ) from None
