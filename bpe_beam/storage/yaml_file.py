"""YAML files that users write: a mapping, read as a tree of nodes rather than as Python values.

So `no` and `010` mean the same as on a command line, and errors can name the line. Import this
where it is used: PyYAML is slow to import.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

from bpe_beam.errors import UsageError
from bpe_beam.storage.client import Storage
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.names import redact

MAX_BYTES = 1 << 20
"""The maximum size of a file: a corpus that was named by mistake is refused."""


class Entry(NamedTuple):
    """A name and its value."""

    name: str
    value: yaml.Node
    line: int  # from 1


def read_mapping(storage: Storage, url: str, what: str) -> list[Entry]:
    """Return the names and values of a YAML file; none of an empty one.

    Args:
        storage: Reads the file.
        url: The file.
        what: Says in errors what the file is, such as `config`.

    Raises:
        UsageError: The file is too large, or is not YAML; is not a mapping of texts to values; or a
            mapping in it repeats a name: YAML would keep the last of its values only.
        DataError: It cannot be read.
    """
    where = f"{what} {redact(url)}"
    with named_errors("read", url), storage.open(url) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"{where} must be a YAML file of at most {MAX_BYTES:,} bytes")
    try:
        root = yaml.compose(data, Loader=yaml.SafeLoader)
        _check(root, where, {})
    except UsageError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{where} is not valid YAML{reason_of(error)}") from None
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{where} must be a mapping, one `name: value` a line")
    entries = []
    for name, value in root.value:
        line = name.start_mark.line + 1
        if not isinstance(name, yaml.ScalarNode):
            raise UsageError(f"{where}, line {line}: each name before a colon must be a text")
        entries.append(Entry(name.value, value, line))
    return entries


def texts(node: yaml.Node, where: str) -> list[str]:
    """Return the texts of a list, or the one text of a scalar as a list, as typed."""
    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(item, yaml.ScalarNode) for item in items):
        raise UsageError(f"{where} must be a text, a number, or a list of them")
    if any(item.tag == "tag:yaml.org,2002:null" for item in items):
        raise UsageError(f"{where} has no value")
    return list(map(_text, items))


def pairs(node: yaml.Node, where: str) -> list[str]:
    """Return a mapping as NAME=VALUE texts, one for each value; else the `texts` of a node."""
    if not isinstance(node, yaml.MappingNode):
        return texts(node, where)
    found = []
    for name, values in node.value:
        if not isinstance(name, yaml.ScalarNode):
            raise UsageError(f"{where}: each name before a colon must be a text")
        several = texts(values, f"{where}.{name.value}")
        if not several:
            raise UsageError(f"{where}.{name.value} has no value")
        found += [f"{_text(name)}={value}" for value in several]
    return found


def _text(node: yaml.ScalarNode) -> str:
    # YAML reads JSON too, which may write one character as the escapes of two surrogates.
    value: str = node.value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def reason_of(error: Exception) -> str:
    """Return the parser's reason without what it quotes of the text, which may be a secret."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or "")
    if any(word in problem for word in ("alias", "anchor", "tag")):
        problem = re.split("['\"]", problem)[0].rstrip()
    return (f", line {mark.line + 1}" if mark else "") + (f": {problem}" if problem else "")


def _check(node: yaml.Node | None, where: str, sizes: dict[int, int]) -> int:
    """Refuse names that a mapping repeats, at any depth; return the number of values of a node.

    Args:
        node: The node; a file may name it many times.
        where: The file, for the error.
        sizes: The numbers of nodes that are checked, by identity.
    """
    names, size = set(), 1
    for each in node.value if isinstance(node, yaml.CollectionNode) else ():
        if isinstance(node, yaml.MappingNode):
            name, each = each
            if isinstance(name, yaml.ScalarNode):
                if name.value in names:
                    line = name.start_mark.line + 1
                    raise UsageError(f"{where}, line {line}: {name.value} is repeated")
                names.add(name.value)
        if id(each) not in sizes:
            sizes[id(each)] = _check(each, where, sizes)
        size += sizes[id(each)]
        if size > MAX_BYTES:  # by names of names, since each of its own takes a byte
            raise UsageError(f"{where} must have at most {MAX_BYTES:,} values")
    return size
