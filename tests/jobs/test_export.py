"""`bpe-beam export`: a tokenizer in the forms of other libraries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_for_output as run
from made_text import documents
from sentencepiece_models import NORMAL, SPECIAL, UNIGRAM, made_model

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError

pytestmark = pytest.mark.quick

LLAMA = (
    *("--pretokenizer", "metaspace", "--normalizer", "dummy_prefix", "--byte-fallback"),
    *("--unk-token", "<unk>", "--bos-token", "<s>", "--eos-token", "</s>"),
    *("--model-max-length", "512"),
)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a tokenizer that every form but `.tiktoken` can represent."""
    folder = tmp_path_factory.mktemp("llama")
    (folder / "in.txt").write_text("\n".join(documents(60)))
    (folder / "chat.jinja").write_text("{{ messages }}")
    arguments = ("--input", folder / "in.txt", "--vocab-size", "700", *LLAMA)
    chat = ("--chat-template", folder / "chat.jinja")
    run("train", *map(str, (*arguments, *chat, "--output", folder / "tok")))
    return folder / "tok"


def export(tokenizer: Path | str, form: str, output: Path, code: int = 0) -> tuple[str, str]:
    """Return what is printed, and what is said on stderr."""
    arguments = ("export", str(tokenizer), "--format", form, "--output", str(output))
    out, said = run(*arguments, code=code)
    return out.decode(), said


def test_a_model_of_sentencepiece(llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.model"
    assert export(llama, "sentencepiece", path) == (f"{path}\n", "")
    # With the roles that the files beside the tokenizer name, as `train` writes it.
    assert path.read_bytes() == (llama / "tokenizer.model").read_bytes()
    export(llama / "tokenizer.json", "sentencepiece", tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == path.read_bytes()
    texts = documents(30)
    ours = Tokenizer.from_file(str(llama))
    assert [*map(Tokenizer.from_file(str(path)).encode, texts)] == [*map(ours.encode, texts)]


def test_a_folder_of_transformers(llama: Path, tmp_path: Path) -> None:
    export(llama, "transformers", tmp_path / "hf")
    names = {path.name for path in (tmp_path / "hf").iterdir()}
    written = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert names == {*written, "chat_template.jinja"}
    for name in names:
        assert (tmp_path / "hf" / name).read_bytes() == (llama / name).read_bytes(), name
    config = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_bytes())
    assert (config["bos_token"], config["model_max_length"]) == ("<s>", 512)


def test_from_a_model_to_a_folder_and_back(llama: Path, tmp_path: Path) -> None:
    model = tmp_path / "alone.model"
    model.write_bytes((llama / "tokenizer.model").read_bytes())
    export(model, "transformers", tmp_path / "hf")
    export(tmp_path / "hf", "tokenizer_json", tmp_path / "new.json")
    ours = Tokenizer.from_file(str(tmp_path / "new.json"))
    assert [*map(ours.encode, documents(30))] == [
        *map(Tokenizer.from_file(str(model)).encode, documents(30))
    ]


def test_tiktoken(tokenizer: str, tmp_path: Path) -> None:
    path = tmp_path / "new.tiktoken"
    export(tokenizer, "tiktoken", path)
    ours = Tokenizer.from_file(tokenizer)
    read = Tokenizer.from_tiktoken(
        str(path), pretokenizer="gpt2", special_tokens=ours.special_tokens
    )
    assert [*map(read.encode, documents(30))] == [*map(ours.encode, documents(30))]


def test_what_a_form_cannot_represent_is_refused(
    llama: Path, tokenizer: str, tmp_path: Path
) -> None:
    path = tmp_path / "none"
    _, said = export(llama, "tiktoken", path, code=2)
    assert ".tiktoken: can only represent byte-level BPE" in said
    _, said = export(tokenizer, "sentencepiece", path, code=2)
    assert "SentencePiece" in said
    assert not path.exists()


def test_what_only_this_package_encodes_is_no_folder_of_transformers(tmp_path: Path) -> None:
    model, folder = tmp_path / "m.model", tmp_path / "hf"
    pieces = [*SPECIAL, ("▁ab", -2.0, NORMAL), *((char, -9.0, NORMAL) for char in "▁abc")]
    model.write_bytes(made_model(pieces, UNIGRAM))
    _, said = export(model, "transformers", folder, code=2)
    assert "transformers: cannot read this tokenizer: " in said
    assert "give other programs the .model file" in said
    read = Tokenizer.from_file(str(model))
    with pytest.raises(UsageError, match="transformers: cannot read this tokenizer"):
        read.save_pretrained(str(folder))
    assert not folder.exists()
    _, said = export(model, "tokenizer_json", tmp_path / "new.json")
    assert "the tokenizer.json is for bpe-beam alone" in said
    assert Tokenizer.from_file(str(tmp_path / "new.json")) == read
