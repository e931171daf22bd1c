"""Small tokenizer.json files as dictionaries, and the components that they are made of."""

from __future__ import annotations

from typing import Any

BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}


STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}


METASPACE = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}


LETTERS = {
    "a": 0,
    "b": 1,
    "ab": 2,
    "[UNK]": 3,
    "##b": 4,
    "b</w>": 5,
    "_": 6,
    "[CLS]": 7,
    "[SEP]": 8,
}


def replace(kind: str, pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def split(pattern: str, behavior: str = "Isolated") -> dict[str, Any]:
    return {
        "type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": False
    }  # fmt: skip


def added(number: int, content: str, **flags: bool) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": number, "content": content, **{name: flags.get(name, False) for name in names}}


def template() -> dict[str, Any]:
    text, cls = (
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[C]", "type_id": 0}},
    )
    named = {"[C]": {"id": "[C]", "ids": [7], "tokens": ["[CLS]"]}}
    return {
        "type": "TemplateProcessing", "single": [cls, text], "pair": [text], "special_tokens": named
    }  # fmt: skip


def file(model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(3, "[UNK]", special=True), added(20, "xyz", lstrip=True)],
        "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
        **parts, "model": model,
    }  # fmt: skip


BPE = {
    "type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None,
    "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
    "vocab": LETTERS, "merges": [["a", "b"]],
}  # fmt: skip


WORDPIECE = {
    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100, "vocab": LETTERS,
}  # fmt: skip


FILES = [
    file({**BPE, "unk_token": None, "merges": ["a b"]}, pre_tokenizer=BYTE_LEVEL,
         decoder=BYTE_LEVEL, post_processor=BYTE_LEVEL),
    file(BPE, normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, STRIP]},
         pre_tokenizer=METASPACE, decoder=METASPACE),
    file({**BPE, "ignore_merges": True, "fuse_unk": True}, normalizer=replace("Regex", r"\s+", "_"),
         pre_tokenizer=split(r"\w+|\W"), decoder={"type": "BPEDecoder", "suffix": "</w>"},
         post_processor=template()),
    file({**BPE, "end_of_word_suffix": "</w>", "merges": []}, pre_tokenizer={
        "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                              {"type": "Punctuation", "behavior": "Isolated"}]},
         decoder={"type": "Sequence", "decoders": [replace("String", "_", " "), {"type": "Fuse"}]}),
    file(WORDPIECE, pre_tokenizer={"type": "BertPreTokenizer"}, normalizer={
        "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
        "strip_accents": None, "lowercase": True}, post_processor={
        "type": "BertProcessing", "sep": ["[SEP]", 8], "cls": ["[CLS]", 7]},
         decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}),
    file({"type": "WordLevel", "vocab": LETTERS, "unk_token": "[UNK]"},
         pre_tokenizer={"type": "WhitespaceSplit"}, decoder={"type": "Strip", "content": "a",
         "start": 1, "stop": 1}),
]  # fmt: skip


SEQUENCES: dict[str, tuple[str, list[Any]]] = {
    "normalizer": ("normalizers", [
        replace("String", "a", "aa"), {"type": "NFKD"}, {"type": "Prepend", "prepend": "a" * 50},
        replace("Regex", "(a|b)+", "ab"), STRIP, replace("String", "", "x"), {"type": "ByteLevel"},
    ]),
    "pre_tokenizer": ("pretokenizers", [
        {"type": "Whitespace"}, split(r"\w"), BYTE_LEVEL, METASPACE, split("(a|b)*", "Removed"),
    ]),
    "decoder": ("decoders", [
        replace("String", "a", "aa"), {"type": "Fuse"}, replace("Regex", "(a|b)*", "ab"),
        BYTE_LEVEL,
        {"type": "Strip", "content": "a", "start": 2**31 - 1, "stop": 2**31 - 1},
        {"type": "WordPiece", "prefix": "", "cleanup": True}, {"type": "BPEDecoder", "suffix": ""},
    ]),
    "post_processor": ("processors", [BYTE_LEVEL]),
}  # fmt: skip
