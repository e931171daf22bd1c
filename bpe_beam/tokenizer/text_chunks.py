"""Encoding a text that comes in chunks: where it can be cut and still give the same ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from bpe_beam.tokenizer.added_tokens import AddedTokens
from bpe_beam.tokenizer.pretokenizers import steps_of
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.text_input import portions

# How much text is gathered before it is encoded: enough to make the calls cheap.
_PIECE_BYTES = 1 << 13

SafeCuts = Callable[[bytes], Iterator[int]]
"""From the beginning of a text to the places where it may be cut, the last first."""


def cuts_of(spec: TokenizerSpec) -> SafeCuts | None:
    """The places where a tokenizer's texts may be cut; None if no place is known to be safe."""
    steps = steps_of(spec.pre_tokenizer, last_as_bytes=spec.model_reads_bytes)
    if spec.normalizer is not None or len(steps) != 1 or steps[0][0] != "scan":
        return None
    from bpe_beam.tokenizer.safe_cuts import safe_cuts

    return partial(safe_cuts, steps[0][1])


def pieces(
    chunks: Iterable[str], safe_cuts: SafeCuts | None, added: AddedTokens, allowed: Collection[int]
) -> Iterator[bytes]:
    """Joins chunks and cuts them again, where each piece can be encoded by itself.

    Args:
        chunks: The text; chunks end anywhere.
        safe_cuts: The pre-tokenizer's; None: the text cannot be cut, and is gathered whole.
        added: The tokenizer's added tokens.
        allowed: The ids of those that count.

    Yields:
        The text in UTF-8: the ids of the pieces, one after the other, are those of the whole.
        A piece is some tens of KB, or as long as the longest word.

    Raises:
        UsageError: A chunk is no str.
        DataError: A lone surrogate; names its place in the whole text.
    """
    waiting = bytearray()
    wanted = _PIECE_BYTES
    for portion in portions(chunks, _PIECE_BYTES):
        waiting += portion
        if safe_cuts is None or len(waiting) < wanted:
            continue
        cut = find_cut(bytes(waiting), safe_cuts, added, allowed)
        if cut:
            yield bytes(waiting[:cut])
            del waiting[:cut]
        # What is left was searched: to search again only when it has doubled keeps the time for
        # an endless word linear.
        wanted = max(_PIECE_BYTES, 2 * len(waiting))
    if waiting:
        yield bytes(waiting)


def find_cut(data: bytes, safe_cuts: SafeCuts, added: AddedTokens, allowed: Collection[int]) -> int:
    """Where the beginning of a text can be cut so that either part can be encoded by itself.

    A special token near the end may still turn out to be another one: only what begins before
    `decided` has all its bytes in sight, and those of every longer rival. Up to there, the text
    falls into plain stretches and allowed tokens as the whole text will. The cut is the last safe
    one of the last stretch, but not within a disallowed token, whose rest may look like another
    token; failing that, the end of the last allowed token.

    Args:
        data: The beginning of a text, in UTF-8, whole characters.
        safe_cuts: The pre-tokenizer's.
        added: The tokenizer's added tokens.
        allowed: The ids of those that count.

    Returns:
        The offset in bytes; 0 if there is no such place.
    """
    decided = max(len(data) - max(added.longest - 1, 0), 0)
    while 0 < decided < len(data) and data[decided] & 0xC0 == 0x80:
        decided -= 1
    begin = 0
    disallowed: list[tuple[int, int]] = []
    for token_id, start, end in added.find(data):
        if start >= decided:
            break
        if token_id in allowed:
            begin = end
        else:
            disallowed.append((start, end))
    for place in safe_cuts(data[begin:decided]):
        cut = begin + place
        while disallowed and disallowed[-1][0] >= cut:
            disallowed.pop()
        if not disallowed or disallowed[-1][1] <= cut:
            return cut
    return begin
