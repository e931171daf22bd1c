"""Tokens and components of a tokenizer in readable form.

Files write the tokens of a byte-level tokenizer as one letter a byte (`ãĢĤ`); these functions
return the text (`'。'`).
"""

from __future__ import annotations

import html
from base64 import b64decode
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import asdict, fields

from bpe_beam.messages import list_few, shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.component import Component
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.postprocessors import TemplatePiece
from bpe_beam.tokenizer.spec import TokenizerSpec


def text_of(token: str, in_bytes: bool) -> str | bytes:
    """Return the text of a token; its bytes, if they are not whole characters of UTF-8."""
    if not in_bytes or not byte_level.is_byte_level(token):
        return token
    data = byte_level.to_bytes(token)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def describe(component: Component | None) -> str:
    """Return a normalizer, pre-tokenizer, post-processor or decoder, and its settings, in words."""
    if component is None:
        return "none"
    values = asdict(component)
    if component.json_type == "Sequence":
        (steps,) = values.values()
        return " then ".join(map(describe, steps)) or "nothing"
    words = {name: _value(value) for name, value in values.items()}
    if charsmap := values.get("precompiled_charsmap"):
        words["precompiled_charsmap"] = f"of {len(b64decode(charsmap)):,} bytes"
    settings = ", ".join(map(" ".join, words.items()))
    return f"{component.json_type} ({settings})" if settings else component.json_type


def model_in_words(spec: TokenizerSpec) -> str:
    """Return the kind of the model and its settings in words."""
    model = spec.model
    settings = [
        f"{field.name}={getattr(model, field.name)!r}"
        for field in fields(model)
        if field.name not in ("vocab", "merges", "pieces")
        and getattr(model, field.name) != field.default
    ]
    return " ".join([spec.model_kind, *settings])


def as_html(spec: TokenizerSpec, vocab_size: int, fingerprint: str) -> str:
    """Return a tokenizer as an HTML table, for notebooks."""
    special = [token.content for token in spec.added_tokens if token.special]
    rows = {
        "model": spec.model_kind,
        "vocabulary": f"{vocab_size:,} tokens",
        "special tokens": f"{len(special):,}: {list_few(special, 8)}" if special else "none",
        "normalizer": describe(spec.normalizer),
        "pre-tokenizer": describe(spec.pre_tokenizer),
        "post-processor": describe(spec.post_processor),
        "decoder": describe(spec.decoder),
        "fingerprint": fingerprint[:12],
    }
    cells = "".join(
        f'<tr><th style="text-align:left">{name}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f"<table><caption>bpe_beam.Tokenizer</caption>{cells}</table>"


def _value(value: object) -> str:
    if isinstance(value, Pattern):
        return value.scanner or repr(value.value)
    if value is None or isinstance(value, bool):
        return {None: "default", True: "yes", False: "no"}[value]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(_value, value)) or "none"
    if isinstance(value, TemplatePiece):
        return " ".join(part.id for part in (value.text, value.special) if part is not UNSET)
    if isinstance(value, dict):
        return " ".join(map(str, value))
    if isinstance(value, str) and len(value) > 100:
        return shortened(value)
    return repr(value)
