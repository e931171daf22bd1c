"""The settings of readers, by which files become documents."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.corpus.formats import INPUT_FORMAT_CHOICES
from bpe_beam.errors import UsageError, require, require_choice
from bpe_beam.messages import list_few
from bpe_beam.storage.json_file import JsonObject

WHOLE_FILE = "file"
"""The document separator that makes each text file one document."""

FieldOfFiles: TypeAlias = str | tuple[tuple[str, str], ...]
"""The name of a field, or pairs of files and names; see `ReadSettings.text_field`."""

FIELDS = ("text_field", "id_field", "source_field")
"""The settings that name fields."""

MAX_SOURCES = 1000
"""Maximum number of sources of a corpus."""

MAX_PATH_DEPTH: int = _native.MAX_PATH_DEPTH
"""Maximum number of names that lead to a field."""

OTHER_SOURCE = "other"
"""The source of documents that match no rule."""


class ReadSettings(Struct, frozen=True):
    r"""The settings by which files become documents.

    Attributes:
        input_format: One of INPUT_FORMAT_CHOICES; "auto" goes by a file's first bytes and name.
        text_field: The field of a record with the text; see `field_path`. Or pairs of a name and
            a field: the first pair whose name means a file names the field of its records, see
            `is_meant`; the name `*` means all other files.
        id_field: The field with the id, a string or a number; it may be missing. Or pairs.
        source_field: The field that names the document's source; a record without it has the
            source OTHER_SOURCE. Or pairs. None: files decide.
        sources: (name, glob) pairs: a file's documents have the source of the first glob that
            its name in the plan matches (`*` matches `/` too), OTHER_SOURCE if none does. Empty:
            the source is the file's name.
        document_separator: The end of a document of a text file. With the default, a newline, a
            `\r` before it is not part of the document either. "file": each file is a document.

    Raises:
        UsageError: A setting is refused.
    """

    input_format: str = "auto"
    text_field: FieldOfFiles = "text"
    id_field: FieldOfFiles = "id"
    document_separator: str = "\n"
    source_field: FieldOfFiles | None = None
    sources: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        require_choice("input_format", self.input_format, INPUT_FORMAT_CHOICES)
        _require_text("document_separator", self.document_separator)
        for name in FIELDS:
            value = getattr(self, name)
            if value is None and name != "source_field":
                _require_text(name, value)
            for key, field in pairs_of(value):
                _require_text(name, key)
                field_path(field, name)
        if self.source_field is not None and self.sources:
            raise UsageError("exclude each other: give one of them", ("source_field", "sources"))
        names, most = len({name for name, _ in self.sources}), MAX_SOURCES - 1
        require(names <= most, f"must name at most {most} sources, got {names:,}", "sources")
        for pair in self.sources:
            for text in pair:
                _require_text("sources", text)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> ReadSettings:
        """Return the settings of a manifest, whose pairs are lists."""
        options: JsonObject = {
            name: tuple(map(tuple, value)) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return ReadSettings(**options)

    @property
    def paths(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Paths of text, id and source in one file's settings; () if no field names a source."""
        names = (cast("str | None", getattr(self, field)) for field in FIELDS)
        text, name, source = (() if each is None else field_path(each) for each in names)
        return text, name, source

    @property
    def names_sources(self) -> bool:
        return self.source_field is not None or bool(self.sources)

    def of_file(self, file: str) -> ReadSettings:
        """Return the settings of a file, whose fields are names."""
        values = {name: getattr(self, name) for name in FIELDS}
        if all(isinstance(value, str | None) for value in values.values()):
            return self
        for name, value in values.items():
            meant = (field for key, field in pairs_of(value) if self.is_meant(key, file))
            values[name] = next(meant, _DEFAULTS[name])
        return replace(self, **values)

    def text_field_of(self, file: str) -> str:
        """Return the field of the text in the records of a file, by its name in the plan."""
        return str(self.of_file(file).text_field)

    def check_names(self, files: Sequence[str]) -> None:
        """Refuse a pair whose name means no file."""
        for parameter in FIELDS:
            for name, _ in pairs_of(getattr(self, parameter)):
                if name != "*" and not any(self.is_meant(name, file) for file in files):
                    known = list_few(list(dict.fromkeys(name for name, _ in self.sources)))
                    raise UsageError(
                        f"must name a source, a folder or a glob of files, got {name!r}, which "
                        "means no file",
                        (parameter,),
                        f"the sources are {known or 'not named (see {sources})'}; the files are "
                        f"{list_few(list(files), 3)}; write *=FIELD for a field whose name "
                        "contains =",
                    )

    def is_meant(self, name: str, file: str) -> bool:
        """Return whether a name of a pair means a file."""
        if any(name == source for source, _ in self.sources):
            return self.source_of(file) == name
        if f"/{name.strip('/')}/" in f"/{file}/" or fnmatch.fnmatchcase(file, name):
            return True
        return file.rpartition("/")[2].partition(".")[0] == name

    def source_of(self, file: str) -> str:
        """Return the source of a file's documents, unless a field of theirs names it."""
        if self.source_field is not None:
            return OTHER_SOURCE
        if not self.sources:
            return file
        for name, pattern in self.sources:
            if fnmatch.fnmatchcase(file, pattern):
                return name
        return OTHER_SOURCE


_DEFAULTS = dict(zip(ReadSettings.__struct_fields__, ReadSettings.__struct_defaults__, strict=True))


def pairs_of(field: FieldOfFiles | None) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a field of files; a name alone has the glob `*`."""
    if field is None:
        return ()
    if isinstance(field, tuple):
        return tuple(sorted(field, key=lambda pair: pair[0] == "*"))  # the others come first
    return (("*", field),)


@functools.lru_cache(maxsize=64)
def field_path(field: str, name: str = "text_field") -> tuple[str, ...]:
    r"""Return the names that lead to a field, from the outermost record in.

    The field has dots between the names (`meta.body`); a dot in a name is written `\.`, a backslash
    `\\`. Errors name the parameter `name`.
    """
    _require_text(name, field)
    if re.fullmatch(r"(?:[^\\]|\\[\\.])*", field, re.DOTALL) is None:
        remedy = r"write \\ for a backslash, and \. for a dot in a name"
        raise UsageError(f"must have no lone backslash, got {field!r}", (name,), remedy)
    names = [""]
    for token in re.findall(r"\\.|[^\\]", field, re.DOTALL):
        if token == ".":
            names.append("")
        else:
            names[-1] += token[-1]
    if "" in names:
        remedy = r"write \. for a dot that is part of a name"
        raise UsageError(f"must have no empty name between dots, got {field!r}", (name,), remedy)
    message = f"must lead through at most {MAX_PATH_DEPTH} names, got {len(names)}: {field!r}"
    require(len(names) <= MAX_PATH_DEPTH, message, name)
    return tuple(names)


def _require_text(name: str, value: object) -> None:
    """Refuse a value that is no text, empty, or has a lone surrogate."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"must be a text of at least one character, got {value!r}", (name,))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"must be valid UTF-8, got {value!r}", (name,)) from None
