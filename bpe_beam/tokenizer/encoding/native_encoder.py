"""The parts of a tokenizer's native encoder: its pipeline and its model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import astuple

from bpe_beam import _native
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, SentencePiece, Unigram, WordPiece, byte_token
from bpe_beam.tokenizer.components.normalizers import Normalizer
from bpe_beam.tokenizer.components.pretokenizers import PreTokenizer, steps_of
from bpe_beam.tokenizer.deadline import text_seconds
from bpe_beam.tokenizer.spec import TokenizerSpec

_NO_ID = 2**32 - 1


def pipeline_of(
    added_tokens: Iterable[AddedToken],
    normalizer: Normalizer | None,
    pre_tokenizer: PreTokenizer | None,
    *,
    last_as_bytes: bool,
) -> _native.Pipeline:
    """Return the pipeline that splits a text into words."""
    added = [
        (content.encode(), token_id, *flags)
        for token_id, content, *flags in map(astuple, added_tokens)
    ]
    normalizing = normalizer.native() if normalizer is not None else None
    steps = steps_of(pre_tokenizer, last_as_bytes=last_as_bytes)
    return _native.Pipeline(added, normalizing, steps, text_seconds())


def holds_gil(normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> bool:
    """Return whether the text pipeline runs the `regex` package, which needs the GIL.

    Threads of one process then take turns.
    """
    steps = steps_of(pre_tokenizer, last_as_bytes=True)
    return _has_regex([normalizer.native() if normalizer is not None else None, steps])


def _has_regex(native: Any) -> bool:
    if not isinstance(native, list | tuple):
        return False
    return native[:1] == ("regex",) or any(map(_has_regex, native))


def make_model(spec: TokenizerSpec) -> _native.Model:
    model = spec.model
    if isinstance(model, BPE):
        return _bpe(model, spec.model_reads_bytes)
    if isinstance(model, Unigram):
        return _native.unigram(model.pieces, model.unk_id, _byte_ids(model))
    if isinstance(model, SentencePiece):
        return _sentencepiece(model)
    unknown = model.vocab.get(model.unk_token)
    if isinstance(model, WordPiece):
        prefix = model.continuing_subword_prefix
        # A longer token matches only words that are unknown for their length.
        most = model.max_input_chars_per_word + len(prefix)
        tokens = model.vocab
        if max(map(len, tokens), default=0) > most:
            tokens = {token: i for token, i in tokens.items() if len(token) <= most}
        return _native.wordpiece(tokens, prefix.encode(), unknown, model.max_input_chars_per_word)
    return _native.word_level(model.vocab, unknown)


def _bpe(model: BPE, reads_bytes: bool) -> _native.Model:
    if reads_bytes:
        byte_ids = [model.vocab.get(char, _NO_ID) for char in byte_level.BYTE_TO_CHAR]
        whole = model.vocab if model.ignore_merges else {}
        return _native.byte_bpe(model.merge_ids, byte_ids, whole)
    return _native.char_bpe(
        model.merge_ids,
        model.vocab,
        (model.continuing_subword_prefix or "").encode(),
        (model.end_of_word_suffix or "").encode(),
        model.vocab[model.unk_token] if model.unk_token is not None else None,
        model.fuse_unk,
        model.ignore_merges,
        _byte_ids(model),
    )


def _sentencepiece(model: SentencePiece) -> _native.Model:
    (unknown,) = model.of_kind("unknown").values()
    byte_ids = _byte_ids(model)
    if model.algorithm == "unigram":
        entries = [
            (piece, number, score, kind == "user_defined")
            for number, (piece, score, kind) in enumerate(model.pieces)
            if kind in ("normal", "user_defined")
        ]
        return _native.sentencepiece_unigram(entries, unknown, byte_ids)
    import numpy as np

    rows = np.array(model.merge_rows(), np.uint32).reshape(-1, 4)
    normal = model.of_kind("normal").items()
    symbols = {text: i for text, i in normal if len(text) == 1} | model.of_kind("user_defined")
    return _native.sentencepiece_bpe(rows[:, :3], rows[:, 3], symbols, unknown, byte_ids)


def _byte_ids(model: BPE | Unigram | SentencePiece) -> list[int]:
    """Return the ids of the tokens of bytes for `byte_fallback`; none without it."""
    if not model.byte_fallback:
        return []
    return [model.vocab.get(byte_token(byte), _NO_ID) for byte in range(256)]
