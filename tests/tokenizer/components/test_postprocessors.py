"""Post-processors, rule by rule; the differential tests compare whole texts."""

from __future__ import annotations

import pytest

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components.postprocessors import (
    BertProcessing,
    ByteLevelPostProcessor,
    RobertaProcessing,
    SequencePostProcessor,
    SpecialToken,
    TemplatePiece,
    TemplateProcessing,
    TemplateReference,
)

pytestmark = pytest.mark.quick

KEEPS_ONE = ByteLevelPostProcessor(add_prefix_space=True)
TRIMS_ALL = ByteLevelPostProcessor(add_prefix_space=False)


@pytest.mark.parametrize(
    ("post_processor", "place", "token", "offsets", "expected"),
    [
        (TRIMS_ALL, 1, "Ġa", (4, 6), (5, 6)),
        (TRIMS_ALL, 1, "aĠ", (4, 6), (4, 5)),
        (TRIMS_ALL, 1, "ĠĠaĠ", (4, 8), (6, 7)),
        (TRIMS_ALL, 1, "a", (4, 5), (4, 5)),
        (TRIMS_ALL, 1, "ĠĠ", (4, 6), (6, 6)),  # empty, never negative
        (TRIMS_ALL, 1, "ĠĠĠ", (4, 5), (5, 5)),  # more spaces than characters
        (TRIMS_ALL, 1, "aĠĠ", (0, 1), (0, 1)),  # more spaces than stand before its end
        (TRIMS_ALL, 0, "Ġa", (0, 2), (1, 2)),
        (KEEPS_ONE, 0, "Ġa", (0, 2), (0, 2)),
        (KEEPS_ONE, 0, "Ġa", (3, 5), (3, 5)),  # the first token, at any position
        (KEEPS_ONE, 1, "Ġa", (0, 2), (0, 2)),  # another one that begins with the text
        (KEEPS_ONE, 1, "Ġa", (2, 4), (3, 4)),
        (KEEPS_ONE, 0, "ĠĠa", (0, 3), (2, 3)),  # two were not added, so both go
        (KEEPS_ONE, 0, "ĠaĠ", (0, 3), (0, 2)),  # at the end all go
        (TRIMS_ALL, 1, "\u3000<s>\n", (4, 9), (5, 8)),  # an added token's own spaces
        (TRIMS_ALL, 1, "\x1c<s>", (4, 8), (4, 8)),  # a space to str.isspace alone
        (ByteLevelPostProcessor(trim_offsets=False), 1, "Ġa", (4, 6), (4, 6)),
    ],
)
def test_trim(
    post_processor: ByteLevelPostProcessor,
    place: int,
    token: str,
    offsets: tuple[int, int],
    expected: tuple[int, int],
) -> None:
    assert post_processor.trim(place, token, offsets) == expected


def test_frames() -> None:
    assert ByteLevelPostProcessor().frame() == ([], [])
    assert BertProcessing().frame() == ([("[CLS]", 101)], [("[SEP]", 102)])
    assert RobertaProcessing().frame() == ([("<s>", 0)], [("</s>", 2)])
    named = {"x": SpecialToken("x", [3, 4], ["a", "b"]), "y": SpecialToken("y", [5], ["c"])}
    single = [
        TemplatePiece(special=TemplateReference("x", 0)),
        TemplatePiece(text=TemplateReference("A", 1)),
        TemplatePiece(special=TemplateReference("y", 0)),
    ]
    template = TemplateProcessing(single, [], named)
    assert template.frame() == ([("a", 3), ("b", 4)], [("c", 5)])
    assert SequencePostProcessor([ByteLevelPostProcessor(), template]).frame() == template.frame()
    assert SequencePostProcessor([]).frame() == ([], [])


def test_what_is_trimmed() -> None:
    assert RobertaProcessing().trim(1, "Ġa", (3, 5)) == (4, 5)
    assert RobertaProcessing(trim_offsets=False).trim(1, "Ġa", (3, 5)) == (3, 5)
    assert BertProcessing().trim(1, "Ġa", (3, 5)) == (3, 5)
    twice = SequencePostProcessor([ByteLevelPostProcessor(), RobertaProcessing()])
    assert twice.trim(1, "Ġab", (3, 6)) == (5, 6)  # each by the token, as in Hugging Face


def test_refused() -> None:
    a, b, x = (
        TemplatePiece(text=TemplateReference("A", 0)),
        TemplatePiece(text=TemplateReference("B", 0)),
        TemplatePiece(special=TemplateReference("x", 0)),
    )
    for single, found in (([], "none"), ([a, a], r"\$A \$A"), ([b], r"\$B"), ([a, b], r"\$A \$B")):
        with pytest.raises(UsageError, match=rf"\$A exactly once, got {found}"):
            TemplateProcessing(single, [], {})
    with pytest.raises(UsageError, match="single: 'x' is not in special_tokens"):
        TemplateProcessing([a, x], [], {})
    TemplateProcessing([a], [x], {})
    with pytest.raises(UsageError, match="'x' has 2 ids and 1 tokens"):
        SpecialToken("x", [1, 2], ["x"])
    with pytest.raises(UsageError, match='text of a template must be "A" or "B", got \'C\''):
        TemplatePiece(text=TemplateReference("C", 0))
    for both in ({}, {"text": TemplateReference("A", 0), "special": TemplateReference("x", 0)}):
        with pytest.raises(UsageError, match=r'must be {"Sequence": ...} or {"SpecialToken": ...}'):
            TemplatePiece(**both)
    with pytest.raises(UsageError, match="got BertProcessing, RobertaProcessing"):
        SequencePostProcessor([BertProcessing(), ByteLevelPostProcessor(), RobertaProcessing()])
