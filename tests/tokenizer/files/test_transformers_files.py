"""The files by which `transformers` opens a folder, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.models import WordPiece
from bpe_beam.tokenizer.components.pretokenizers import ByteLevelPreTokenizer
from bpe_beam.tokenizer.files.transformers_files import (
    ModelInput,
    special_tokens_map,
    tokenizer_config,
)
from bpe_beam.tokenizer.spec import Padding, TokenizerSpec

pytestmark = pytest.mark.quick

CONFIG = b"""{
  "added_tokens_decoder": {
    "0": {
      "content": "<s>",
      "lstrip": false,
      "normalized": false,
      "rstrip": false,
      "single_word": false,
      "special": true
    },
    "1": {
      "content": "<tool \xc3\xa9>",
      "lstrip": false,
      "normalized": false,
      "rstrip": false,
      "single_word": false,
      "special": true
    }
  },
  "additional_special_tokens": [
    "<tool \xc3\xa9>"
  ],
  "bos_token": "<s>",
  "clean_up_tokenization_spaces": false,
  "eos_token": "<s>",
  "model_input_names": [
    "input_ids",
    "attention_mask"
  ],
  "model_max_length": 2048,
  "tokenizer_class": "PreTrainedTokenizerFast"
}
"""

SPECIAL_TOKENS = b"""{
  "additional_special_tokens": [
    "<tool \xc3\xa9>"
  ],
  "bos_token": "<s>",
  "eos_token": "<s>"
}
"""


def made() -> TokenizerSpec:
    return Tokenizer.from_learned(["<s>", "<tool é>", "a"], [], ["<s>", "<tool é>"]).spec


def test_every_byte() -> None:
    model_input = ModelInput({"bos_token": "<s>", "eos_token": "<s>"}, 2048)
    assert tokenizer_config(made(), model_input) == CONFIG
    assert special_tokens_map(made(), model_input) == SPECIAL_TOKENS


def test_without_roles_and_length() -> None:
    config = json.loads(tokenizer_config(made(), ModelInput()))
    assert config["additional_special_tokens"] == ["<s>", "<tool é>"]
    assert not {"model_max_length", "bos_token", "unk_token"} & config.keys()


def test_wordpiece_has_types_of_texts_and_an_unknown_token() -> None:
    unknown = made().added_tokens[:1]
    spec = TokenizerSpec(WordPiece({"<s>": 0, "a": 1}, "<s>"), unknown)
    config = json.loads(tokenizer_config(spec, ModelInput()))
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]
    assert config["unk_token"] == "<s>"
    assert "additional_special_tokens" not in config
    # An unknown token that is plain text is no special token: transformers would extract it.
    plain = TokenizerSpec(WordPiece({"<s>": 0, "[UNK]": 1}), unknown)
    assert json.loads(special_tokens_map(plain, ModelInput())) == {
        "additional_special_tokens": ["<s>"]
    }


def test_a_role_is_of_a_special_token() -> None:
    with pytest.raises(UsageError, match="must be a special token, got 'a'") as caught:
        special_tokens_map(made(), ModelInput({"pad_token": "a"}))
    assert caught.value.parameters == ("pad_token",)


def test_a_folder_is_written_from_python(tmp_path: Path, tokenizer: Tokenizer) -> None:
    special = next(token.content for token in tokenizer.spec.added_tokens if token.special)
    folder = tmp_path / "new" / "folder"
    tokenizer.save_pretrained(str(folder), model_max_length=512, pad_token=special)
    assert {path.name for path in folder.iterdir()} == {
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    }
    assert Tokenizer.from_pretrained(str(folder)) == tokenizer
    config = json.loads((folder / "tokenizer_config.json").read_bytes())
    assert (config["pad_token"], config["model_max_length"]) == (special, 512)
    assert json.loads((folder / "special_tokens_map.json").read_bytes())["pad_token"] == special


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"pad_token": "none"}, "pad_token must be a special token, got 'none'"),
        ({"pad_tokens": "none"}, "pad_tokens is not a role .*; did you mean pad_token?"),
    ],
)
def test_a_role_that_cannot_be_written(
    tmp_path: Path, tokenizer: Tokenizer, roles: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        tokenizer.save_pretrained(str(tmp_path / "folder"), **roles)
    assert not (tmp_path / "folder").exists()


def test_an_added_prefix_space_is_in_the_config() -> None:
    """Version 4 of `transformers` takes it from the config alone."""
    spec = replace(made(), pre_tokenizer=ByteLevelPreTokenizer(add_prefix_space=True))
    assert json.loads(tokenizer_config(spec, ModelInput()))["add_prefix_space"] is True
    assert "add_prefix_space" not in json.loads(tokenizer_config(made(), ModelInput()))


@pytest.mark.parametrize(("token", "role"), [("<s>", "<s>"), ("[PAD]", None)])
def test_the_token_of_padding_is_no_new_token(token: str, role: str | None) -> None:
    padding = Padding(
        strategy="BatchLongest", direction="Right", pad_id=0, pad_type_id=0, pad_token=token
    )
    config = json.loads(tokenizer_config(replace(made(), padding=padding), ModelInput()))
    assert config["pad_token"] == role
