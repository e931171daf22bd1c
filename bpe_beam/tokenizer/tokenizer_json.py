"""Hugging Face's `tokenizer.json`, read and written: the artifact of record.

Reading is strict. Whatever this version does not do, it refuses by its JSON path and what may
stand there: a setting that were read and ignored would give other tokens in silence. Written
bytes follow from the parts alone, and are those that Hugging Face's own pretty `save` gives for
the same tokenizer (two spaces, no newline at the end), so a file hashes alike on either side.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.decoders import ByteLevelDecoder
from bpe_beam.tokenizer.models import BPE, Naming, check_id, in_order_of_ids, shortened
from bpe_beam.tokenizer.parts import Parts
from bpe_beam.tokenizer.postprocessors import ByteLevelPostProcessor
from bpe_beam.tokenizer.pretokenizers import ByteLevelPreTokenizer

if TYPE_CHECKING:
    from bpe_beam.storage import Storage

MAX_FILE_BYTES = 1 << 30
"""No tokenizer is larger; a file that is must be something else."""

_MISSING = object()


def read_file(path: str, storage: Storage | None) -> tuple[bytes, str]:
    """Reads one of a tokenizer's files.

    Args:
        path: A path or any URL that fsspec opens.
        storage: How to open it; needed only for storage options.

    Returns:
        Its bytes, and how messages name it.

    Raises:
        UsageError: There is no such file, or it is too large to be one of a tokenizer's.
    """
    from bpe_beam.storage import Storage, redact

    storage = storage or Storage()
    source = redact(path)
    if not storage.exists(path):
        raise UsageError(f"{source}: no such file")
    size = storage.size(path)
    if size > MAX_FILE_BYTES:
        raise UsageError(f"{source}: {size} bytes; a tokenizer has at most {MAX_FILE_BYTES}")
    return storage.read_bytes(path), source


def read(data: bytes | str, source: str) -> Parts:
    """Reads a tokenizer.

    Args:
        data: The file's bytes, or the same as text.
        source: How messages name the file.

    Returns:
        The tokenizer's parts.

    Raises:
        UsageError: It is no JSON, or no tokenizer, or holds what this version does not support;
            names the file, the place and what may stand there.
    """
    root = Node(source, "", parse(data, source))
    fields = root.fields(
        "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
        "post_processor", "decoder", "model",
    )  # fmt: skip
    fields["version"].expect("1.0")
    fields["truncation"].expect(None, _MISSING)
    fields["padding"].expect(None, _MISSING)
    fields["normalizer"].expect(None, _MISSING)
    parts = Parts(
        model=_read_bpe(fields["model"]),
        added_tokens=_read_added_tokens(fields["added_tokens"]),
        pre_tokenizer=_read_pre_tokenizer(fields["pre_tokenizer"]),
        post_processor=_read_post_processor(fields["post_processor"]),
        decoder=_read_decoder(fields["decoder"]),
    )
    try:
        parts.check(Naming())
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    return parts


def write(parts: Parts) -> str:
    """Writes a tokenizer; equal parts give equal text."""
    bpe = parts.model
    added = [
        {
            "id": token.id,
            "content": token.content,
            "single_word": token.single_word,
            "lstrip": token.lstrip,
            "rstrip": token.rstrip,
            "normalized": token.normalized,
            "special": token.special,
        }
        for token in parts.added_tokens
    ]
    pre, post, decoder = parts.pre_tokenizer, parts.post_processor, parts.decoder
    small = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": _byte_level(False, pre.trim_offsets, True),
        "post_processor": post
        and _byte_level(post.add_prefix_space, post.trim_offsets, post.use_regex),
        "decoder": decoder
        and _byte_level(decoder.add_prefix_space, decoder.trim_offsets, decoder.use_regex),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
        },
    }
    # The two large ones by hand, in the same layout: json.dumps lays out in Python, slowly.
    head = json.dumps(small, ensure_ascii=False, indent=2).removesuffix("\n  }\n}")
    vocab = [f"      {quote(token)}: {token_id}" for token, token_id in bpe.vocab.items()]
    merges = [
        f"      [\n        {quote(left)},\n        {quote(right)}\n      ]"
        for left, right in bpe.merges
    ]
    return (
        f'{head},\n    "vocab": {_bracketed("{", vocab, "}")},\n'
        f'    "merges": {_bracketed("[", merges, "]")}\n  }}\n}}'
    )


def quote(text: str) -> str:
    """A string as JSON, its characters as they are."""
    return json.dumps(text, ensure_ascii=False)


def _bracketed(opening: str, entries: list[str], closing: str) -> str:
    inner = ",\n".join(entries)
    return f"{opening}\n{inner}\n    {closing}" if entries else opening + closing


def _byte_level(add_prefix_space: bool, trim_offsets: bool, use_regex: bool) -> dict[str, object]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


class _RepeatedKey(dict[str, Any]):
    """An object that holds a key twice: found while parsing, refused where its place is known."""

    key: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    repeated = _RepeatedKey(plain)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse(data: bytes | str, source: str) -> Any:
    """Parses JSON that may be hostile.

    Raises:
        UsageError: It is too large, no UTF-8, no JSON, or nested too deeply; names the place.
    """
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{source}: {len(data)} bytes; a tokenizer has at most {MAX_FILE_BYTES}")
    try:
        text = data if isinstance(data, str) else str(data, "utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise UsageError(f"{source}: byte {error.start}: not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise UsageError(f"{source}: not a tokenizer: nested too deeply") from None
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise UsageError(f"{source}: not JSON: {error}") from None


@dataclass(frozen=True)
class Node:
    """A value in the file and its place, so that every refusal can name it.

    Attributes:
        source: How messages name the file.
        path: The JSON path from the root.
        value: What stands there, or _MISSING.
    """

    source: str
    path: str
    value: Any

    def refuse(self, why: str) -> NoReturn:
        """Raises UsageError with the place before the reason."""
        place = f"{self.source}: {self.path}" if self.path else self.source
        raise UsageError(f"{place}: {why}")

    def expect(self, *allowed: object) -> None:
        """Refuses every value but those allowed."""
        # The types as well: in Python, 1 == True and 0 == False.
        if any(type(self.value) is type(one) and self.value == one for one in allowed):
            return
        if self.value is _MISSING:
            self.refuse("missing")
        must = " or ".join(json.dumps(one) for one in allowed if one is not _MISSING)
        self.refuse(
            f"{shortened(self.value)} is not supported by this version of bpe-beam; must be {must}"
        )

    def object(self) -> dict[str, Any]:
        """The value, which must be an object without repeated keys."""
        if self.value is _MISSING:
            self.refuse("missing")
        if not isinstance(self.value, dict):
            self.refuse(f"{shortened(self.value)} is not an object")
        if isinstance(self.value, _RepeatedKey):
            self.refuse(f"the key {quote(self.value.key)} stands there twice")
        return self.value

    def fields(self, *names: str) -> dict[str, Node]:
        """The object's fields; those that the file leaves out are there with _MISSING."""
        value = self.object()
        for name in value:
            if name not in names:
                self.refuse(f"unknown key {shortened(name)}; the keys here are {', '.join(names)}")
        return {name: self._field(name) for name in names}

    def items(self) -> list[Node]:
        """The items of the value, which must be a list."""
        if self.value is _MISSING:
            self.refuse("missing")
        if not isinstance(self.value, list):
            self.refuse(f"{shortened(self.value)} is not a list")
        return [Node(self.source, f"{self.path}[{i}]", item) for i, item in enumerate(self.value)]

    def boolean(self, default: bool | None = None) -> bool:
        """The value, which must be true or false; the default where it may be left out."""
        if self.value is _MISSING and default is not None:
            return default
        self.expect(True, False)
        return cast(bool, self.value)

    def token_id(self) -> int:
        """The value, which must be a token's id."""
        if self.value is _MISSING:
            self.refuse("missing")
        return check_id(self.value, f"{self.source}: {self.path}")

    def string(self) -> str:
        """The value, which must be a string of Unicode text."""
        if self.value is _MISSING:
            self.refuse("missing")
        if not isinstance(self.value, str):
            self.refuse(f"{shortened(self.value)} is not a string")
        self.refuse_surrogates(self.value)
        return self.value

    def refuse_surrogates(self, text: str) -> None:
        """Refuses half a surrogate pair, which JSON can write and UTF-8 cannot."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            self.refuse(f"a lone surrogate at character {error.start} of {shortened(text)}")

    def _field(self, name: str) -> Node:
        path = f"{self.path}.{name}" if self.path else name
        return Node(self.source, path, self.value.get(name, _MISSING))


def _read_added_tokens(node: Node) -> tuple[AddedToken, ...]:
    if node.value is None or node.value is _MISSING:
        return ()
    tokens = [_read_added_token(item) for item in node.items()]
    return tuple(sorted(tokens, key=lambda token: token.id))


def _read_added_token(node: Node) -> AddedToken:
    fields = node.fields(
        "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"
    )
    for name in ("single_word", "lstrip", "rstrip", "normalized"):
        fields[name].expect(False)
    fields["special"].expect(True)
    return AddedToken(id=fields["id"].token_id(), content=fields["content"].string())


def _read_byte_level(node: Node) -> dict[str, Node]:
    """The fields of a part that must be of type ByteLevel."""
    if node.value is None or node.value is _MISSING:
        node.refuse('null is not supported by this version of bpe-beam; must be "ByteLevel"')
    _kind(node).expect("ByteLevel")
    return node.fields("type", "add_prefix_space", "trim_offsets", "use_regex")


def _read_pre_tokenizer(node: Node) -> ByteLevelPreTokenizer:
    fields = _read_byte_level(node)
    fields["add_prefix_space"].expect(False)
    fields["use_regex"].expect(True, _MISSING)
    return ByteLevelPreTokenizer(trim_offsets=fields["trim_offsets"].boolean())


def _read_post_processor(node: Node) -> ByteLevelPostProcessor | None:
    if node.value is None or node.value is _MISSING:
        return None
    fields = _read_byte_level(node)
    return ByteLevelPostProcessor(
        add_prefix_space=fields["add_prefix_space"].boolean(),
        trim_offsets=fields["trim_offsets"].boolean(),
        use_regex=fields["use_regex"].boolean(default=True),
    )


def _read_decoder(node: Node) -> ByteLevelDecoder | None:
    if node.value is None or node.value is _MISSING:
        return None
    fields = _read_byte_level(node)
    return ByteLevelDecoder(
        add_prefix_space=fields["add_prefix_space"].boolean(),
        trim_offsets=fields["trim_offsets"].boolean(),
        use_regex=fields["use_regex"].boolean(default=True),
    )


def _read_bpe(node: Node) -> BPE:
    # Files from before the parts had types hold none here.
    _kind(node).expect("BPE", _MISSING)
    fields = node.fields(
        "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges",
    )  # fmt: skip
    fields["dropout"].expect(None, 0, 0.0, _MISSING)
    fields["unk_token"].expect(None, _MISSING)
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        fields[name].expect(None, "", _MISSING)
    for name in ("fuse_unk", "byte_fallback", "ignore_merges"):
        fields[name].expect(False, _MISSING)
    return BPE(vocab=read_vocab(fields["vocab"]), merges=_read_merges(fields["merges"]))


def _kind(node: Node) -> Node:
    return Node(node.source, f"{node.path}.type", node.object().get("type", _MISSING))


def read_vocab(node: Node) -> dict[str, int]:
    """Reads a vocabulary: an object of ids by token; in the order of ids."""
    vocab = node.object()
    # Here only what sorting and messages need; BPE.check does the rest.
    for token, token_id in vocab.items():
        if type(token_id) is not int:
            Node(node.source, f"{node.path}[{shortened(token)}]", token_id).token_id()
        if not token.isascii():
            node.refuse_surrogates(token)
    return in_order_of_ids(vocab.items())


def _read_merges(node: Node) -> list[tuple[str, str]]:
    """Reads merges: pairs, or, as older files have them, strings with one space."""
    if not isinstance(node.value, list):
        node.items()
    merges: list[tuple[str, str]] = []
    for rank, merge in enumerate(node.value):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not all(part and isinstance(part, str) for part in pair)
        ):
            Node(node.source, f"{node.path}[{rank}]", merge).refuse(
                f"{shortened(merge)} is not two tokens: must be a list of two strings, or one "
                "string with one space between them"
            )
        merges.append((pair[0], pair[1]))
    return merges
