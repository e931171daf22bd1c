"""Normalizers, pre-tokenizers, post-processors and decoders from the values of `tokenizer.json`.

msgspec reads each component by the types of its fields; `msgspec.to_builtins` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, get_args

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer import decoders, normalizers, postprocessors, pretokenizers
from bpe_beam.tokenizer.json_node import Node

MAX_DEPTH = 32
"""The greatest nesting depth of `Sequence` components."""

MAX_COMPONENTS = 100
"""The most components in total of a normalizer, pre-tokenizer, decoder or post-processor."""

# Keys that older files omit: a missing key means the field's default.
_OMITTED = {"ByteLevel": ("use_regex",), "Punctuation": ("behavior",)}
_OLDER_METASPACE = ("add_prefix_space", "str_rep")

FAMILIES: dict[str, Any] = {
    "normalizer": normalizers.Normalizer,
    "pre_tokenizer": pretokenizers.PreTokenizer,
    "post_processor": postprocessors.PostProcessor,
    "decoder": decoders.Decoder,
}
"""The components of each kind, by the key of `tokenizer.json`."""


def read_component(node: Node, family: str) -> Any:
    """Return a component, with all components in it; None if the value is null.

    Args:
        node: Its value in the file.
        family: A key of `FAMILIES`.

    Raises:
        UsageError: A component, key or value is not supported, there are more than MAX_COMPONENTS
            components, or they are nested deeper than MAX_DEPTH.
    """
    if node.value is None:
        return None
    classes = {one.__struct_config__.tag: one for one in get_args(FAMILIES[family])}
    return _read(node, classes, 0, count(1))


def _read(node: Node, classes: dict[str, Any], depth: int, numbers: Iterator[int]) -> Any:
    """Return the component at a node, `depth` sequences deep; `numbers` counts all components."""
    if depth > MAX_DEPTH:
        node.refuse(f"components must be nested at most {MAX_DEPTH} deep")
    if next(numbers) > MAX_COMPONENTS:
        node.refuse(f"there must be at most {MAX_COMPONENTS} components in total; this is one more")
    entries = node.object()
    kind = node.field("type")
    if "type" not in entries:
        kind.refuse("missing")
    component_class = classes.get(kind.string())
    if component_class is None:
        kind.refuse(
            f"{shortened(kind.value)} is not supported; must be one of {', '.join(classes)}"
        )
    if kind.value != "Sequence":
        node = _modern_metaspace(node) if kind.value == "Metaspace" else node
        return node.struct(component_class, *_OMITTED.get(kind.value, ()))
    (key,) = component_class.__struct_fields__
    items = node.fields("type", key)[key].items()
    components = tuple(_read(item, classes, depth + 1, numbers) for item in items)
    try:
        return component_class(components)
    except UsageError as error:
        node.refuse(str(error))


def _modern_metaspace(node: Node) -> Node:
    """Return a Metaspace with the keys of current files: older files have fewer and other keys."""
    entries = node.object()
    current = {key: value for key, value in entries.items() if key not in _OLDER_METASPACE}
    current.setdefault("prepend_scheme", "always")
    current.setdefault("split", True)
    if "add_prefix_space" in entries:
        prefix = node.field("add_prefix_space")
        prefix.expect(True, False)
        if not prefix.value:
            if entries.get("prepend_scheme", "never") != "never":
                prefix.refuse('must be true where prepend_scheme is not "never", got false')
            current["prepend_scheme"] = "never"
    return Node(node.source, node.path, current)
