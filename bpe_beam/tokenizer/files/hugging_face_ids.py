"""The ids that Hugging Face's libraries give to the added tokens of a `tokenizer.json`.

They ignore the ids in the file. An added token that the model's vocabulary has gets that id; each
other one the next id, counted from the size of the vocabulary. After a hole in the ids that is not
the file's id.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, SentencePiece, Unigram, in_order_of_ids
from bpe_beam.tokenizer.components.pretokenizers import PreTokenizer
from bpe_beam.tokenizer.encoding.native_encoder import pipeline_of
from bpe_beam.tokenizer.spec import TokenizerSpec


def with_added_in_vocabulary(spec: TokenizerSpec) -> TokenizerSpec:
    """Return the same tokenizer, whose added tokens keep their ids in Hugging Face's libraries.

    Where these would give other ids, the vocabulary gets the added tokens too, if the model of any
    text still gives the same tokens: in BPE, no merge makes them.
    """
    if _first_renumbered(spec) is None:
        return spec
    model = spec.model
    new = [token for token in spec.added_tokens if token.content not in model.vocab]
    if not isinstance(model, BPE) or not all(_is_unreachable(spec, model, token) for token in new):
        return spec
    vocab = in_order_of_ids({**model.vocab, **{token.content: token.id for token in new}}.items())
    return replace(spec, model=replace(model, vocab=vocab))


def why_renumbered(spec: TokenizerSpec) -> str | None:
    """Return which added token gets another id in Hugging Face's libraries; None: none."""
    renumbered = _first_renumbered(with_added_in_vocabulary(spec))
    if renumbered is None:
        return None
    token, other = renumbered
    return (
        f"they would give the added token {shortened(token.content)} the id {other} in place of "
        f"{token.id}, as the ids have a hole"
    )


def file_warning(spec: TokenizerSpec) -> str | None:
    """Return what to tell users of a written `tokenizer.json`; None: nothing."""
    if isinstance(spec.model, SentencePiece):
        return (
            "the tokenizer.json is for bpe-beam alone: Hugging Face's libraries have no parts that "
            "encode all texts as this SentencePiece model does; give other programs the .model file"
        )
    if (why := why_renumbered(spec)) is None:
        return None
    return f"the tokenizer.json is for bpe-beam alone; read by Hugging Face's libraries, {why}"


def check_ids(spec: TokenizerSpec) -> None:
    """Refuse a tokenizer whose ids differ in Hugging Face's libraries."""
    if (why := why_renumbered(spec)) is not None:
        raise UsageError(
            f"tokenizer.json: Hugging Face's libraries cannot read this tokenizer: {why}. Add a "
            "token for each missing id to the file that it was read from, or use that file with "
            "bpe-beam alone"
        )


def _first_renumbered(spec: TokenizerSpec) -> tuple[AddedToken, int] | None:
    """Return the first added token whose id differs there, and that id; None: no token."""
    model = spec.model
    next_id = len(model.pieces if isinstance(model, Unigram) else model.vocab)
    for token in spec.added_tokens:
        if token.content not in model.vocab:
            if token.id != next_id:
                return token, next_id
            next_id += 1
    return None


def is_one_word(pre_tokenizer: PreTokenizer | None, text: str) -> bool:
    """Return whether a pre-tokenizer that ends in bytes leaves a text whole."""
    data = text.encode()
    return pipeline_of((), None, pre_tokenizer, last_as_bytes=True).words(data) == [data]


def _is_unreachable(spec: TokenizerSpec, model: BPE, token: AddedToken) -> bool:
    """Return whether a model with this token in its vocabulary never gives it for plain text."""
    text = token.content
    if model.continuing_subword_prefix or model.end_of_word_suffix or len(text) == 1:
        return False
    if model.byte_fallback and re.fullmatch(r"<0x[0-9A-F]{2}>", text):
        return False
    if not model.ignore_merges:
        return True
    return spec.model_reads_bytes and not is_one_word(spec.pre_tokenizer, text)
