"""The files next to a `tokenizer.json` by which `transformers` opens a folder.

They contain the purpose of each special token, and how long the input of a model may be: what
`tokenizer.json` has no place for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from bpe_beam.errors import UsageError, require, require_whole
from bpe_beam.messages import did_you_mean, shortened
from bpe_beam.storage.names import redact
from bpe_beam.tokenizer.components.models import WordPiece
from bpe_beam.tokenizer.files.hugging_face_ids import file_warning
from bpe_beam.tokenizer.files.json_node import Node, decoded, parse
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    from bpe_beam.storage import Storage

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
CHAT_TEMPLATE_FILE = "chat_template.jinja"

_MORE_TEMPLATES = "additional_chat_templates"
_JINJA = ".jinja"

CHAT_TEMPLATES = (CHAT_TEMPLATE_FILE, f"{_MORE_TEMPLATES}/*{_JINJA}")
"""Patterns of the names of chat templates in a folder."""

ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "pad", "sep", "cls", "mask", "unk"))
"""What a special token may be for."""


class ModelInput(Struct, frozen=True):
    """What a model expects of a tokenizer, besides ids."""

    roles: dict[str, str] = {}  # special tokens by role of `transformers`, such as `eos_token`
    max_length: int | None = None  # the most tokens of the model's input; None: no limit
    chat_templates: dict[str, str] = {}  # Jinja templates by name; `default` is for all models


def roles_of(spec: TokenizerSpec, model_input: ModelInput) -> dict[str, str]:
    """Return the special tokens by role, also those that the model and the padding name."""
    padding = spec.padding.pad_token if spec.padding is not None else None
    named = {"unk_token": getattr(spec.model, "unk_token", None), "pad_token": padding}
    special = {token.content for token in spec.added_tokens if token.special}
    return {role: token for role, token in named.items() if token in special} | model_input.roles


def read_chat_templates(folder: str, storage: Storage) -> dict[str, str]:
    """Return the chat templates in a tokenizer's folder, by name, as `transformers` finds them."""
    names = storage.list_names(folder)
    more = storage.join(folder, _MORE_TEMPLATES)
    paths = {}
    if CHAT_TEMPLATE_FILE in names:
        paths["default"] = storage.join(folder, CHAT_TEMPLATE_FILE)
    for name in storage.list_names(more) if _MORE_TEMPLATES in names else ():
        if name.endswith(_JINJA):
            paths[name.removesuffix(_JINJA)] = storage.join(more, name)
    if paths or CONFIG_FILE not in names:
        templates = {name: storage.read_bytes(path) for name, path in paths.items()}
        return {name: decoded(data, redact(paths[name])) for name, data in templates.items()}
    config = storage.join(folder, CONFIG_FILE)
    node = Node(config, "", parse(storage.read_bytes(config), config)).field("chat_template")
    if node.value is None or isinstance(node.value, str):
        return {} if node.value is None else {"default": node.value}
    return {row.field("name").string(): row.field("template").string() for row in node.items()}


def tokenizer_config(spec: TokenizerSpec, model_input: ModelInput) -> bytes:
    length = model_input.max_length
    names = ["input_ids", "attention_mask"]
    if isinstance(spec.model, WordPiece):  # BERT and its like tell two texts apart
        names.insert(1, "token_type_ids")
    tokens = [msgspec.structs.asdict(token) for token in spec.added_tokens]
    by_role = _by_role(spec, model_input)
    if spec.padding is not None:  # without a role, transformers takes its token, even a new one
        by_role.setdefault("pad_token", None)
    adds_space = getattr(spec.pre_tokenizer, "add_prefix_space", False)
    config = {
        **({"add_prefix_space": True} if adds_space else {}),
        "added_tokens_decoder": {str(settings.pop("id")): settings for settings in tokens},
        "clean_up_tokenization_spaces": False,  # the decoder does all
        **({} if length is None else {"model_max_length": int(length)}),
        "model_input_names": names,
        # The class that reads a tokenizer.json as it is: others build parts of it by themselves.
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return _written(config | by_role)


def special_tokens_map(spec: TokenizerSpec, model_input: ModelInput) -> bytes:
    return _written(_by_role(spec, model_input))


def written_beside(spec: TokenizerSpec, model_input: ModelInput) -> dict[str, bytes]:
    """Return the files to write next to a `tokenizer.json`: their bytes by name."""
    if (warning := file_warning(spec)) is not None:
        raise UsageError(f"transformers: cannot read this tokenizer: {warning}")
    for role in model_input.roles:
        require(role in ROLES, f"is not a role of special tokens{did_you_mean(role, ROLES)}", role)
    if model_input.max_length is not None:
        require_whole("model_max_length", model_input.max_length, 1)
    for name, template in model_input.chat_templates.items():
        sound = bool(name) and "/" not in name and "\0" not in name
        require(sound, f"must be a file's name, got {name!r}", "chat_template")
        try:
            template.encode()
        except UnicodeEncodeError:
            why = f"must be valid Unicode, got {shortened(template)}"
            raise UsageError(why, ("chat_template",)) from None
    templates = {
        CHAT_TEMPLATE_FILE if name == "default" else f"{_MORE_TEMPLATES}/{name}{_JINJA}": template
        for name, template in model_input.chat_templates.items()
    }
    return {
        CONFIG_FILE: tokenizer_config(spec, model_input),
        SPECIAL_TOKENS_FILE: special_tokens_map(spec, model_input),
        **{path: template.encode() for path, template in templates.items()},
    }


def write_folder(folder: str, files: dict[str, bytes], storage: Storage) -> dict[str, bytes]:
    """Write the files of a folder, each atomically; return their bytes by path."""
    for parent in sorted({name.rpartition("/")[0] for name in files}):
        storage.make_folder(storage.join(folder, parent) if parent else folder)
    paths = {storage.join(folder, name): data for name, data in files.items()}
    for path, data in paths.items():
        storage.write_bytes(path, data)
    return paths


def _by_role(spec: TokenizerSpec, model_input: ModelInput) -> dict[str, Any]:
    """Return the special tokens by role, and those without a role."""
    special = [token.content for token in spec.added_tokens if token.special]
    roles = roles_of(spec, model_input)
    for role, token in roles.items():
        require(token in special, f"must be a special token, got {token!r}", role)
    others = [token for token in special if token not in roles.values()]
    return {**roles, **({"additional_special_tokens": others} if others else {})}


def _written(value: dict[str, Any]) -> bytes:
    """Return the bytes of a JSON file as `transformers` writes it."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"
