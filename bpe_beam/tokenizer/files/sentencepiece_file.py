"""SentencePiece's `.model` files: a message of protocol buffers with pieces, scores and rules.

The reader knows the fields that decide which ids a text gets, and skips the others.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, count, groupby, pairwise
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import decoders, normalizers
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, PIECE_KINDS, ErrorLocation, SentencePiece
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.spec import TokenizerSpec

# Kinds of values, by number.
VARINT, _EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
_SIZES = {_EIGHT_BYTES: 8, FOUR_BYTES: 4}
_FLOAT = struct.Struct("<f")
Fields: TypeAlias = Mapping[int, tuple[str, int]]

# The fields of each message, and the kind of their values.
MODEL: Fields = {
    1: ("pieces", BYTES),
    2: ("trainer_spec", BYTES),
    3: ("normalizer_spec", BYTES),
    5: ("denormalizer_spec", BYTES),
}
PIECE: Fields = {1: ("piece", BYTES), 2: ("score", FOUR_BYTES), 3: ("type", VARINT)}
TRAINER: Fields = {
    3: ("model_type", VARINT),
    24: ("treat_whitespace_as_suffix", VARINT),
    35: ("byte_fallback", VARINT),
    44: ("unk_surface", BYTES),
}
NORMALIZER: Fields = {
    2: ("precompiled_charsmap", BYTES),
    3: ("add_dummy_prefix", VARINT),
    4: ("remove_extra_whitespaces", VARINT),
    5: ("escape_whitespaces", VARINT),
}

ALGORITHMS = {1: "unigram", 2: "bpe"}
ESCAPED_SPACE = "\u2581"
_UNKNOWN_SURFACE = " \u2047 "
_PIECES = ErrorLocation(setting=lambda name: "pieces" if name == "vocab" else name)


def read(data: bytes, source: str) -> TokenizerSpec:
    """Return the tokenizer in a `.model` file."""
    with explained(data, source, ".model"):
        model, settings = _read_model(data, source)
        try:
            spec = _spec_of(model, settings)
            spec.check(_PIECES)
        except UsageError as error:
            raise UsageError(f"{source}: {error}") from None
    return spec


def read_pieces(data: bytes, source: str) -> tuple[SentencePiece, bytes]:
    """Return the model in a `.model` file, and the table of replacements of its normalizer."""
    with explained(data, source, ".model"):
        model, settings = _read_model(data, source)
    return model, _charsmap(settings)


def _read_model(data: bytes, source: str) -> tuple[SentencePiece, dict[str, Any]]:
    """Return the checked model in a file, and the settings of its messages by their names."""
    pieces, settings = _read_fields(data, source)
    algorithm = ALGORITHMS.get(settings.get("model_type", 1))
    if algorithm is None:
        raise UsageError(
            f"{source}: trainer_spec.model_type must be {' or '.join(ALGORITHMS.values())}, got "
            f"the number {settings['model_type']}"
        )
    if (changes := settings.get("denormalizer.precompiled_charsmap")) and changes.raw():
        raise UsageError(f"{source}: denormalizer_spec: replacements in decoding are not supported")
    model = SentencePiece(algorithm, pieces, bool(settings.get("byte_fallback", False)))
    try:
        model.check(_PIECES)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None
    return model, settings


def _charsmap(settings: dict[str, Any]) -> bytes:
    return settings["precompiled_charsmap"].raw() if "precompiled_charsmap" in settings else b""


def _read_fields(data: bytes, source: str) -> tuple[list[tuple[str, float, str]], dict[str, Any]]:
    """Return the pieces of a file, and the settings of its messages by their names."""
    pieces: list[tuple[str, float, str]] = []
    settings: dict[str, Any] = {}
    for name, value in _Reader(data, source, 0, len(data)).fields(MODEL):
        if name == "pieces":
            pieces.append(_read_piece(value))
        else:
            known = TRAINER if name == "trainer_spec" else NORMALIZER
            prefix = "denormalizer." if name == "denormalizer_spec" else ""
            settings |= {prefix + key: value for key, value in value.fields(known)}
    return pieces, settings


class _Rules(Struct, frozen=True):
    """The rules of a file for spaces, with SentencePiece's defaults."""

    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False


ONLY_ESCAPED = _Rules(remove_extra_whitespaces=False)
"""The rules that Hugging Face's normalizers have, but for the dummy prefix."""


def _spec_of(model: SentencePiece, settings: dict[str, Any]) -> TokenizerSpec:
    """Return a tokenizer of a model and the settings of its file, by the names of their fields."""
    given = {name: bool(settings[name]) for name in _Rules.__struct_fields__ if name in settings}
    rules = _Rules(**given)
    charsmap = _charsmap(settings)
    if not charsmap and replace(rules, add_dummy_prefix=True) == ONLY_ESCAPED:
        spec = _hugging_face_spec(model, rules.add_dummy_prefix)
        if spec is not None:
            return spec
    control = model.of_kind("control")
    (unknown,) = model.of_kind("unknown")
    surface = settings.get("unk_surface")
    strip = "one" if rules.add_dummy_prefix else "none"
    return TokenizerSpec(
        model,
        tuple(AddedToken(token_id, token) for token, token_id in control.items()),
        normalizer=normalizers.SentencePieceNormalizer(
            b64encode(charsmap).decode(),
            **asdict(rules),
            user_defined_symbols=tuple(model.of_kind("user_defined")),
        ),
        decoder=decoders.SentencePieceDecoder(
            strip_first="all" if rules.remove_extra_whitespaces else strip,
            byte_fallback=model.byte_fallback,
            control=tuple(control),
            unknown=unknown,
            unknown_surface=_UNKNOWN_SURFACE if surface is None else surface.text(),
        ),
    )


def _hugging_face_spec(model: SentencePiece, add_dummy_prefix: bool) -> TokenizerSpec | None:
    """Return a tokenizer of Hugging Face's components with the same ids, as published for Llama 2.

    Its decoder differs for special tokens, which have their own text there. None: those components
    cannot give the same ids for all texts.
    """
    (unknown,) = model.of_kind("unknown")
    if model.algorithm != "bpe" or model.of_kind("user_defined") or len(unknown) == 1:
        return None
    merges = merges_of(model)
    if merges is None:
        return None
    special = model.of_kind("control", "unknown")
    escape = normalizers.Replace(Pattern(text=" "), ESCAPED_SPACE)
    restore = decoders.ReplaceDecoder(Pattern(text=ESCAPED_SPACE), " ")
    normalizer = normalizers.NormalizerSequence((normalizers.Prepend(ESCAPED_SPACE), escape))
    strip = (decoders.StripDecoder(" ", 1, 0),) if add_dummy_prefix else ()
    return TokenizerSpec(
        BPE(model.vocab, merges, unknown, fuse_unk=True, byte_fallback=model.byte_fallback),
        tuple(AddedToken(token_id, token) for token, token_id in special.items()),
        normalizer=normalizer if add_dummy_prefix else escape,
        decoder=decoders.SequenceDecoder(
            (restore, decoders.ByteFallback(), decoders.Fuse(), *strip)
        ),
    )


def merges_of(model: SentencePiece) -> list[tuple[str, str]] | None:
    """Return merges of BPE that give what its scores give; None: no list of merges is known to.

    Merges of ranks join bytes, so each character is first made of its bytes.
    """
    normal = model.of_kind("normal")
    by_falling_score = groupby(model.by_falling_score(), lambda text: model.pieces[normal[text]][1])
    groups = [list(group) for _, group in by_falling_score]
    doubled = ({one for one, other in pairwise(piece) if one == other} for piece in normal)
    holders = Counter(chain.from_iterable(doubled))  # pieces with a character twice in a row
    for group in groups:
        runs = set("".join(group))
        if len(group) > 1 and (len(runs) > 1 or holders[runs.pop()] > len(group)):
            return None  # of pieces with one score, the leftmost in the text is made first
    ranked = [group[0].encode() for group in groups if len(group) == 1]
    characters = [piece.encode() for piece in normal if len(piece) == 1]
    begun = {character[:size] for character in characters for size in range(2, len(character) + 1)}
    tokens = [*(bytes([byte]) for byte in range(256)), *sorted(begun, key=len), *ranked]
    try:
        rows = _native.rank_merges(tokens)
    except ValueError:  # more pairs than published models have
        return None
    splits = {joined: (tokens[left], tokens[right]) for left, right, joined in rows.tolist()}
    numbers = count(len(tokens) - len(ranked))
    merges: list[tuple[str, str]] = []
    for group in groups:
        if len(group) > 1:
            merges += _merges_of_runs(group, normal)
        elif split := splits.get(next(numbers)):
            merges.append((split[0].decode(), split[1].decode()))
    return merges


def _merges_of_runs(group: list[str], normal: Collection[str]) -> list[tuple[str, str]]:
    """Return merges that make the leftmost of runs of one score first.

    No other piece has two of the character in a row, so runs meet no other merge.
    The runs of a text grow from its left, so that only three pairs can merge: the last two runs
    that have grown, the last one and a character, and two characters. They make pieces of falling
    lengths: the longest piece first is the leftmost first.
    """
    return [
        (piece[:at], piece[at:])
        for piece in sorted(group, key=len, reverse=True)
        for at in range(len(piece) - 1, 0, -1)
        if piece[:at] in normal and piece[at:] in normal
    ]


def _read_piece(message: _Reader) -> tuple[str, float, str]:
    """Return the text, the score and the kind of a piece."""
    text, score, kind = "", 0.0, 1
    for name, value in message.fields(PIECE):
        if name == "piece":
            text = value.text()
        elif name == "score":
            score = value
        else:
            kind = value
    if not 1 <= kind <= len(PIECE_KINDS):
        message.refuse(message.start, f"no kind of pieces has the number {kind}")
    return text, score, PIECE_KINDS[kind - 1]


class _Reader(Struct, frozen=True):
    """The bytes of a message or a text, from `start` to `end` of a whole file."""

    data: bytes
    source: str
    start: int
    end: int

    def refuse(self, at: int, why: str) -> NoReturn:
        """Raise UsageError for a byte."""
        raise UsageError(f"{self.source}: byte {at:,}: {why}")

    def raw(self) -> bytes:
        """Return the bytes."""
        return self.data[self.start : self.end]

    def text(self) -> str:
        """Return the bytes as text, which must be UTF-8."""
        try:
            return self.raw().decode()
        except UnicodeDecodeError as error:
            self.refuse(self.start + error.start, f"not UTF-8: {error.reason}")

    def fields(self, known: Fields) -> Iterator[tuple[str, Any]]:
        """Yield the names and values of known fields: an integer, a float, or a reader."""
        at = self.start
        while at < self.end:
            begin = at
            key, at = self._varint(at)
            kind = key & 7
            if kind == VARINT:
                value: Any
                value, after = self._varint(at)
            elif kind == BYTES:
                size, at = self._varint(at)
                value, after = None, at + size
            elif kind in _SIZES:
                value, after = None, at + _SIZES[kind]
            else:
                self.refuse(begin, f"no kind of values has the number {kind}")
            if after > self.end:
                self.refuse(begin, "a value that does not end within its message")
            number = key >> 3
            if number == 0:
                self.refuse(begin, "a field with the number 0")
            if number in known:
                name, wanted = known[number]
                if kind != wanted:
                    self.refuse(begin, f"{name} must have the kind {wanted}, got {kind}")
                if kind == BYTES:
                    value = _Reader(self.data, self.source, at, after)
                elif kind == FOUR_BYTES:
                    (value,) = _FLOAT.unpack_from(self.data, at)
                yield name, value
            at = after

    def _varint(self, at: int) -> tuple[int, int]:
        """Return the integer at a position, of at most 64 bits, and the position after it."""
        value = 0
        for shift in range(0, 70, 7):
            if at >= self.end:
                self.refuse(at, "the message ends within a number")
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
        else:
            self.refuse(at, "a number of more than ten bytes")
        return value, at
