"""Hugging Face's `tokenizer.json`, read and written: the artifact of training.

A setting that is not supported is refused, with its JSON path and the supported values: ignoring it
would give other tokens. The written bytes equal Hugging Face's own pretty `save`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import decoders, normalizers, postprocessors, pretokenizers
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import (
    BPE,
    MAX_ID,
    ErrorLocation,
    Model,
    SentencePiece,
    Unigram,
    WordLevel,
    WordPiece,
    check_total_characters,
    in_order_of_ids,
)
from bpe_beam.tokenizer.files.hugging_face_ids import with_added_in_vocabulary
from bpe_beam.tokenizer.files.json_node import MAX_FILE_BYTES, Node, parse
from bpe_beam.tokenizer.spec import Padding, TokenizerSpec, Truncation

if TYPE_CHECKING:
    from bpe_beam.storage import PathName, Storage

MAX_DEPTH = 32  # the greatest nesting depth of `Sequence` components

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

_BPE_SETTINGS = (
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges",
)  # fmt: skip
_KEYS: dict[type[Model], tuple[str, ...]] = {
    BPE: (*_BPE_SETTINGS, "vocab", "merges"),
    WordPiece: ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"),
    WordLevel: ("vocab", "unk_token"),
    Unigram: ("unk_id", "vocab", "byte_fallback"),
    SentencePiece: ("algorithm", "vocab", "byte_fallback"),
}
"""The keys of each model in Hugging Face's order, without "type"."""

_OPTIONAL: dict[type[Model], tuple[str, ...]] = {
    BPE: _BPE_SETTINGS,
    Unigram: ("unk_id", "byte_fallback"),
}
"""Those that a file may omit."""

_MODELS: dict[str, type[Model]] = {one.__name__: one for one in _KEYS}


class MissingFileError(UsageError):
    """A folder does not have the file that was looked for."""


def read_file(
    path: PathName, storage: Storage | None, name: str | None = "tokenizer.json"
) -> tuple[bytes, str]:
    """Return the bytes of a tokenizer's file, and the name of the file in messages."""
    from bpe_beam.storage import Storage, path_name, redact

    storage, path = storage or Storage(), path_name(path)
    if not storage.exists(path):
        raise UsageError(f"{redact(path)}: no such file")
    try:
        return _read_whole(storage, path)
    except DataError:
        if not storage.is_folder(path):
            raise
    file = storage.join(path, name or "")
    if name is None or not storage.exists(file):
        raise MissingFileError(f"{redact(path)} is a folder without a {name}")
    return _read_whole(storage, file)


def _read_whole(storage: Storage, path: str) -> tuple[bytes, str]:
    from bpe_beam.storage import redact

    if (size := storage.size(path)) > MAX_FILE_BYTES:
        from bpe_beam.tokenizer.files.foreign_files import describe_beginning

        other = describe_beginning(storage.read_head(path, 4096), size)
        why = other or f"{size} bytes; a tokenizer has at most {MAX_FILE_BYTES}"
        raise UsageError(f"{redact(path)}: {why}")
    return storage.read_bytes(path), redact(path)


def read(data: bytes | str, source: str) -> TokenizerSpec:
    try:
        fields = Node(source, "", parse(data, source)).fields(
            "version", "model", optional=("truncation", "padding", "added_tokens", *FAMILIES)
        )
    except UsageError as error:
        from bpe_beam.tokenizer.files.foreign_files import explanation

        raise explanation(error, data, source, "tokenizer.json") from None
    fields["version"].expect("1.0")
    truncation, padding = fields["truncation"], fields["padding"]
    spec = TokenizerSpec(
        model=_read_model(fields["model"]),
        added_tokens=_read_added_tokens(fields["added_tokens"]),
        truncation=None if truncation.value is None else truncation.struct(Truncation, "direction"),
        padding=None if padding.value is None else padding.struct(Padding, "pad_to_multiple_of"),
        **{family: _read_component(fields[family], family) for family in FAMILIES},
    )
    try:
        spec.check(ErrorLocation())
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    return spec


def write(spec: TokenizerSpec) -> bytes:
    """Return the bytes of the file; equal tokenizers give equal bytes."""
    spec = with_added_in_vocabulary(spec)
    model = spec.model
    model_fields = {key: getattr(model, key, None) for key in _KEYS[type(model)]}
    # Native code writes what is large, in place of empty fields.
    large: dict[bytes, dict[str, int] | _native.Merges] = {}
    if isinstance(model, Unigram | SentencePiece):
        model_fields["vocab"] = model.pieces
    else:
        model_fields["vocab"], large[b'"vocab": {}'] = {}, model.vocab
    if isinstance(model, BPE):
        merges = model.merges
        if not isinstance(merges, _native.Merges):
            merges = _native.Merges(list(merges))
        model_fields["merges"], large[b'"merges": []'] = [], merges
    fields = {
        "version": "1.0",
        "truncation": spec.truncation,
        "padding": spec.padding,
        "added_tokens": spec.added_tokens,
        **{family: getattr(spec, family) for family in FAMILIES},
        "model": {"type": model.json_type, **model_fields},
    }
    rest = msgspec.json.format(msgspec.json.encode(fields), indent=2)
    parts: list[bytes | dict[str, int] | _native.Merges] = []
    for empty, full in large.items():
        before, mark, rest = rest.partition(empty)  # in a string its quotes would be escaped
        parts += [before, mark[:-2], full]
    return _native.join_json([*parts, rest])


def _read_added_tokens(node: Node) -> tuple[AddedToken, ...]:
    if node.value is None:
        return ()
    rows = node.value if isinstance(node.value, list) else ()
    contents = (row.get("content") for row in rows if isinstance(row, dict))
    # Checked first: a million tokens take seconds and a gigabyte more.
    try:
        check_total_characters("added_tokens", (one for one in contents if isinstance(one, str)))
    except UsageError as error:
        raise UsageError(f"{node.source}: {error}") from None
    tokens = [item.struct(AddedToken) for item in node.items()]
    return tuple(sorted(tokens, key=lambda token: token.id))


def _read_model(node: Node) -> Model:
    entries = node.object()
    if "type" in entries:
        node.field("type").expect(*_MODELS)
        model_class = _MODELS[entries["type"]]
    elif isinstance(entries.get("vocab"), list):  # older files, where the keys decide the model
        model_class = Unigram
    else:
        model_class = BPE if "merges" in entries else WordPiece
    optional = ("type", *_OPTIONAL.get(model_class, ()))
    required = [key for key in _KEYS[model_class] if key not in optional]
    fields = node.fields(*required, optional=optional)
    if model_class in (Unigram, SentencePiece):
        return node.convert(model_class)
    # Vocabulary and merges have readers of their own, as they are large.
    large: dict[str, Any] = {"vocab": read_vocab(fields["vocab"])}
    if model_class is BPE:
        fields["dropout"].expect(None, 0, 0.0)
        large["merges"] = _read_merges(fields["merges"])
    empty: dict[str, Any] = {"vocab": {}, "merges": []}
    small = {key: empty.get(key, value) for key, value in entries.items() if key != "dropout"}
    model = Node(node.source, node.path, small).convert(model_class)
    return replace(model, **large)


def read_vocab(node: Node) -> dict[str, int]:
    """Return a vocabulary, ids by token in the order of ids, from a JSON object."""
    vocab = node.object()
    if _native.is_plain_vocab(vocab, MAX_ID):
        return vocab
    try:
        return in_order_of_ids(vocab.items())
    except (TypeError, RecursionError):  # no integers, which the model's check refuses
        return vocab


def _read_merges(node: Node) -> _native.Merges:
    """Return merges from a list of pairs or, in older files, of strings with one space."""
    if isinstance(node.value, _native.Merges):  # by the native reader, which refuses others
        return node.value
    entries = node.array()
    merges = _native.Merges(entries)
    if len(merges) < len(entries):
        rank = len(merges)
        merge = entries[rank]
        Node(node.source, f"{node.path}[{rank}]", merge).refuse(
            f"{shortened(merge)} is not two tokens: must be a list of two strings, or one "
            "string with one space between them"
        )
    return merges


def _read_component(node: Node, family: str) -> Any:
    """Return a component, with all components in it; None if the value is null."""
    classes = {one.__struct_config__.tag: one for one in get_args(FAMILIES[family])}
    return None if node.value is None else _read_one(node, classes, 0, count(1))


def _read_one(node: Node, classes: dict[str, Any], depth: int, numbers: Iterator[int]) -> Any:
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
    components = tuple(_read_one(item, classes, depth + 1, numbers) for item in items)
    try:
        return component_class(components)
    except UsageError as error:
        node.refuse(str(error))


def _modern_metaspace(node: Node) -> Node:
    """Return a Metaspace with the keys of current files: older files have fewer and other keys."""
    entries = node.object()
    current = {"prepend_scheme": "always", "split": True, **entries}
    for key in _OLDER_METASPACE:
        current.pop(key, None)
    if "add_prefix_space" in entries:
        prefix = node.field("add_prefix_space")
        prefix.expect(True, False)
        if not prefix.value:
            if entries.get("prepend_scheme", "never") != "never":
                prefix.refuse('must be true where prepend_scheme is not "never", got false')
            current["prepend_scheme"] = "never"
    return Node(node.source, node.path, current)
