"""Decoders and post-processors against those of `tokenizers`, on whatever Hypothesis thinks of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from some_of import SomeOf

from bpe_beam.tokenizer.components.decoders import (
    CTC,
    BPEDecoder,
    ByteFallback,
    ByteLevelDecoder,
    Decoder,
    Fuse,
    MetaspaceDecoder,
    ReplaceDecoder,
    SequenceDecoder,
    StripDecoder,
    WordPieceDecoder,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.postprocessors import (
    BertProcessing,
    ByteLevelPostProcessor,
    PostProcessor,
    RobertaProcessing,
    SequencePostProcessor,
    SpecialToken,
    TemplatePiece,
    TemplateProcessing,
    TemplateReference,
)

hypothesis = pytest.importorskip("hypothesis")
tokenizers = pytest.importorskip("tokenizers")
st = hypothesis.strategies
theirs = tokenizers.decoders
processors = tokenizers.processors

# Tokens of every kind of model, and what decoders look for.
PIECES = st.one_of(
    st.sampled_from(["</w>", "##", "▁", "▁▁", "_", "Ġ", "Ã", "©", "ĠÃ", "é", "語", "a", "b", ""]),
    st.sampled_from(["<0xC3>", "<0xA9>", "<0x61>", "<0xF0>", "<0x+A>", "<0x+>", "<0xg0>", "[CLS]"]),
    st.sampled_from(["'s", "'ve", "n't", "'m", "'re", "'", ".", ",", "?", "!", "do", "not"]),
    st.sampled_from([" do not", " ' ", " .", " ", "  ", "\ufffd"]),
    st.text(st.characters(codec="utf-8"), max_size=3),
)
TOKENS = st.lists(
    st.one_of(PIECES, st.lists(PIECES, min_size=1, max_size=4).map("".join)), min_size=1, max_size=9
)
BYTES = st.lists(
    st.binary(max_size=1).map(lambda b: f"<0x{b.hex().upper()}>" if b else "a"), min_size=1
)


def replacing(value: str, content: str, kind: str = "String") -> tuple[Decoder, Any]:
    pattern = tokenizers.Regex(value) if kind == "Regex" else value
    ours = Pattern(regex=value) if kind == "Regex" else Pattern(text=value)
    return ReplaceDecoder(ours, content), theirs.Replace(pattern, content)


LLAMA2 = [
    replacing("▁", " "),
    (ByteFallback(), theirs.ByteFallback()),
    (Fuse(), theirs.Fuse()),
    (StripDecoder(" ", 1, 0), theirs.Strip(" ", 1, 0)),
]
DECODERS: list[tuple[Decoder, Any]] = [
    (ByteLevelDecoder(add_prefix_space=True), theirs.ByteLevel()),
    (BPEDecoder(), theirs.BPEDecoder()),
    (BPEDecoder("_"), theirs.BPEDecoder("_")),
    (BPEDecoder(""), theirs.BPEDecoder("")),
    (CTC(), theirs.CTC()),
    (CTC("a", "b"), theirs.CTC("a", "b", True)),
    (CTC("", "▁", False), theirs.CTC("", "▁", False)),
    (WordPieceDecoder(), theirs.WordPiece()),
    (WordPieceDecoder("##", False), theirs.WordPiece("##", False)),
    (WordPieceDecoder(""), theirs.WordPiece("")),
    *(
        (MetaspaceDecoder(char, scheme), theirs.Metaspace(char, scheme))
        for char in "▁_"
        for scheme in ("always", "first", "never")
    ),
    (ByteFallback(), theirs.ByteFallback()),
    (Fuse(), theirs.Fuse()),
    (StripDecoder(" ", 2, 0), theirs.Strip(" ", 2, 0)),
    replacing("▁", " "),
    replacing("aa", "x"),
    replacing("", "-"),
    replacing(r"\s+", "é", "Regex"),
    replacing(r"a*", "é", "Regex"),
    replacing(r"(?<=\S)(?=\s|$)", "_", "Regex"),
    (
        SequenceDecoder([ours for ours, _ in LLAMA2]),
        theirs.Sequence([their for _, their in LLAMA2]),
    ),
    (
        SequenceDecoder([ByteLevelDecoder(), MetaspaceDecoder("_")]),
        theirs.Sequence([theirs.ByteLevel(), theirs.Metaspace("_")]),
    ),
    (SequenceDecoder([]), theirs.Sequence([])),
]
NAMES = [f"{ours.json_type}{place}" for place, (ours, _) in enumerate(DECODERS)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("ours", "their"), DECODERS, ids=NAMES)
def test_decoders(ours: Decoder, their: Any, some_of: SomeOf) -> None:
    @hypothesis.settings(max_examples=len(some_of(range(300))), deadline=None)
    @hypothesis.given(tokens=st.one_of(TOKENS, BYTES))
    def check(tokens: list[str]) -> None:
        pieces = ours.apply([token.encode() for token in tokens], lossy=True)
        assert b"".join(pieces).decode() == their.decode(tokens)

    check()


def test_strip_at_the_end(some_of: SomeOf) -> None:
    """Of tokens that hold something else; on others `tokenizers` fails."""

    @hypothesis.settings(max_examples=len(some_of(range(300))), deadline=None)
    @hypothesis.given(tokens=st.lists(PIECES.map(lambda piece: f"{piece}a{piece}"), min_size=1))
    def check(tokens: list[str]) -> None:
        pieces = StripDecoder("▁", 1, 2).apply([token.encode() for token in tokens], lossy=True)
        assert b"".join(pieces).decode() == theirs.Strip("▁", 1, 2).decode(tokens)

    check()


def names_of(part: Any) -> list[str]:
    return [*part.__struct_fields__]


def of_json(part: Any) -> dict[str, Any]:
    """What `tokenizers` writes for a part."""
    return dict(json.loads(part.__getstate__()))


@pytest.mark.parametrize(("ours", "their"), DECODERS, ids=NAMES)
def test_fields_are_those_of_the_file(ours: Decoder, their: Any) -> None:
    state = of_json(their)
    assert [state.pop("type"), *state] == [ours.json_type, *names_of(ours)]
    for name, value in state.items():
        if name not in ("pattern", "decoders"):
            assert getattr(ours, name) == value


A, B = (TemplatePiece(text=TemplateReference(text, i)) for i, text in enumerate("AB"))
FIRST, X, LAST = (
    TemplatePiece(special=TemplateReference(name, 0)) for name in ("<s>", "x", "</s>")
)
TEMPLATE = TemplateProcessing(
    (FIRST, X, A, LAST),
    (A, B),
    {
        "<s>": SpecialToken("<s>", (0,), ("<s>",)),
        "</s>": SpecialToken("</s>", (1,), ("</s>",)),
        "x": SpecialToken("x", (3, 4), ("a", "b")),
    },
)  # fmt: skip
THEIR_TEMPLATE = processors.TemplateProcessing(
    single="<s> x $A </s>",
    pair="$A $B:1",
    special_tokens=[("<s>", 0), ("</s>", 1), {"id": "x", "ids": [3, 4], "tokens": ["a", "b"]}],
)
PROCESSORS: list[tuple[PostProcessor, Any]] = [
    *(
        (ByteLevelPostProcessor(add, trim), processors.ByteLevel(add, trim))
        for add in (False, True)
        for trim in (False, True)
    ),
    (BertProcessing(("</s>", 1), ("<s>", 0)), processors.BertProcessing(("</s>", 1), ("<s>", 0))),
    *(
        (
            RobertaProcessing(("</s>", 1), ("<s>", 0), trim, add),
            processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim, add),
        )
        for add in (False, True)
        for trim in (False, True)
    ),
    (TEMPLATE, THEIR_TEMPLATE),
    (
        SequencePostProcessor([ByteLevelPostProcessor(), TEMPLATE]),
        processors.Sequence([processors.ByteLevel(), THEIR_TEMPLATE]),
    ),
    (
        SequencePostProcessor([TEMPLATE, ByteLevelPostProcessor(False)]),
        processors.Sequence([THEIR_TEMPLATE, processors.ByteLevel(add_prefix_space=False)]),
    ),
]  # fmt: skip


def tokenizer_with(processor: Any) -> Any:
    """A byte-level tokenizer with a token for runs of spaces."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: place for place, token in enumerate(["<s>", "</s>", "ĠĠ", *alphabet])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [("Ġ", "Ġ")]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    if processor is not None:
        tokenizer.post_processor = processor
    return tokenizer


@pytest.mark.parametrize(("ours", "their"), PROCESSORS)
def test_post_processors(ours: PostProcessor, their: Any, some_of: SomeOf) -> None:
    without, whole = tokenizer_with(None), tokenizer_with(their)

    @hypothesis.settings(max_examples=len(some_of(range(200))), deadline=None)
    @hypothesis.given(
        text=st.text(st.sampled_from("ab  \n\u3000é\x1c"), max_size=10), frame=st.booleans()
    )
    def check(text: str, frame: bool) -> None:
        plain = without.encode(text)
        rows = zip(plain.ids, plain.tokens, plain.offsets, strict=True)
        trimmed = [
            (token_id, token, ours.trim(place, token, offsets))
            for place, (token_id, token, offsets) in enumerate(rows)
        ]
        before, after = ours.frame() if frame else ([], [])
        framed = [[(number, token, (0, 0)) for token, number in side] for side in (before, after)]
        expected = whole.encode(text, add_special_tokens=frame)
        found = [*framed[0], *trimmed, *framed[1]]
        assert found == [*zip(expected.ids, expected.tokens, expected.offsets, strict=True)]

    check()


@pytest.mark.parametrize(("ours", "their"), PROCESSORS)
def test_fields_of_post_processors_are_those_of_the_file(ours: PostProcessor, their: Any) -> None:
    state = of_json(their)
    assert [state.pop("type"), *state] == [ours.json_type, *names_of(ours)]
