"""Tokenizer files put together at random: ids with holes, odd added tokens, any parts and roles."""

from __future__ import annotations

import json
import random
from typing import Any

from tokenizer_files import BPE as ONE_MERGE
from tokenizer_files import BYTE_LEVEL as PREFIXED
from tokenizer_files import WORDPIECE, added

from bpe_beam.tokenizer.components.byte_level import CHAR_TO_BYTE

CONTENTS = [
    *("<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "[X]", "[x]", "<unk>", "<0x41>", "xyz", "XYZ"),
    *("x y", "ab", "a", "é", "É", "Ġa", " ab", "▁", "<s><s>", "foo ", "İ", "語", "q"),
]  # fmt: skip
ROLES = ("bos_token", "eos_token", "pad_token", "sep_token", "cls_token", "mask_token", "unk_token")
PIECES = [*CONTENTS, *"abcAB é語_", "abc", "  ", "\n", "xyz", "12", "Ab", "ca", "don't", "<", "s>"]
LETTERS = [*"abcdeABxyz12 _.'<>[]sé", "▁", "Ġ"]
MERGES = [("a", "b"), ("ab", "c"), ("c", "a"), ("x", "y"), ("xy", "z"), ("▁", "a"), ("Ġ", "a")]
BPE = {**ONE_MERGE, "unk_token": None}
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

NORMALIZERS: list[Any] = [
    None,
    {"type": "Lowercase"},
    {"type": "NFC"},
    {"type": "NFKD"},
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
    {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    },
]
BYTE_LEVEL = {**PREFIXED, "add_prefix_space": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
PRE_TOKENIZERS: list[Any] = [
    None,
    {"type": "Whitespace"},
    {"type": "WhitespaceSplit"},
    {"type": "BertPreTokenizer"},
    METASPACE,
    {**METASPACE, "prepend_scheme": "first"},
    {**METASPACE, "prepend_scheme": "never", "split": False},
    {"type": "Digits", "individual_digits": True},
    {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, METASPACE]},
]
OF_BYTES: list[Any] = [
    BYTE_LEVEL,
    {**BYTE_LEVEL, "add_prefix_space": True},
    {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {**BYTE_LEVEL, "add_prefix_space": False},
        ],
    },
    {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Whitespace"},
            {**BYTE_LEVEL, "add_prefix_space": True, "use_regex": False},
        ],
    },
]
DECODERS: list[Any] = [
    None,
    BYTE_LEVEL,
    METASPACE,
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "ByteFallback"},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
]
TRUNCATION = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
PADDING = {
    "strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
    "pad_type_id": 0,
}  # fmt: skip


class RandomFile:
    """A `tokenizer.json` of any model and any parts, roles of its special tokens, and texts.

    Attributes:
        json: The text of the file.
        roles: Special tokens by role.
        texts: Texts with its tokens in them.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        kind = rng.choice(["bytes", "bytes", "characters", "wordpiece", "words", "unigram"])
        tokens = _tokens(rng, kind)
        ids = {token: number for number, token in enumerate(tokens)}
        ids = ids if kind == "unigram" else _numbered(rng, tokens)
        names = rng.sample(CONTENTS, rng.randint(0, 7))
        rows = _added(rng, ids, names)
        every = {**ids, **{row["content"]: row["id"] for row in rows}}
        padding = {**PADDING, "pad_token": rng.choice([*names, "[PAD]"])}
        self.json = json.dumps(
            {
                "version": "1.0",
                "truncation": rng.choice([None, None, TRUNCATION]),
                "padding": rng.choice([None, None, padding]),
                "added_tokens": rows,
                "normalizer": rng.choice([None, rng.choice(NORMALIZERS)]),
                "pre_tokenizer": rng.choice(OF_BYTES if kind == "bytes" else PRE_TOKENIZERS),
                "post_processor": _post_processor(rng, every),
                "decoder": rng.choice(DECODERS),
                "model": _model(rng, kind, ids),
            },
            ensure_ascii=False,
        )
        special = [row["content"] for row in rows if row["special"]]
        chosen = rng.sample(ROLES, rng.randint(0, len(ROLES))) if special else []
        self.roles = {role: rng.choice(special) for role in sorted(chosen)}
        self.texts = _texts(rng, 25)


class BytesFile:
    """A byte-level `tokenizer.json` that a `.tiktoken` file can often represent, and texts."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        tokens, merges = _merged(rng, [*CHAR_TO_BYTE], [*"abcxyzĠÃ©"])
        if rng.random() < 0.1:
            tokens.remove(rng.choice(tokens))
        ids, rows = _with_special(rng, tokens, 0.9)
        pre_tokenizer = rng.choice([*[BYTE_LEVEL] * 9, *OF_BYTES])
        model = {**BPE, "ignore_merges": rng.random() < 0.4, "vocab": ids}
        model["merges"] = [pair for pair in merges if {*pair, "".join(pair)} <= ids.keys()]
        normalizer = rng.choice([*[None] * 15, *NORMALIZERS])
        self.json = _file(rows, normalizer, pre_tokenizer, model)
        self.texts = _texts(rng, 25)


class SpacesFile:
    """A `tokenizer.json` whose spaces are U+2581, which a `.model` can often represent."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        fallback = rng.random() < 0.8
        symbols = ["<unk>", *(BYTES if fallback else []), *"abcxyz▁é語<s>_ "]
        tokens, merges = _merged(rng, symbols, [*"abcxyz▁"])
        ids, rows = _with_special(rng, tokens, 0.97)
        whole, never = {**METASPACE, "split": False}, {**METASPACE, "prepend_scheme": "never"}
        pre_tokenizer = rng.choice([whole, whole, whole, METASPACE, never, None])
        normalizer = rng.choice(
            [*NORMALIZERS[-1:] * 3, *[NORMALIZERS[4]] * 3, None, NORMALIZERS[5]]
        )
        model = {**BPE, "unk_token": "<unk>", "byte_fallback": fallback, "vocab": ids}
        model |= {"merges": merges, "fuse_unk": rng.random() < 0.7}
        self.json = _file(rows, normalizer, pre_tokenizer, model)
        self.texts = _texts(rng, 25)


def _texts(rng: random.Random, number: int) -> list[str]:
    return ["", *("".join(rng.choices(PIECES, k=rng.randint(1, 8))) for _ in range(number))]


def _file(rows: Any, normalizer: Any, pre_tokenizer: Any, model: Any) -> str:
    parts = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "model": model}
    return json.dumps({"version": "1.0", "added_tokens": rows, **parts}, ensure_ascii=False)


def _merged(
    rng: random.Random, symbols: list[str], pool: list[str]
) -> tuple[list[str], list[list[str]]]:
    """Return tokens and merges, as learned: each merge of tokens before it, seldom mixed."""
    tokens, merges = list(dict.fromkeys(symbols)), []
    for _ in range(rng.randint(0, 12)):
        pair = rng.choices(pool, k=2)
        if "".join(pair) not in tokens:
            tokens.append("".join(pair))
            pool.append("".join(pair))
            merges.append(pair)
        elif rng.random() < 0.2:
            merges.append(pair)
    if rng.random() < 0.1:
        rng.shuffle(merges)
    return tokens, merges


def _with_special(
    rng: random.Random, tokens: list[str], usual: float
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Return the ids of tokens, and added tokens; with a probability these are plain specials."""
    names = rng.sample([*CONTENTS[:10], "q", "a", rng.choice(tokens)], rng.randint(0, 4))
    names = list(dict.fromkeys(names))
    new = [name for name in names if name not in tokens]
    where = rng.choice(["first", "last", "outside"])
    tokens = [*new, *tokens] if where == "first" else tokens
    tokens = [*tokens, *new] if where == "last" else tokens
    ids = {token: number for number, token in enumerate(tokens)}
    ids = ids if rng.random() < usual else _numbered(rng, tokens)
    rows = _added(rng, ids, names)
    if rng.random() < usual:
        rows = [added(row["id"], row["content"], special=True) for row in rows]
    return ids, rows


def _tokens(rng: random.Random, kind: str) -> list[str]:
    more = rng.sample(CONTENTS, rng.randint(0, 5))
    if kind == "bytes":
        tokens = [*CHAR_TO_BYTE, *(left + right for left, right in MERGES if "▁" not in left)]
    elif kind == "wordpiece":
        tokens = [*LETTERS, *(f"##{letter}" for letter in LETTERS), "ab", "##bc", "[UNK]"]
    else:
        tokens = [*LETTERS, *(left + right for left, right in MERGES), "[UNK]"]
        tokens += BYTES if kind in ("characters", "unigram") else ["abc", "xyz abc", "XYZ"]
    at = rng.choice([0, len(tokens)])
    return list(dict.fromkeys([*tokens[:at], *more, *tokens[at:]]))


def _numbered(rng: random.Random, tokens: list[str]) -> dict[str, int]:
    """Return the ids of tokens: in order, mixed, from another first id, or with holes."""
    way = rng.choice(["in order", "in order", "in order", "mixed", "later", "holes"])
    numbers = list(range(len(tokens)))
    if way == "later":
        numbers = [number + 5 for number in numbers]
    if way == "holes":
        numbers = sorted(rng.sample(range(len(tokens) + 6), len(tokens)))
    if way == "mixed":
        rng.shuffle(numbers)
    ids = dict(zip(tokens, numbers, strict=True))
    return dict(sorted(ids.items(), key=lambda entry: entry[1]))


def _added(rng: random.Random, ids: dict[str, int], names: list[str]) -> list[dict[str, Any]]:
    """Return added tokens: those of the vocabulary with its ids, others with new ones."""
    new = [name for name in names if name not in ids]
    first = max(ids.values()) + 1
    taken = set(ids.values())
    holes = [number for number in range(first) if number not in taken]
    numbers = list(range(first, first + len(new)))
    way = rng.choice(["next", "next", "mixed", "gaps", "holes"])
    if way == "mixed":
        rng.shuffle(numbers)
    if way == "gaps":
        numbers = sorted(rng.sample(range(first, first + len(new) + 4), len(new)))
    if way == "holes":
        numbers = [*holes, *numbers][: len(new)]
    own = dict(zip(new, numbers, strict=True))
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    rows = [
        added(
            ids.get(name, own.get(name, 0)),
            name,
            special=rng.random() < 0.6,
            **{flag: rng.random() < 0.2 for flag in flags},
        )
        for name in names
    ]
    rng.shuffle(rows)
    return rows


def _post_processor(rng: random.Random, ids: dict[str, int]) -> Any:
    name, other = rng.choices([*ids][-8:], k=2)
    kind = rng.choice(["none", "none", "template", "bert", "roberta", "bytes"])
    frame = {"sep": [name, ids[name]], "cls": [other, ids[other]]}
    if kind == "bert":
        return {"type": "BertProcessing", **frame}
    if kind == "roberta":
        return {
            "type": "RobertaProcessing",
            **frame,
            "trim_offsets": True,
            "add_prefix_space": False,
        }
    if kind == "template":
        row, *texts = (
            {"SpecialToken": {"id": name, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
        )
        named = {name: {"id": name, "ids": [ids[name]], "tokens": [name]}}
        return {
            "type": "TemplateProcessing", "single": [row, texts[0]], "pair": [row, *texts],
            "special_tokens": named,
        }  # fmt: skip
    return BYTE_LEVEL if kind == "bytes" else None


def _model(rng: random.Random, kind: str, ids: dict[str, int]) -> dict[str, Any]:
    if kind in ("bytes", "characters"):
        return {
            **BPE, "unk_token": "[UNK]" if "[UNK]" in ids else None, "vocab": ids,
            "byte_fallback": kind == "characters" and rng.random() < 0.5,
            "fuse_unk": rng.random() < 0.5, "ignore_merges": rng.random() < 0.3,
            "merges": [list(pair) for pair in MERGES if {*pair, "".join(pair)} <= ids.keys()],
        }  # fmt: skip
    if kind == "wordpiece":
        return {**WORDPIECE, "vocab": ids}
    if kind == "words":
        return {"type": "WordLevel", "vocab": ids, "unk_token": "[UNK]"}
    rows = [[token, -1.0 - number % 7 - len(token) / 8] for number, token in enumerate(ids)]
    fallback = rng.random() < 0.5
    return {"type": "Unigram", "unk_id": ids["[UNK]"], "vocab": rows, "byte_fallback": fallback}
