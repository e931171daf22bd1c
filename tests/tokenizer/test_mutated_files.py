"""Tokenizer files changed at random: each is refused by its place, or works; neither takes long.

Time is counted in the process's own seconds, so a busy machine changes nothing.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.component_json import MAX_COMPONENTS, MAX_DEPTH
from bpe_beam.tokenizer.deadline import VARIABLE

LOAD_SECONDS = 2.0
TEXT_SECONDS = 0.5

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

PATTERNS = [
    "(a+)+$", "(a|aa)+$", r"(\w+\s?)*$", "(x+x+)+y", "((a*)*)*$", ".*.*.*.*=x", "(?:a*)*", "",
    "[^]", "a{1000000}", "((((a{10}){10}){10}){10}){10}", "(?<=a{1,100})b", "|" * 300,
    "(" * 300 + ")" * 300,
    r"\1", r"(?P<a>.)(?P=a)*", r"\p{L}+", "(?>a+)b|(a|b|ab)*c",
]  # fmt: skip
TYPES = [
    "NFC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Replace", "ByteLevel",
    "BertNormalizer", "Sequence", "BertPreTokenizer", "Whitespace", "CharDelimiterSplit",
    "Metaspace", "Digits", "Punctuation", "Split", "BPE", "WordPiece", "WordLevel",
    "BertProcessing", "RobertaProcessing", "TemplateProcessing", "BPEDecoder", "ByteFallback",
    "Fuse", "Unigram", "CTC",
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


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, one in inner:
        yield from places(one, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def some_value(rng: random.Random) -> Any:
    deep: Any = None
    for _ in range(rng.choice([5, 60, 150, 400])):
        deep = [deep]
    plain = [
        None,
        True,
        False,
        0,
        -1,
        2**31,
        2**64,
        10**400,
        1.5,
        "",
        "a",
        "\u0301",
        "\ud800",
        [],
        {},
    ]
    made = [
        "a" * 10**5, [None], {"": 0}, ["a", 1], [["a", "b"]], {"String": "a"}, deep,
        {"Regex": rng.choice(PATTERNS)}, {"type": rng.choice(TYPES)},
    ]  # fmt: skip
    return rng.choice([*plain, *made])


# ---- mutations: each changes a file in place ----

Mutation = Callable[[dict[str, Any], random.Random], None]


def put_another_value(tree: dict[str, Any], rng: random.Random) -> None:
    *path, key = rng.choice([*places(tree)][1:])
    at(tree, tuple(path))[key] = some_value(rng)


def copy_a_value(tree: dict[str, Any], rng: random.Random) -> None:
    every = [*places(tree)][1:]
    *path, key = rng.choice(every)
    at(tree, tuple(path))[key] = copy.deepcopy(at(tree, rng.choice(every)))


def leave_out(tree: dict[str, Any], rng: random.Random) -> None:
    *path, key = rng.choice([*places(tree)][1:])
    del at(tree, tuple(path))[key]


def rename(tree: dict[str, Any], rng: random.Random) -> None:
    *path, key = rng.choice(
        [place for place in places(tree) if place and isinstance(place[-1], str)]
    )
    parent = at(tree, tuple(path))
    parent[rng.choice(["type", "extra", "vocab", "", key.upper()])] = parent.pop(key)


def repeat_items(tree: dict[str, Any], rng: random.Random) -> None:
    items = at(tree, rng.choice([p for p in places(tree) if isinstance(at(tree, p), list)]))
    items += copy.deepcopy(items) * rng.choice([1, 10, 1000])


def nest(tree: dict[str, Any], rng: random.Random) -> None:
    name, (key, items) = rng.choice([*SEQUENCES.items()])
    part = copy.deepcopy(items[0])
    for _ in range(rng.choice([5, 32, 33, 60, 100, 240])):
        part = {"type": "Sequence", key: [part]}
    tree[name] = part


def chain(tree: dict[str, Any], rng: random.Random) -> None:
    name, (key, items) = rng.choice([*SEQUENCES.items()])
    number = rng.choice([2, 10, 100, 101, 20_000])
    tree[name] = {"type": "Sequence", key: rng.choices(items, k=number)}


def put_a_pattern(tree: dict[str, Any], rng: random.Random) -> None:
    pattern = rng.choice(PATTERNS)
    if rng.random() < 0.5:
        tree["pre_tokenizer"] = split(pattern, rng.choice(["Removed", "Isolated", "Contiguous"]))
    else:
        tree["normalizer"] = replace("Regex", pattern, rng.choice(["", "a", "a" * 1000]))


def add_tokens(tree: dict[str, Any], rng: random.Random) -> None:
    shape = rng.choice(
        [lambda i: f"t{i}", lambda i: "a" * (1 + i % 4000) + str(i), lambda i: " " * i]
    )
    number = rng.choice([100, 2000])
    flags = {name: rng.random() < 0.4 for name in ("single_word", "lstrip", "rstrip", "normalized")}
    tree["added_tokens"] = [added(1000 + i, shape(i)[:4096], **flags) for i in range(number)]


def learn_a_long_run(tree: dict[str, Any], rng: random.Random) -> None:
    longest = rng.choice([50, 3000])
    model = tree["model"]
    model["vocab"].update({"a" * size: 1000 + size for size in range(2, longest)})
    if "merges" in model:
        model["merges"] = [["a" * (size - 1), "a"] for size in range(2, longest)]


def put_another_string(tree: dict[str, Any], rng: random.Random) -> None:
    *path, key = rng.choice([p for p in places(tree) if isinstance(at(tree, p), str)])
    some = [*TYPES, *PATTERNS, "a" * 10**6, "\u0300" * 10**5, "$A", "[UNK]"]
    at(tree, tuple(path))[key] = rng.choice(some)


def change_the_model(tree: dict[str, Any], rng: random.Random) -> None:
    names = ["unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback",
             "max_input_chars_per_word", "fuse_unk", "ignore_merges", "dropout"]  # fmt: skip
    some = ["a", "", None, "a" * 10**5, 10**9, True, "[UNK]", "##"]
    tree["model"][rng.choice(names)] = rng.choice(some)


MUTATIONS: list[Mutation] = [
    put_another_value, put_another_value, put_another_value, copy_a_value, leave_out, leave_out,
    rename, repeat_items, nest, chain, put_a_pattern, add_tokens, learn_a_long_run,
    put_another_string, change_the_model,
]  # fmt: skip


def mutated(seed: int) -> str | bytes:
    rng = random.Random(seed)
    tree = copy.deepcopy(rng.choice(FILES))
    text = json.dumps(tree)
    for _ in range(rng.choice([1, 1, 2, 3])):
        tree = json.loads(text)
        try:
            rng.choice(MUTATIONS)(tree, rng)
            text = json.dumps(tree)
        except (KeyError, TypeError, IndexError, AttributeError, RecursionError):
            continue  # it does not go with what an earlier one left
    kind = rng.random()
    if kind < 0.05:
        return text[: rng.randrange(len(text))]
    if kind < 0.1:
        data = bytearray(text.encode())
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    return text.replace('"type":', '"type": "NFC", "type":', 1) if kind < 0.12 else text


TEXTS = [
    "", "ab [UNK] xyz_b 12", "a" * 3000 + "!", " " * 2000 + "x", "e\u0301" * 500, "xyz[UNK]" * 300,
    "The quick brown fox " * 1000 + "\u0301",
]  # fmt: skip


def use(tokenizer: Tokenizer) -> None:
    """All that can be done with a tokenizer; what a text cannot have is a DataError."""
    for text in TEXTS:
        try:
            ids = tokenizer.encode(text, allowed_special="all", add_special_tokens=True)
            tokenizer.encode_with_offsets(text)
            tokenizer.decode(ids)
        except DataError:
            continue
    try:
        again = tokenizer.to_json()
    except UsageError:
        return
    assert Tokenizer.from_json(again).to_json() == again


def check(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(TEXT_SECONDS))
    refused = 0
    for seed in seeds:
        data = mutated(seed)
        begin = time.process_time()
        tokenizer = None
        try:
            tokenizer = Tokenizer.from_json(data)
        except UsageError as error:
            refused += 1
            assert str(error).startswith("tokenizer.json: ") and len(str(error)) < 2000, seed
        assert time.process_time() - begin < LOAD_SECONDS, seed
        if tokenizer is None:
            continue
        begin = time.process_time()
        try:
            use(tokenizer)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        # Each text may take its time twice, and a second for each 20,000 of its bytes.
        assert time.process_time() - begin < len(TEXTS) * 6 * TEXT_SECONDS, seed
    assert 0.2 < refused / len(seeds) < 0.9


def test_some_files(monkeypatch: pytest.MonkeyPatch) -> None:
    check(range(120), monkeypatch)


@pytest.mark.slow
def test_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    check(range(120, 3000), monkeypatch)


# ---- what such trials have found ----


def test_a_split_without_behavior() -> None:
    part = split("a")
    del part["behavior"]
    with pytest.raises(UsageError, match=r"pre_tokenizer\.behavior: missing"):
        Tokenizer.from_json(json.dumps(file(BPE, pre_tokenizer=part)))


@pytest.mark.parametrize("name", SEQUENCES)
def test_parts_nested_too_deeply(name: str) -> None:
    key, items = SEQUENCES[name]
    part = items[0]
    for depth in range(1, MAX_DEPTH + 2):
        part = {"type": "Sequence", key: [part]}
        data = json.dumps(file(BPE, **{name: part}))
        if depth <= MAX_DEPTH:
            Tokenizer.from_json(data).encode("ab")
    place = rf"{name}\.{key}\[0\].*\[0\]: components must be nested at most 32 deep"
    with pytest.raises(UsageError, match=place):
        Tokenizer.from_json(data)


@pytest.mark.parametrize("name", SEQUENCES)
def test_too_many_parts(name: str) -> None:
    key, items = SEQUENCES[name]
    for number in (MAX_COMPONENTS - 1, MAX_COMPONENTS):
        part = {"type": "Sequence", key: items[:1] * number}
        data = json.dumps(file(BPE, **{name: part}))
        if number < MAX_COMPONENTS:
            Tokenizer.from_json(data)
    with pytest.raises(UsageError, match=f"{name}: must have at most 100 components in total"):
        Tokenizer.from_json(data)


def test_many_added_tokens_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [added(100 + i, "a" * (1 + i) + str(i), special=True) for i in range(2000)]
    begin = time.process_time()
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, added_tokens=tokens)))
    with pytest.raises(DataError, match='the text has the special token "aaa2" at character 2'):
        tokenizer.encode("b aaa2", disallowed_special="error")
    assert time.process_time() - begin < LOAD_SECONDS


def test_added_tokens_that_take_too_much_memory() -> None:
    tokens = [added(100 + i, f"{i:04000}") for i in range(2100)]
    with pytest.raises(UsageError, match="added_tokens must have at most 8,388,608 characters"):
        Tokenizer.from_json(json.dumps(file(BPE, added_tokens=tokens)))


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": split("(a|aa)+$")},
        {"normalizer": replace("Regex", "(a|aa)+$", "b")},
        {
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [split("a"), split("(x|b*)*y")] * 49,
            }
        },
    ],
    ids=["pattern", "normalizer", "many searches"],
)
def test_one_deadline_for_a_text(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, **parts)))
    assert tokenizer.encode("ab")
    with pytest.raises(DataError, match=f"takes over .* seconds.*{VARIABLE}"):
        tokenizer.encode("a" * 3000 + "!")


def test_a_decoder_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0.01")
    decoder = {"type": "Sequence", "decoders": [replace("Regex", "(a|b)*", "ab")] * 60}
    tokenizer = Tokenizer.from_json(json.dumps(file(BPE, decoder=decoder)))
    with pytest.raises(DataError, match=VARIABLE):
        tokenizer.decode([0, 1, 2] * 5_000)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_a_deadline_that_is_none(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, seconds)
    tokenizer = Tokenizer.from_json(json.dumps(FILES[1]))
    with pytest.raises(UsageError, match=f"{VARIABLE} must be a number of seconds above 0, got"):
        tokenizer.encode("ab")
