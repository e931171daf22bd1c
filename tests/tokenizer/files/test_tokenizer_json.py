"""tokenizer.json: what is written, what is read, and what is refused, by its place."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.quick

GOLDEN = """\
{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {
      "id": 0,
      "content": "<|end of \\"text\\"|>",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    }
  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "post_processor": null,
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {
      "<|end of \\"text\\"|>": 0,
      "\\"": 1,
      "a": 2,
      "Ġ": 3,
      "Ġa": 4
    },
    "merges": [
      [
        "Ġ",
        "a"
      ]
    ]
  }
}"""


def golden() -> dict[str, Any]:
    return copy.deepcopy(json.loads(GOLDEN))


def test_written_bytes() -> None:
    tokenizer = Tokenizer.from_learned(
        ['<|end of "text"|>', '"', "a", "Ġ", "Ġa"], [("Ġ", "a")], ['<|end of "text"|>']
    )
    assert tokenizer.to_json() == GOLDEN


def test_without_merges_and_tokens() -> None:
    tokenizer = Tokenizer.from_learned([], [])
    assert '"vocab": {},\n    "merges": []\n  }\n}' in tokenizer.to_json()
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()


def test_read_and_written_again() -> None:
    for data in (GOLDEN, GOLDEN.encode()):
        tokenizer = Tokenizer.from_json(data)
        assert tokenizer.to_json() == GOLDEN
        assert tokenizer.special_tokens == {'<|end of "text"|>': 0}
        assert tokenizer.merges == [("Ġ", "a")]


def change(path: str, value: Any) -> dict[str, Any]:
    """The golden file with one value changed; `...` takes the key out."""
    file = golden()
    *parents, last = path.split(".")
    place: Any = file
    for name in parents:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if value is ...:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return file


TRUNCATION = {"direction": "Left", "max_length": 5, "strategy": "OnlyFirst", "stride": 2}
PADDING = {
    "strategy": {"Fixed": 7},
    "direction": "Left",
    "pad_to_multiple_of": 8,
    "pad_id": 3,
    "pad_type_id": 1,
    "pad_token": "<pad>",
}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("truncation", ...),
        ("truncation", TRUNCATION),
        ("truncation", {"max_length": 1, "strategy": "LongestFirst", "stride": 0}),
        ("padding", PADDING),
        ("padding", {**PADDING, "strategy": "BatchLongest", "pad_to_multiple_of": None}),
        ("padding", ...),
        ("normalizer", ...),
        ("normalizer", {"type": "NFC"}),
        ("post_processor", ...),
        ("post_processor", BYTE_LEVEL),
        ("decoder", BYTE_LEVEL),
        ("decoder", None),
        ("pre_tokenizer.use_regex", ...),
        ("pre_tokenizer.trim_offsets", False),
        ("model.type", ...),
        ("model.dropout", 0.0),
        ("model.dropout", ...),
        ("model.unk_token", ...),
        ("model.continuing_subword_prefix", ""),
        ("model.end_of_word_suffix", ""),
        ("model.fuse_unk", ...),
        ("model.byte_fallback", ...),
        ("model.ignore_merges", ...),
        ("model.merges", ["Ġ a"]),
    ],
)
def test_accepted(path: str, value: Any) -> None:
    """Also as older versions wrote it; writing settles on one form, and reads back the same."""
    tokenizer = Tokenizer.from_json(json.dumps(change(path, value)))
    assert tokenizer.encode(" aa") == [4, 2]
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()


def test_truncation_and_padding_are_kept() -> None:
    file = golden() | {"truncation": TRUNCATION, "padding": PADDING}
    tokenizer = Tokenizer.from_json(json.dumps(file))
    assert json.loads(tokenizer.to_json()) == file
    assert list(json.loads(tokenizer.to_json())["padding"]) == list(PADDING)
    assert "truncation and padding are not applied" in str(tokenizer.spec.warning)
    assert Tokenizer.from_json(GOLDEN).spec.warning is None


UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["aa", -2]]}


def test_unigram() -> None:
    file = golden() | {"model": UNIGRAM, "pre_tokenizer": None, "decoder": None}
    file["added_tokens"] = []
    tokenizer = Tokenizer.from_json(json.dumps(file))
    assert tokenizer.encode("aaaé") == [1, 2, 0]
    assert tokenizer.vocab == {"<unk>": 0, "a": 1, "aa": 2}
    written = json.loads(tokenizer.to_json())["model"]
    assert written == {**UNIGRAM, "byte_fallback": False}
    assert list(written) == ["type", "unk_id", "vocab", "byte_fallback"]
    del file["model"]["type"]
    assert Tokenizer.from_json(json.dumps(file)) == tokenizer


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("vocab", [], "model.vocab must have a piece"),
        ("vocab", [["a"]], r"model.vocab\[0\]: must be `array` of length 2"),
        ("vocab", [["a", "b"]], r"model.vocab\[0\]\[1\]: must be `float`"),
        ("vocab", [["a", 1e400]], r"not JSON|model.vocab\[0\]: the score of \"a\" is inf"),
        ("vocab", [["a" * 4097, 1]] * 2048, "at most 8,388,608 characters in total, got 8,390,656"),
        ("unk_id", 3, "model.unk_id must be the id of a piece, below 3, got 3"),
        ("unk_id", -1, "model.unk_id: must be `int` >= 0"),
        ("byte_fallback", 1, "model.byte_fallback: must be `bool`"),
        ("merges", [], 'model: unknown key "merges"'),
    ],
)
def test_unigram_that_is_refused(key: str, value: Any, message: str) -> None:
    file = golden() | {"model": {**UNIGRAM, key: value}}
    text = json.dumps(file).replace("Infinity", "1e400")
    with pytest.raises(UsageError, match=message):
        Tokenizer.from_json(text)


def test_accepted_settings_are_kept() -> None:
    file = change("post_processor", BYTE_LEVEL)
    written = json.loads(Tokenizer.from_json(json.dumps(file)).to_json())
    assert written["post_processor"] == {**BYTE_LEVEL, "use_regex": True}


def nested(kind: str, key: str, depth: int) -> str:
    """A sequence in a sequence in a sequence ..., as a file with it for its normalizer."""
    opening = f'{{"type": "{kind}", "{key}": ['
    return GOLDEN.replace('"normalizer": null', f'"normalizer": {opening * depth}{"]}" * depth}')


ADDED = golden()["added_tokens"][0]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", "2.0", 'version: "2.0" is not supported .* must be "1.0"'),
        ("version", ..., "version: missing"),
        ("extra", 1, 'unknown key "extra"; the keys here are version, model, trunc'),
        ("truncation", {"max_length": 5}, "truncation.strategy: missing"),
        ("truncation", {**TRUNCATION, "stride": -1}, "truncation.stride: must be `int` >= 0"),
        ("truncation", {**TRUNCATION, "strategy": "only_first"}, "strategy: Invalid .*only_first"),
        ("truncation", [], "truncation: \\[\\] is not an object"),
        ("padding", {}, "padding.strategy: missing"),
        ("padding", {**PADDING, "strategy": {"Fixed": "7"}}, "padding.strategy.Fixed: must be"),
        ("padding", {**PADDING, "strategy": "Fixed"}, "padding.strategy: "),
        ("padding", {**PADDING, "pad_id": 2**64}, "padding.pad_id: "),
        ("padding", {**PADDING, "x": 1}, 'padding: unknown key "x"'),
        ("pre_tokenizer.type", ..., "pre_tokenizer.type: missing"),
        ("pre_tokenizer.add_prefix_space", 0, "add_prefix_space: must be `bool`, got `int`"),
        ("pre_tokenizer.extra", 1, 'pre_tokenizer: unknown key "extra"'),
        ("decoder.trim_offsets", None, "decoder.trim_offsets: must be `bool`, got `null`"),
        ("normalizer", {"type": "Nwt"}, 'normalizer.type: "Nwt" is not supported; must be one of'),
        ("normalizer", {"type": "Precompiled"}, "normalizer.precompiled_charsmap: missing"),
        (
            "normalizer",
            {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
            "precompiled_charsmap: it has no size",
        ),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "é"}, "precompiled_chars"),
        ("normalizer", {}, "normalizer.type: missing"),
        ("normalizer", {"type": "NFC", "x": 1}, 'normalizer: unknown key "x"; the keys here are'),
        ("normalizer", {"type": "Strip"}, "normalizer.strip_left: missing"),
        (
            "normalizer",
            {"type": "Prepend", "prepend": 1},
            "prepend: must be `str`, got `int`",
        ),
        ("normalizer", {"type": "Sequence", "normalizers": {}}, "normalizer.normalizers: {} is no"),
        (
            "normalizer",
            {"type": "Sequence", "normalizers": [{"type": "NFC"}, None]},
            r"normalizer.normalizers\[1\]: null is not an object",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"Regex": "("}, "content": ""},
            r"normalizer.pattern: pattern '\(': \( at character 0 has no \)",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": "a", "content": ""},
            "normalizer.pattern: must be `object`, got `str`",
        ),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"Glob": "*"}, "content": ""},
            "normalizer.pattern: unknown key `Glob`",
        ),
        ("pre_tokenizer", [], r"pre_tokenizer: \[\] is not an object"),
        ("pre_tokenizer", {"type": "Sentences"}, 'pre_tokenizer.type: "Sentences" is not'),
        ("pre_tokenizer", {"type": "Digits"}, "pre_tokenizer.individual_digits: missing"),
        (
            "pre_tokenizer",
            {"type": "Punctuation", "behavior": "Lost"},
            "pre_tokenizer: behavior must be one of Removed, Isolated, .*, got 'Lost'",
        ),
        (
            "pre_tokenizer",
            {"type": "Metaspace", "replacement": "ab", "prepend_scheme": "always", "split": True},
            "pre_tokenizer: replacement must be one character, got 'ab'",
        ),
        (
            "pre_tokenizer",
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "twice", "split": True},
            "pre_tokenizer: prepend_scheme must be one of always, first, never, got 'twice'",
        ),
        ("decoder", {"type": "CTD"}, 'decoder.type: "CTD" is not supported; must be one of'),
        ("decoder", {"type": "WordPiece"}, "decoder.prefix: missing"),
        (
            "post_processor",
            {"type": "BertProcessing", "sep": ["a"], "cls": ["b", 1]},
            "post_processor.sep: must be `array` of length 2, got 1",
        ),
        (
            "post_processor",
            {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
            r"post_processor: template single must have the text \$A exactly once",
        ),
        ("model.type", "Bigram", 'model.type: "Bigram" is not supported .* must be "BPE" or'),
        ("model.unk_token", "<unk>", 'model.unk_token: "<unk>" is not in the vocabulary'),
        ("model.unk_token", 5, r"model.unk_token: must be `str \| null`, got `int`"),
        ("model.fuse_unk", 1, "model.fuse_unk: must be `bool`, got `int`"),
        ("model.byte_fallback", "yes", "model.byte_fallback: must be `bool`, got `str`"),
        ("model", ..., "model: missing"),
        ("model", None, "model: null is not an object"),
        ("model.dropout", 0.1, "model.dropout: 0.1 is not supported"),
        ("model.cache", 1, 'model: unknown key "cache"'),
        ("model.vocab", ..., "model.vocab: missing"),
        ("model.vocab", [], r"model.vocab: \[\] is not an object"),
        ("model.vocab.a", "2", r'model.vocab\["a"\]: the id "2" is not an integer'),
        ("model.vocab.a", 2.0, r'model.vocab\["a"\]: the id 2.0 is not an integer'),
        ("model.vocab.a", True, r'model.vocab\["a"\]: the id true is not an integer'),
        ("model.vocab.a", None, r'model.vocab\["a"\]: the id null is not an integer'),
        ("model.vocab.a", -1, r'model.vocab\["a"\]: the id -1 is not from 0 to 2147483647'),
        ("model.vocab.a", 2**31, r'model.vocab\["a"\]: the id 2147483648 is not from'),
        ("model.vocab.a", 3, r'model.vocab\["(a|Ġ)"\]: id 3 is taken by "(a|Ġ)"'),
        ("model.vocab.", 9, r'model.vocab\[""\]: an empty token'),
        ("model.vocab.\ud800", 9, "model.vocab: a lone surrogate at character 0"),
        ("model.merges", ..., "model.merges: missing"),
        ("model.merges", {}, "model.merges: {} is not a list"),
        ("model.merges.0", ["Ġ"], r'model.merges\[0\]: \["Ġ"\] is not two tokens'),
        ("model.merges.0", ["Ġ", "a", "a"], r"model.merges\[0\]: .* is not two tokens"),
        ("model.merges.0", ["Ġ", 1], r"model.merges\[0\]: .* is not two tokens"),
        ("model.merges.0", ["", "a"], r"model.merges\[0\]: .* is not two tokens"),
        ("model.merges.0", "Ġa", r'model.merges\[0\]: "Ġa" is not two tokens'),
        ("model.merges.0", "Ġ a a", r'model.merges\[0\]: "Ġ a a" is not two tokens'),
        ("model.merges.0", "Ġ  a", r'model.merges\[0\]: "Ġ  a" is not two tokens'),
        ("model.merges.0", 7, r"model.merges\[0\]: 7 is not two tokens"),
        ("model.merges.0", ["z", "a"], r'model.merges\[0\]: "z" of .* is not in the vocab'),
        ("model.merges.0", ["a", "z"], r'model.merges\[0\]: "z" of .* is not in the vocab'),
        ("model.merges.0", ["a", "a"], r'model.merges\[0\]: "aa" of .* is not in the vocab'),
        ("added_tokens", {}, "added_tokens: {} is not a list"),
        ("added_tokens.0", 5, r"added_tokens\[0\]: 5 is not an object"),
        ("added_tokens.0.special", ..., r"added_tokens\[0\].special: missing"),
        ("added_tokens.0.id", ..., r"added_tokens\[0\].id: missing"),
        ("added_tokens.0.id", "0", r"added_tokens\[0\].id: must be `int`, got `str`"),
        ("added_tokens.0.id", -1, r"added_tokens\[0\].id: must be `int` >= 0"),
        ("added_tokens.0.id", 9, r'added_tokens\[0\]: "<.*>" has id 9 here and id 0 in the model'),
        ("added_tokens.0.content", 5, r"added_tokens\[0\].content: must be `str`, got `int`"),
        ("added_tokens.0.content", "\udc00", r"added_tokens\[0\].content: a lone surrogate"),
        ("added_tokens.0.extra", 5, r'added_tokens\[0\]: unknown key "extra"'),
        ("added_tokens", [{**ADDED, "content": ""}], r"an empty token|neither an added token"),
        ("added_tokens", [ADDED, ADDED], r'added_tokens\[1\]: the token "<.*>" is already li'),
        ("added_tokens", [ADDED, {**ADDED, "content": "<x>"}], r'id 0 of "<x>" is taken by "<'),
        ("added_tokens", [ADDED, {**ADDED, "content": "<x>", "id": 4}], 'is taken by "Ġa"'),
        (
            "added_tokens",
            [ADDED, {**ADDED, "content": "<x>", "id": 9}, {**ADDED, "content": "<y>", "id": 9}],
            'id 9 of "<y>" is taken by "<x>"',
        ),
        ("added_tokens", [ADDED, {**ADDED, "content": "Ġa", "id": 4}], "is also how the model"),
        ("added_tokens", [ADDED, {**ADDED, "content": "Ġ", "id": 3}], "is also how the model"),
    ],
)
def test_refused_by_name_and_place(path: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^tokenizer.json: .*{message}"):
        Tokenizer.from_json(json.dumps(change(path, value)))


def test_a_token_as_long_as_a_text() -> None:
    """Training on a run of one letter makes such; WordPiece looks for those that words can hold."""
    long = "x" * 100_000
    tokenizer = Tokenizer.from_json(json.dumps(change(f"model.vocab.{long}", 9)))
    assert tokenizer.decode([9]) == long
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()
    model: dict[str, Any] = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
    }
    model |= {"max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "x" * 5_000: 1, "xx": 2}}
    file = {**golden(), "model": model, "added_tokens": [], "pre_tokenizer": None}
    assert Tokenizer.from_json(json.dumps({**file, "decoder": None})).encode("xx") == [2]
    model["max_input_chars_per_word"] = 4_097
    with pytest.raises(UsageError, match=r"5,000 characters must be at most 4,096 where model.max"):
        Tokenizer.from_json(json.dumps({**file, "decoder": None}))


def test_an_ascii_special_token_may_also_be_learned() -> None:
    """`a` is special token and symbol, with the same bytes either way."""
    tokenizer = Tokenizer.from_learned(["a", "b"], [], ["a"])
    assert tokenizer.encode("ab") == tokenizer.encode("ab", allowed_special="all") == [0, 1]
    assert tokenizer.decode([0, 1]) == "ab"


def test_a_surrogate_pair() -> None:
    """Escapes are joined to one character; in a str they are none."""
    file = golden()
    file["added_tokens"].append({**ADDED, "content": "\ud83d\udc4d", "id": 77})
    assert Tokenizer.from_json(json.dumps(file)).id_to_token(77) == "👍"
    with pytest.raises(UsageError, match="content: an unjoined surrogate pair at character 0"):
        Tokenizer.from_json(json.dumps(file, ensure_ascii=False))


def test_an_added_token_outside_of_the_model() -> None:
    file = golden()
    file["added_tokens"].append({**ADDED, "content": "<new é>", "id": 77})
    tokenizer = Tokenizer.from_json(json.dumps(file))
    assert tokenizer.vocab_size == 6
    assert tokenizer.max_id == 77
    assert tokenizer.encode("a<new é>", allowed_special="all") == [2, 77]
    assert tokenizer.decode([2, 77]) == "a<new é>"
    assert Tokenizer.from_json(tokenizer.to_json()).to_json() == tokenizer.to_json()


def test_the_file_is_named(tmp_path: Any) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(change("model.dropout", 0.5)))
    with pytest.raises(UsageError, match=r"^/.*/mine\.json: model.dropout: 0.5 is not"):
        Tokenizer.from_file(str(path))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty: get an intact copy"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        (b'{"version": \xff}', "byte 12: not UTF-8"),
        (b'{\n  "version": "1.0",\n}', "line [23], column .*: not JSON"),
        (GOLDEN.encode()[:-40], r"line \d+, column \d+: not JSON"),
        (GOLDEN.encode() + b"{}", r"line \d+, column 2: not JSON: Extra data"),
        (b'{"version": NaN}', "not JSON: NaN"),
        (b'{"version": -Infinity}', "not JSON: -Infinity"),
        (b"[]", r"\[\] is not an object"),
        (b"null", "null is not an object"),
        (b"7", "7 is not an object"),
        (b'{"version": "1.0", "version": "1.0"}', 'the key "version" is repeated'),
        (GOLDEN.replace('"a": 2', '"a": 2, "a": 2').encode(), 'vocab: the key "a" is repeat'),
        (
            GOLDEN.replace('"id": 0', '"id": 0, "id": 1').encode(),
            r'ens\[0\]: the key "id" is rep',
        ),
        (
            nested("Sequence", "normalizers", 900).encode(),
            "components must be nested at most 32 deep|nests too deep|nested too deeply",
        ),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"a":' * 1_000_000, "nested too deeply"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "not JSON: .*4300"),
        (
            b'{"model": {}, "version": ' + b"9" * 4_000 + b"}",
            r"version: 9{70,80}\.\.\. is not supported",
        ),
        (
            b'{"model": {}, "version": "' + b"x" * 10_000_000 + b'"}',
            r'version: "x{70,80}\.\.\. is not supp',
        ),
        (b'{"model": {}, "version": 1e999}', "version: Infinity is not supported"),
    ],
)
def test_hostile_files(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=f"^tokenizer.json: .*{message}") as error:
        Tokenizer.from_json(data)
    assert len(str(error.value)) < 300


def test_text_of_absurd_size() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return (1 << 30) + 1

    with pytest.raises(UsageError, match="1073741825 bytes; a tokenizer has at most 1073741824"):
        Tokenizer.from_json(Huge())


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("as_strings", [False, True])
def test_merges_are_a_sequence_of_pairs(ascii_only: bool, as_strings: bool) -> None:
    """Whatever the spelling of the file, whether they are kept natively or as a list."""
    vocab = [*byte_level.BYTE_TO_CHAR, "Ġa", "éa", "éaĠa"]
    pairs = [("Ġ", "a"), ("é", "a"), ("éa", "Ġa")]
    file = json.loads(Tokenizer.from_learned(vocab, pairs).to_json())
    file["model"]["merges"] = [" ".join(pair) if as_strings else list(pair) for pair in pairs]
    tokenizer = Tokenizer.from_json(json.dumps(file, ensure_ascii=ascii_only))
    model, same = tokenizer.spec.model, Tokenizer.from_json(json.dumps(file)).spec.model
    assert isinstance(model, BPE)
    assert isinstance(same, BPE)
    assert [*model.merges] == pairs == tokenizer.merges
    assert len(model.merges) == 3
    assert model.merges[-1] == pairs[2]
    assert model.merges == same.merges
    with pytest.raises(IndexError):
        model.merges[3]
    again = pickle.loads(pickle.dumps(tokenizer))
    for text in ("é a", " a a", "éa aéa a"):
        assert again.encode(text) == tokenizer.encode(text)
    assert again == tokenizer
    assert again.spec == tokenizer.spec


def test_every_byte_there_and_back() -> None:
    tokenizer = Tokenizer.from_learned(list(byte_level.BYTE_TO_CHAR), [])
    again = Tokenizer.from_json(tokenizer.to_json())
    text = "".join(map(chr, range(0x250)))
    assert again.decode(again.encode(text)) == text


def test_each_setting_of_the_post_processor_counts() -> None:
    """What is accepted has an effect."""

    def offsets(set_up: Callable[[dict[str, Any]], None]) -> list[tuple[int, int]]:
        file = golden()
        file["post_processor"] = {**BYTE_LEVEL, "trim_offsets": True}
        set_up(file["post_processor"])
        return Tokenizer.from_json(json.dumps(file)).encode_with_offsets(" a a")[2]

    assert offsets(lambda part: None) == [(0, 2), (3, 4)]
    assert offsets(lambda part: part.update(add_prefix_space=False)) == [(1, 2), (3, 4)]
    assert offsets(lambda part: part.update(trim_offsets=False)) == [(0, 2), (2, 4)]


def test_too_many_added_tokens_are_refused_before_they_are_checked_one_by_one() -> None:
    token = {"id": 1, "content": "x" * 4000, "unknown": "key"}
    text = json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
                       "version": "1.0", "added_tokens": [token] * 3000})  # fmt: skip
    said = r"^tokenizer\.json: added_tokens must have at most 8,388,608 characters in total, got 12"
    with pytest.raises(UsageError, match=said):
        Tokenizer.from_json(text)
