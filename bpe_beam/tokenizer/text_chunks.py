"""Chunks of a streamed text that can be encoded one by one with the same ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from bpe_beam.tokenizer.added_tokens import AddedTokens
from bpe_beam.tokenizer.pretokenizers import steps_of
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.text_input import portions

# Bytes of text that are collected before they are encoded: enough to make the calls cheap.
_CHUNK_BYTES = 1 << 13

SafeCuts = Callable[[bytes], Iterator[int]]
"""From the beginning of a text to the offsets where it may be split, the last first."""


def safe_cuts_of(spec: TokenizerSpec) -> SafeCuts | None:
    """Return where a tokenizer's texts may be split; None if no offset is known to be safe."""
    steps = steps_of(spec.pre_tokenizer, last_as_bytes=spec.model_reads_bytes)
    if spec.normalizer is not None or len(steps) != 1 or steps[0][0] != "scan":
        return None
    from bpe_beam.tokenizer.safe_cuts import safe_cuts

    return partial(safe_cuts, steps[0][1])


def encodable_chunks(
    chunks: Iterable[str], safe_cuts: SafeCuts | None, added: AddedTokens, allowed: Collection[int]
) -> Iterator[bytes]:
    """Yield a text in other chunks, each of which can be encoded by itself.

    Args:
        chunks: The text; chunks may end anywhere.
        safe_cuts: The offsets where texts may be split; None: the text is yielded as a whole.
        added: The tokenizer's added tokens.
        allowed: The ids of the added tokens that are recognized.

    Yields:
        UTF-8 of some tens of KB, or of the length of the longest word. The ids of all chunks are
        the ids of the text.

    Raises:
        UsageError: A chunk is not a str.
        DataError: The text has a lone surrogate; the message has its position in the whole text.
    """
    waiting = bytearray()
    wanted = _CHUNK_BYTES
    for portion in portions(chunks, _CHUNK_BYTES):
        waiting += portion
        if safe_cuts is None or len(waiting) < wanted:
            continue
        cut = find_cut(bytes(waiting), safe_cuts, added, allowed)
        if cut:
            yield bytes(waiting[:cut])
            del waiting[:cut]
        # The rest was already searched. Searching again only when it has doubled keeps the time
        # for an endless word linear.
        wanted = max(_CHUNK_BYTES, 2 * len(waiting))
    if waiting:
        yield bytes(waiting)


def find_cut(data: bytes, safe_cuts: SafeCuts, added: AddedTokens, allowed: Collection[int]) -> int:
    """Return where the beginning of a text can be split so that both parts can be encoded alone.

    A special token near the end may turn out to be a longer one. Only a token that begins before
    `decided` is certain: all its bytes, and those of every longer token, are known. Before
    `decided`, the extraction of special tokens is the same as in the whole text. The result is the
    last safe offset after the last recognized token, but not within an unrecognized token, whose
    rest may look like another token. Without such an offset it is the end of the last recognized
    token.

    Args:
        data: The beginning of a text, in UTF-8, whole characters.
        safe_cuts: The offsets where texts may be split.
        added: The tokenizer's added tokens.
        allowed: The ids of the added tokens that are recognized.

    Returns:
        The offset in bytes; 0 if there is none.
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
    for offset in safe_cuts(data[begin:decided]):
        cut = begin + offset
        while disallowed and disallowed[-1][0] >= cut:
            disallowed.pop()
        if not disallowed or disallowed[-1][1] <= cut:
            return cut
    return begin
