"""Hugging Face's `tokenizer.json`, read and written: the artifact of training.

Reading is strict. A setting that is not supported is refused, with its JSON path and the supported
values, since ignoring it would give other tokens without an error. The written bytes depend on
the `TokenizerSpec` alone. They equal those of Hugging Face's own pretty `save` of the same
tokenizer (two spaces, no newline at the end).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.component_json import (
    read_component,
    read_record,
    write_component,
    write_record,
)
from bpe_beam.tokenizer.decoders import Decoder
from bpe_beam.tokenizer.json_node import MAX_FILE_BYTES, MISSING, Node, parse, quote
from bpe_beam.tokenizer.models import (
    BPE,
    ErrorLocation,
    Model,
    WordLevel,
    WordPiece,
    in_order_of_ids,
)
from bpe_beam.tokenizer.normalizers import Normalizer
from bpe_beam.tokenizer.postprocessors import PostProcessor
from bpe_beam.tokenizer.pretokenizers import PreTokenizer
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    from bpe_beam.storage import Storage

_MODELS = (BPE.JSON_TYPE, WordPiece.JSON_TYPE, WordLevel.JSON_TYPE)


def read_file(
    path: str, storage: Storage | None, name: str = "tokenizer.json"
) -> tuple[bytes, str]:
    """Return the bytes of a tokenizer's file.

    Args:
        path: A path or any URL that fsspec opens, of the file or of the folder that holds it.
        storage: The storage client; None: one without options.
        name: The file's name in a folder.

    Returns:
        The bytes, and the name of the file in messages.

    Raises:
        UsageError: The file does not exist, or has more than MAX_FILE_BYTES bytes.
    """
    from bpe_beam.storage import Storage, redact

    storage = storage or Storage()
    if not storage.exists(path):
        raise UsageError(f"{redact(path)}: no such file")
    try:
        return _read_whole(storage, path)
    except DataError:
        if not storage.is_folder(path):
            raise
    file = storage.join(path, name)
    if not storage.exists(file):
        raise UsageError(f"{redact(path)} is a folder without a {name}")
    return _read_whole(storage, file)


def _read_whole(storage: Storage, path: str) -> tuple[bytes, str]:
    from bpe_beam.storage import redact

    size = storage.size(path)
    if size > MAX_FILE_BYTES:
        raise UsageError(f"{redact(path)}: {size} bytes; a tokenizer has at most {MAX_FILE_BYTES}")
    return storage.read_bytes(path), redact(path)


def read(data: bytes | str, source: str) -> TokenizerSpec:
    """Return the tokenizer in a file.

    Args:
        data: The file's bytes, or the same as text.
        source: The name of the file in messages.

    Raises:
        UsageError: The file is not JSON, not a tokenizer, or has values that are not supported; the
            message has the file, the JSON path and the supported values.
    """
    try:
        fields = Node(source, "", parse(data, source)).fields(
            "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
            "post_processor", "decoder", "model",
        )  # fmt: skip
    except UsageError:
        from bpe_beam.tokenizer.foreign_files import describe_foreign_file

        other = describe_foreign_file(data) if len(data) <= MAX_FILE_BYTES else None
        if other is None:
            raise
        raise UsageError(f"{source}: {other}") from None
    fields["version"].expect("1.0")
    fields["truncation"].expect(None, MISSING)
    fields["padding"].expect(None, MISSING)
    try:
        spec = TokenizerSpec(
            model=_read_model(fields["model"]),
            added_tokens=_read_added_tokens(fields["added_tokens"]),
            normalizer=read_component(fields["normalizer"], Normalizer),
            pre_tokenizer=read_component(fields["pre_tokenizer"], PreTokenizer),
            post_processor=read_component(fields["post_processor"], PostProcessor),
            decoder=read_component(fields["decoder"], Decoder),
        )
    except RecursionError:
        raise UsageError(f"{source}: components are nested too deeply") from None
    try:
        spec.check(ErrorLocation())
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    return spec


def write(spec: TokenizerSpec) -> str:
    """Return the text of the file; equal tokenizers give equal text.

    Raises:
        UsageError: `tokenizer.json` cannot represent the model.
    """
    small = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [write_record(token) for token in spec.added_tokens],
        "normalizer": write_component(spec.normalizer),
        "pre_tokenizer": write_component(spec.pre_tokenizer),
        "post_processor": write_component(spec.post_processor),
        "decoder": write_component(spec.decoder),
    }
    head = json.dumps(small, ensure_ascii=False, indent=2).removesuffix("\n}")
    entries = ",\n".join(f"    {quote(key)}: {text}" for key, text in _model_entries(spec.model))
    return f'{head},\n  "model": {{\n{entries}\n  }}\n}}'


def identity_by_ranks(spec: TokenizerSpec, model: BPE) -> str:
    """Return a text that identifies a tokenizer by ranks, which `tokenizer.json` cannot represent.

    Args:
        spec: The tokenizer.
        model: Its model.
    """
    from dataclasses import replace

    return "ranks\n" + write(replace(spec, model=replace(model, rank_by_token=False)))


def _model_entries(model: Model) -> list[tuple[str, str]]:
    """Return the model's keys and their JSON, in Hugging Face's order."""
    # Vocabulary and merges are written by hand in the same layout: json.dumps indents slowly.
    tokens = [f"      {quote(token)}: {token_id}" for token, token_id in model.vocab.items()]
    vocab = ("vocab", _bracketed("{", tokens, "}"))
    if isinstance(model, WordLevel):
        return [("type", quote("WordLevel")), vocab, ("unk_token", quote(model.unk_token))]
    if isinstance(model, WordPiece):
        settings = _settings(
            model, "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"
        )
        return [("type", quote("WordPiece")), *settings, vocab]
    if model.rank_by_token:
        raise UsageError(
            "tokenizer.json cannot represent this tokenizer: its ranks belong to tokens, and no "
            "list of merges gives the same tokens; save it as a .tiktoken file"
        )
    settings = _settings(
        model, "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
        "byte_fallback", "ignore_merges",
    )  # fmt: skip
    merges = [
        f"      [\n        {quote(left)},\n        {quote(right)}\n      ]"
        for left, right in model.merges
    ]
    return [
        ("type", quote("BPE")),
        ("dropout", "null"),
        *settings,
        vocab,
        ("merges", _bracketed("[", merges, "]")),
    ]


def _settings(model: Model, *names: str) -> list[tuple[str, str]]:
    return [(name, json.dumps(getattr(model, name), ensure_ascii=False)) for name in names]


def _bracketed(opening: str, entries: list[str], closing: str) -> str:
    inner = ",\n".join(entries)
    return f"{opening}\n{inner}\n    {closing}" if entries else opening + closing


def _read_added_tokens(node: Node) -> tuple[AddedToken, ...]:
    if node.value is None or node.value is MISSING:
        return ()
    tokens = [read_record(item, AddedToken) for item in node.items()]
    return tuple(sorted(tokens, key=lambda token: token.id))


def _read_model(node: Node) -> Model:
    # Older files have no type here; the keys decide the model.
    node.object()
    kind = node.field("type")
    if kind.value is MISSING:
        name = "BPE" if "merges" in node.object() else "WordPiece"
    else:
        kind.expect(*_MODELS)
        name = kind.value
    if name == "BPE":
        return _read_bpe(node)
    return _read_wordpiece(node) if name == "WordPiece" else _read_word_level(node)


def _read_bpe(node: Node) -> BPE:
    fields = node.fields(
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    )  # fmt: skip
    fields["dropout"].expect(None, 0, 0.0, MISSING)
    vocab = read_vocab(fields["vocab"])
    return BPE(
        vocab=vocab,
        merges=_read_merges(fields["merges"]),
        unk_token=_text_or_none(fields["unk_token"]),
        continuing_subword_prefix=_text_or_none(fields["continuing_subword_prefix"]),
        end_of_word_suffix=_text_or_none(fields["end_of_word_suffix"]),
        fuse_unk=fields["fuse_unk"].boolean(default=False),
        byte_fallback=fields["byte_fallback"].boolean(default=False),
        ignore_merges=fields["ignore_merges"].boolean(default=False),
    )


def _read_wordpiece(node: Node) -> WordPiece:
    fields = node.fields(
        "type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"
    )
    return WordPiece(
        vocab=read_vocab(fields["vocab"]),
        unk_token=fields["unk_token"].string(),
        continuing_subword_prefix=fields["continuing_subword_prefix"].string(),
        max_input_chars_per_word=fields["max_input_chars_per_word"].count(),
    )


def _read_word_level(node: Node) -> WordLevel:
    fields = node.fields("type", "vocab", "unk_token")
    return WordLevel(vocab=read_vocab(fields["vocab"]), unk_token=fields["unk_token"].string())


def _text_or_none(node: Node) -> str | None:
    return None if node.value is None or node.value is MISSING else node.string()


def read_vocab(node: Node) -> dict[str, int]:
    """Return a vocabulary, ids by token in the order of ids, from a JSON object."""
    vocab = node.object()
    # Only what sorting and messages need; the model's own check does the rest.
    if not {*map(type, vocab.values())} <= {int}:
        for token, token_id in vocab.items():
            Node(node.source, f"{node.path}[{shortened(token)}]", token_id).token_id()
    try:
        "".join(vocab).encode()
    except UnicodeEncodeError:
        for token in vocab:
            node.refuse_surrogates(token)
    ids = list(vocab.values())
    return vocab if ids == sorted(ids) else in_order_of_ids(vocab.items())


def _read_merges(node: Node) -> list[tuple[str, str]]:
    """Return merges from a list of pairs or, in older files, of strings with one space."""
    if not isinstance(node.value, list):
        node.items()
    from bpe_beam import _native

    merges = _native.merge_pairs(node.value)
    if len(merges) < len(node.value):
        rank = len(merges)
        merge = node.value[rank]
        Node(node.source, f"{node.path}[{rank}]", merge).refuse(
            f"{shortened(merge)} is not two tokens: must be a list of two strings, or one "
            "string with one space between them"
        )
    return merges
