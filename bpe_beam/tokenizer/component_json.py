"""The components in `tokenizer.json`: normalizers, pre-tokenizers, post-processors, decoders.

Each component is a record whose fields are the keys in the file; `JSON_TYPE` is its "type" there.
The types of the fields decide which values are valid, so that a component is described once.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, cast

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.record import defaults_of, is_record, names_of
from bpe_beam.tokenizer import decoders, normalizers, postprocessors, pretokenizers
from bpe_beam.tokenizer.json_node import MISSING, Node
from bpe_beam.tokenizer.patterns import Pattern
from bpe_beam.tokenizer.postprocessors import TemplatePiece

# The classes of each family of components.
_FAMILIES: dict[Any, tuple[type, ...]] = {
    normalizers.Normalizer: typing.get_args(normalizers.Normalizer),
    pretokenizers.PreTokenizer: typing.get_args(pretokenizers.PreTokenizer),
    decoders.Decoder: (
        decoders.BPEDecoder,
        decoders.ByteFallback,
        decoders.ByteLevelDecoder,
        decoders.Fuse,
        decoders.MetaspaceDecoder,
        decoders.ReplaceDecoder,
        decoders.SequenceDecoder,
        decoders.StripDecoder,
        decoders.WordPieceDecoder,
    ),
    postprocessors.PostProcessor: (
        postprocessors.BertProcessing,
        postprocessors.ByteLevelPostProcessor,
        postprocessors.RobertaProcessing,
        postprocessors.SequencePostProcessor,
        postprocessors.TemplateProcessing,
    ),
}

# The field of a sequence that lists its components.
_SEQUENCE_KEYS: dict[Any, str] = {
    family: next(names_of(one)[0] for one in classes if one.JSON_TYPE == "Sequence")
    for family, classes in cast(Any, _FAMILIES).items()
}

# Keys that older files omit; the default of the field is their meaning.
_OPTIONAL = ("use_regex", "behavior")

MAX_DEPTH = 32
"""The greatest depth of components in sequences of sequences."""

MAX_COMPONENTS = 100
"""The most components in total of a normalizer, pre-tokenizer, decoder or post-processor."""

_OLDER_METASPACE = ("add_prefix_space", "str_rep")


def read_component(node: Node, family: Any) -> Any:
    """Return a component, with all components in it.

    Args:
        node: Its value in the file.
        family: `Normalizer`, `PreTokenizer`, `Decoder` or `PostProcessor`.

    Returns:
        The component; None if the value is null or missing.

    Raises:
        UsageError: A component, key or value is not supported, there are more than MAX_COMPONENTS
            components, or they are nested deeper than MAX_DEPTH; the message has the JSON path and
            the supported values.
    """
    _check_number(node, family)
    return _read_component(node, family)


def _check_number(node: Node, family: Any) -> None:
    """Refuse too many components, and too deep ones, before any of them is read."""
    found = 0
    waiting = [(node, 0)]
    while waiting:
        component, depth = waiting.pop()
        found += 1
        if depth > MAX_DEPTH:
            component.refuse(f"components must be nested at most {MAX_DEPTH} deep")
        if found > MAX_COMPONENTS:
            node.refuse(f"must have at most {MAX_COMPONENTS} components in total, got more")
        if isinstance(component.value, dict) and component.value.get("type") == "Sequence":
            items = component.field(_SEQUENCE_KEYS[family])
            if isinstance(items.value, list):
                # One more than the limit is enough to refuse.
                some = Node(items.source, items.path, items.value[: MAX_COMPONENTS + 1])
                waiting += [(inner, depth + 1) for inner in reversed(some.items())]


def _read_component(node: Node, family: Any) -> Any:
    if node.value is None or node.value is MISSING:
        return None
    kinds = {one.JSON_TYPE: one for one in cast(Any, _FAMILIES[family])}
    node.object()
    name = node.field("type").string()
    if name not in kinds:
        node.field("type").refuse(
            f"{shortened(name)} is not supported; must be one of {', '.join(kinds)}"
        )
    component_class = kinds[name]
    if name == "Metaspace":
        node = _modern_metaspace(node)
    return read_record(node, component_class, "type")


def write_component(component: Any) -> Any:
    """Return a component as JSON values; None for None."""
    if component is None:
        return None
    return {"type": component.JSON_TYPE, **write_record(component)}


def write_record(value: Any) -> dict[str, Any]:
    """Return the fields of a record as a JSON object."""
    return {name: _write_value(getattr(value, name)) for name in names_of(value)}


def read_record(node: Node, component_class: Any, *others: str) -> Any:
    """Return a record from a JSON object.

    Args:
        node: The object.
        component_class: The class of the record, whose fields are keys of the object.
        others: Further keys that the object may have.

    Raises:
        UsageError: A key or value is missing or not supported.
    """
    names = names_of(component_class)
    found = node.fields(*others, *names)
    omitted = {
        name
        for name in _OPTIONAL
        if name in defaults_of(component_class) and found[name].value is MISSING
    }
    values = {
        name: _read_value(found[name], _hints(component_class)[name])
        for name in names
        if name not in omitted
    }
    try:
        return component_class(**values)
    except UsageError as error:
        node.refuse(str(error))


@cache
def _hints(component_class: type) -> dict[str, Any]:
    names = {**vars(normalizers), **vars(pretokenizers), **vars(decoders), **vars(postprocessors)}
    return typing.get_type_hints(component_class, localns=names)


def _read_value(node: Node, hint: Any) -> Any:
    if hint is bool:
        return node.boolean()
    if hint is int:
        return node.token_id()
    if hint is str:
        return node.string()
    if hint is Pattern:
        return _read_pattern(node)
    if hint is TemplatePiece:
        return _read_template_piece(node)
    if hint in _FAMILIES:
        component = _read_component(node, hint)
        return (
            component
            if component is not None
            else node.refuse("must be an object with a type, got null or nothing")
        )
    if is_record(hint):
        return read_record(node, hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        node.expect(*arguments)
        return node.value
    if origin in (Union, types.UnionType):  # with None
        return None if node.value is None else _read_value(node, arguments[0])
    if origin is Mapping:
        return {key: _read_value(node.field(key), arguments[1]) for key in node.object()}
    items = node.items()
    if origin is Sequence or arguments[-1] is Ellipsis:
        return tuple(_read_value(item, arguments[0]) for item in items)
    if len(items) != len(arguments):
        node.refuse(f"{shortened(node.value)} must have {len(arguments)} items")
    return tuple(_read_value(i, h) for i, h in zip(items, arguments, strict=True))


def _write_value(value: Any) -> Any:
    if isinstance(value, Pattern):
        return {value.kind: value.value}
    if isinstance(value, TemplatePiece):
        return {value.kind: {"id": value.id, "type_id": value.type_id}}
    if isinstance(value, Mapping):
        return {key: _write_value(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_write_value(one) for one in value]
    if hasattr(value, "JSON_TYPE"):
        return write_component(value)
    if is_record(value):
        return write_record(value)
    return value


def _read_pattern(node: Node) -> Pattern:
    kind, value = _only_entry(node, "String", "Regex")
    try:
        return Pattern(kind, value.string())
    except UsageError as error:
        value.refuse(str(error))


def _read_template_piece(node: Node) -> TemplatePiece:
    kind, value = _only_entry(node, "Sequence", "SpecialToken")
    fields = value.fields("id", "type_id")
    try:
        return TemplatePiece(kind, fields["id"].string(), fields["type_id"].count())
    except UsageError as error:
        value.refuse(str(error))


def _only_entry(node: Node, *kinds: str) -> tuple[Any, Node]:
    """Return the only key of an object, and its value."""
    entries = node.object()
    if len(entries) != 1 or next(iter(entries)) not in kinds:
        node.refuse("must be " + " or ".join(f'{{"{kind}": ...}}' for kind in kinds))
    kind = next(iter(entries))
    return kind, node.field(kind)


def _modern_metaspace(node: Node) -> Node:
    """Return a Metaspace with the keys of current files: older files have fewer and other keys."""
    entries: Mapping[str, Any] = node.object()
    modern = {key: value for key, value in entries.items() if key not in _OLDER_METASPACE}
    modern.setdefault("prepend_scheme", "always")
    modern.setdefault("split", True)
    prefix = node.field("add_prefix_space")
    if prefix.value is not MISSING and not prefix.boolean():
        if entries.get("prepend_scheme", "never") != "never":
            prefix.refuse("must not be false where prepend_scheme is not never")
        modern["prepend_scheme"] = "never"
    symbol = node.field("replacement").string()
    if len(symbol) != 1:
        node.field("replacement").refuse(f"{shortened(symbol)} is not one character")
    return Node(node.source, node.path, modern)
