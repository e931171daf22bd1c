"""Tokens that stand outside of the model: cut out of the text before anything else happens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import shortened
from bpe_beam.record import record
from bpe_beam.tokenizer.text_input import count_characters

if TYPE_CHECKING:
    from bpe_beam import _native


@record
class AddedToken:
    """An added token, as `tokenizer.json` describes it.

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


class AddedTokens:
    """The added tokens of a tokenizer, and where they stand in a text.

    The native pipeline cuts them out by itself; this finds them where their place is asked for.
    """

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        tokens = tuple(tokens)
        self.ids = {token.content: token.id for token in tokens}
        """Id by text, of all of them."""
        self.specials = {token.content: token.id for token in tokens if token.special}
        """Id by text, of those that count only where they are allowed."""
        self.every = frozenset(self.ids.values())
        """The ids of all of them."""
        self.plain_text = not any(
            token.single_word or token.lstrip or token.rstrip or token.normalized
            for token in tokens
        )
        """Whether a token stands wherever its text stands in the text given."""
        self.longest = max((len(content.encode()) for content in self.ids), default=0)
        """Bytes of the longest one."""

    @cached_property
    def _finder(self) -> _native.TokenFinder:
        from bpe_beam import _native

        return _native.TokenFinder([(text.encode(), token) for text, token in self.ids.items()])

    def allowed(self, tokens: str | Collection[str]) -> list[int]:
        """The ids of the special tokens that are allowed.

        Args:
            tokens: "all", or a collection of special tokens.

        Raises:
            UsageError: Another string, or a token that is not special; lists what there is.
        """
        if isinstance(tokens, (str, bytes)):
            if tokens == "all":
                return list(self.specials.values())
            raise UsageError(
                f'allowed_special={tokens!r}: must be "all" or a collection of special tokens, '
                f"such as [{tokens!r}]"
            )
        for token in tokens:
            if token not in self.specials:
                raise UsageError(
                    f"allowed_special: {shortened(token)} is not a special token of this "
                    f"tokenizer; it has {shortened(list(self.specials))}"
                )
        return [self.specials[token] for token in tokens]

    def active(self, allowed: Collection[int]) -> frozenset[int]:
        """The ids of the tokens that count: those allowed, and all that are not special."""
        return self.every.difference(self.specials.values()).union(allowed)

    def find(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """Where the texts of added tokens stand in UTF-8: (id, start, end in bytes).

        Leftmost and longest, by their texts alone.
        """
        if self.ids:
            yield from self._finder.find(data)

    def refuse(self, data: bytes, allowed: Collection[int], where: str = "", done: int = 0) -> None:
        """Refuses a text that holds a special token which is not allowed.

        Args:
            data: The text, in UTF-8.
            allowed: Ids of the special tokens that may stand there.
            where: What the message says before the place.
            done: How many characters came before.

        Raises:
            DataError: Names the token, its place in characters, and the ways out.
        """
        active = self.active(allowed)
        for token_id, start, end in self.find(data):
            if token_id not in active:
                token = data[start:end].decode()
                raise DataError(
                    f"{where}the special token {shortened(token)} stands in the text, at character "
                    f"{done + count_characters(data[:start])}, and is not allowed. To have it as a "
                    f'special token, pass allowed_special=[{token!r}] or allowed_special="all"; to '
                    'have it as plain text, disallowed_special="text"; or take it out of the text'
                )
