"""How documents become ids: plain data that travels to the workers, and what they do with it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Literal

import pyarrow as pa

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.framing import framed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.held_tokenizers import held_tokenizer

AllowedSpecial = Literal["all"] | Collection[str]


class Encoding:
    """How documents become ids. Made by `of`; travels as the tokenizer's file and three settings.

    Args:
        tokenizer_json: The tokenizer's file.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text.
    """

    def __init__(
        self,
        tokenizer_json: str,
        append: str | None,
        prepend: str | None,
        allowed_special: AllowedSpecial,
    ) -> None:
        self.tokenizer_json = tokenizer_json
        self.append = append
        self.prepend = prepend
        self.allowed_special = allowed_special
        self._key = hashlib.sha256(tokenizer_json.encode()).hexdigest()

    @staticmethod
    def of(
        tokenizer: Tokenizer,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: str | Collection[str] = (),
    ) -> Encoding:
        """Checks the settings against the tokenizer.

        Args:
            tokenizer: What encodes.
            append: Token put after each document.
            prepend: Token put before each document.
            allowed_special: Special tokens that count as such in the text: "all", "none", or some.

        Raises:
            UsageError: A token that the tokenizer does not have.
        """
        if isinstance(allowed_special, str):
            allowed: AllowedSpecial = "all" if allowed_special == "all" else ()
            if allowed_special not in ("all", "none"):
                raise UsageError(
                    f"allowed_special is {allowed_special!r}: 'all', 'none', or a list of tokens"
                )
        else:
            allowed = tuple(allowed_special)
        encoding = Encoding(tokenizer.to_json(), append, prepend, allowed)
        encoding.frame(tokenizer)
        tokenizer.encode("", allowed_special=allowed)
        return encoding

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, made once a process."""
        return held_tokenizer(self._key, lambda: Tokenizer.from_json(self.tokenizer_json))

    def frame(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """The ids before and after each document.

        Raises:
            UsageError: A token that the tokenizer does not have.
        """
        return _ids("prepend", self.prepend, tokenizer), _ids("append", self.append, tokenizer)

    def encode(self, texts: pa.Array, tokenizer: Tokenizer | None = None) -> pa.LargeListArray:
        """The ids of each text, with what goes before and after it; by another tokenizer, if one
        is given.

        Raises:
            UsageError: The other tokenizer lacks a token.
        """
        tokenizer = tokenizer or self.tokenizer()
        ids = tokenizer.encode_batch(texts, allowed_special=self.allowed_special)
        before, after = self.frame(tokenizer)
        return framed(ids, before, after)


def _ids(name: str, token: str | None, tokenizer: Tokenizer) -> list[int]:
    if token is None:
        return []
    found = tokenizer.token_to_id(token)
    if found is None:
        raise UsageError(f"{name}: the tokenizer has no token {token!r}")
    return [found]
