"""The roles of special tokens, the input's length and chat templates that a `Tokenizer` knows."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from command_line import run

import bpe_beam
from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

SPECIAL = ["<s>", "</s>", "<pad>"]


def made() -> Tokenizer:
    return Tokenizer.from_learned([*SPECIAL, "a", "b"], [], SPECIAL)


def published(folder: Path, **config: Any) -> Path:
    """Write a tokenizer.json with a tokenizer_config.json beside it; return the former."""
    folder.mkdir()
    made().save(folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder / "tokenizer.json"


def test_roles_of_the_files_beside_it(tmp_path: Path) -> None:
    path = published(tmp_path / "tok", bos_token="<s>", eos_token={"content": "</s>"})
    for read in (Tokenizer.from_file(path), Tokenizer.from_pretrained(path.parent)):
        for tokenizer in (read, pickle.loads(pickle.dumps(read))):
            assert tokenizer.roles == {"bos_token": "<s>", "eos_token": "</s>"}
            assert (tokenizer.bos_token, tokenizer.bos_token_id) == ("<s>", 0)
            assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("</s>", 1)
            assert (tokenizer.pad_token, tokenizer.pad_token_id) == (None, None)
            assert (tokenizer.model_max_length, tokenizer.chat_template) == (None, None)


def test_a_file_of_another_name_has_no_files_beside_it(tmp_path: Path) -> None:
    path = published(tmp_path / "tok", bos_token="<s>")
    other = path.rename(path.with_name("other.json"))
    assert Tokenizer.from_file(other).roles == {}


@pytest.mark.parametrize("templates", ["file", "files", "config", "configs"])
def test_they_are_written_again(templates: str, tmp_path: Path) -> None:
    config: dict[str, Any] = {"eos_token": "</s>", "model_max_length": 77}
    path = published(tmp_path / "tok", **config)
    expected = {"default": "{{ é }}"}
    if templates in ("files", "configs"):
        expected["tool_use"] = "{{ tools }}"
    if templates.startswith("file"):
        (path.parent / "chat_template.jinja").write_text("{{ é }}", "utf-8")
        more = path.parent / "additional_chat_templates"
        more.mkdir()
        if templates == "files":
            (more / "tool_use.jinja").write_text("{{ tools }}")
    else:
        rows = [{"name": name, "template": template} for name, template in expected.items()]
        config["chat_template"] = rows if templates == "configs" else "{{ é }}"
        (path.parent / "tokenizer_config.json").write_text(json.dumps(config))
    Tokenizer.from_file(path).save_pretrained(tmp_path / "saved")
    result = run("export", path, "--format", "transformers", "--output", tmp_path / "exported")
    assert result.code == 0
    for folder in (tmp_path / "saved", tmp_path / "exported"):
        again = Tokenizer.from_pretrained(folder)
        assert again.roles == {"eos_token": "</s>"}
        assert again.model_max_length == 77
        assert again.model_input.chat_templates == expected
        assert (folder / "chat_template.jinja").read_text("utf-8") == "{{ é }}"


def test_arguments_come_first(tmp_path: Path) -> None:
    path = published(tmp_path / "tok", bos_token="<s>", eos_token="</s>", model_max_length=77)
    roles: dict[str, str | None] = {"eos_token": None, "pad_token": "<pad>"}
    tokenizer = Tokenizer.from_file(path)
    tokenizer.save_pretrained(
        tmp_path / "new", model_max_length=5, chat_template="{{ x }}", **roles
    )
    again = Tokenizer.from_pretrained(tmp_path / "new")
    assert again.roles == {"bos_token": "<s>", "pad_token": "<pad>"}
    assert (again.model_max_length, again.chat_template) == (5, "{{ x }}")


@pytest.mark.parametrize("length", [-5, 0, 2.5, True, "7"])
def test_a_length_that_is_none(length: Any, tmp_path: Path) -> None:
    message = f"model_max_length must be at least 1, got {length!r}"
    with pytest.raises(UsageError, match=message):
        made().save_pretrained(tmp_path / "new", model_max_length=length)
    assert not (tmp_path / "new").exists()


def test_a_role_beside_it_whose_token_it_lacks(tmp_path: Path) -> None:
    """`transformers` adds such a token, with a new id."""
    path = published(tmp_path / "tok", pad_token="[PAD]")
    tokenizer = Tokenizer.from_file(path)
    assert (tokenizer.pad_token, tokenizer.pad_token_id) == ("[PAD]", None)
    with pytest.raises(UsageError, match=r'pad_token is "\[PAD\]" in the files .* pad_token=None'):
        tokenizer.save_pretrained(tmp_path / "new")
    tokenizer.save_pretrained(tmp_path / "new", pad_token=None)
    assert Tokenizer.from_pretrained(tmp_path / "new").roles == {}


def test_a_template_whose_name_is_a_path(tmp_path: Path) -> None:
    rows = [{"name": "../x", "template": "{{ x }}"}]
    path = published(tmp_path / "tok", chat_template=rows)
    with pytest.raises(UsageError, match=r"chat_template must be a file.s name, got .\.\./x."):
        Tokenizer.from_file(path).save_pretrained(tmp_path / "new")


@pytest.mark.parametrize("in_memory", [False, True])
def test_roles_of_train(in_memory: bool, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ab ab\n" * 20)
    (tmp_path / "chat.jinja").write_text("{{ x }}")
    texts: Any = ["ab ab"] * 20 if in_memory else tmp_path / "in.txt"
    tokenizer = bpe_beam.train(
        texts, vocab_size=260, bos_token="<s>", eos_token="</s>", model_max_length=9,
        chat_template=tmp_path / "chat.jinja",
    )  # fmt: skip
    assert tokenizer.roles == {"bos_token": "<s>", "eos_token": "</s>"}
    assert (tokenizer.eos_token_id, tokenizer.model_max_length) == (1, 9)
    tokenizer.save_pretrained(tmp_path / "tok")
    again = Tokenizer.from_pretrained(tmp_path / "tok")
    assert again.roles == tokenizer.roles
    assert again.chat_template == tokenizer.chat_template == "{{ x }}"
    arguments = ("train", "--input", tmp_path / "in.txt", "--vocab-size", "260", "--bos-token")
    more = ("<s>", "--eos-token", "</s>", "--model-max-length", "9")
    chat = ("--chat-template", tmp_path / "chat.jinja")
    assert run(*arguments, *more, *chat, "--output", tmp_path / "cli").code == 0
    for file in (tmp_path / "tok").iterdir():
        assert file.read_bytes() == (tmp_path / "cli" / file.name).read_bytes()


def test_an_empty_chat_template(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").touch()
    arguments = ("train", "--input", __file__, "--vocab-size", "300", "--output", tmp_path / "tok")
    result = run(*arguments, "--chat-template", tmp_path / "chat.jinja")
    assert result.code == 2
    assert "--chat-template must be a template, got" in result.err
    assert "which is empty" in result.err


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a web server that lists no folder: the file is read, those beside it are not known."""
    path = published(tmp_path / "tok", bos_token="<s>")
    tokenizer = Tokenizer.from_file(path)
    monkeypatch.setattr(Storage, "list_names", lambda storage, folder: [])
    with pytest.warns(UserWarning, match=r"cannot be listed, so the files next to tokenizer\.json"):
        assert tokenizer.roles == {}
