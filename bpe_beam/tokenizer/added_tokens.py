"""Tokens that stand outside of the model: cut out of the text before anything else happens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AddedToken:
    """An added token, as `tokenizer.json` describes it (section 6 of the semantics).

    Attributes:
        id: Its id.
        content: Its text.
        single_word: Match only where no word character stands beside it.
        lstrip: Take the whitespace before it, too.
        rstrip: Take the whitespace after it, too.
        normalized: Match in the normalized text instead of the raw one.
        special: Counts only where it is allowed; can be left out when decoding.
    """

    id: int
    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = True
