"""The small parts of `tokenizer.json`: each is a record, its fields are the file's keys.

A part names itself in the file by its `JSON_TYPE`. What a field may hold follows from its type, so
that a part is described once.
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
from bpe_beam.tokenizer.postprocessors import Piece

# The classes that stand for a kind of part.
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

# Where a sequence has its parts.
_SEQUENCE_KEYS: dict[Any, str] = {
    family: next(names_of(one)[0] for one in classes if one.JSON_TYPE == "Sequence")
    for family, classes in cast(Any, _FAMILIES).items()
}

# Keys that older files leave out, where the field has a default: that is what they meant.
_OPTIONAL = ("use_regex", "behavior")

MAX_PART_DEPTH = 32
"""How deep parts may stand in sequences of sequences."""

MAX_PARTS = 100
"""How many parts a normalizer, pre-tokenizer, decoder or post-processor may have in total."""

_OLDER_METASPACE = ("add_prefix_space", "str_rep")


def read_part(node: Node, family: Any) -> Any:
    """Reads a part, with all parts in it.

    Args:
        node: Where it stands; null and nothing at all give None.
        family: What kind of part it must be: `Normalizer`, `PreTokenizer`, `Decoder` or
            `PostProcessor`.

    Returns:
        The part.

    Raises:
        UsageError: A part, key or value that is not supported, more than MAX_PARTS parts, or parts
            nested deeper than MAX_PART_DEPTH; names the place and what may stand there.
    """
    _check_number(node, family)
    return _read_part(node, family)


def _check_number(node: Node, family: Any) -> None:
    """Refuses too many parts, and parts nested too deeply, before any of them is read."""
    found = 0
    waiting = [(node, 0)]
    while waiting:
        part, depth = waiting.pop()
        found += 1
        if depth > MAX_PART_DEPTH:
            part.refuse(f"nested too deeply: parts must stand at most {MAX_PART_DEPTH} deep")
        if found > MAX_PARTS:
            node.refuse(f"must have at most {MAX_PARTS} parts in total, got more")
        if isinstance(part.value, dict) and part.value.get("type") == "Sequence":
            items = part.field(_SEQUENCE_KEYS[family])
            if isinstance(items.value, list):
                # One more than may be is enough to refuse.
                some = Node(items.source, items.path, items.value[: MAX_PARTS + 1])
                waiting += [(inner, depth + 1) for inner in reversed(some.items())]


def _read_part(node: Node, family: Any) -> Any:
    if node.value is None or node.value is MISSING:
        return None
    kinds = {one.JSON_TYPE: one for one in cast(Any, _FAMILIES[family])}
    node.object()
    name = node.field("type").string()
    if name not in kinds:
        node.field("type").refuse(
            f"{shortened(name)} is not supported; must be one of {', '.join(kinds)}"
        )
    part_class = kinds[name]
    if name == "Metaspace":
        node = _modern_metaspace(node)
    return _read_fields(node, part_class, "type")


def write_part(part: Any) -> Any:
    """What stands for a part in the file; None for None."""
    if part is None:
        return None
    fields = {name: _write_value(getattr(part, name)) for name in names_of(part)}
    return {"type": part.JSON_TYPE, **fields}


def _read_fields(node: Node, part_class: Any, *others: str) -> Any:
    """Reads a record from an object that may hold `others` beside its fields."""
    names = names_of(part_class)
    found = node.fields(*others, *names)
    left_out = {
        name
        for name in _OPTIONAL
        if name in defaults_of(part_class) and found[name].value is MISSING
    }
    values = {
        name: _read_value(found[name], _hints(part_class)[name])
        for name in names
        if name not in left_out
    }
    try:
        return part_class(**values)
    except UsageError as error:
        node.refuse(str(error))


@cache
def _hints(part_class: type) -> dict[str, Any]:
    names = {**vars(normalizers), **vars(pretokenizers), **vars(decoders), **vars(postprocessors)}
    return typing.get_type_hints(part_class, localns=names)


def _read_value(node: Node, hint: Any) -> Any:
    if hint is bool:
        return node.boolean()
    if hint is int:
        return node.token_id()
    if hint is str:
        return node.string()
    if hint is Pattern:
        return _read_pattern(node)
    if hint is Piece:
        return _read_piece(node)
    if hint in _FAMILIES:
        part = _read_part(node, hint)
        return part if part is not None else node.refuse("null or nothing where a part must stand")
    if is_record(hint):
        return _read_fields(node, hint)
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
    if isinstance(value, Piece):
        return {value.kind: {"id": value.id, "type_id": value.type_id}}
    if isinstance(value, Mapping):
        return {key: _write_value(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_write_value(one) for one in value]
    if hasattr(value, "JSON_TYPE"):
        return write_part(value)
    if is_record(value):
        return {name: _write_value(getattr(value, name)) for name in names_of(value)}
    return value


def _read_pattern(node: Node) -> Pattern:
    kind, value = _only_entry(node, "String", "Regex")
    try:
        return Pattern(kind, value.string())
    except UsageError as error:
        value.refuse(str(error))


def _read_piece(node: Node) -> Piece:
    kind, value = _only_entry(node, "Sequence", "SpecialToken")
    fields = value.fields("id", "type_id")
    try:
        return Piece(kind, fields["id"].string(), fields["type_id"].count())
    except UsageError as error:
        value.refuse(str(error))


def _only_entry(node: Node, *kinds: str) -> tuple[Any, Node]:
    """The one key of an object, and what stands there."""
    entries = node.object()
    if len(entries) != 1 or next(iter(entries)) not in kinds:
        node.refuse("must be " + " or ".join(f'{{"{kind}": ...}}' for kind in kinds))
    kind = next(iter(entries))
    return kind, node.field(kind)


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
