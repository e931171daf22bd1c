"""Decoders: how tokens become text again. Several form a chain, as `SequenceDecoder`.

`apply` returns the decoded strings of one text, in linear time. With `lossy`, bytes that are not
UTF-8 become U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, groupby

from bpe_beam import _native
from bpe_beam.errors import DataError, require_choice
from bpe_beam.tokenizer.components import byte_level, component
from bpe_beam.tokenizer.components.patterns import Pattern

_REPLACEMENT = "\ufffd"
_ESCAPED_SPACE = "\u2581".encode()
# The token of a byte in vocabularies with byte fallback. Hugging Face's parser of numbers accepts
# a plus sign.
_BYTE_TOKEN = re.compile(rb"<0x([0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
_MALFORMED_BYTE = re.compile("[\udc80-\udcff]")  # as surrogateescape decodes it
# A decoder may lengthen a text, but a chain of a few could lengthen it without a limit.
_MAX_GROWTH = 100
_SPARE_BYTES = 1 << 20


class ByteLevelDecoder(component.Component, frozen=True, tag="ByteLevel"):
    """Joins the bytes of tokens in the byte-level alphabet.

    The bytes of a token with a character outside of the alphabet are its own text. The settings
    have no effect, as in Hugging Face.
    """

    add_prefix_space: bool = False
    trim_offsets: bool = True
    use_regex: bool = True

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        data = b"".join(map(bytes_of_token, tokens))
        return [data.decode(errors="replace").encode() if lossy else data]


class BPEDecoder(component.Component, frozen=True):
    """Replaces the mark of the end of a word by a space, except after the last token."""

    suffix: str = "</w>"

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        decoded = [_replace(token, self.suffix, b" ") for token in tokens[:-1]]
        return decoded + [_replace(token, self.suffix, b"") for token in tokens[-1:]]


CLEANUP = (
    *((b" .", b"."), (b" ?", b"?"), (b" !", b"!"), (b" ,", b","), (b" ' ", b"'")),
    *((b" n't", b"n't"), (b" 'm", b"'m"), (b" do not", b" don't"), (b" 's", b"'s")),
    *((b" 've", b"'ve"), (b" 're", b"'re")),
)
"""The replacements of a clean-up, each applied to the result of the one before."""


class WordPieceDecoder(component.Component, frozen=True, tag="WordPiece"):
    """Adds a space before each token that begins a word, except the first."""

    prefix: str = "##"  # of a token that continues a word
    # Whether to remove the spaces before punctuation and English contractions, within each token
    cleanup: bool = True

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        prefix = self.prefix.encode()
        decoded = tokens[:1]
        for token in tokens[1:]:
            decoded.append(token[len(prefix) :] if token.startswith(prefix) else b" " + token)
        return [_cleaned_up(token) for token in decoded] if self.cleanup else decoded


class MetaspaceDecoder(component.MetaspaceComponent, frozen=True, tag="Metaspace"):
    """Replaces a visible character by a space; in the first token, removes it."""

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        replacement = self.replacement.encode()
        first = b" " if self.prepend_scheme == "never" else b""
        decoded = [token.replace(replacement, first) for token in tokens[:1]]
        return decoded + [token.replace(replacement, b" ") for token in tokens[1:]]


class ByteFallback(component.Component, frozen=True):
    """Joins runs of the tokens `<0x00>` to `<0xFF>` to bytes.

    With `lossy` a run that is not UTF-8 becomes one U+FFFD for each of its bytes.
    """

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        decoded: list[bytes] = []
        for is_bytes, group in groupby(tokens, _is_byte):
            run = [*group]
            if is_bytes:
                data = _joined_bytes(run)
                malformed = lossy and _MALFORMED_BYTE.search(data.decode(errors="surrogateescape"))
                run = [_REPLACEMENT.encode()] * len(run) if malformed else [data]
            decoded += run
        return decoded


class Fuse(component.Component, frozen=True):
    """Joins all strings to one."""

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        return [b"".join(tokens)]


class StripDecoder(component.Component, frozen=True, tag="Strip"):
    """Removes a character, at most `start` and `stop` times, from the ends of each string."""

    content: str
    start: component.TokenId
    stop: component.TokenId

    def __post_init__(self) -> None:
        component.check_character("content", self.content)

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        return [self._strip(token) for token in tokens]

    def _strip(self, token: bytes) -> bytes:
        content = self.content.encode()
        size = len(content)
        begin, end = 0, len(token)
        while begin < self.start * size and token.startswith(content, begin):
            begin += size
        while len(token) - end < self.stop * size and token.endswith(content, begin, end):
            end -= size
        return token[begin:end]


class ReplaceDecoder(component.Component, frozen=True, tag="Replace"):
    """Replaces every match of a pattern, in each string by itself.

    The replacement has no references to groups.
    """

    pattern: Pattern
    content: str

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        content = self.content.encode()
        limit = _max_bytes(tokens)
        decoded = []
        for token in tokens:
            if self.pattern.text:
                kept = token.split(self.pattern.text.encode())
            else:
                edges = [0, *chain(*self.pattern.byte_spans(token)), len(token)]
                kept = [
                    token[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)
                ]
            limit -= sum(map(len, kept)) + len(content) * (len(kept) - 1)
            _check_growth(limit)
            decoded.append(content.join(kept))
        return decoded


class CTC(component.Component, frozen=True):
    """Joins the tokens of speech recognition: a token that follows itself is dropped."""

    pad_token: str = "<pad>"  # the token between two equal ones, removed from each token
    word_delimiter_token: str = "|"  # the token of a space
    # Whether to put spaces for it, and to clean up each token as `WordPieceDecoder`
    cleanup: bool = True

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        decoded = [token.replace(self.pad_token.encode(), b"") for token, _ in groupby(tokens)]
        if not self.pad_token:
            decoded = [token for token, _ in groupby(tokens)]
        if self.cleanup:
            decoded = [
                _replace(_cleaned_up(token), self.word_delimiter_token, b" ") for token in decoded
            ]
        return decoded


class SentencePieceDecoder(component.Component, frozen=True, tag="SentencePiece"):
    """Decodes as SentencePiece does, which Hugging Face's decoders cannot in all cases."""

    # Whether a U+2581 at the beginning of the text is dropped: `one`, `all` of the first tokens
    # that have nothing else, or `none`
    strip_first: str
    # Whether the tokens `<0x00>` to `<0xFF>` are bytes. Each byte that is not UTF-8 becomes U+FFFD.
    byte_fallback: bool
    control: tuple[str, ...]  # the tokens that have no text
    unknown: str  # the unknown token
    unknown_surface: str  # the text of the unknown token

    def __post_init__(self) -> None:
        require_choice("strip_first", self.strip_first, ("one", "all", "none"))

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        silent = {token.encode() for token in self.control}
        unknown, surface = self.unknown.encode(), self.unknown_surface.encode()
        decoded: list[bytes] = []
        begun = self.strip_first == "none"
        for is_bytes, group in groupby(tokens, lambda one: self.byte_fallback and _is_byte(one)):
            if is_bytes:
                data = _joined_bytes(group)
                if lossy:
                    escaped = data.decode(errors="surrogateescape")
                    data = _MALFORMED_BYTE.sub(_REPLACEMENT, escaped).encode()
                decoded.append(data)
                begun = True
                continue
            for token in group:
                text, stripped = b"", False
                if token == unknown:
                    text = surface
                elif token not in silent:
                    kept = token if begun else token.removeprefix(_ESCAPED_SPACE)
                    stripped = self.strip_first == "one" and len(kept) < len(token)
                    text = kept.replace(_ESCAPED_SPACE, b" ")
                begun = begun or stripped or bool(text)
                decoded.append(text)
        return decoded


class SequenceDecoder(component.Component, frozen=True, tag="Sequence"):
    """Decoders one after the other."""

    decoders: tuple[Decoder, ...]

    def apply(self, tokens: list[bytes], *, lossy: bool) -> list[bytes]:
        limit = _max_bytes(tokens)
        for decoder in self.decoders:
            _native.check_deadline()
            tokens = decoder.apply(tokens, lossy=lossy)
            _check_growth(limit - sum(map(len, tokens)))
        return tokens


Decoder = (
    BPEDecoder | ByteFallback | ByteLevelDecoder | CTC | Fuse | MetaspaceDecoder | ReplaceDecoder
    | SentencePieceDecoder | SequenceDecoder | StripDecoder | WordPieceDecoder
)  # fmt: skip


def bytes_of_token(token: bytes) -> bytes:
    """Return the bytes of a token in the byte-level alphabet; of another token, its text."""
    try:
        return bytes([byte_level.CHAR_TO_BYTE[char] for char in token.decode()])
    except (KeyError, UnicodeDecodeError):
        return token


def _replace(token: bytes, mark: str, by: bytes) -> bytes:
    """Return the token with `by` for each mark; an empty mark matches around every character."""
    if mark:
        return token.replace(mark.encode(), by)
    text = token.decode("utf-8", "surrogateescape").replace("", by.decode())
    return text.encode("utf-8", "surrogateescape")


def _cleaned_up(token: bytes) -> bytes:
    for text, replacement in CLEANUP:
        token = token.replace(text, replacement)
    return token


def _is_byte(token: bytes) -> bool:
    return _BYTE_TOKEN.fullmatch(token) is not None


def _joined_bytes(run: Iterable[bytes]) -> bytes:
    return bytes(int(token[3:-1], 16) for token in run)


def _max_bytes(tokens: list[bytes]) -> int:
    return _SPARE_BYTES + _MAX_GROWTH * sum(map(len, tokens))


def _check_growth(left: int) -> None:
    """Refuse a text that exceeds its limit by -`left` bytes."""
    if left < 0:
        raise DataError(
            f"the tokenizer's decoder makes the text over {_MAX_GROWTH} times as long as its "
            "tokens; check the Replace decoders in its file"
        )
