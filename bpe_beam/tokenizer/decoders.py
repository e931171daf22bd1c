"""Decoders: how tokens become text again.

A decoder takes the tokens of a text, as their strings in UTF-8, and gives other pieces, the text
when they are joined; decoders stand in a chain. What comes out of
bytes need not be UTF-8: with `lossy` each decoder that makes bytes replaces what is broken, as
Hugging Face does; without it the bytes stay as they are, and later decoders leave them alone.

Fields are named and ordered as in Hugging Face's files; `JSON_TYPE` is the part's "type" there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

from bpe_beam.errors import DataError, UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.patterns import Pattern

_REPLACEMENT = "\ufffd".encode()
# What a byte is called in vocabularies with byte fallback. The plus sign is Hugging Face's: its
# parser of numbers takes one.
_BYTE_TOKEN = re.compile(rb"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
# A file's decoder may make a text longer, but a chain of a few could make it longer without end.
_MOST_GROWTH = 100
_SPARE_BYTES = 1 << 20


class Decoder(Protocol):
    """What all decoders have."""

    JSON_TYPE: ClassVar[str]

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """Decodes the pieces of one text.

        Args:
            tokens: The tokens' strings in UTF-8, or what the decoder before gave.
            lossy: Replace bytes that are not UTF-8, as Hugging Face does, instead of giving them.

        Returns:
            The pieces that are the text when joined. Takes linear time.

        Raises:
            DataError: The text becomes more than a hundred times as long as the tokens.
        """
        ...


@record
class ByteLevelDecoder:
    """Joins the bytes that the tokens stand for in the byte-level alphabet.

    A token with a character that is not of the alphabet stands for its own text.

    Attributes:
        add_prefix_space: Stands in Hugging Face's file, like the next two, and is kept for it;
            as there, they have no effect in a decoder.
        trim_offsets: See above.
        use_regex: See above.
    """

    JSON_TYPE: ClassVar[str] = "ByteLevel"

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`; gives one piece."""
        data = b"".join(map(_bytes_of, tokens))
        return [data.decode(errors="replace").encode() if lossy else data]


@record
class BPEDecoder:
    """Puts a space where a word ends, except after the last token.

    Attributes:
        suffix: What marks the end of a word.
    """

    JSON_TYPE: ClassVar[str] = "BPEDecoder"

    suffix: str = "</w>"

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        decoded = [_replace(token, self.suffix, b" ") for token in tokens[:-1]]
        return decoded + [_replace(token, self.suffix, b"") for token in tokens[-1:]]


# In this order, each in the result of the one before.
_CLEANUP = (
    (b" .", b"."),
    (b" ?", b"?"),
    (b" !", b"!"),
    (b" ,", b","),
    (b" ' ", b"'"),
    (b" n't", b"n't"),
    (b" 'm", b"'m"),
    (b" do not", b" don't"),
    (b" 's", b"'s"),
    (b" 've", b"'ve"),
    (b" 're", b"'re"),
)


@record
class WordPieceDecoder:
    """Puts a space before each token that begins a word, except the first.

    Attributes:
        prefix: What marks a token that continues a word.
        cleanup: Whether to take out the spaces before punctuation and English contractions,
            within each token.
    """

    JSON_TYPE: ClassVar[str] = "WordPiece"

    prefix: str = "##"
    cleanup: bool = True

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        prefix = self.prefix.encode()
        decoded = tokens[:1]
        for token in tokens[1:]:
            decoded.append(token[len(prefix) :] if token.startswith(prefix) else b" " + token)
        if self.cleanup:
            for old, new in _CLEANUP:
                decoded = [token.replace(old, new) for token in decoded]
        return decoded


@record
class MetaspaceDecoder:
    """Puts spaces for a character that stands for them; in the first token, takes it out.

    Attributes:
        replacement: The character.
        prepend_scheme: When the pre-tokenizer put one before the text: "always", "first" or
            "never". With "never" the first token is like any other.
        split: Kept for the file; has no effect.

    Raises:
        UsageError: A replacement of more or less than one character; another scheme.
    """

    JSON_TYPE: ClassVar[str] = "Metaspace"

    replacement: str = "\u2581"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True

    def __post_init__(self) -> None:
        _check_character("Metaspace decoder: replacement", self.replacement)
        if self.prepend_scheme not in ("always", "first", "never"):
            raise UsageError(
                f"Metaspace decoder: prepend_scheme {self.prepend_scheme!r}: "
                'give "always", "first" or "never"'
            )

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        replacement = self.replacement.encode()
        first = b" " if self.prepend_scheme == "never" else b""
        decoded = [token.replace(replacement, first) for token in tokens[:1]]
        return decoded + [token.replace(replacement, b" ") for token in tokens[1:]]


@record
class ByteFallback:
    """Joins runs of tokens that are called `<0x00>` to `<0xFF>` to the bytes they stand for.

    With `lossy` a run that is not UTF-8 becomes one U+FFFD for each of its bytes.
    """

    JSON_TYPE: ClassVar[str] = "ByteFallback"

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        decoded: list[bytes] = []
        run = bytearray()
        for token in tokens:
            byte = _BYTE_TOKEN.fullmatch(token)
            if byte is not None:
                run.append(int(byte[1], 16))
                continue
            decoded += _end_of_run(run, lossy)
            run.clear()
            decoded.append(token)
        return decoded + _end_of_run(run, lossy)


@record
class Fuse:
    """Joins all pieces to one."""

    JSON_TYPE: ClassVar[str] = "Fuse"

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`; gives one piece."""
        return [b"".join(tokens)]


@record
class StripDecoder:
    """Takes a character off both ends of each piece.

    Attributes:
        content: The character.
        start: How many at most at the start.
        stop: How many at most at the end.

    Raises:
        UsageError: A content of more or less than one character; a number below 0.
    """

    JSON_TYPE: ClassVar[str] = "Strip"

    content: str
    start: int
    stop: int

    def __post_init__(self) -> None:
        _check_character("Strip decoder: content", self.content)
        for name, number in (("start", self.start), ("stop", self.stop)):
            if number < 0:
                raise UsageError(f"Strip decoder: {name} {number}: give 0 or more")

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        return [self._strip(token) for token in tokens]

    def _strip(self, token: bytes) -> bytes:
        content = self.content.encode()
        begin, end = 0, len(token)
        for _ in range(self.start):
            if not token.startswith(content, begin):
                break
            begin += len(content)
        for _ in range(self.stop):
            if not token.endswith(content, begin, end):
                break
            end -= len(content)
        return token[begin:end]


@record
class ReplaceDecoder:
    """Replaces every match of a pattern, in each piece by itself.

    Attributes:
        pattern: What is searched for.
        content: What is put in its place, as it stands.
    """

    JSON_TYPE: ClassVar[str] = "Replace"

    pattern: Pattern
    content: str

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        content = self.content.encode()
        limit = _most_bytes(tokens)
        decoded = []
        for token in tokens:
            if self.pattern.kind == "String" and self.pattern.value:
                old = self.pattern.value.encode()
                matches = token.count(old)
                limit -= len(token) + matches * (len(content) - len(old))
                _check_growth(limit)
                decoded.append(token.replace(old, content))
                continue
            spans = [*self.pattern.byte_spans(token)]
            limit -= len(token) + sum(len(content) - (end - start) for start, end in spans)
            _check_growth(limit)
            decoded.append(_put(token, spans, content))
        return decoded


@record
class SequenceDecoder:
    """Decoders one after the other.

    Attributes:
        decoders: The first first.
    """

    JSON_TYPE: ClassVar[str] = "Sequence"

    decoders: Sequence[Decoder]

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        """See `Decoder.apply`."""
        from bpe_beam import _native

        limit = _most_bytes(tokens)
        for decoder in self.decoders:
            _native.check_deadline()
            tokens = decoder.apply(tokens, lossy=lossy)
            _check_growth(limit - sum(map(len, tokens)))
        return tokens


def _bytes_of(token: bytes) -> bytes:
    """What a token of the byte-level alphabet stands for; a token that is not of it, its text."""
    try:
        return bytes([byte_level.CHAR_TO_BYTE[char] for char in token.decode()])
    except (KeyError, UnicodeDecodeError):
        return token


def _replace(token: bytes, old: str, new: bytes) -> bytes:
    """`token` with `new` for `old`; an empty `old` is found around every character."""
    if old:
        return token.replace(old.encode(), new)
    text = token.decode("utf-8", "surrogateescape").replace("", new.decode())
    return text.encode("utf-8", "surrogateescape")


def _end_of_run(run: bytearray, lossy: bool) -> list[bytes]:
    """The pieces that a run of byte tokens becomes; none if it is empty."""
    if not run:
        return []
    if lossy:
        try:
            run.decode()
        except UnicodeDecodeError:
            return [_REPLACEMENT] * len(run)
    return [bytes(run)]


def _put(token: bytes, spans: list[tuple[int, int]], content: bytes) -> bytes:
    """The token with `content` in place of each span."""
    pieces = []
    last = 0
    for start, end in spans:
        pieces += [token[last:start], content]
        last = end
    return b"".join([*pieces, token[last:]])


def _check_character(what: str, value: str) -> None:
    if len(value) != 1:
        raise UsageError(f"{what} {value!r}: give one character")


def _most_bytes(tokens: list[bytes]) -> int:
    """How long the pieces may become."""
    return _SPARE_BYTES + _MOST_GROWTH * sum(map(len, tokens))


def _check_growth(left: int) -> None:
    """Refuses what is longer than it may be by -`left` bytes."""
    if left < 0:
        raise DataError(
            f"the tokenizer's decoder makes the text over {_MOST_GROWTH} times as long as its "
            "tokens: check the Replace decoders in its file"
        )
