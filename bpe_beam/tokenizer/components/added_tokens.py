"""Added tokens: tokens outside of the model, extracted before text is split into words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.component import TokenId
from bpe_beam.tokenizer.text_input import count_characters


class AddedToken(Struct, frozen=True, forbid_unknown_fields=True):
    """An added token, as `tokenizer.json` describes it."""

    id: TokenId
    content: str
    single_word: bool = False  # whether no word character may be next to it
    lstrip: bool = False  # whether it includes the whitespace before it
    rstrip: bool = False  # whether it includes the whitespace after it
    normalized: bool = False  # whether it matches in the normalized text instead of the raw text
    special: bool = True  # recognized only where it is allowed; can be skipped in decoding


class AddedTokens:
    """The added tokens of a tokenizer, and their positions in a text where Python needs them."""

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        tokens = tuple(tokens)
        self.ids = {token.content: token.id for token in tokens}
        self.specials = {token.content: token.id for token in tokens if token.special}
        # Whether each token matches exactly where its text occurs in the raw text
        self.plain_text = not any(
            token.single_word or token.lstrip or token.rstrip or token.normalized
            for token in tokens
        )
        self.longest = max((len(content.encode()) for content in self.ids), default=0)  # bytes

    @cached_property
    def _finder(self) -> _native.TokenFinder:
        special = self.specials
        return _native.TokenFinder(
            [(text.encode(), token, text in special) for text, token in self.ids.items()]
        )

    def allowed(self, tokens: str | Collection[str]) -> list[int]:
        """Return the ids of the special tokens that are allowed."""
        if isinstance(tokens, (str, bytes)):
            if tokens == "all":
                return list(self.specials.values())
            raise UsageError(
                f'must be "all" or a collection of special tokens, got {tokens!r}',
                ("allowed_special",),
                f"for one token give [{tokens!r}]",
            )
        for token in tokens:
            if token not in self.specials:
                raise UsageError(
                    f"must have special tokens of this tokenizer, got {shortened(token)}",
                    ("allowed_special",),
                    f"the special tokens are {shortened(list(self.specials))}",
                )
        return [self.specials[token] for token in tokens]

    def find(self, data: bytes, allowed: Collection[int]) -> Iterator[tuple[int | None, int, int]]:
        """Yield (id, start, end in bytes) of added tokens in UTF-8, by their texts alone."""
        if self.ids:
            yield from self._finder.find(data, [*allowed])

    def refuse(self, data: bytes, allowed: Collection[int], where: str = "", done: int = 0) -> None:
        """Refuse a text with a special token that is not allowed."""
        disallowed = set(self.specials.values()).difference(allowed)
        for token_id, start, end in self.find(data, self.ids.values()):
            if token_id in disallowed:
                token = data[start:end].decode()
                raise DataError(
                    f"{where}the text has the special token {shortened(token)} at character "
                    f"{done + count_characters(data[:start])}, which is not allowed. To encode it "
                    f"as a special token, pass allowed_special=[{token!r}] or "
                    'allowed_special="all"; to encode it as plain text, pass '
                    'disallowed_special="text"; or remove it from the text'
                )
