"""The files beside a `tokenizer.json` by which `transformers` opens a folder.

They contain the purpose of each special token, and how long the input of a model may be: what
`tokenizer.json` has no place for.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from bpe_beam.errors import UsageError, require
from bpe_beam.messages import did_you_mean
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.models import WordPiece
from bpe_beam.tokenizer.spec import TokenizerSpec

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
SPECIAL_TOKENS_FILE = "special_tokens_map.json"
CHAT_TEMPLATE_FILE = "chat_template.jinja"

ROLES = (
    *("bos_token", "eos_token", "pad_token"),
    *("sep_token", "cls_token", "mask_token", "unk_token"),
)
"""What a special token may be for."""


class ModelInput(Struct, frozen=True):
    """What a model expects of a tokenizer, besides ids.

    Attributes:
        roles: Special tokens by their role, such as `eos_token`, in the names of `transformers`.
        max_length: The most tokens of the model's input; None: no limit.
    """

    roles: dict[str, str] = {}
    max_length: int | None = None


def tokenizer_config(spec: TokenizerSpec, model_input: ModelInput) -> bytes:
    """Return the bytes of `tokenizer_config.json`.

    Args:
        spec: The tokenizer.
        model_input: The roles of its special tokens, and the length of the model's input.

    Raises:
        UsageError: A role's token is not a special token of the tokenizer.
    """
    length = model_input.max_length
    names = ["input_ids", "attention_mask"]
    if isinstance(spec.model, WordPiece):  # BERT and its like tell two texts apart
        names.insert(1, "token_type_ids")
    pre_tokenizer = spec.pre_tokenizer
    by_role = _by_role(spec, model_input)
    if spec.padding is not None:  # without a role, transformers takes its token, even a new one
        by_role.setdefault("pad_token", None)
    config = {
        **({"add_prefix_space": True} if getattr(pre_tokenizer, "add_prefix_space", 0) else {}),
        "added_tokens_decoder": {str(token.id): _settings(token) for token in spec.added_tokens},
        "clean_up_tokenization_spaces": False,  # the decoder does all
        **({} if length is None else {"model_max_length": length}),
        "model_input_names": names,
        # The class that reads a tokenizer.json as it is: others build parts of it by themselves.
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return _written(config | by_role)


def special_tokens_map(spec: TokenizerSpec, model_input: ModelInput) -> bytes:
    """Return the bytes of `special_tokens_map.json`.

    Args:
        spec: The tokenizer.
        model_input: The roles of its special tokens.

    Raises:
        UsageError: A role's token is not a special token of the tokenizer.
    """
    return _written(_by_role(spec, model_input))


def written_beside(spec: TokenizerSpec, model_input: ModelInput) -> dict[str, bytes]:
    """Return the files to write beside a `tokenizer.json`: their bytes by name.

    Args:
        spec: The tokenizer.
        model_input: The roles of its special tokens, and the length of the model's input.

    Raises:
        UsageError: Hugging Face's libraries cannot read the tokenizer, there is no such role,
            or its token is not a special token of the tokenizer.
    """
    if spec.file_warning is not None:
        raise UsageError(f"transformers: cannot read this tokenizer: {spec.file_warning}")
    for role in model_input.roles:
        require(role in ROLES, f"is not a role of special tokens{did_you_mean(role, ROLES)}", role)
    return {
        CONFIG_FILE: tokenizer_config(spec, model_input),
        SPECIAL_TOKENS_FILE: special_tokens_map(spec, model_input),
    }


def _by_role(spec: TokenizerSpec, model_input: ModelInput) -> dict[str, Any]:
    """Return the special tokens by role, and those without a role."""
    special = [token.content for token in spec.added_tokens if token.special]
    roles = dict(model_input.roles)
    unknown = getattr(spec.model, "unk_token", None)
    if unknown in special:
        roles.setdefault("unk_token", unknown)
    if spec.padding is not None and spec.padding.pad_token in special:
        roles.setdefault("pad_token", spec.padding.pad_token)
    for role, token in roles.items():
        require(token in special, f"must be a special token, got {token!r}", role)
    others = [token for token in special if token not in roles.values()]
    return {**roles, **({"additional_special_tokens": others} if others else {})}


def _settings(token: AddedToken) -> dict[str, Any]:
    settings = msgspec.structs.asdict(token)
    del settings["id"]
    return settings


def _written(value: dict[str, Any]) -> bytes:
    """Return the bytes of a JSON file as `transformers` writes it."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"
