"""Truncation and padding of `tokenizer.json`, which are kept and never applied.

They fit texts to the input of a model that runs; ids of a corpus are neither cut nor padded.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from bpe_beam.tokenizer.components.component import Count

Direction = Literal["Left", "Right"]


class Truncation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How ids of a text, or of a pair of texts, are cut.

    Attributes:
        direction: The end at which they are cut.
        max_length: The most ids that are left.
        strategy: Which text of a pair is cut.
        stride: How many ids of a part are repeated in the next one.
    """

    direction: Direction = "Right"
    max_length: Count
    strategy: Literal["LongestFirst", "OnlyFirst", "OnlySecond"]
    stride: Count


class FixedLength(Struct, frozen=True, forbid_unknown_fields=True):
    """Padding to one length, whatever the texts.

    Attributes:
        length: The length in ids.
    """

    length: Count = field(name="Fixed")


class Padding(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the ids of several texts get one length.

    Attributes:
        strategy: The length: the longest text's, or a fixed one.
        direction: The end at which padding is added.
        pad_to_multiple_of: What divides the length; None: nothing.
        pad_id: The id that is added.
        pad_type_id: Its type id.
        pad_token: Its token, which the vocabulary need not have.
    """

    strategy: Literal["BatchLongest"] | FixedLength
    direction: Direction
    pad_to_multiple_of: Count | None = None
    pad_id: Count
    pad_type_id: Count
    pad_token: str
