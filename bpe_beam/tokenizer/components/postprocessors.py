"""Post-processors: how the tokens of an encoded text are changed.

`trim` changes the offsets of each token. `frame` gives the special tokens around the text's,
which are added on request and have the offsets (0, 0).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.component import Component, Count, OneKey, TokenId

Frame = tuple[list[tuple[str, int]], list[tuple[str, int]]]
"""The tokens before a text and the tokens after it, each with its id."""

_TOKENS_BETWEEN_CHECKS = 1_000  # of the deadline
# Unicode's White_Space: the spaces of Rust's char::is_whitespace, and so of Hugging Face; str.strip
# alone would add U+001C to U+001F. Then the space of the byte-level alphabet.
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000" + byte_level.BYTE_TO_CHAR[0x20]
)


class _PostProcessor(Component, frozen=True):
    """A post-processor that adds no tokens; with the setting `trim_offsets` it trims offsets."""

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        """Return the offsets of one token."""
        if not getattr(self, "trim_offsets", False):
            return offsets
        start, end = offsets
        leading = len(token) - len(token.lstrip(_SPACES))
        trailing = len(token) - len(token.rstrip(_SPACES))
        if leading == 1 and getattr(self, "add_prefix_space", False) and 0 in (index, start):
            leading = 0
        start = min(start + leading, end)
        if trailing and end >= trailing:
            end = max(end - trailing, start)
        return start, end

    def frame(self) -> Frame:
        """Return the special tokens before and after a text."""
        return [], []


class ByteLevelPostProcessor(_PostProcessor, frozen=True, tag="ByteLevel"):
    """Hugging Face's ByteLevel post-processor: removes spaces from the offsets."""

    add_prefix_space: bool = True  # whether the offsets keep one space at the start of the text
    trim_offsets: bool = True  # whether to remove spaces at all
    use_regex: bool = True  # only stored


class BertProcessing(_PostProcessor, frozen=True):
    """BERT's frame: the token `cls` before a text and `sep` after it, each with its id."""

    sep: tuple[str, TokenId] = ("[SEP]", 102)
    cls: tuple[str, TokenId] = ("[CLS]", 101)

    def frame(self) -> Frame:
        return [self.cls], [self.sep]


class RobertaProcessing(BertProcessing, frozen=True):
    """RoBERTa's: BERT's frame, and offsets trimmed as by `ByteLevelPostProcessor`."""

    sep: tuple[str, TokenId] = ("</s>", 2)
    cls: tuple[str, TokenId] = ("<s>", 0)
    trim_offsets: bool = True
    add_prefix_space: bool = True


class TemplateReference(Struct, frozen=True, forbid_unknown_fields=True):
    """What a template piece refers to: the text "A" or "B", or special tokens by their name."""

    id: str
    type_id: Count  # only stored


class TemplatePiece(OneKey, frozen=True, rename={"text": "Sequence", "special": "SpecialToken"}):
    """A text or special tokens in a template: one of the two."""

    text: TemplateReference | UnsetType = UNSET
    special: TemplateReference | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text is not UNSET and self.text.id not in ("A", "B"):
            raise UsageError(f'a text of a template must be "A" or "B", got {self.text.id!r}')


class SpecialToken(Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens, and an id for each, of a name in a template."""

    id: str
    ids: tuple[TokenId, ...]
    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.tokens):
            raise UsageError(
                f"template: special token {self.id!r} has {len(self.ids)} ids and "
                f"{len(self.tokens)} tokens: give one id for each token"
            )


class TemplateProcessing(_PostProcessor, frozen=True):
    """Special tokens around a text, by a template."""

    single: tuple[TemplatePiece, ...]  # the template of one text; it has the text A once
    pair: tuple[TemplatePiece, ...]  # the template of two texts; only stored
    special_tokens: Mapping[str, SpecialToken]

    def __post_init__(self) -> None:
        texts = [piece.text.id for piece in self.single if piece.text is not UNSET]
        if texts != ["A"]:
            names = " ".join(f"${name}" for name in texts[:5]) or "none"
            raise UsageError(f"template single must have the text $A exactly once, got {names}")
        for piece in self.single:
            if piece.special is not UNSET and piece.special.id not in self.special_tokens:
                raise UsageError(
                    f"template single: {piece.special.id!r} is not in special_tokens: add it there"
                )

    def frame(self) -> Frame:
        before: list[tuple[str, int]] = []
        after: list[tuple[str, int]] = []
        side = before
        for piece in self.single:
            if piece.special is UNSET:
                side = after
                continue
            special = self.special_tokens[piece.special.id]
            side += zip(special.tokens, special.ids, strict=True)
        return before, after


class SequencePostProcessor(_PostProcessor, frozen=True, tag="Sequence"):
    """Post-processors one after the other."""

    processors: tuple[PostProcessor, ...]

    def __post_init__(self) -> None:
        framing = [part.json_type for part in self.processors if part.frame() != ([], [])]
        if len(framing) > 1:
            raise UsageError(
                "only one post-processor of a sequence may add special tokens, got "
                f"{', '.join(framing)}"
            )

    def trim(self, index: int, token: str, offsets: tuple[int, int]) -> tuple[int, int]:
        if index % _TOKENS_BETWEEN_CHECKS == 0:
            _native.check_deadline()
        for processor in self.processors:
            offsets = processor.trim(index, token, offsets)
        return offsets

    def frame(self) -> Frame:
        frames = (processor.frame() for processor in self.processors)
        return next((frame for frame in frames if frame != ([], [])), ([], []))


def template_of(
    before: Sequence[str],
    after: Sequence[str],
    id_of: Callable[[str], int],
    *,
    repeats_before: bool = True,
) -> TemplateProcessing:
    """Return a template with special tokens around a text, and around a second one.

    `repeats_before` says whether the second text has the tokens of `before`, too.
    """

    def around(text: str, type_id: int, before: Sequence[str]) -> list[TemplatePiece]:
        names = [*before, text, *after]
        references = [TemplateReference(name, type_id) for name in names]
        pieces = [TemplatePiece(special=reference) for reference in references]
        pieces[len(before)] = TemplatePiece(text=references[len(before)])
        return pieces

    single = around("A", 0, before)
    second = around("B", 1, before if repeats_before else ())
    tokens = {name: SpecialToken(name, (id_of(name),), (name,)) for name in (*before, *after)}
    return TemplateProcessing(tuple(single), (*single, *second), tokens)


PostProcessor = (
    BertProcessing | ByteLevelPostProcessor | RobertaProcessing | SequencePostProcessor
    | TemplateProcessing
)  # fmt: skip
