"""Post-processors: how the tokens of an encoded text are changed.

`trim` changes the offsets of each token. `frame` gives the special tokens before and after those of
the text, which are added on request and have the offsets (0, 0).

Fields are named and ordered as in Hugging Face's files; `JSON_TYPE` is the "type" there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, Protocol

from bpe_beam.errors import UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer import byte_level

Frame = tuple[list[tuple[str, int]], list[tuple[str, int]]]
"""The tokens before a text and those after it, each with its id."""


class PostProcessor(Protocol):
    """The methods of all post-processors."""

    JSON_TYPE: ClassVar[str]

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """Return the offsets of one token.

        Args:
            index: The number of the token in the text, from 0, without the tokens of the frame.
            token: The token's string: in the byte-level alphabet, or an added token's text.
            offsets: (start, end) in characters of the text.

        Returns:
            The offsets without spaces if the post-processor trims them; else the same offsets.
        """
        ...

    def frame(self) -> Frame:
        """Return the special tokens before and after a text."""
        ...


# Unicode's White_Space: the spaces of Rust's char::is_whitespace, and so of Hugging Face.
# str.isspace would add U+001C to U+001F.
_WHITESPACE = frozenset(
    map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)])
) | frozenset("\u2028\u2029\u202f\u205f\u3000")
_TOKENS_BETWEEN_CHECKS = 1_000  # of the deadline
_SPACES = _WHITESPACE | {byte_level.BYTE_TO_CHAR[0x20]}


@record
class ByteLevelPostProcessor:
    """Hugging Face's ByteLevel post-processor: removes spaces from the offsets.

    Attributes:
        add_prefix_space: Whether to keep one space at the start of the text in the offsets, as if
            it had been added.
        trim_offsets: Whether to remove spaces at all.
        use_regex: Only stored; has no effect.
    """

    JSON_TYPE: ClassVar[str] = "ByteLevel"

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`; the offsets are empty for a token of only spaces."""
        return _trim(index, token, offsets, self.add_prefix_space) if self.trim_offsets else offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`: none."""
        return [], []


@record
class BertProcessing:
    """BERT's frame: one token before a text and one after it.

    Attributes:
        sep: The token after the text, and its id.
        cls: The token before it, and its id.
    """

    JSON_TYPE: ClassVar[str] = "BertProcessing"

    sep: tuple[str, int] = ("[SEP]", 102)
    cls: tuple[str, int] = ("[CLS]", 101)

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`: changes nothing."""
        return offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`."""
        return [self.cls], [self.sep]


@record
class RobertaProcessing:
    """RoBERTa's: BERT's frame, and offsets trimmed as by ByteLevel's post-processor.

    Attributes:
        sep: The token after the text, and its id.
        cls: The token before it, and its id.
        trim_offsets: Whether to trim the offsets.
        add_prefix_space: As in `ByteLevelPostProcessor`.
    """

    JSON_TYPE: ClassVar[str] = "RobertaProcessing"

    sep: tuple[str, int] = ("</s>", 2)
    cls: tuple[str, int] = ("<s>", 0)
    trim_offsets: bool = True
    add_prefix_space: bool = True

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`."""
        return _trim(index, token, offsets, self.add_prefix_space) if self.trim_offsets else offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`."""
        return [self.cls], [self.sep]


@record
class TemplatePiece:
    """A text or a special token in a template.

    Attributes:
        kind: "Sequence" for the text, "SpecialToken" for tokens that are put in.
        id: Which text, "A" or "B"; or the name of the tokens.
        type_id: Kept for the file; has no effect here.

    Raises:
        UsageError: Another kind; a text that is neither A nor B.
    """

    kind: Literal["Sequence", "SpecialToken"]
    id: str
    type_id: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("Sequence", "SpecialToken"):
            raise UsageError(
                f'template: a piece of kind {self.kind!r}: give "Sequence" or "SpecialToken"'
            )
        if self.kind == "Sequence" and self.id not in ("A", "B"):
            raise UsageError(f'template: sequence {self.id!r}: give "A" or "B"')


@record
class SpecialToken:
    """The tokens of a name in a template.

    Attributes:
        id: The name.
        ids: The tokens' ids.
        tokens: The tokens, one for each id.

    Raises:
        UsageError: Not as many tokens as ids.
    """

    id: str
    ids: Sequence[int]
    tokens: Sequence[str]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.tokens):
            raise UsageError(
                f"template: special token {self.id!r} has {len(self.ids)} ids and "
                f"{len(self.tokens)} tokens: give one id for each token"
            )


@record
class TemplateProcessing:
    """Special tokens around a text, by a template.

    Attributes:
        single: The template of one text; it has the text A once.
        pair: The template of two texts; only stored.
        special_tokens: The special tokens by their names in the templates.

    Raises:
        UsageError: The template `single` does not have exactly the text A, or has a name that is
            not in `special_tokens`.
    """

    JSON_TYPE: ClassVar[str] = "TemplateProcessing"

    single: Sequence[TemplatePiece]
    pair: Sequence[TemplatePiece]
    special_tokens: Mapping[str, SpecialToken]

    def __post_init__(self) -> None:
        texts = [piece.id for piece in self.single if piece.kind == "Sequence"]
        if texts != ["A"]:
            found = " ".join(f"${name}" for name in texts[:5]) or "none"
            raise UsageError(f"template single must have the text $A exactly once, got {found}")
        for piece in self.single:
            if piece.kind == "SpecialToken" and piece.id not in self.special_tokens:
                raise UsageError(
                    f"template single: {piece.id!r} is not in special_tokens: add it there"
                )

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`: changes nothing."""
        return offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`."""
        before: list[tuple[str, int]] = []
        after: list[tuple[str, int]] = []
        side = before
        for piece in self.single:
            if piece.kind == "Sequence":
                side = after
                continue
            special = self.special_tokens[piece.id]
            side += zip(special.tokens, special.ids, strict=True)
        return before, after


@record
class SequencePostProcessor:
    """Post-processors one after the other.

    Attributes:
        processors: The post-processors in the order in which they are applied.

    Raises:
        UsageError: More than one of them adds tokens. Hugging Face's result would then depend on
            the number of tokens of the first one.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    processors: Sequence[PostProcessor]

    def __post_init__(self) -> None:
        framing = [part.JSON_TYPE for part in self.processors if part.frame() != ([], [])]
        if len(framing) > 1:
            raise UsageError(
                "only one post-processor of a sequence may add special tokens, got "
                f"{', '.join(framing)}"
            )

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`; applies all, in their order."""
        if index % _TOKENS_BETWEEN_CHECKS == 0:
            from bpe_beam import _native

            _native.check_deadline()
        for processor in self.processors:
            offsets = processor.trim(index, token, offsets)
        return offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`; that of the only one that adds tokens."""
        frames = (processor.frame() for processor in self.processors)
        return next((frame for frame in frames if frame != ([], [])), ([], []))


def _trim(
    index: int, token: str, offsets: tuple[int, int], add_prefix_space: bool
) -> tuple[int, int]:
    """Return the offsets of a token without its leading and trailing spaces."""
    start, end = offsets
    leading = _count_spaces(token)
    trailing = _count_spaces(token[::-1])
    if leading == 1 and add_prefix_space and (index == 0 or start == 0):
        leading = 0
    start = min(start + leading, end)
    if trailing and end >= trailing:
        end = max(end - trailing, start)
    return start, end


def _count_spaces(token: str) -> int:
    """Return the number of spaces at the start of a token."""
    return next((i for i, char in enumerate(token) if char not in _SPACES), len(token))
