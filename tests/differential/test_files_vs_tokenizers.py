"""Tokenizers of every part and of the combinations that people publish, as `tokenizers` makes and
saves them: the same tokens, ids, offsets and decoded text.

Exceptions, which the tests stay clear of. An added token is named by its content here, there by the
text that it was found as. Decoded by ByteLevel, it is its own text here, even where all of its
characters are of the byte-level alphabet. And `\\w` in a pattern of one's own is what it is to
`regex`: to the engine there ², ³, ¹, ¼, ½, ¾ are word characters too, and the two joiners are none.
"""

from __future__ import annotations

import itertools
import random
from typing import Any, get_args

import pytest
from some_of import in_turn

pytest.importorskip("tokenizers")

from matrix import (
    DECODERS,
    LLAMA2_DECODER,
    MODELS,
    NORMALIZERS,
    POST_PROCESSORS,
    PRE_TOKENIZERS,
    added_tokens,
    template,
    texts,
    to_bytes,
    tokenizer,
)
from tokenizers import (
    AddedToken,
    Regex,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from tokenizers import Tokenizer as HuggingFace

from bpe_beam import Tokenizer
from bpe_beam.tokenizer.components.models import Model
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS
from bpe_beam.tokenizer.files.tokenizer_json import FAMILIES

SHOWN = 5


def rows(tokens: Any, ids: Any, offsets: Any, unnamed: Any) -> list[tuple[Any, ...]]:
    """A row a token, without the names of those `unnamed`."""
    named = [None if i in unnamed else token for i, token in zip(ids, tokens, strict=True)]
    return [*zip(named, ids, offsets, strict=True)]


def differences(theirs: Any) -> list[str]:
    """Where the two differ, text by text, both read from the same file."""
    file = theirs.to_str()
    theirs, ours = theirs.from_str(file), Tokenizer.from_json(file)
    added = theirs.get_added_tokens_decoder()
    # There what is left out goes by name, and a normalizer changes names: A may be the special a.
    plain_names = theirs.normalizer is None or not any(t.normalized for t in added.values())
    found = []
    for text in texts():
        for frame in (False, True):
            expected = theirs.encode(text, add_special_tokens=frame)
            tokens, ids, offsets = ours.encode_with_offsets(
                text, allowed_special="all", add_special_tokens=frame
            )
            one = rows(tokens, ids, offsets, added)
            two = rows(expected.tokens, expected.ids, expected.offsets, added)
            if one != two:
                found.append(f"{text!r}:\n  ours {one}\n  theirs {two}")
        plain = ours.encode(text, allowed_special="all")
        if plain != theirs.encode(text, add_special_tokens=False).ids:
            found.append(f"{text!r}: encode gives {plain}")
        for skip in (False, True) if plain_names else (False,):
            decoded = ours.decode(expected.ids, skip_special_tokens=skip)
            if decoded != theirs.decode(expected.ids, skip_special_tokens=skip):
                found.append(f"{text!r}: decodes to {decoded!r}")
    return found


def check(theirs: Any) -> None:
    found = differences(theirs)
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:SHOWN])


CUTTING = {
    "bytes": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "fallback": pre_tokenizers.Metaspace(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_models(model: str, whole: bool) -> None:
    cutting = CUTTING.get(model.split(",")[0], pre_tokenizers.Whitespace())
    if whole:
        cutting = to_bytes(None) if model.startswith("bytes") else None
    check(tokenizer(model, pre_tokenizer=cutting))


@pytest.mark.parametrize(("name", "model"), in_turn(NORMALIZERS, ["bytes", "unknown", "wordpiece"]))
def test_normalizers(name: str, model: str) -> None:
    cutting = CUTTING["bytes"] if model == "bytes" else pre_tokenizers.Whitespace()
    check(tokenizer(model, normalizer=NORMALIZERS[name], pre_tokenizer=cutting))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "model"), in_turn(PRE_TOKENIZERS, ["bytes", "unknown, fused"]))
def test_pre_tokenizers(name: str, model: str) -> None:
    cutting = PRE_TOKENIZERS[name]
    check(tokenizer(model, pre_tokenizer=to_bytes(cutting) if model == "bytes" else cutting))


@pytest.mark.parametrize(
    ("name", "normalizer"),
    in_turn([*PRE_TOKENIZERS][:20], ["NFKD", "replace by more", "strip, prepend, nfkc"]),
)
def test_pre_tokenizers_of_normalized_text(name: str, normalizer: str) -> None:
    parts = {"normalizer": NORMALIZERS[normalizer], "pre_tokenizer": PRE_TOKENIZERS[name]}
    check(tokenizer("unknown", **parts))


@pytest.mark.parametrize(
    ("name", "model"),
    in_turn(DECODERS, ["bytes", "fallback", "suffix", "wordpiece", "word level"]),
)
def test_decoders(name: str, model: str) -> None:
    theirs = tokenizer(model, decoder=DECODERS[name])
    theirs.add_special_tokens(["[X]"])
    theirs.add_tokens(["▁y", "z語"])
    ours = Tokenizer.from_json(theirs.to_str())
    rng = random.Random(2)
    ids = sorted(theirs.get_vocab().values())
    for _ in range(500):
        some = rng.choices(ids, k=rng.randint(1, 12))
        for skip in (False, True):
            if skip and name == "bpe" and all(i == theirs.token_to_id("[X]") for i in some):
                continue  # nothing is left to decode: `tokenizers` panics
            expected = theirs.decode(some, skip_special_tokens=skip)
            assert ours.decode(some, skip_special_tokens=skip) == expected


@pytest.mark.parametrize("name", POST_PROCESSORS)
def test_post_processors(name: str) -> None:
    for cutting in (pre_tokenizers.ByteLevel(False), pre_tokenizers.ByteLevel(True)):
        post_processor = POST_PROCESSORS[name]
        check(tokenizer("bytes", pre_tokenizer=cutting, post_processor=post_processor))


FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


@pytest.mark.parametrize(
    ("values", "name"),
    in_turn(
        itertools.product((False, True), repeat=5), ["none", "lowercase", "NFD", "prepend", "NFKC"]
    ),
)
def test_added_tokens(values: tuple[bool, ...], name: str) -> None:
    flags = dict(zip(FLAGS, values, strict=True))
    theirs = tokenizer("bytes", normalizer=NORMALIZERS[name], pre_tokenizer=CUTTING["bytes"])
    theirs.add_tokens(added_tokens(**flags))
    check(theirs)


def test_added_tokens_of_many_kinds() -> None:
    """None of spaces: `tokenizers` panics where one is found within another's.

    And no two that a normalizer makes one: which of them it finds changes from run to run there.
    """
    rng = random.Random(4)
    for _ in range(30):
        normalizer = rng.choice([*NORMALIZERS.values()])
        cutting = to_bytes(rng.choice([*PRE_TOKENIZERS.values()]))
        theirs = tokenizer("bytes", normalizer=normalizer, pre_tokenizer=cutting)
        contents = ["<s>", "</s>", "[X]", "xyz", "x y", "a", "B", "the", "éo", "<mask>", "▁"]
        for content in rng.sample(contents, 6):
            theirs.add_tokens([AddedToken(content, **{f: rng.random() < 0.4 for f in FLAGS})])
        check(theirs)


@pytest.mark.parametrize(
    "flags", [{}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}]
)
@pytest.mark.parametrize("trim", [False, True])
def test_added_tokens_of_spaces(flags: dict[str, bool], trim: bool) -> None:
    theirs = tokenizer(
        "bytes",
        pre_tokenizer=CUTTING["bytes"],
        post_processor=processors.ByteLevel(False, trim),
    )
    theirs.add_tokens([AddedToken("  ", normalized=False, **flags)])
    added = theirs.get_added_tokens_decoder()
    ours = Tokenizer.from_json(theirs.to_str())
    for text in ("a  b   c    d", "    ", "   a", "a  ", " \n  \n a", "a     b"):
        expected = theirs.encode(text)
        two = rows(expected.tokens, expected.ids, expected.offsets, added)
        assert rows(*ours.encode_with_offsets(text, allowed_special="all"), added) == two


FAMILIES_OF = {
    normalizers: "normalizer",
    pre_tokenizers: "pre_tokenizer",
    processors: "post_processor",
    decoders: "decoder",
}


@pytest.mark.parametrize("module", FAMILIES_OF, ids=FAMILIES_OF.values())
def test_every_type_of_component_is_known(module: Any) -> None:
    """None that `tokenizers` has is refused for its name."""
    bases = {"Normalizer", "PreTokenizer", "PostProcessor", "Decoder", "DecodeStream"}
    types = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and name not in bases
    }
    known = {one.__struct_config__.tag for one in get_args(FAMILIES[FAMILIES_OF[module]])}
    assert types - known == set()
    assert known - types <= {"SentencePiece"}


def test_every_type_of_model_is_known() -> None:
    types = {name for name, value in vars(models).items() if isinstance(value, type)} - {"Model"}
    assert types == {one.__name__ for one in get_args(Model)} - {"SentencePiece"}


# ---- what people publish ----


def gpt2() -> Any:
    return tokenizer(
        "bytes", pre_tokenizer=pre_tokenizers.ByteLevel(False), decoder=decoders.ByteLevel(),
        post_processor=processors.ByteLevel(trim_offsets=False),
    )  # fmt: skip


def roberta() -> Any:
    made = tokenizer(
        "bytes", pre_tokenizer=pre_tokenizers.ByteLevel(False), decoder=decoders.ByteLevel(),
        post_processor=processors.RobertaProcessing(("</s>", 901), ("<s>", 900)),
    )  # fmt: skip
    made.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    return made


def split_by(name: str, *, ignore_merges: bool = False, **parts: Any) -> Any:
    cutting = to_bytes(pre_tokenizers.Split(Regex(NAMED_PATTERNS[name].expression), "isolated"))
    model = "bytes, ignore_merges" if ignore_merges else "bytes"
    made = tokenizer(model, pre_tokenizer=cutting, decoder=decoders.ByteLevel(), **parts)
    made.add_special_tokens(["<s>", "</s>", "[X]"])
    return made


def llama2(normalized: bool) -> Any:
    parts: dict[str, Any] = {"pre_tokenizer": pre_tokenizers.Metaspace("▁", "first", False)}
    if normalized:
        parts = {"normalizer": NORMALIZERS["prepend, replace"]}
    made = tokenizer(
        "fallback, fused", decoder=LLAMA2_DECODER, post_processor=template("<s> $A"), **parts
    )
    made.add_special_tokens([AddedToken(token, normalized=False) for token in ("<s>", "</s>")])
    return made


def bert(lowercase: bool) -> Any:
    made = tokenizer(
        "wordpiece", normalizer=normalizers.BertNormalizer(lowercase=lowercase),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(), decoder=decoders.WordPiece(),
        post_processor=template("[CLS] $A [SEP]"),
    )  # fmt: skip
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[X]"])
    return made


def starcoder() -> Any:
    made = tokenizer(
        "bytes", decoder=decoders.ByteLevel(),
        pre_tokenizer=pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]
        ),
    )  # fmt: skip
    made.add_special_tokens(["<s>", "<mask>"])
    return made


def clip() -> Any:
    return tokenizer(
        "suffix", decoder=decoders.BPEDecoder(),
        normalizer=normalizers.Sequence(
            [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
        ),
        pre_tokenizer=pre_tokenizers.Split(
            Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True
        ),
        post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 1), False, False),
    )  # fmt: skip


BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
PUBLISHED = {
    "gpt2": gpt2,
    "roberta": roberta,
    "bloom": lambda: tokenizer(
        "bytes", decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel(True, False),
        pre_tokenizer=to_bytes(
            pre_tokenizers.Split(Regex(BLOOM), "isolated")
        ),
    ),
    "starcoder": starcoder,
    "cl100k": lambda: split_by("cl100k"),
    "o200k": lambda: split_by("o200k"),
    "llama 3": lambda: split_by(
        "llama3", ignore_merges=True,
        post_processor=processors.Sequence([processors.ByteLevel(), template("<s> $A")]),
    ),
    "qwen2": lambda: split_by(
        "qwen2", normalizer=normalizers.NFC(), post_processor=processors.ByteLevel(False, False)
    ),
    "llama 2, legacy": lambda: llama2(True),
    "llama 2": lambda: llama2(False),
    "bert, uncased": lambda: bert(True),
    "bert, cased": lambda: bert(False),
    "clip": clip,
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name: str) -> None:
    check(PUBLISHED[name]())


def test_truncation_and_padding_are_written_as_they_were() -> None:
    theirs = HuggingFace(models.BPE(vocab={"a": 0}, merges=[]))
    for length in (None, 7):
        theirs.enable_truncation(1, stride=0, strategy="only_first", direction="left")
        theirs.enable_padding(pad_id=3, pad_token="<pad>", pad_to_multiple_of=8, length=length)
        ours = Tokenizer.from_json(theirs.to_str(pretty=True))
        assert ours.to_json() == theirs.to_str(pretty=True)
        assert ours.encode("aa") == [0, 0]
