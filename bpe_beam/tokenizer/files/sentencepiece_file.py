"""SentencePiece's `.model` files: a message of protocol buffers with pieces, scores and rules.

The reader knows the fields that decide which ids a text gets, and skips the others. SentencePiece
merges by the scores of pieces, and BPE by a list of merges: BPE is only written where the reader
proves that both give the same ids for all texts.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count, groupby, pairwise
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from bpe_beam import _native
from bpe_beam.errors import UsageError, require
from bpe_beam.messages import shortened
from bpe_beam.storage.thrift_compact import varint
from bpe_beam.tokenizer.components import decoders, normalizers
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import (
    BPE,
    PIECE_KINDS,
    ErrorLocation,
    SentencePiece,
    Unigram,
    byte_token,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import Metaspace
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.spec import TokenizerSpec

ROLES = ("bos_token", "eos_token", "pad_token")  # the roles of control symbols that a file can name

# Kinds of values, by number.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_FLOAT = struct.Struct("<f")
_Fields: TypeAlias = Mapping[int, tuple[str, int]]

# The fields of each message, and the kind of their values.
_MODEL: _Fields = {
    1: ("pieces", _BYTES),
    2: ("trainer_spec", _BYTES),
    3: ("normalizer_spec", _BYTES),
    5: ("denormalizer_spec", _BYTES),
}
_PIECE: _Fields = {1: ("piece", _BYTES), 2: ("score", _FOUR_BYTES), 3: ("type", _VARINT)}
_TRAINER: _Fields = {
    3: ("model_type", _VARINT),
    24: ("treat_whitespace_as_suffix", _VARINT),
    35: ("byte_fallback", _VARINT),
    44: ("unk_surface", _BYTES),
}
_WRITTEN_TRAINER: _Fields = {
    **_TRAINER,
    4: ("vocab_size", _VARINT),
    45: ("unk_piece", _BYTES),
    46: ("bos_piece", _BYTES),
    47: ("eos_piece", _BYTES),
    48: ("pad_piece", _BYTES),
}
_NORMALIZER: _Fields = {
    2: ("precompiled_charsmap", _BYTES),
    3: ("add_dummy_prefix", _VARINT),
    4: ("remove_extra_whitespaces", _VARINT),
    5: ("escape_whitespaces", _VARINT),
}

_ALGORITHMS = {1: "unigram", 2: "bpe"}
_ESCAPED_SPACE = "\u2581"
_EXACT_UNIT, _EXACT_SCORE = 1 / 128, 128.0
"""Scores that are multiples of the first and below the second have exact sums: SentencePiece
subtracts a sum that exceeds 100,000, and 32 bits have the multiples of 1/128 up to 131,072."""
_UNKNOWN_SURFACE = " \u2047 "
_PREFIX = normalizers.Prepend(_ESCAPED_SPACE)
_ESCAPE = normalizers.Replace(Pattern(text=" "), _ESCAPED_SPACE)
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
    pieces: list[tuple[str, float, str]] = []
    settings: dict[str, Any] = {}
    for name, value in _Reader(data, source, 0, len(data)).fields(_MODEL):
        if name == "pieces":
            pieces.append(_read_piece(value))
        else:
            known = _TRAINER if name == "trainer_spec" else _NORMALIZER
            prefix = "denormalizer." if name == "denormalizer_spec" else ""
            settings |= {prefix + key: value for key, value in value.fields(known)}
    algorithm = _ALGORITHMS.get(settings.get("model_type", 1))
    if algorithm is None:
        raise UsageError(
            f"{source}: trainer_spec.model_type must be {' or '.join(_ALGORITHMS.values())}, got "
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


class _Rules(Struct, frozen=True):
    """The rules of a file for spaces, with SentencePiece's defaults."""

    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False


_ONLY_ESCAPED = _Rules(remove_extra_whitespaces=False)
"""The rules that Hugging Face's normalizers have, but for the dummy prefix."""


def _spec_of(model: SentencePiece, settings: dict[str, Any]) -> TokenizerSpec:
    """Return a tokenizer of a model and the settings of its file, by the names of their fields."""
    given = {name: bool(settings[name]) for name in _Rules.__struct_fields__ if name in settings}
    rules = _Rules(**given)
    charsmap = _charsmap(settings)
    if not charsmap and replace(rules, add_dummy_prefix=True) == _ONLY_ESCAPED:
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
    restore = decoders.ReplaceDecoder(Pattern(text=_ESCAPED_SPACE), " ")
    normalizer = normalizers.NormalizerSequence((_PREFIX, _ESCAPE))
    strip = (decoders.StripDecoder(" ", 1, 0),) if add_dummy_prefix else ()
    return TokenizerSpec(
        BPE(model.vocab, merges, unknown, fuse_unk=True, byte_fallback=model.byte_fallback),
        tuple(AddedToken(token_id, token) for token, token_id in special.items()),
        normalizer=normalizer if add_dummy_prefix else _ESCAPE,
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

    No other piece has two of the character in a row, so runs meet no other merge. The runs of a
    text grow from its left, so that only three pairs can merge: the last two runs that have grown,
    the last one and a character, and two characters. They make pieces of falling lengths: the
    longest piece first is the leftmost first.
    """
    return [
        (piece[:at], piece[at:])
        for piece in sorted(group, key=len, reverse=True)
        for at in range(len(piece) - 1, 0, -1)
        if piece[:at] in normal and piece[at:] in normal
    ]


def _read_piece(message: _Reader) -> tuple[str, float, str]:
    values = dict(message.fields(_PIECE))
    kind = values.get("type", 1)
    if not 1 <= kind <= len(PIECE_KINDS):
        message.refuse(message.start, f"no kind of pieces has the number {kind}")
    text = values["piece"].text() if "piece" in values else ""
    return text, values.get("score", 0.0), PIECE_KINDS[kind - 1]


class _Reader(Struct, frozen=True):
    """The bytes of a message or a text, from `start` to `end` of a whole file."""

    data: bytes
    source: str
    start: int
    end: int

    def refuse(self, at: int, why: str) -> NoReturn:
        raise UsageError(f"{self.source}: byte {at:,}: {why}")

    def raw(self) -> bytes:
        return self.data[self.start : self.end]

    def text(self) -> str:
        """Return the bytes as text, which must be UTF-8."""
        try:
            return self.raw().decode()
        except UnicodeDecodeError as error:
            self.refuse(self.start + error.start, f"not UTF-8: {error.reason}")

    def fields(self, known: _Fields) -> Iterator[tuple[str, Any]]:
        """Yield the names and values of known fields: an integer, a float, or a reader."""
        at = self.start
        while at < self.end:
            begin = at
            key, at = self._varint(at)
            number, kind = key >> 3, key & 7
            if kind not in (_VARINT, _BYTES, *_SIZES):
                self.refuse(begin, f"no kind of values has the number {kind}")
            value: Any = _SIZES.get(kind)
            if value is None:
                value, at = self._varint(at)
            after = at if kind == _VARINT else at + value
            if after > self.end:
                self.refuse(begin, "a value that does not end within its message")
            if number == 0:
                self.refuse(begin, "a field with the number 0")
            if number in known:
                name, wanted = known[number]
                if kind != wanted:
                    self.refuse(begin, f"{name} must have the kind {wanted}, got {kind}")
                if kind == _BYTES:
                    value = _Reader(self.data, self.source, at, after)
                elif kind == _FOUR_BYTES:
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
                return value, at
        self.refuse(at, "a number of more than ten bytes")


def write(spec: TokenizerSpec, roles: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """Return the bytes of a `.model` file whose ids equal a tokenizer's.

    The post-processor and the decoder are not written: SentencePiece has its own.
    """
    for role, token in roles.items():
        known = {added.content for added in spec.added_tokens if added.special}
        require(token in known, f"must be a special token, got {token!r}", role)
    names = {role.replace("token", "piece"): token for role, token in roles.items()}
    if isinstance(spec.model, SentencePiece):
        return _file_as_read(spec, spec.model, names)
    if isinstance(spec.model, Unigram):
        return _file_of_unigram(spec, spec.model, names)
    if not isinstance(spec.model, BPE):
        _refuse(
            f"its model is {spec.model.json_type}, and such a file is written of BPE or Unigram, "
            "or of a tokenizer that was read from one"
        )
    return _file_of_merges(spec, spec.model, names)


def _file_as_read(spec: TokenizerSpec, model: SentencePiece, names: Mapping[str, str]) -> bytes:
    """Return the file of a model that was read from one."""
    normalizer, surface = spec.normalizer, getattr(spec.decoder, "unknown_surface", None)
    control = {token.content: token.id for token in spec.added_tokens if token.special}
    kept = getattr(normalizer, "user_defined_symbols", None) == (*model.of_kind("user_defined"),)
    if (
        not isinstance(normalizer, normalizers.SentencePieceNormalizer)
        or spec.pre_tokenizer is not None
        or (len(control) < len(spec.added_tokens) or control != model.of_kind("control"))
        or not kept
    ):
        _refuse("its model is one of SentencePiece, but its other parts are not")
    charsmap = b64decode(normalizer.precompiled_charsmap)
    settings = {**names} if surface is None else {**names, "unk_surface": surface}
    return _file(model, settings, asdict(normalizer) | {"precompiled_charsmap": charsmap})


def _file_of_merges(spec: TokenizerSpec, model: BPE, names: Mapping[str, str]) -> bytes:
    """Return the file of BPE, if scores in the order of merges give the same ids."""
    add_dummy_prefix = _adds_dummy_prefix(spec)
    _check_settings(spec, model)
    # A pair that is listed twice has its last rank; a token is made by its first merge, if by any.
    ranks = {pair: rank for rank, pair in enumerate(model.merges)}
    merges = sorted(ranks, key=ranks.__getitem__)
    tokens = [*dict.fromkeys(left + right for left, right in merges)]
    if getattr(spec.pre_tokenizer, "split", False):
        joined = next((token for token in tokens if _ESCAPED_SPACE in token[1:]), None)
        if joined is not None:
            _refuse(f"its pre-tokenizer splits {shortened(joined)}, and SentencePiece would not")
    pieces = _scored(spec, model, {token: -1.0 - number for number, token in enumerate(tokens)})
    try:
        pieces.check(_PIECES)
    except UsageError as error:
        _refuse(str(error))
    if (why := _difference(pieces, merges)) is not None:
        pieces = _scored(spec, model, _scores_of_runs(tokens))
        if _difference(pieces, merges) is not None:
            _refuse(why)
    rules = asdict(_ONLY_ESCAPED) | {"add_dummy_prefix": add_dummy_prefix}
    return _file(pieces, names, rules)


def _adds_dummy_prefix(spec: TokenizerSpec) -> bool:
    """Return whether a space is added before each text; refuse all other changes of the text."""
    normalizer, splitting = spec.normalizer, spec.pre_tokenizer
    steps: tuple[normalizers.Normalizer, ...] = () if normalizer is None else (normalizer,)
    if isinstance(normalizer, normalizers.NormalizerSequence):
        steps = normalizer.normalizers
    if steps not in ((), (_PREFIX,), (_ESCAPE,), (_PREFIX, _ESCAPE), (_ESCAPE, _PREFIX)):
        _refuse(
            "its normalizer must be dummy_prefix or none, since SentencePiece has replacements of "
            "its own"
        )
    if splitting is None and _ESCAPE in steps:
        return _PREFIX in steps
    if not isinstance(splitting, Metaspace) or splitting.replacement != _ESCAPED_SPACE:
        _refuse("its pre-tokenizer must be metaspace: SentencePiece writes each space as U+2581")
    if _PREFIX not in steps and splitting.prepend_scheme != "never":
        _refuse(
            "its pre-tokenizer adds a space before a text that has none there, and SentencePiece "
            "before every text; train with the normalizer dummy_prefix"
        )
    return _PREFIX in steps


def _check_settings(spec: TokenizerSpec, model: BPE) -> None:
    """Refuse settings of BPE, and added tokens, that SentencePiece does not have."""
    if model.unk_token is None:
        _refuse("it has no unknown token, which every such file has; train with unk_token")
    if not (model.fuse_unk or model.byte_fallback):
        _refuse(
            "it gives each unknown character a token, and SentencePiece one for all in a row; "
            "train with byte_fallback"
        )
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        if getattr(model, name):
            _refuse(f"SentencePiece has no {name}")
    if _ESCAPED_SPACE not in model.vocab:
        _refuse("U+2581, as which spaces are written, is not in its vocabulary")
    _check_added_tokens(spec)


def _check_added_tokens(spec: TokenizerSpec) -> None:
    for token in spec.added_tokens:
        name = f"its added token {shortened(token.content)}"
        if token.single_word or token.lstrip or token.rstrip:
            _refuse(f"{name} has single_word, lstrip or rstrip")
        if not token.special:
            _refuse(
                f"{name} is not special: SentencePiece normalizes the text around such a token in "
                "another way"
            )


def _file_of_unigram(spec: TokenizerSpec, model: Unigram, names: Mapping[str, str]) -> bytes:
    """Return the file of Unigram, if sums of 32 bits are exact and nothing else differs."""
    add_dummy_prefix = _adds_dummy_prefix(spec)
    _check_added_tokens(spec)
    if model.unk_id is None:
        _refuse("it has no unknown token, which every such file has")
    special = {token.id for token in spec.added_tokens}
    if max(special, default=0) >= len(model.pieces):
        _refuse("an added token is not in its vocabulary")
    of_bytes = {byte_token(byte) for byte in range(256)} if model.byte_fallback else set()
    pieces = []
    for number, (text, score) in enumerate(model.pieces):
        kind = "byte" if text in of_bytes else "control" if number in special else "normal"
        kind = "unknown" if number == model.unk_id else kind
        pieces.append((text, score if kind == "normal" else 0.0, kind))
    written = SentencePiece("unigram", pieces, model.byte_fallback)
    try:
        written.check(_PIECES)
    except UsageError as error:
        _refuse(str(error))
    normal = written.of_kind("normal")
    scores = [model.pieces[number][1] for number in normal.values()]
    if any(abs(score) >= _EXACT_SCORE or score % _EXACT_UNIT for score in scores):
        _refuse(
            "sums of its scores are rounded, so that SentencePiece finds other pieces in some "
            f"texts; scores must be multiples of 1/{1 / _EXACT_UNIT:.0f}, as train writes them"
        )
    if any(_ESCAPED_SPACE in piece[1:] for piece in normal) or any(
        character not in normal for piece in normal for character in piece
    ):
        _refuse("a piece has a space within it, or a character that is no piece of its own")
    for text, number in written.of_kind("byte").items():
        if not set(text) <= normal.keys() or model.pieces[number][1] >= len(text) * min(scores):
            _refuse(f"it would encode the text {text} as a byte")
    rules = asdict(_ONLY_ESCAPED) | {"add_dummy_prefix": add_dummy_prefix}
    return _file(written, names, rules)


def _scored(spec: TokenizerSpec, model: BPE, scores: Mapping[str, float]) -> SentencePiece:
    special = {token.content: token.id for token in spec.added_tokens}
    vocab = {**model.vocab, **special}
    of_bytes = {byte_token(byte) for byte in range(256)} if model.byte_fallback else set()
    lowest = min(scores.values(), default=0.0) - 1.0
    pieces = []
    for number, token in enumerate(sorted(vocab, key=vocab.__getitem__)):
        if vocab[token] != number:
            _refuse(f"its ids have holes: no token has the id {number}")
        kind = "byte" if token in of_bytes else "control" if token in special else "normal"
        kind = "unknown" if token == model.unk_token else kind
        if kind == "normal" and len(token) > 1 and token not in scores:
            _refuse(
                f"its token {shortened(token)} is made by no merge, and SentencePiece would make it"
            )
        if kind == "byte" and token in special:
            _refuse(f"its special token {shortened(token)} is also the token of a byte")
        if kind != "normal" and token in scores:
            _refuse(f"its {kind} token {shortened(token)} is also made by a merge")
        score = scores.get(token, lowest) if kind == "normal" else 0.0
        pieces.append((token, score, kind))
    return SentencePiece("bpe", pieces, model.byte_fallback)


def _scores_of_runs(tokens: Iterable[str]) -> dict[str, float]:
    """Return the scores of tokens in the order of merges, where runs of one character are alike.

    Of pieces with one score SentencePiece makes the leftmost first. The reader makes such merges of
    them that the longest comes first.
    """
    scores: dict[str, float] = {}
    before = ""
    for number, token in enumerate(tokens):
        shorter = len(token) < len(before) and before == before[0] * len(before)
        in_run = shorter and before.startswith(token)
        scores[token] = scores[before] if in_run else -1.0 - number
        before = token
    return scores


def _difference(pieces: SentencePiece, merges: list[tuple[str, str]]) -> str | None:
    """Return how the merges of scores differ from a tokenizer's; None: not at all.

    A token's later merges may be missing. The reader has proved that the characters of a text never
    become the two tokens of such a merge side by side, when its turn comes or later.
    """
    pairs = merges_of(pieces)
    if pairs is None:
        return "by scores, a token would be made otherwise than by its merges in some texts"
    known, made = set(pairs), set()
    for left, right in merges:
        if left + right not in made and (left, right) not in known:
            return (
                f"by scores, {shortened(left)} and {shortened(right)} would not be joined: their "
                "characters alone become other tokens"
            )
        made.add(left + right)
    if [pair for pair in merges if pair in known] != pairs:
        return "by scores, its merges would have another order"
    return None


def _file(model: SentencePiece, names: Mapping[str, str], rules: Mapping[str, Any]) -> bytes:
    numbers = {name: number for number, name in _ALGORITHMS.items()}
    kinds = {kind: number for number, kind in enumerate(PIECE_KINDS, start=1)}
    (unknown,) = model.of_kind("unknown")
    settings = {
        "model_type": numbers[model.algorithm],
        "vocab_size": len(model.pieces),
        "byte_fallback": model.byte_fallback,
        "unk_piece": unknown,
        **names,
        **rules,
    }
    pieces = [
        _message(_PIECE, {"piece": text, "score": score, "type": kinds[kind]})
        for text, score, kind in model.pieces
    ]
    messages = {
        "pieces": pieces,
        "trainer_spec": _message(_WRITTEN_TRAINER, settings),
        "normalizer_spec": _message(_NORMALIZER, settings),
    }
    return _message(_MODEL, messages)


def _message(fields: _Fields, values: Mapping[str, Any]) -> bytes:
    """Return a message of the values that it has fields for, in the order of the fields.

    A list is a field that is repeated.
    """
    parts: list[bytes] = []
    for number, (name, kind) in sorted(fields.items()):
        value = values.get(name, [])
        for one in value if isinstance(value, list) else [value]:
            parts.append(varint(number << 3 | kind))
            if kind == _FOUR_BYTES:
                parts.append(_FLOAT.pack(one))
            elif kind == _VARINT:
                parts.append(varint(one))
            else:
                data = one.encode() if isinstance(one, str) else one
                parts += [varint(len(data)), data]
    return b"".join(parts)


def _refuse(why: str) -> NoReturn:
    raise UsageError(f".model: cannot represent this tokenizer: {why}")
