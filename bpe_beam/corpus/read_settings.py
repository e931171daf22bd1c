"""How files become documents: what a reader is told."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

from bpe_beam.errors import UsageError

INPUT_FORMATS = ("auto", "text", "jsonl", "parquet", "arrow", "csv", "tsv", "warc", "tar")
WHOLE_FILE = "file"
"""The document separator that makes each text file one document."""

MAX_SOURCES = 1000
"""So many sources can be told apart in a corpus."""

OTHER_SOURCE = "other"
"""The source of documents that no rule gives one."""


@dataclass(frozen=True)
class ReadSettings:
    r"""How files become documents.

    Attributes:
        input_format: One of INPUT_FORMATS; "auto" goes by the file's first bytes and its name.
        text_field: The field of a record that holds the text; dots lead into records of records
            (`meta.body`), and a dot that is part of a name stands as `\\.`.
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
        if self.source_field is not None and self.sources:
            raise UsageError("source-field and source exclude each other: give one of them")
        if len({name for name, _ in self.sources}) >= MAX_SOURCES:
            raise UsageError(f"source names over {MAX_SOURCES - 1} sources")
        for name, pattern in self.sources:
            if not name or not pattern:
                raise UsageError(f"source is '{name}={pattern}'; give NAME=GLOB")
            _check_text("source", name + pattern)

    @property
    def names_sources(self) -> bool:
        """Whether sources were asked for."""
        return self.source_field is not None or bool(self.sources)

    def source_of(self, file: str) -> str:
        """The source of a file's documents, by the file's name in the plan."""
        if not self.sources:
            return file
        for name, pattern in self.sources:
            if fnmatch.fnmatchcase(file, pattern):
                return name
        return OTHER_SOURCE


def _check_text(option: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{option} is {value!r}, which is not text") from None


def check_input_format(input_format: str) -> None:
    """Raises UsageError unless it is one of INPUT_FORMATS."""
    if input_format not in INPUT_FORMATS:
        raise UsageError(
            f"input-format is {input_format!r}; it can be {', '.join(INPUT_FORMATS[:-1])} "
            f"or {INPUT_FORMATS[-1]}"
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
