"""Offsets where a text can be cut in two without changing its words. They let a long or endless
text be encoded chunk by chunk.

*What is to be proved.* D is the beginning of a text, whole characters; what follows it is not
known. A cut at e is safe if for every text T that begins with D the words of T are the words of
T[:e] and then those of T[e:]. Positions count characters. No pattern looks back, so a scan that
begins at e gives the words that T's own scan gives once it has a word's end at e. It remains that

    (a) D decides the words of T up to e, and one of them ends at e;
    (b) T[:e] alone has the same words, though its end comes earlier.

For both it matters how far a word *sees*: the last position it depends on, the text's end being a
thing that can be seen. If every word that ends at or before e sees no further than D, (a) holds for
the ends of words that the scan of D finds. For (b), only words that see e or beyond count.

*Runs* (bert, whitespace, whitespace_split, digits, digits_individual, punctuation). A word that
ends at e' is one character and sees e' - 1, or is a run and sees e', where a character of another
part, or the text's end, stops it. So (a) wants one character after e; and (b) holds, since a run
that ends at e is stopped by the text's end as well. `none` has one word and no cut.

*The byte-level patterns.* Let the character before e be no space. Then a word of spaces that begins
before e sees only its run of spaces and the character that stops it, which lies before e. What is
left of a word that ends at e' <= e:

- A run of letters, of others (with the line breaks, and in o200k slashes, after it), or of at
  most so many numbers, with or without a character before it, sees at most e'. The text's end
  stops it at e as well.
- Alternatives that need a second character, and fail, see at most e', because the word has one
  character at least.
- gpt2: a contraction that fails sees at most two characters after its apostrophe, where the word
  has one or more: e' + 1. With fewer characters it fails as well.
- cl100k, qwen2: a contraction that fails for its second letter has seen a letter after the
  apostrophe, and that letter belongs to the word: it sees e' at most.
- o200k: what may follow the letters, a contraction, sees e' + 2 when it fails, and fails with
  fewer characters too; when it succeeds it is part of the word. And U* sees to the end q of
  the run of U, though the word may end before, at the last letter that is in L too. Let the
  character at e not be of U: then no run of U goes on over e, so q <= e for every such word, and
  the text's end at e stops the run as well; what follows the run at e, a pure lower letter, is
  impossible there: the word would go on with it and not end at e or before.

So gpt2 wants two characters after e, cl100k's family one, o200k three, the first of them not of U.
We ask cl100k's family for two. These numbers are `lookahead` and `cuts_before_upper` of
`NamedPattern`.
"""

from __future__ import annotations

from collections.abc import Iterator

from bpe_beam import _native
from bpe_beam.tokenizer.patterns import NAMED_PATTERNS

_RUNS = (
    "bert", "whitespace", "whitespace_split", "digits", "digits_individual", "punctuation",
)  # fmt: skip
"""The scanners of runs, which want one character after a cut."""

_BY_SCANNER = {pattern.scanner: pattern for pattern in NAMED_PATTERNS.values()}


def safe_cuts(scanner_name: str, data: bytes) -> Iterator[int]:
    """Yield the offsets where a text can be cut in two without changing its words.

    Args:
        scanner_name: One of `_native.SCANNERS`.
        data: The beginning of a text, in UTF-8, whole characters. More may follow, and what
            follows is not known.

    Yields:
        Offsets in bytes, the last first. Whatever follows `data`, the words of the whole text are
        the words of `data[:offset]`, then those of the rest. One endless word, endless spaces and
        the scanner `none` have no such offset. The module's docstring has the proof.

    Raises:
        ValueError: There is no scanner of this name.
    """
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
        # str.isspace holds for all that the patterns' \s does, and some controls more.
        if pattern and data[_start_of_last(data, end) : end].decode().isspace():
            continue
        if pattern and not pattern.cuts_before_upper and _is_upper_like(data, end):
            continue
        yield end


def _start_of_last(data: bytes, end: int) -> int:
    """Return where the last character of `data[:end]` begins; 0 if there is none."""
    start = end - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return max(start, 0)


def _is_upper_like(data: bytes, start: int) -> bool:
    """Return whether the character that begins at `start` is one of U."""
    end = start + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return bool(_native.char_bits(ord(data[start:end].decode())) & _native.UPPER_LIKE)
