"""ByteLevel's trimming of offsets, rule by rule; the differential tests compare whole texts."""

from __future__ import annotations

import pytest

from bpe_beam.tokenizer.postprocessors import ByteLevelPostProcessor

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
        (KEEPS_ONE, 0, "Ġa", (3, 5), (3, 5)),  # the first token, wherever it stands
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
