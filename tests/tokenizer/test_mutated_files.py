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
from tokenizer_files import FILES, SEQUENCES, added, replace, split

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.tokenizer.deadline import VARIABLE

LOAD_SECONDS = 2.0
TEXT_SECONDS = 0.5


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
    "Fuse", "Unigram", "CTC", "UnicodeScripts", "FixedLength",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner: Any = value.items() if isinstance(value, dict) else ()
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
    plain = [  # type: ignore[var-annotated]
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
            assert str(error).startswith("tokenizer.json: "), seed
            assert len(str(error)) < 2000, seed
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


@pytest.mark.scheduled
def test_more_files(monkeypatch: pytest.MonkeyPatch) -> None:
    check(range(120, 500), monkeypatch)


@pytest.mark.scheduled
def test_thousands_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    check(range(500, 3000), monkeypatch)


# ---- what such trials have found ----
