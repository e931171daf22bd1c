"""Folders of tokenizers in `transformers`, versions 4 and 5: ours there, and theirs here."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from command_line import run_whole
from made_text import documents

from bpe_beam import Tokenizer

pytestmark = pytest.mark.transformers

WORDPIECE = ("--special-token", "[PAD]", "--special-token", "[UNK]", "--template", "[CLS] $A [SEP]")
WORDPIECE += ("--cls-token", "[CLS]", "--sep-token", "[SEP]", "--mask-token", "[MASK]")
WORDPIECE += ("--pad-token", "[PAD]", "--pretokenizer", "bert", "--normalizer", "bert")
LLAMA = ("--bos-token", "<s>", "--eos-token", "</s>", "--template", "<s> $A")
FALLBACK = ("--byte-fallback", "--unk-token", "<unk>", "--vocab-size", "900")
SPACES = ("--pretokenizer", "metaspace", *FALLBACK, *LLAMA)
KINDS = {
    "gpt2": ("--eos-token", "<|endoftext|>", "--model-max-length", "512"),
    "o200k": ("--pretokenizer", "o200k", "--special-token", "<tool é>", *LLAMA),
    "metaspace": (*SPACES, "--pad-token", "</s>"),
    "sentencepiece": (*SPACES, "--normalizer", "dummy_prefix"),
    "suffix": (
        "--pretokenizer",
        "whitespace_split",
        "--end-of-word-suffix",
        "</w>",
        "--unk-token",
        "?",
    ),
    "wordpiece": (*WORDPIECE, "--model", "wordpiece"),
    "prefix_bpe": (*WORDPIECE, "--model", "prefix_bpe"),
    "word_level": ("--model", "word_level", "--pretokenizer", "whitespace", *LLAMA),
}
HARD = [
    "",
    " ",
    "  a  b ",
    "▁x",
    "é e\u0301<s>\n\t<0x41>",
    "日本 👩",
    "can't . , ! do not",
    "[CLS]a[MASK]",
]
CHAT = "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{{ eos_token }}{% endfor %}"


@pytest.fixture(scope="module", autouse=True)
def offline() -> None:
    """Nothing is asked of the hub; before `transformers` is imported."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in.txt").write_text("\n".join(documents(60)))
    (folder / "chat.jinja").write_text(CHAT)
    return folder


def opened(folder: Path | str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))


def check(ours: Tokenizer, theirs: Any) -> None:
    """Compare ids, offsets and texts; special tokens are recognized there in any text."""
    assert len(theirs) == ours.vocab_size
    for text in [*HARD, *documents(40)]:
        for added in (True, False):
            made = theirs(text, add_special_tokens=added, return_offsets_mapping=True)
            options: Any = {"allowed_special": "all", "add_special_tokens": added}
            _, ids, offsets = ours.encode_with_offsets(text, **options)
            assert made["input_ids"] == ids, ascii(text)
            assert made["offset_mapping"] == offsets, ascii(text)
            for skip in (True, False):
                decoded = theirs.decode(ids, skip_special_tokens=skip)
                assert decoded == ours.decode(ids, skip_special_tokens=skip), ascii(text)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_folder_opens(kind: str, corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "tok"
    size = () if "--vocab-size" in KINDS[kind] else ("--vocab-size", "700")
    arguments = ("train", "--input", corpus / "in.txt", *size, *KINDS[kind])
    run_whole(*arguments, "--chat-template", corpus / "chat.jinja", "--output", output)
    ours, theirs = Tokenizer.from_pretrained(str(output)), opened(output)
    check(ours, theirs)
    assert ours.spec.folder_warning is None
    config = json.loads((output / "tokenizer_config.json").read_bytes())
    for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
        assert getattr(theirs, f"{role}_token") == config.get(f"{role}_token"), role
    assert set(theirs.all_special_tokens) == set(ours.special_tokens)
    assert theirs.model_max_length == config.get("model_max_length", theirs.model_max_length)
    assert (theirs.model_max_length == 512) == (kind == "gpt2")
    assert theirs.is_fast
    assert not theirs.clean_up_tokenization_spaces
    has_types = "token_type_ids" in theirs("a")
    assert has_types == (kind in ("wordpiece", "prefix_bpe"))
    if theirs.eos_token is not None:
        talk = theirs.apply_chat_template([{"role": "user", "content": "a"}], tokenize=False)
        assert talk == f"{theirs.bos_token or ''}a{theirs.eos_token}"
    if theirs.pad_token is not None:
        rows = theirs(["a", "a b c d"], padding=True)["input_ids"]
        assert rows[0][-1] == ours.token_to_id(theirs.pad_token)
        assert len(rows[0]) == len(rows[1])
    theirs.save_pretrained(tmp_path / "saved")
    saved = Tokenizer.from_pretrained(str(tmp_path / "saved"))
    check(saved, opened(tmp_path / "saved"))
    assert saved.spec.folder_warning is None


def files_of(folder: Path, names: tuple[str, ...], **config: Any) -> str:
    """Keep some files of a trained folder, and write another `tokenizer_config.json`."""
    for path in folder.iterdir():
        if path.is_file() and path.name not in names:
            path.unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("GPT2Tokenizer", {}),
        ("GPT2Tokenizer", {"add_prefix_space": True}),
        ("Qwen2Tokenizer", {}),
        ("RobertaTokenizer", {}),
    ],
)
def test_vocab_and_merges(name: str, config: Any, corpus: Path, tmp_path: Path) -> None:
    tokens = ("<|endoftext|>",)
    if name == "RobertaTokenizer":
        tokens = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    specials = [part for token in tokens for part in ("--special-token", token)]
    words = ("--pretokenizer", "qwen2") if name == "Qwen2Tokenizer" else ()
    arguments = ("train", "--input", corpus / "in.txt", "--vocab-size", "700", *specials, *words)
    run_whole(*arguments, "--output", tmp_path / "tok")
    names = ("vocab.json", "merges.txt")
    folder = files_of(tmp_path / "tok", names, tokenizer_class=name, **config)
    check(Tokenizer.from_pretrained(folder), opened(folder))


@pytest.mark.parametrize("config", [{}, {"do_lower_case": False}, {"strip_accents": False}])
def test_vocab_txt(config: Any, corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--input", corpus / "in.txt", "--vocab-size", "700", *KINDS["prefix_bpe"])
    run_whole(*arguments, "--output", tmp_path / "tok")
    names = ("vocab.txt",)
    config |= {"tokenizer_class": "BertTokenizer", "clean_up_tokenization_spaces": False}
    folder = files_of(tmp_path / "tok", names, **config)
    check(Tokenizer.from_pretrained(folder), opened(folder))


@pytest.mark.parametrize("name", ["LlamaTokenizer", "T5Tokenizer"])
def test_sentencepiece(name: str, tmp_path: Path) -> None:
    import sentencepiece

    written = io.BytesIO()
    t5 = name == "T5Tokenizer"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(documents(150)), model_writer=written, minloglevel=3,
        vocab_size=500, hard_vocab_limit=False, model_type="unigram" if t5 else "bpe",
        byte_fallback=not t5, remove_extra_whitespaces=t5,
        normalization_rule_name="nmt_nfkc" if t5 else "identity",
        **({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} if t5 else {}),
    )  # fmt: skip
    file = tmp_path / ("spiece.model" if t5 else "tokenizer.model")
    file.write_bytes(written.getvalue())
    config: dict[str, Any] = {"extra_ids": 7} if t5 else {"legacy": True, "add_bos_token": True}
    folder = files_of(tmp_path, (file.name,), **{"tokenizer_class": name, **config})
    ours, theirs = Tokenizer.from_pretrained(folder), opened(folder)
    for text in documents(40):
        ids = ours.encode(text, add_special_tokens=True)
        assert theirs(text)["input_ids"] == ids, ascii(text)
    assert len(theirs) == ours.vocab_size


def test_the_readers_of_llama_cpp(corpus: Path, tmp_path: Path) -> None:
    """Its converter has these of package gguf: tokens, special tokens and merges."""
    import gguf.vocab

    arguments = ("train", "--input", corpus / "in.txt", *KINDS["sentencepiece"])
    run_whole(*arguments, "--chat-template", corpus / "chat.jinja", "--output", tmp_path)
    ours = Tokenizer.from_pretrained(str(tmp_path))
    special = gguf.vocab.SpecialVocab(tmp_path, load_merges=True)
    assert special.special_token_ids == {"unk": 0, "bos": 1, "eos": 2}
    assert special.chat_template == CHAT
    assert [tuple(merge.split(" ")) for merge in special.merges] == ours.merges
    for vocab in (gguf.vocab.SentencePieceVocab(tmp_path), gguf.vocab.LlamaHfVocab(tmp_path)):
        assert [token.decode() for token, _, _ in vocab.all_tokens()] == [*ours.vocab]
    kinds = [kind.name for _, _, kind in gguf.vocab.SentencePieceVocab(tmp_path).all_tokens()]
    assert kinds[:3] == ["UNKNOWN", "CONTROL", "CONTROL"]
    assert kinds[3:259] == ["BYTE"] * 256
    assert set(kinds[259:]) == {"NORMAL"}


def test_a_folder_written_from_python(tmp_path: Path, tokenizer: Tokenizer) -> None:
    special = next(token.content for token in tokenizer.spec.added_tokens if token.special)
    tokenizer.save_pretrained(str(tmp_path), model_max_length=512, pad_token=special)
    theirs = opened(tmp_path)
    assert (theirs.pad_token, theirs.model_max_length) == (special, 512)
    check(tokenizer, theirs)
