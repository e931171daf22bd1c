"""Folders of published models: which file is read, with which special tokens."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sentencepiece_models import BPE, SPECIAL, UNIGRAM, Piece, made_model

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError

END = "<|endoftext|>"
BYTES = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256)]]
BYTES += [chr(256 + number) for number in range(68)]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c", "é", "e"]
EMPTY_CHARSMAP = b"\4\0\0\0" + bytes(4)
PIECES: list[Piece] = [*SPECIAL, *((char, -9.0, 1) for char in "▁abc"), ("▁ab", -2.0, 1)]


def write(folder: Path, files: dict[str, Any]) -> str:
    """Write files of text, bytes or JSON; return the folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if not isinstance(content, bytes):
            text = content if isinstance(content, str) else json.dumps(content)
            content = text.encode()
        (folder / name).write_bytes(content)
    return str(folder)


def gpt2(**config: Any) -> dict[str, Any]:
    vocab = {token: number for number, token in enumerate([*BYTES, "ab", END])}
    files: dict[str, Any] = {"vocab.json": vocab, "merges.txt": "#version: 0.2\na b\n"}
    return {**files, "tokenizer_config.json": config} if config else files


def test_tokenizer_json_is_preferred(tmp_path: Path) -> None:
    made = Tokenizer.from_learned(["a", "b"], [])
    folder = write(tmp_path, {**gpt2(), "tokenizer.json": made.to_json()})
    assert Tokenizer.from_pretrained(folder) == made
    assert Tokenizer.from_pretrained(f"{folder}/tokenizer.json") == made
    assert Tokenizer.from_pretrained(f"file://{folder}") == made


def test_vocab_and_merges(tmp_path: Path) -> None:
    read = Tokenizer.from_pretrained(write(tmp_path, gpt2()))
    assert read.special_tokens == {END: 257}
    assert read.encode(f"ab{END}", allowed_special="all") == [256, 257]
    more = {"300": {"content": "<x>", "lstrip": True, "special": True}}
    files = gpt2(tokenizer_class="GPT2Tokenizer", add_prefix_space=True)
    files["added_tokens.json"] = {"<y>": 301, "<z>": 302}
    files["special_tokens_map.json"] = {"additional_special_tokens": ["<z>"]}
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert read.special_tokens == {END: 257, "<z>": 302}
    assert read.encode("ab<z><y>", allowed_special="all") == [188 + 32, 256, 302, 301]
    # The older files are not read where the newer one lists the tokens.
    files["tokenizer_config.json"]["added_tokens_decoder"] = more
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert read.special_tokens == {END: 257, "<x>": 300}
    assert read.encode("ab <x>", allowed_special="all") == [188 + 32, 256, 300]


def test_qwen2_and_roberta(tmp_path: Path) -> None:
    read = Tokenizer.from_pretrained(write(tmp_path, gpt2(tokenizer_class="Qwen2TokenizerFast")))
    tokens, _, _ = read.encode_with_offsets("12 e\u0301")
    assert tokens == ["1", "2", "Ġ", "Ã", "©"]
    files = gpt2(tokenizer_class="RobertaTokenizer", mask_token="<mask>")
    for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], start=258):
        files["vocab.json"][token] = number
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert len(read.special_tokens) == 5
    ids = read.encode("ab <mask>", allowed_special="all", add_special_tokens=True)
    assert ids == [258, 256, 262, 260]


def test_bert(tmp_path: Path) -> None:
    folder = write(tmp_path, {"vocab.txt": "\n".join(BERT) + "\n"})
    read = Tokenizer.from_pretrained(folder)
    assert read.encode("AB é c", add_special_tokens=True) == [2, 5, 6, 9, 7, 3]
    assert read.decode([5, 6, 7]) == "ab c"
    assert read.special_tokens == {token: number for number, token in enumerate(BERT[:5])}
    write(tmp_path, {"tokenizer_config.json": {"do_lower_case": False, "strip_accents": False}})
    assert Tokenizer.from_pretrained(folder).encode("AB é c") == [1, 8, 7]


def test_sentencepiece(tmp_path: Path) -> None:
    model = made_model(PIECES, UNIGRAM)
    folder = write(tmp_path, {"tokenizer.model": model})
    read = Tokenizer.from_pretrained(folder)
    assert read == Tokenizer.from_sentencepiece(f"{folder}/tokenizer.model")
    config = {"tokenizer_class": "LlamaTokenizer", "pad_token": "<pad>"}
    write(tmp_path, {"tokenizer_config.json": config, "added_tokens.json": {"<pad>": 8}})
    read = Tokenizer.from_pretrained(folder)
    assert read.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 8}
    assert read.encode("ab", add_special_tokens=True) == [1, 7]
    assert read.decode([8, 7]) == "<pad> ab"
    config = {"tokenizer_class": "T5Tokenizer", "extra_ids": 3}
    write(tmp_path, {"tokenizer_config.json": config, "added_tokens.json": {}})
    (tmp_path / "tokenizer.model").rename(tmp_path / "spiece.model")
    read = Tokenizer.from_pretrained(folder)
    assert [read.id_to_token(8 + number) for number in range(3)] == [
        f"<extra_id_{number}>" for number in (2, 1, 0)
    ]
    assert read.encode("ab <extra_id_0>", allowed_special="all", add_special_tokens=True) == [
        *(7, 10, 2)
    ]


def refusal(folder: str) -> str:
    with pytest.raises(UsageError) as caught:
        Tokenizer.from_pretrained(folder)
    return str(caught.value)


def test_refused(tmp_path: Path) -> None:
    assert "no such folder" in refusal(str(tmp_path / "none"))
    assert "has no file of a tokenizer" in refusal(write(tmp_path, {"a.txt": ""}))
    model = {"sentencepiece.bpe.model": made_model(PIECES, UNIGRAM)}
    config = {"tokenizer_class": "XLMRobertaTokenizer"}
    folder = write(tmp_path / "a", {**model, "tokenizer_config.json": config})
    assert '"XLMRobertaTokenizer" is not supported with only sentencepiece.bpe.model' in refusal(
        folder
    )
    write(tmp_path / "a", {"tokenizer_config.json": {}, "config.json": config})
    assert "is not supported with only" in refusal(folder)
    write(tmp_path / "a", {"config.json": {}, "added_tokens.json": {"a": 4, "<new>": 4}})
    assert "id 4 is taken by" in refusal(folder)
    write(tmp_path / "a", {"added_tokens.json": {"a": "4"}})
    assert 'the id "4" is not an integer' in refusal(folder)
    holes = {"added_tokens.json": {"<x>": 20}, "special_tokens_map.json": {"eos_token": "?"}}
    write(tmp_path / "a", holes)
    assert "no file has the id of the special token '?'" in refusal(folder)
    write(tmp_path / "a", {"special_tokens_map.json": {"eos_token": {"lstrip": 1}}})
    assert "eos_token.lstrip: must be `bool`, got `int`" in refusal(folder)
    folder = write(tmp_path / "b", gpt2(add_eos_token=True))
    assert "add_eos_token: must be false for this class, got true" in refusal(folder)
    folder = write(tmp_path / "b", gpt2(image_token="<image>"))
    assert 'image_token: transformers 5 adds "<image>" as a special token' in refusal(folder)
    for text, why in (
        ("\n\n", "must have a token a line, got none"),
        ("a", "unk_token must be in"),
    ):
        assert why in refusal(write(tmp_path / "c", {"vocab.txt": text}))
    files = {"vocab.txt": "[UNK]\na\na\n", "tokenizer_config.json": {}}
    assert "no file has the id of the special token '[SEP]'" in refusal(
        write(tmp_path / "c", files)
    )


@pytest.mark.parametrize(
    ("model_type", "file"),
    [
        *((name, "vocab.json") for name in ("deberta", "whisper", "clip", "bert", "llama", "my")),
        *((name, "vocab.txt") for name in ("funnel", "gpt2", "roberta")),
        *((name, "spiece.model") for name in ("xlm-roberta", "camembert", "albert", "gpt2")),
    ],
)
def test_a_model_type_of_another_class_is_refused(
    model_type: str, file: str, tmp_path: Path
) -> None:
    files = {"vocab.json": gpt2(), "vocab.txt": {"vocab.txt": "\n".join(BERT)}}
    files["spiece.model"] = {"spiece.model": made_model(PIECES, UNIGRAM)}
    folder = write(tmp_path, {**files[file], "config.json": {"model_type": model_type}})
    message = refusal(folder)
    assert f'config.json: model_type: "{model_type}" is not supported with only' in message
    assert "tokenizer.json" in message


def test_a_model_type_names_the_class(tmp_path: Path) -> None:
    files = gpt2()
    files["vocab.json"] |= {"<s>": 258, "</s>": 259}
    folder = write(tmp_path, {**files, "config.json": {"model_type": "bart"}})
    ids = Tokenizer.from_pretrained(folder).encode("ab", add_special_tokens=True)
    assert ids == [258, 256, 259]
    write(tmp_path, {"config.json": {"model_type": "qwen2"}})
    assert Tokenizer.from_pretrained(folder).encode_with_offsets("12")[0] == ["1", "2"]
    # The class of the other file is asked first.
    write(tmp_path, {"tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer"}})
    assert Tokenizer.from_pretrained(folder).spec.normalizer is None
    spiece = {"spiece.model": made_model(PIECES, UNIGRAM), "config.json": {"model_type": "t5"}}
    read = Tokenizer.from_pretrained(write(tmp_path / "t5", spiece))
    assert read.vocab_size == len(PIECES) + 100 + 1  # <pad>


LETTERS: list[Piece] = [(char, -9.0 - n, 1) for n, char in enumerate("▁dehlorw")]
LLAMA: list[Piece] = [*SPECIAL, *LETTERS, ("▁w", -2.0, 1), ("or", -3.0, 1), ("ld", -4.0, 1)]


def llama(kind: int = BPE, **config: Any) -> dict[str, Any]:
    config = {"tokenizer_class": "LlamaTokenizer", **config}
    model = made_model(LLAMA, kind, normalizer={4: 0})
    return {"tokenizer.model": model, "tokenizer_config.json": config}


def test_the_space_before_each_text_of_llama(tmp_path: Path) -> None:
    def tokens(**config: Any) -> list[str]:
        read = Tokenizer.from_pretrained(write(tmp_path, llama(**config)))
        return read.encode_with_offsets("hello<s>world", allowed_special="all")[0]

    assert tokens()[-4:] == ["<s>", "▁w", "or", "ld"]
    assert tokens(legacy=False)[-4:] == ["<s>", "w", "or", "ld"]
    assert tokens(legacy=False, add_prefix_space=False)[0] == "h"
    assert tokens(legacy=False, add_prefix_space=None)[0] == "▁"


def test_the_unknown_token_may_be_named(tmp_path: Path) -> None:
    config = {"unk_token": "<unk>"}
    alone = {"tokenizer.model": made_model(LLAMA, UNIGRAM), "special_tokens_map.json": config}
    charsmap = llama(**config)
    charsmap["tokenizer.model"] = made_model(LLAMA, BPE, normalizer={2: EMPTY_CHARSMAP})
    for number, files in enumerate((alone, charsmap, llama(UNIGRAM, **config))):
        read = Tokenizer.from_pretrained(write(tmp_path / str(number), files))
        assert read.special_tokens["<unk>"] == 0
        assert read.encode("<unk>", allowed_special="all") == [0]
        assert 0 in read.encode("x")


def test_default_special_tokens_get_the_next_ids(tmp_path: Path) -> None:
    files = gpt2()
    del files["vocab.json"][END]
    read = Tokenizer.from_pretrained(write(tmp_path / "a", files))
    assert read.special_tokens == {END: 257}
    config: Any = {"tokenizer_class": "Qwen2Tokenizer", "bos_token": "<b>", "pad_token": "<p>"}
    more = {"special_tokens_map.json": {"additional_special_tokens": ["<x>"], "pad_token": "<q>"}}
    files |= {"tokenizer_config.json": config, **more}
    read = Tokenizer.from_pretrained(write(tmp_path / "b", files))
    assert read.special_tokens == {"<b>": 257, END: 258, "<q>": 259, "<x>": 260}
    config["extra_special_tokens"] = {"image_token": "<image>"}
    config["eos_token"] = config["unk_token"] = None
    read = Tokenizer.from_pretrained(write(tmp_path / "b", files))
    assert read.special_tokens == {"<b>": 257, "<q>": 258, "<x>": 259, "<image>": 260}
    gemma = llama(tokenizer_class="GemmaTokenizer", pad_token=None)
    read = Tokenizer.from_pretrained(write(tmp_path / "c", gemma))
    assert read.encode("h", add_special_tokens=True)[0] == read.token_to_id("<bos>") == len(LLAMA)


def test_plain_added_tokens_are_normalized(tmp_path: Path) -> None:
    files: Any = {"vocab.txt": "\n".join(BERT), "added_tokens.json": {"zz": 10, "[X]": 11}}
    files["special_tokens_map.json"] = {"additional_special_tokens": ["[X]"]}
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert read.encode("ZZ [X] [x]", allowed_special="all") == [10, 11, 1, 1, 1]


def test_repeated_and_blank_lines_of_vocab_txt(tmp_path: Path) -> None:
    text = "\n".join([*BERT, "a", "", "x\r", "", ""])
    read = Tokenizer.from_pretrained(write(tmp_path, {"vocab.txt": text}))
    assert read.encode("a x") == [10, 12]
    assert read.vocab_size == 11


def test_listed_extra_ids_of_t5(tmp_path: Path) -> None:
    extra = [f"<extra_id_{number}>" for number in range(3)]
    config: Any = {"tokenizer_class": "T5Tokenizer", "additional_special_tokens": extra}
    config |= {"extra_ids": 3, "unk_token": "<unk>"}
    files = {"spiece.model": made_model(PIECES, UNIGRAM), "tokenizer_config.json": config}
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert [read.token_to_id(token) for token in extra] == [10, 9, 8]
    config["extra_ids"] = 4
    assert "extra_ids must be the number of <extra_id_N> that are listed, 3, got 4" in refusal(
        write(tmp_path, files)
    )


def test_spaces_before_punctuation(tmp_path: Path) -> None:
    config = {"tokenizer_class": "BertTokenizer", "clean_up_tokenization_spaces": True}
    files = {"vocab.txt": "\n".join([*BERT, "'", "t", "."]), "tokenizer_config.json": config}
    read = Tokenizer.from_pretrained(write(tmp_path, files))
    assert read.decode(read.encode("a't.")) == "a't."


def test_other_settings_beside_a_tokenizer_json_are_told(tmp_path: Path) -> None:
    made = Tokenizer.from_learned(["a", "b", "<s>"], [], ["<s>"])
    token = {"content": "<s>", "special": True, "normalized": False}
    config = {"added_tokens_decoder": {"2": token}, "eos_token": "<s>"}
    folder = write(tmp_path, {"tokenizer.json": made.to_json(), "tokenizer_config.json": config})
    assert Tokenizer.from_file(folder) == Tokenizer.from_pretrained(folder) == made
    for change in ({"added_tokens_decoder": {"2": {**token, "lstrip": True}}}, {"eos_token": "a"}):
        write(tmp_path, {"tokenizer_config.json": {**config, **change}})
        warning = Tokenizer.from_file(folder).spec.warning
        assert warning is not None
        assert "give other ids or settings to the tokens" in warning
        assert "transformers changes them" in warning
        with pytest.warns(UserWarning, match="give other ids or settings"):
            Tokenizer.from_pretrained(folder)
    write(tmp_path, {"tokenizer_config.json": "{"})
    assert "tokenizer.json is read alone" in str(Tokenizer.from_file(folder).spec.warning)


KEYS: list[str] = ["tokenizer_class", "added_tokens_decoder", "bos_token", "sep_token", "cls_token"]
KEYS += ["unk_token", "mask_token", "additional_special_tokens", "add_prefix_space", "extra_ids"]
KEYS += ["add_bos_token", "add_eos_token", "do_lower_case", "model_max_length", "<new>", "a"]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "a",
    "<s>",
    "[CLS]",
    [],
    {},
    [["a"]],
    {"a": 1},
]
VALUES += [{"content": "a"}, {"content": 5}, {"0": {"content": "<s>"}}, {"x": {"content": "q"}}]
VALUES += [{"9" * 12: {"content": "q"}}, "\ud800", "T5TokenizerFast", "RobertaTokenizer"]


def test_made_up_settings_are_read_or_refused(tmp_path: Path) -> None:
    rng = random.Random(5)
    model = made_model(PIECES, UNIGRAM)
    read = 0
    for number in range(200):
        files: dict[str, Any] = rng.choice(
            [gpt2(), {"vocab.txt": "\n".join(BERT)}, {"spiece.model": model}]
        )
        for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
            if rng.random() < 0.5:
                made = {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.randint(0, 3))}
                files[name] = json.dumps(rng.choice(VALUES) if rng.random() < 0.05 else made)
        folder = write(tmp_path / str(number), files)
        try:
            tokenizer = Tokenizer.from_pretrained(folder)
        except UsageError:
            continue
        read += 1
        assert Tokenizer.from_json(tokenizer.to_json()) == tokenizer
        tokenizer.encode("ab <new> c", allowed_special="all", add_special_tokens=True)
    assert 40 < read < 180


def test_the_cache_of_the_hub(tmp_path: Path) -> None:
    """Without the network, and in a new process, since the hub's client reads its settings once."""
    repository = tmp_path / "hub" / "models--some--model"
    commit = "0123456789" * 4
    for folder in ("refs", f"snapshots/{commit}"):
        (repository / folder).mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    write(repository / "snapshots" / commit, gpt2())
    code = (
        "import sys\n"
        "from bpe_beam import Tokenizer\n"
        "from bpe_beam.errors import UsageError\n"
        "print(Tokenizer.from_pretrained('some/model').vocab_size)\n"
        f"print(Tokenizer.from_pretrained('some/model', revision='{commit}').vocab_size)\n"
        "try: Tokenizer.from_pretrained('other/model')\n"
        "except UsageError as error: print(error)\n"
    )
    offline = {
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(tmp_path / "hub"),
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **offline}, capture_output=True, text=True
    )
    first, second, *message = ran.stdout.splitlines()
    assert (first, second) == ("258", "258")
    assert "other/model: no such folder, and not had from the hub: " in message[0], ran.stderr
