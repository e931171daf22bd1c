"""Small folders of published models: one for each setting of each supported class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencepiece as library
from sentencepiece_models import BPE, BYTES, CONTROL, UNIGRAM, UNKNOWN, Piece, made_model, message

from bpe_beam.tokenizer.files import sentencepiece_file
from bpe_beam.tokenizer.files.published_classes import CLASSES, SPECIAL_LISTS

Files = dict[str, Any]

END = "<|endoftext|>"
_SYMBOLS = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256)]]
_SYMBOLS += [chr(256 + number) for number in range(68)]
_ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = ["▁w", "or", "▁wor", "ld", "hello", "▁h", "el", "lo", "hel", "▁▁", "▁a", "ab", "▁ab"]
_LETTERS = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.!<>/_0123456789[]|"
_PIECES: list[Piece] = [
    *((word, -2.0 - number, 1) for number, word in enumerate(_WORDS)),
    *((letter, -50.0 - number, 1) for number, letter in enumerate(_LETTERS)),
]
TEXTS = [
    "", " ", "ab", " a  b ", "hello world", "hello<s>world", "a </s> b", "a</s>b.", "AB é e\u0301",
    "zz ZZ zz", "a <mask> b", "a[MASK]b [SEP]", "w<extra_id_0> world", "中a", "12 a\n\tb", "▁a",
    f"a{END}b", "x <new> y<new>", "<own> <other> <unk>", "▁<PRE>a ▁<MID>", "<bos>a<eos> <pad>",
    "a . do n't",
]  # fmt: skip


def write(folder: Path, files: Files) -> str:
    """Write files of text, bytes or JSON; return the folder."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if not isinstance(content, bytes):
            text = content if isinstance(content, str) else json.dumps(content)
            content = text.encode()
        (folder / name).write_bytes(content)
    return str(folder)


def byte_level(*special: str) -> Files:
    vocab = [*_SYMBOLS, "ab", "Ġa", *special]
    merges = "#version: 0.2\na b\nĠ a\n"
    return {"vocab.json": {t: n for n, t in enumerate(vocab)}, "merges.txt": merges}


def bert(*special: str) -> Files:
    letters = "abcdefghijklmnopqrstuvwxyzAB中.<>[]/"
    return {
        "vocab.txt": "".join(f"{t}\n" for t in [*(special or _BERT), "ab", "##b", "é", *letters])
    }


def sentencepiece(
    first: list[Piece], kind: int, fallback: bool, charsmap: bytes | None = None
) -> Files:
    rules: dict[int, Any] = {4: 0} if charsmap is None else {2: charsmap, 4: 1}
    pieces = [*first, *(BYTES if fallback else []), *_PIECES]
    unknown = next(number for number, piece in enumerate(pieces) if piece[2] == UNKNOWN)
    data = made_model(pieces, kind, trainer={35: int(fallback), 40: unknown}, normalizer=rules)
    return {"tokenizer.model": data, "spiece.model": data}


def _charsmap() -> bytes:
    """Return the table of replacements of SentencePiece's default rules."""
    normalizer = library.SentencePieceNormalizer(rule_name="nmt_nfkc")
    whole = made_model(_LLAMA, normalizer={2: b""})
    spec = message({3: normalizer.serialized_normalizer_spec()})
    return sentencepiece_file.read_pieces(whole[: whole.rindex(b"\x1a")] + spec, "")[1]


_LLAMA: list[Piece] = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
_GEMMA: list[Piece] = [("<pad>", 0, CONTROL), ("<eos>", 0, CONTROL), ("<bos>", 0, CONTROL)]
_GEMMA += [("<unk>", 0, UNKNOWN), ("<mask>", 0, CONTROL)]
_T5: list[Piece] = [("<pad>", 0, CONTROL), ("</s>", 0, CONTROL), ("<unk>", 0, UNKNOWN)]
BASES: dict[str, Files] = {
    "LlamaTokenizer": sentencepiece(_LLAMA, BPE, True),
    "CodeLlamaTokenizer": sentencepiece(_LLAMA, BPE, True),
    "GemmaTokenizer": sentencepiece(_GEMMA, BPE, True),
    "T5Tokenizer": sentencepiece(_T5, UNIGRAM, False, _charsmap()),
    "GPT2Tokenizer": byte_level(END),
    "RobertaTokenizer": byte_level(*_ROBERTA),
    "BartTokenizer": byte_level(*_ROBERTA),
    "LEDTokenizer": byte_level(*_ROBERTA),
    "LongformerTokenizer": byte_level(*_ROBERTA),
    "Qwen2Tokenizer": byte_level(END),
    "BertTokenizer": bert(),
    "DistilBertTokenizer": bert(),
    "ElectraTokenizer": bert(),
    "ConvBertTokenizer": bert(),
    "MobileBertTokenizer": bert(),
    "MPNetTokenizer": bert("<s>", "<pad>", "</s>", "[UNK]", "<mask>"),
}
"""A folder's model by the class that reads it."""


def _token(content: str, **flags: bool) -> dict[str, Any]:
    names = ("lstrip", "normalized", "rstrip", "single_word", "special")
    return {"content": content, **{name: flags.get(name, False) for name in names}}


_MASK = {"__type": "AddedToken", **_token("<mask>", lstrip=True)}
AGREED: dict[str, dict[str, Any]] = {
    "LlamaTokenizer": {"legacy": False, "add_bos_token": True},
    "CodeLlamaTokenizer": {"add_bos_token": True},
    "GemmaTokenizer": {"add_bos_token": True},
    "RobertaTokenizer": {"mask_token": _MASK},
    "BartTokenizer": {"mask_token": _MASK},
    "LEDTokenizer": {"mask_token": _MASK},
    "LongformerTokenizer": {"mask_token": _MASK},
    "MPNetTokenizer": {"mask_token": _MASK},
}
"""Settings whose defaults differ in the versions of `transformers`."""

ROLES = [f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")]

VALUES: dict[str, list[Any]] = {
    **{role: ["<new>", "a", None] for role in ROLES},
    "additional_special_tokens": [["<own>", "<other>"], ["ab"]],
    "extra_special_tokens": [["<own>"], {"image_token": "<own>"}],
    **{flag: [True, False] for flag in ("add_bos_token", "add_eos_token", "legacy")},
    "add_prefix_space": [True, False, None],
    "trim_offsets": [True, False],
    "extra_ids": [0, 3],
    **{flag: [True, False] for flag in ("do_lower_case", "strip_accents")},
    **{flag: [True, False] for flag in ("tokenize_chinese_chars", "clean_up_tokenization_spaces")},
    "do_basic_tokenize": [True, False],
    "fill_token": ["<FILL_ME>"],
    **{f"{role}_token": ["<new>", None] for role in ("prefix", "middle", "suffix", "eot")},
}
"""Values of each setting of `tokenizer_config.json`."""


def _other_files(size: int) -> Iterator[tuple[str, Files]]:
    """Yield names and files of added tokens.

    Args:
        size: The number of ids of the model.
    """
    by_id = {str(size): _token("<new>", lstrip=True, special=True), str(size + 1): _token("ZZ")}
    yield "decoder", {"tokenizer_config.json": {"added_tokens_decoder": by_id}}
    yield (
        "decoder with a map",
        {
            "tokenizer_config.json": {"added_tokens_decoder": by_id},
            "special_tokens_map.json": {"eos_token": "<other>"},
            "added_tokens.json": {"<other>": size + 2},
        },
    )
    yield "added", {"added_tokens.json": {"zz": size, "<own>": size + 1}}
    yield (
        "added and listed",
        {
            "added_tokens.json": {"zz": size, "<own>": size + 1},
            "special_tokens_map.json": {"additional_special_tokens": ["<own>"]},
        },
    )
    yield (
        "map over config",
        {
            "tokenizer_config.json": {"eos_token": "<other>", "cls_token": "<other>"},
            "special_tokens_map.json": {"eos_token": "<new>", "cls_token": "<new>"},
        },
    )
    new = _token("<new>", lstrip=True, rstrip=True)
    del new["special"]
    yield "map of objects", {"special_tokens_map.json": {"eos_token": new}}
    yield (
        "both lists",
        {
            "tokenizer_config.json": {"additional_special_tokens": ["<own>"]},
            "special_tokens_map.json": {"additional_special_tokens": [new, "<other>"]},
        },
    )


CLEAN_UP = "clean_up_tokenization_spaces"
NO_EFFECT: dict[str, Any] = {
    "errors": "ignore",
    "do_basic_tokenize": False,
    "never_split": ["ab"],
    "sp_model_kwargs": {"enable_sampling": True, "nbest_size": -1, "alpha": 0.1},
    "suffix_first": True,
    "use_default_system_prompt": True,
    "spaces_between_special_tokens": True,
    "padding_side": "left",
    "truncation_side": "left",
    "model_max_length": 3,
    "model_input_names": ["input_ids"],
    "chat_template": "x",
    "name_or_path": "x",
    "processor_class": "x",
    "init_inputs": [],
    "strip_accents": None,
    "an_unknown_setting": 5,
}
"""Settings that change no ids, for any class."""


def settings_of(kind: Any) -> list[str]:
    """Return the settings that a class of the table reads."""
    names = [*ROLES, *SPECIAL_LISTS, *kind.settings, *kind.fixed, CLEAN_UP]
    return list(dict.fromkeys(names))


def cells() -> Iterator[tuple[str, Files]]:
    """Yield a name and the files of a folder for each class and setting."""
    for name, kind in CLASSES.items():
        base = BASES[name]
        extra = 100 if "extra_ids" in kind.settings else 0
        variants: list[tuple[str, Files]] = [("alone", {})]
        for setting in settings_of(kind):
            for value in VALUES[setting]:
                changed = {"tokenizer_config.json": {setting: value}}
                variants.append((f"{setting} {json.dumps(value)}", changed))
        none = {key: value for key, value in NO_EFFECT.items() if key not in kind.fixed}
        variants.append(("settings without effect", {"tokenizer_config.json": none}))
        variants += _other_files(_size(base) + extra)
        for variant, files in variants:
            config = {"tokenizer_class": name} | files.get("tokenizer_config.json", {})
            if variant != "alone":
                config = {**AGREED.get(name, {}), **config}
            yield f"{name} {variant}", {**base, **files, "tokenizer_config.json": config}
        agreed = {"tokenizer_config.json": AGREED.get(name, {})}
        models: list[tuple[str, Files]] = [
            ("Fast", {"tokenizer_class": f"{name}Fast", "model_type": "gpt2"})
        ]
        for model_type in (name.removesuffix("Tokenizer").lower(), "mt5"):
            if model_type in kind.model_types.split():
                models.append((f" by {model_type}", {"model_type": model_type}))
        for variant, model in models:
            yield f"{name}{variant}", {**base, **agreed, "config.json": model}
    yield from _models()


def _models() -> Iterator[tuple[str, Files]]:
    """Yield names and folders with other models."""
    charsmap = _charsmap()
    for name, first, kind, unigram in (
        ("LlamaTokenizer", _LLAMA, BPE, False),
        ("GemmaTokenizer", _GEMMA, BPE, False),
        ("T5Tokenizer", _T5, UNIGRAM, True),
    ):
        config = {"tokenizer_class": name, **AGREED.get(name, {}), "unk_token": "<unk>"}
        model = sentencepiece(first, kind, not unigram, charsmap)
        yield f"{name} with a charsmap", {**model, "tokenizer_config.json": config}
        model = sentencepiece(first, UNIGRAM, not unigram)
        yield f"{name} of Unigram", {**model, "tokenizer_config.json": config}
    listed = [f"<extra_id_{number}>" for number in range(3)]
    config = {"additional_special_tokens": listed, "extra_ids": 3, "tokenizer_class": "T5Tokenizer"}
    yield "T5Tokenizer with listed extra ids", {
        **BASES["T5Tokenizer"], "tokenizer_config.json": config
    }  # fmt: skip
    for name in ("GPT2Tokenizer", "Qwen2Tokenizer", "RobertaTokenizer"):
        config = {"tokenizer_class": name, **AGREED.get(name, {})}
        yield f"{name} without special tokens", {**byte_level(), "tokenizer_config.json": config}
    lines = bert()["vocab.txt"] + "ab\n\nxyz\nab\n\n"
    config = {"tokenizer_class": "BertTokenizer"}
    yield "BertTokenizer of repeated lines", {"vocab.txt": lines, "tokenizer_config.json": config}


def _size(files: Files) -> int:
    if "vocab.json" in files:
        return len(files["vocab.json"])
    if "vocab.txt" in files:
        return str(files["vocab.txt"]).count("\n")
    return len(sentencepiece_file.read_pieces(files["spiece.model"], "")[0].pieces)


REFUSED = (
    r"T5Tokenizer (eos_token|map ).*",
    r"(Roberta|Bart|Longformer|LED|.*Bert|Electra|MPNet)Tokenizer (cls|sep)_token null",
    r"(.*Bert|Electra|MPNet)Tokenizer unk_token (null|.*new.*)",
    r"(?!Llama|CodeLlama|Gemma|GPT2).* add_(bos|eos)_token true",
    r"GPT2Tokenizer add_eos_token true",
    r"MPNetTokenizer do_basic_tokenize false",
    r"Qwen2Tokenizer add_prefix_space true",
    r"CodeLlamaTokenizer add_prefix_space false",
)
"""Cells that are refused here: the versions differ, or neither reads them."""

DIFFERENT = {
    "4": (
        r".* extra_special_tokens \[.*",  # only 5 reads a list
        r"(Code)?LlamaTokenizer bos_token null",  # 4.57 fails
        r"GemmaTokenizer (bos|eos|pad)_token .*",  # 4.57 gives the first pieces these names
        r"GemmaTokenizer map .*",
        r"(.*Llama|Gemma|GPT2|Qwen2|Roberta|Bart|LED|Longformer).* clean_up.* true",  # follows it
        r"(?!Code|Qwen2).* add_prefix_space null",  # 4.57 fails, or adds none
        r"(Roberta|Longformer)Tokenizer mask_token .a.",  # is looked for before others
    ),
    "5": (
        r"CodeLlamaTokenizer .*",  # 5 adds a space before the first text only
        r"CodeLlamaTokenizerFast",
        r"(Llama|Gemma|Roberta|Bart|Longformer|LED)Tokenizer alone",  # other defaults
        r"LlamaTokenizer legacy true",  # 5 ignores it where a text begins with a space
        r"T5Tokenizer (legacy false|add_prefix_space false|of Unigram)",  # 5 ignores them
        r".* both lists",  # 5 loses one of the lists
        r"(?!Qwen2).* added and listed",
        r"Qwen2Tokenizer map of objects",
        r"T5Tokenizer (additional|extra)_special_tokens \[.*",  # 5 does not skip the extra ids
        r"T5Tokenizer added",  # 5 normalizes without the rules for spaces
        r"(Roberta|Bart|Longformer|LED)Tokenizer mask_token .(a|<new>).",  # space kept
        r"(GPT2|Roberta|Bart|Longformer|LED)Tokenizer add_prefix_space null",  # 5 fails
    ),
}
"""Cells that a version of `transformers` reads differently, or not at all."""
