"""Options from a YAML file: the long flags as keys, their values as typed on a command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from bpe_beam.cli.parser import Argument, JsonObject, Value
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.field import Kind
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.yaml_file import Entry, pairs, read_mapping, reason_of, texts

_WRONG_TAG = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""The errors of tags that do not fit their values; their texts may have the value."""


def read_config(
    path: str, job: str, keys: Mapping[str, Kind], storage: Storage
) -> dict[str, Argument]:
    """Return the options that a YAML file sets, by key, with `_` for `-`."""
    keys = {**keys, "job": "one"}
    values: dict[str, Argument] = {}
    for name, node, line in _read(path, storage):
        where = f"{redact(path)}, line {line}"
        key = name.replace("-", "_")
        if key in values:
            raise UsageError(f"{where}: {name} is repeated")
        if key not in keys:
            known = did_you_mean(key, keys)
            raise UsageError(f"{where}: {name} is not a setting of {job}{known}")
        where = f"{where}: {key}"
        values[key] = Argument(where, _value(node, where, keys[key]), in_file=True)
    stated = values.pop("job", None)
    if stated is not None and stated.value != [job]:
        raise UsageError(f"{stated.where} must be {job}, the job that reads this file")
    return values


def _read(path: str, storage: Storage) -> list[Entry]:
    try:
        return read_mapping(storage, path, "config")
    except DataError as error:
        reason = str(error).removeprefix(f"cannot read {redact(path)}: ")
        raise UsageError(f"config {redact(path)} cannot be read: {reason}") from error


def _value(node: yaml.Node, where: str, kind: Kind) -> Value:
    if kind == "switch":
        if isinstance(node, yaml.ScalarNode) and node.value.lower() in ("true", "false"):
            return bool(node.value.lower() == "true")
        raise UsageError(f"{where} must be true or false")
    if kind == "mapping":
        if isinstance(node, yaml.MappingNode):
            return _mapping(node, where)
        raise UsageError(f"{where} must be a mapping, one `name: value` a line")
    if kind != "pairs":
        return texts(node, where)
    if isinstance(node, yaml.MappingNode) and any("=" in name.value for name, _ in node.value):
        raise UsageError(f"{where}: each name before a colon must be a text without =")
    return pairs(node, where)


def _mapping(node: yaml.MappingNode, where: str) -> JsonObject:
    try:
        mapping: Any = yaml.constructor.SafeConstructor().construct_document(node)
    except (yaml.YAMLError, RecursionError, *_WRONG_TAG) as error:
        raise UsageError(f"{where} cannot be read{reason_of(error)}") from None
    if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping):
        raise UsageError(f"{where}: each name before a colon must be a text")
    try:
        json.dumps(mapping)
    except (TypeError, ValueError):
        raise UsageError(
            f"{where} must have texts, numbers, lists and mappings; put a date in quotes"
        ) from None
    return mapping
