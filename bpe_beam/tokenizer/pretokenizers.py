"""Pre-tokenizers: how text is cut into words before any merge is learned or applied.

Each is a small frozen dataclass of its settings. The native scanner does the cutting; the pattern
is what the scanner is tested against.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bpe_beam.errors import UsageError

GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's pattern (section 1 of the semantics), for the `regex` package."""

PRETOKENIZERS = ("gpt2",)
"""The names that this version knows."""


@dataclass(frozen=True)
class ByteLevelPreTokenizer:
    """Cuts text by GPT-2's pattern; the model works on the bytes of each word.

    Attributes:
        trim_offsets: Stands in Hugging Face's file beside the settings that matter and is kept
            for it; as there, it has no effect in a pre-tokenizer.
    """

    trim_offsets: bool = True

    @property
    def name(self) -> str:
        """Its name on the command line and in counts."""
        return "gpt2"

    def safe_cuts(self, data: bytes) -> Iterator[int]:
        """Finds places where a text may be cut in two and still give the same words.

        Args:
            data: The beginning of a text, in UTF-8, whole characters. More may follow, and what
                follows is not known.

        Yields:
            Offsets in bytes, the last first. For each, whatever follows: the words of
            the whole text are the words of `data[:offset]`, then those of the rest.

        A cut is safe at the end e of a word of D = `data` if the character before e is no space
        and at least two characters of D follow. (Positions below count characters.)

        1. *Which word begins at p depends only on the text from p to e+1, where e is the word's
           end, the text's own end counting as something to be seen.* A run of letters, numbers
           or others, with or without a space before it, has seen the character at e that stops
           it. A contraction has seen nothing past its end; one that fails has seen at most p+2,
           and then the word has e >= p+1. A run of spaces up to q, stopped by the character at q,
           ends at q-1 = e or, if it has but one, at q = e: it has seen at most e+1.
        2. So if e+1 lies within D, every text that begins with D has the same word there; and,
           from the first word on, all the same words up to e.
        3. *The text cut at e has the same words up to e.* By 1, only a word that ends at e or
           e-1 has seen anything from e on. The last word ends in a character that is no space,
           so it is a contraction, which has seen nothing there, or a run, which the text's end
           stops as well; and a contraction that failed before has fewer characters to succeed
           with. The word that ends at e-1, before a last word of one character, is no run of
           spaces that gave one back, for it would have seen at e what stopped it, and the
           character at e-1 would be a space; nor can its failed contraction succeed now.
        4. The pattern never looks back, so the rest, scanned alone, gives the rest of the words.

        Without such a place (one endless word, or endless spaces) there is no cut.
        """
        from bpe_beam import _native

        second_last = _start_of_last(data, _start_of_last(data, len(data)))
        for end in reversed(_native.scan(data).tolist()):
            # str.isspace holds for all that the pattern's \s does, and some controls more.
            if end <= second_last and not data[_start_of_last(data, end) : end].decode().isspace():
                yield end


def pretokenizer_from_name(name: str) -> ByteLevelPreTokenizer:
    """Makes a pre-tokenizer from its name on the command line.

    Args:
        name: One of `PRETOKENIZERS`.

    Raises:
        UsageError: A name that this version does not have; lists those that it has.
    """
    if name not in PRETOKENIZERS:
        raise UsageError(
            f"pretokenizer {name!r}: this version of bpe-beam has {', '.join(PRETOKENIZERS)}"
        )
    return ByteLevelPreTokenizer()


def _start_of_last(data: bytes, end: int) -> int:
    """Where the last character of `data[:end]` begins; 0 if there is none."""
    start = end - 1
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    return max(start, 0)
