"""Post-processors: what is done to a text's tokens once they are found.

Two things: `trim` changes the offsets of each token, always; `frame` puts tokens before and after
those of the text, when special tokens are asked for. Such a token has the offsets (0, 0).

Fields are named and ordered as in Hugging Face's files; `JSON_TYPE` is the part's "type" there.
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
    """What all post-processors have."""

    JSON_TYPE: ClassVar[str]

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """Changes one token's offsets.

        Args:
            place: Which of the text's tokens it is, from 0, those of the frame not counted.
            token: The token's string: in the byte-level alphabet, or an added token's text.
            offsets: (start, end) in characters of the text.

        Returns:
            The offsets without spaces, if the post-processor trims them; else as given.
        """
        ...

    def frame(self) -> Frame:
        """Gives the tokens that are put around a text when special tokens are asked for."""
        ...


# Unicode's White_Space: what Rust's char::is_whitespace, and so Hugging Face, takes for a space.
# str.isspace would add U+001C to U+001F.
_WHITESPACE = frozenset(
    map(chr, [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)])
) | frozenset("\u2028\u2029\u202f\u205f\u3000")
_TOKENS_BETWEEN_LOOKS = 1_000  # at the clock
_SPACES = _WHITESPACE | {byte_level.BYTE_TO_CHAR[0x20]}


@record
class ByteLevelPostProcessor:
    """Hugging Face's ByteLevel post-processor: takes the spaces out of the offsets.

    Attributes:
        add_prefix_space: Leave one space at the start of the text in the offsets, as if it had
            been added.
        trim_offsets: Whether to do anything at all.
        use_regex: Kept for the file; has no effect.
    """

    JSON_TYPE: ClassVar[str] = "ByteLevel"

    add_prefix_space: bool = True
    trim_offsets: bool = True
    use_regex: bool = True

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`; empty, never negative, for a token of only spaces."""
        return _trim(place, token, offsets, self.add_prefix_space) if self.trim_offsets else offsets

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

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`: changes nothing."""
        return offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`."""
        return [self.cls], [self.sep]


@record
class RobertaProcessing:
    """RoBERTa's: BERT's frame, and the offsets trimmed as ByteLevel's post-processor does.

    Attributes:
        sep: The token after the text, and its id.
        cls: The token before it, and its id.
        trim_offsets: Whether to trim.
        add_prefix_space: As in `ByteLevelPostProcessor`.
    """

    JSON_TYPE: ClassVar[str] = "RobertaProcessing"

    sep: tuple[str, int] = ("</s>", 2)
    cls: tuple[str, int] = ("<s>", 0)
    trim_offsets: bool = True
    add_prefix_space: bool = True

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`."""
        return _trim(place, token, offsets, self.add_prefix_space) if self.trim_offsets else offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`."""
        return [self.cls], [self.sep]


@record
class Piece:
    """One place of a template.

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
    """What a name in a template stands for.

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
    """Tokens around a text, by a template.

    Attributes:
        single: The template; it holds the text A once.
        pair: The template for two texts; kept for the file.
        special_tokens: What the names in the templates stand for.

    Raises:
        UsageError: A template `single` without the text A, or with more texts than that; a name in
            it that is not among the special tokens.
    """

    JSON_TYPE: ClassVar[str] = "TemplateProcessing"

    single: Sequence[Piece]
    pair: Sequence[Piece]
    special_tokens: Mapping[str, SpecialToken]

    def __post_init__(self) -> None:
        texts = [piece.id for piece in self.single if piece.kind == "Sequence"]
        if texts != ["A"]:
            found = " ".join(f"${name}" for name in texts[:5]) or "none"
            raise UsageError(
                f"template single: it must hold the text $A exactly once; its texts: {found}"
            )
        for piece in self.single:
            if piece.kind == "SpecialToken" and piece.id not in self.special_tokens:
                raise UsageError(
                    f"template single: {piece.id!r} is not in special_tokens: add it there"
                )

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
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
        processors: The first first.

    Raises:
        UsageError: More than one of them puts tokens around a text; what that means to Hugging
            Face depends on how many tokens the first one puts.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    processors: Sequence[PostProcessor]

    def __post_init__(self) -> None:
        framing = [part.JSON_TYPE for part in self.processors if part.frame() != ([], [])]
        if len(framing) > 1:
            raise UsageError(
                f"post-processors {', '.join(framing)} in one sequence: only one of them may put "
                "tokens around a text"
            )

    def trim(self, place: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """See `PostProcessor.trim`: of all, in their order."""
        if place % _TOKENS_BETWEEN_LOOKS == 0:
            from bpe_beam import _native

            _native.check_deadline()
        for processor in self.processors:
            offsets = processor.trim(place, token, offsets)
        return offsets

    def frame(self) -> Frame:
        """See `PostProcessor.frame`: that of the one that has any."""
        frames = (processor.frame() for processor in self.processors)
        return next((frame for frame in frames if frame != ([], [])), ([], []))


def _trim(
    place: int, token: str, offsets: tuple[int, int], add_prefix_space: bool
) -> tuple[int, int]:
    """Takes a token's leading and trailing spaces out of its offsets."""
    start, end = offsets
    leading = _count_spaces(token)
    trailing = _count_spaces(token[::-1])
    if leading == 1 and add_prefix_space and (place == 0 or start == 0):
        leading = 0
    start = min(start + leading, end)
    if trailing and end >= trailing:
        end = max(end - trailing, start)
    return start, end


def _count_spaces(token: str) -> int:
    """How many spaces the token begins with."""
    return next((i for i, char in enumerate(token) if char not in _SPACES), len(token))
