"""Options from a YAML file: the long flags as keys, their values as typed on a command line.

The file is read as a tree of nodes rather than as Python values, so that `no` and `010` mean the
same as on a command line, and errors can name the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from bpe_beam.cli.parser import Argument, JsonObject, Value
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.field import Kind
from bpe_beam.storage import Storage, redact

MAX_CONFIG_BYTES = 1 << 20
"""The maximum size of a settings file: a corpus that was named by mistake is refused."""


def read_config(
    path: str, job: str, keys: Mapping[str, Kind], storage: Storage
) -> dict[str, Argument]:
    """Return the options that a YAML file sets, by key, with `_` for `-`."""
    keys = {**keys, "job": "one"}
    values: dict[str, Argument] = {}
    for name, node in _read_pairs(path, storage):
        where = f"{redact(path)}, line {name.start_mark.line + 1}"
        if not isinstance(name, yaml.ScalarNode):
            raise UsageError(f"{where}: a key must be the name of an option")
        key = name.value.replace("-", "_")
        if key in values:
            raise UsageError(f"{where}: {name.value} is repeated")
        if key not in keys:
            known = did_you_mean(key, keys)
            raise UsageError(f"{where}: {name.value} is not a setting of {job}{known}")
        where = f"{where}: {key}"
        values[key] = Argument(where, _value(node, where, keys[key]), in_file=True)
    stated = values.pop("job", None)
    if stated is not None and stated.value != [job]:
        raise UsageError(f"{stated.where} must be {job}, the job that reads this file")
    return values


def _read_pairs(path: str, storage: Storage) -> list[tuple[yaml.Node, yaml.Node]]:
    config = f"config {redact(path)}"
    try:
        with storage.open(path) as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except DataError as error:
        reason = str(error).removeprefix(f"cannot read {redact(path)}: ")
        raise UsageError(f"{config} cannot be read: {reason}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise UsageError(
            f"{config} must be a YAML file of options of at most {MAX_CONFIG_BYTES:,} bytes"
        )
    try:
        root = yaml.compose(data, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{config} is not valid YAML{_reason(error)}") from None
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{config} must have settings, one `name: value` a line")
    return list(root.value)


def _reason(error: Exception) -> str:
    """Return the parser's reason without the text that it quotes, which may have secrets."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    return (f", line {mark.line + 1}" if mark else "") + (f": {problem}" if problem else "")


def _value(node: yaml.Node, where: str, kind: Kind) -> Value:
    if kind == "switch":
        if isinstance(node, yaml.ScalarNode) and node.value.lower() in ("true", "false"):
            return bool(node.value.lower() == "true")
        raise UsageError(f"{where} must be true or false")
    if kind == "mapping":
        if isinstance(node, yaml.MappingNode):
            return _mapping(node, where)
        raise UsageError(f"{where} must be a mapping, one `name: value` a line")
    if kind == "pairs" and isinstance(node, yaml.MappingNode):
        return _pairs(node, where)
    return _texts(node, where)


def _pairs(node: yaml.MappingNode, where: str) -> list[str]:
    """Return a mapping as NAME=VALUE texts, one for each value."""
    if not all(
        isinstance(name, yaml.ScalarNode) and "=" not in name.value for name, _ in node.value
    ):
        raise UsageError(f"{where}: each name before a colon must be a text without =")
    _refuse_repeated(node, where)
    texts = []
    for name, values in node.value:
        texts += [f"{name.value}={value}" for value in _texts(values, f"{where}.{name.value}")]
    return texts


def _texts(node: yaml.Node, where: str) -> list[str]:
    """Return the texts of a list, or the one text of a scalar as a list, as typed."""
    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for item in items:
        if not isinstance(item, yaml.ScalarNode):
            raise UsageError(f"{where} must be a text, a number, or a list of them")
        if item.tag == "tag:yaml.org,2002:null":
            raise UsageError(f"{where} has no value")
    # YAML reads JSON too, which may write one character as the escapes of two surrogates.
    return [
        item.value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        for item in items
    ]


def _mapping(node: yaml.MappingNode, where: str) -> JsonObject:
    try:
        _refuse_repeated(node, where)
        mapping: Any = yaml.constructor.SafeConstructor().construct_document(node)
    except UsageError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise UsageError(f"{where} cannot be read{_reason(error)}") from None
    if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping):
        raise UsageError(f"{where}: each name before a colon must be a text")
    return mapping


def _refuse_repeated(node: yaml.Node, where: str) -> None:
    """Refuse a repeated name in a mapping, at any depth: YAML would keep its last value only."""
    seen = set()
    for each in node.value if isinstance(node, yaml.CollectionNode) else ():
        if isinstance(node, yaml.MappingNode):
            name, each = each
            if name.value in seen:
                raise UsageError(f"{where}: {name.value} is repeated")
            seen.add(name.value)
        _refuse_repeated(each, where)
