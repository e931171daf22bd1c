"""The small parts of `tokenizer.json`: each is a frozen dataclass, its fields are the file's keys.

A part names itself in the file by its `JSON_TYPE`. What a field may hold follows from its type, so
that a part is described once; a field that files may leave out says so in its metadata.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, cast

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import decoders, normalizers, postprocessors, pretokenizers
from bpe_beam.tokenizer.json_node import MISSING, Node
from bpe_beam.tokenizer.models import shortened
from bpe_beam.tokenizer.patterns import Pattern

_OLDER_METASPACE = ("add_prefix_space", "str_rep")


def read_part(node: Node, union: Any) -> Any:
    """Reads a part.

    Args:
        node: Where it stands; null and nothing at all give None.
        union: The union of the dataclasses that it may be.

    Returns:
        The part.

    Raises:
        UsageError: A part, key or value that is not supported; names the place and what may stand
            there.
    """
    if node.value is None or node.value is MISSING:
        return None
    kinds = _kinds(union)
    name = node.field("type").string()
    if name not in kinds:
        node.field("type").refuse(
            f"{shortened(name)} is not supported; must be one of {', '.join(kinds)}"
        )
    part_class = kinds[name]
    if name == "Metaspace":
        node = _modern_metaspace(node)
    declared = dataclasses.fields(part_class)
    hints = _hints(part_class)
    found = node.fields("type", *(field.name for field in declared))
    values: dict[str, Any] = {}
    for field in declared:
        value = found[field.name]
        if value.value is MISSING and field.metadata.get("optional"):
            continue
        values[field.name] = _read_value(value, hints[field.name])
    try:
        return part_class(**values)
    except UsageError as error:
        node.refuse(str(error))


def write_part(part: Any) -> Any:
    """What stands for a part in the file; None for None."""
    if part is None:
        return None
    fields = {f.name: _write_value(getattr(part, f.name)) for f in dataclasses.fields(part)}
    return {"type": part.JSON_TYPE, **fields}


@cache
def _kinds(union: Any) -> dict[str, type]:
    return {part_class.JSON_TYPE: part_class for part_class in (typing.get_args(union) or (union,))}


@cache
def _hints(part_class: type) -> dict[str, Any]:
    names = {**vars(normalizers), **vars(pretokenizers), **vars(decoders), **vars(postprocessors)}
    return typing.get_type_hints(part_class, localns=names)


def _read_value(node: Node, hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is bool:
        return node.boolean()
    if hint is int:
        return node.token_id()
    if hint is str:
        return node.string()
    if hint is Pattern:
        return _read_pattern(node)
    if origin is Literal:
        node.expect(*arguments)
        return node.value
    if origin in (Union, types.UnionType):
        if type(None) in arguments:
            if node.value is None:
                return None
            return _read_value(node, arguments[0])
        part = read_part(node, hint)
        return part if part is not None else node.refuse("null or nothing where a part must stand")
    if origin is tuple and arguments[-1] is Ellipsis:
        return tuple(_read_value(item, arguments[0]) for item in node.items())
    if origin is tuple:
        items = node.items()
        if len(items) != len(arguments):
            node.refuse(f"{shortened(node.value)} has not {len(arguments)} items")
        return tuple(_read_value(i, h) for i, h in zip(items, arguments, strict=True))
    if hasattr(hint, "from_node"):
        return hint.from_node(node)
    raise TypeError(f"no way to read {hint}")


def _write_value(value: Any) -> Any:
    if isinstance(value, Pattern):
        return {value.kind: value.value}
    if isinstance(value, tuple):
        return [_write_value(one) for one in value]
    if hasattr(value, "to_node"):
        return value.to_node()
    return write_part(value) if dataclasses.is_dataclass(value) else value


def _read_pattern(node: Node) -> Pattern:
    entries = node.object()
    if len(entries) != 1 or next(iter(entries)) not in ("String", "Regex"):
        node.refuse('must be {"String": ...} or {"Regex": ...}')
    kind = cast(Literal["String", "Regex"], next(iter(entries)))
    value = node.field(kind)
    try:
        return Pattern(kind, value.string())
    except UsageError as error:
        value.refuse(str(error))


def _modern_metaspace(node: Node) -> Node:
    """A Metaspace in today's form: older files say less, and some of it otherwise."""
    entries: Mapping[str, Any] = node.object()
    modern = {key: value for key, value in entries.items() if key not in _OLDER_METASPACE}
    modern.setdefault("prepend_scheme", "always")
    modern.setdefault("split", True)
    prefix = node.field("add_prefix_space")
    if prefix.value is not MISSING and not prefix.boolean():
        if entries.get("prepend_scheme", "never") != "never":
            prefix.refuse("false contradicts prepend_scheme")
        modern["prepend_scheme"] = "never"
    symbol = node.field("replacement").string()
    if len(symbol) != 1:
        node.field("replacement").refuse(f"{shortened(symbol)} is not one character")
    return Node(node.source, node.path, modern)
