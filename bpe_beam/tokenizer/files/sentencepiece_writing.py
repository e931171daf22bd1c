"""SentencePiece's `.model` files, written: for models that were read from one, and for BPE.

SentencePiece merges by the scores of pieces, and BPE by a list of merges. A file is only written
where the reader proves that both give the same ids for all texts.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from msgspec.structs import asdict

from bpe_beam.errors import UsageError, require
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import normalizers
from bpe_beam.tokenizer.components.models import (
    BPE,
    PIECE_KINDS,
    ErrorLocation,
    SentencePiece,
    byte_token,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import Metaspace
from bpe_beam.tokenizer.files import sentencepiece_file as reading
from bpe_beam.tokenizer.spec import TokenizerSpec

SENTENCEPIECE_FILE = "tokenizer.model"
"""The name of such a file in a tokenizer's folder."""

ROLES = ("bos_token", "eos_token", "pad_token")
"""The roles of control symbols that a file can name."""

_TRAINER: reading.Fields = {
    **reading.TRAINER,
    4: ("vocab_size", reading.VARINT),
    45: ("unk_piece", reading.BYTES),
    46: ("bos_piece", reading.BYTES),
    47: ("eos_piece", reading.BYTES),
    48: ("pad_piece", reading.BYTES),
}
_PREFIX = normalizers.Prepend(reading.ESCAPED_SPACE)
_ESCAPE = normalizers.Replace(Pattern(text=" "), reading.ESCAPED_SPACE)


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
    if not isinstance(spec.model, BPE):
        _refuse(
            f"its model is {spec.model.json_type}, and such a file is written of BPE, or of a "
            "tokenizer that was read from one"
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
        joined = next((token for token in tokens if reading.ESCAPED_SPACE in token[1:]), None)
        if joined is not None:
            _refuse(f"its pre-tokenizer splits {shortened(joined)}, and SentencePiece would not")
    pieces = _scored(spec, model, {token: -1.0 - number for number, token in enumerate(tokens)})
    try:
        pieces.check(ErrorLocation(setting=lambda name: "pieces" if name == "vocab" else name))
    except UsageError as error:
        _refuse(str(error))
    if (why := _difference(pieces, merges)) is not None:
        pieces = _scored(spec, model, _scores_of_runs(tokens))
        if _difference(pieces, merges) is not None:
            _refuse(why)
    rules = asdict(reading.ONLY_ESCAPED) | {"add_dummy_prefix": add_dummy_prefix}
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
    if not isinstance(splitting, Metaspace) or splitting.replacement != reading.ESCAPED_SPACE:
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
    if reading.ESCAPED_SPACE not in model.vocab:
        _refuse("U+2581, as which spaces are written, is not in its vocabulary")
    for token in spec.added_tokens:
        name = f"its added token {shortened(token.content)}"
        if token.single_word or token.lstrip or token.rstrip:
            _refuse(f"{name} has single_word, lstrip or rstrip")
        if not token.special:
            _refuse(
                f"{name} is not special: SentencePiece normalizes the text around such a token in "
                "another way"
            )


def _scored(spec: TokenizerSpec, model: BPE, scores: Mapping[str, float]) -> SentencePiece:
    """Return a model of SentencePiece."""
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
    pairs = reading.merges_of(pieces)
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
    """Return the bytes of a file."""
    numbers = {name: number for number, name in reading.ALGORITHMS.items()}
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
        _message(reading.PIECE, {"piece": text, "score": score, "type": kinds[kind]})
        for text, score, kind in model.pieces
    ]
    messages = {
        "pieces": pieces,
        "trainer_spec": _message(_TRAINER, settings),
        "normalizer_spec": _message(reading.NORMALIZER, settings),
    }
    return _message(reading.MODEL, messages)


def _message(fields: reading.Fields, values: Mapping[str, Any]) -> bytes:
    """Return a message of the values that it has fields for, in the order of the fields.

    A list is a field that is repeated.
    """
    parts: list[bytes] = []
    for number, (name, kind) in sorted(fields.items()):
        value = values.get(name, [])
        for one in value if isinstance(value, list) else [value]:
            parts.append(_varint(number << 3 | kind))
            if kind == reading.FOUR_BYTES:
                parts.append(struct.pack("<f", one))
            elif kind == reading.VARINT:
                parts.append(_varint(one))
            else:
                data = one.encode() if isinstance(one, str) else one
                parts += [_varint(len(data)), data]
    return b"".join(parts)


def _varint(number: int) -> bytes:
    """Return an integer of at least 0 as the format writes it: 7 bits a byte."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes([*data, number])


def _refuse(why: str) -> NoReturn:
    raise UsageError(f".model: cannot represent this tokenizer: {why}")
