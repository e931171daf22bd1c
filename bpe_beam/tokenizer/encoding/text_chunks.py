"""Chunks of a streamed text that can be encoded one by one with the same ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from bpe_beam import _native
from bpe_beam.tokenizer.components.added_tokens import AddedTokens
from bpe_beam.tokenizer.components.patterns import NAMED_PATTERNS, NamedPattern
from bpe_beam.tokenizer.components.pretokenizers import steps_of
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.text_input import portions

# Bytes of text that are collected before they are encoded: enough to make the calls cheap.
_CHUNK_BYTES = 1 << 13

_RUNS = (
    "bert", "whitespace", "whitespace_split", "digits", "digits_individual", "punctuation",
    "unicode_scripts",
)  # fmt: skip
"""The scanners of runs, which want one character after a cut."""

_BY_SCANNER = {pattern.scanner: pattern for pattern in NAMED_PATTERNS.values()}

SafeCuts = Callable[[bytes], Iterator[int]]
"""From the beginning of a text to the offsets where it may be split, the last first."""


def safe_cuts_of(spec: TokenizerSpec) -> SafeCuts | None:
    """Return where a tokenizer's texts may be split; None if no offset is known to be safe."""
    steps = steps_of(spec.pre_tokenizer, last_as_bytes=spec.model_reads_bytes)
    if spec.normalizer is not None or len(steps) != 1 or steps[0][0] != "scan":
        return None
    return partial(safe_cuts, steps[0][1])


def encodable_chunks(
    chunks: Iterable[str], safe_cuts: SafeCuts | None, added: AddedTokens, allowed: Collection[int]
) -> Iterator[bytes]:
    """Yield a text in chunks that can be encoded one by one; errors as in `portions`."""
    waiting = bytearray()
    wanted = _CHUNK_BYTES
    for portion in portions(chunks, _CHUNK_BYTES):
        waiting += portion
        if safe_cuts is None or len(waiting) < wanted:
            continue
        cut = _find_cut(bytes(waiting), safe_cuts, added, allowed)
        if cut:
            yield bytes(waiting[:cut])
            del waiting[:cut]
        # The rest was already searched. Searching again only when it has doubled keeps the time
        # for an endless word linear.
        wanted = max(_CHUNK_BYTES, 2 * len(waiting))
    if waiting:
        yield bytes(waiting)


def _find_cut(
    data: bytes, safe_cuts: SafeCuts, added: AddedTokens, allowed: Collection[int]
) -> int:
    """Return where the beginning of a text can be split so that both parts can be encoded alone.

    The result is the last safe offset after the last recognized token, but not within a special
    token that is not allowed, whose rest may look like another token. Without such an offset it is
    the end of the last recognized token that is not within such a one; 0 if there is none.
    """
    # A special token near the end may turn out to be a longer one. Only of a token that begins
    # before `decided` all bytes are known, and the bytes of every longer token.
    decided = max(len(data) - max(added.longest - 1, 0), 0)
    while 0 < decided < len(data) and data[decided] & 0xC0 == 0x80:
        decided -= 1
    begin = cut_there = 0
    disallowed: list[tuple[int, int]] = []
    for token_id, start, end in added.find(data, allowed):
        if start >= decided:
            break
        if token_id is None:
            disallowed.append((start, end))
            continue
        begin = end
        if not disallowed or disallowed[-1][1] <= end:
            cut_there = end
    for offset in safe_cuts(data[begin:decided]):
        cut = begin + offset
        while disallowed and disallowed[-1][0] >= cut:
            disallowed.pop()
        if not disallowed or disallowed[-1][1] <= cut:
            return cut
    return cut_there


def safe_cuts(scanner_name: str, data: bytes) -> Iterator[int]:
    """Yield the offsets where a text can be cut in two without changing its words."""
    if scanner_name == "none":
        return
    pattern = _BY_SCANNER.get(scanner_name)
    last = len(data)
    for _ in range(pattern.lookahead if pattern else int(scanner_name in _RUNS)):
        last = _start_of_last(data, last)
    # Only the ends, as plain integers: a list of pairs would be many times the text.
    for end in reversed(_native.scan_words(data, scanner_name)[:, 1].tolist()):
        if end > last:
            continue
        if not pattern or _is_safe(pattern, data, end):
            yield end


def _is_safe(pattern: NamedPattern, data: bytes, cut: int) -> bool:
    """Return whether a text may be cut between two characters of a pattern's words."""
    # str.isspace holds for all that the patterns' \s does, and some controls more.
    if data[_start_of_last(data, cut) : cut].decode().isspace():
        return False
    bits = _native.char_bits(ord(data[cut : cut + 4].decode(errors="ignore")[0]))
    if bits & _native.UPPER_LIKE and not pattern.cuts_before_upper:
        return False
    return pattern.cuts_before_number or bits & _native.CLASS_BITS != _native.NUMBER


def _start_of_last(data: bytes, end: int) -> int:
    """Return where the last character of `data[:end]` begins; 0 if there is none."""
    start = end - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return max(start, 0)
