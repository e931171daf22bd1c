"""Mistral's `tekken.json`: a pattern, and tokens with ranks, as in `.tiktoken` files.

Special tokens have the first ids. What the file says of images and sounds changes no ids of texts.
"""

from __future__ import annotations

from base64 import b64decode
from itertools import islice

from msgspec import Struct

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import MAX_ID, MAX_TOKEN_CHARS, ErrorLocation
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.tokenizer.files import tiktoken_file
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.files.json_node import Node, parse
from bpe_beam.tokenizer.spec import TokenizerSpec

_FIRST_SPECIAL_TOKENS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
    "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)  # fmt: skip
"""The special tokens of the first versions, whose files do not list them."""

_MAX_SPECIAL_TOKENS = 100_000


class _Config(Struct):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int


class _Token(Struct):
    rank: int
    token_bytes: str


class _Special(Struct):
    rank: int
    token_str: str


def read(data: bytes, source: str) -> TokenizerSpec:
    with explained(data, source, "tekken.json"):
        root = Node(source, "", parse(data, source))
        root.object()
        config_node = root.field("config")
        config = config_node.convert(_Config)
    specials, size = config.default_num_special_tokens, config.default_vocab_size
    vocab = root.field("vocab")
    if not 0 <= specials <= size <= len(vocab.array()) + specials or size > MAX_ID:
        config_node.refuse(
            "default_vocab_size must be from default_num_special_tokens to the number of all "
            f"tokens, got {size:,} and {specials:,} special tokens of {len(vocab.array()):,} others"
        )
    ranks: dict[bytes, int] = {}
    for rank, row in enumerate(islice(vocab.items(), size - specials)):
        token = _read_token(row, rank)
        if token in ranks:
            row.refuse(f"the token is already listed, as vocab[{ranks[token]}]")
        ranks[token] = rank
    special_tokens = _special_tokens(root.field("special_tokens"), specials)
    try:
        splitting = pretokenizer_from_name(f"regex:{config.pattern}", byte_level=True)
    except UsageError as error:
        config_node.field("pattern").refuse(str(error))
    location = ErrorLocation(
        token=lambda token: f"{source}: vocab[{ranks[byte_level.to_bytes(token)]}]",
        added=lambda number: f"{source}: special_tokens[{number}]",
    )
    ids = [(token, rank + specials) for token, rank in ranks.items()]
    return tiktoken_file.spec_of(ids, source, splitting, special_tokens, location)


def _read_token(row: Node, rank: int) -> bytes:
    """Return the bytes of a token, which must have a rank."""
    token = row.convert(_Token)
    try:
        data = b64decode(token.token_bytes, validate=True)
    except ValueError as error:
        row.refuse(f"token_bytes is not base64: {error}")
    if not 0 < len(data) <= MAX_TOKEN_CHARS:
        row.refuse(f"a token must have from 1 to {MAX_TOKEN_CHARS:,} bytes, got {len(data):,}")
    if token.rank != rank:
        row.refuse(f"rank must be {rank}, got {shortened(token.rank)}")
    return data


def _special_tokens(listed: Node, number: int) -> dict[str, int]:
    """Return the special tokens by their texts: listed ones, and others up to a number."""
    if listed.value is None:
        texts = list(_FIRST_SPECIAL_TOKENS)
    else:
        texts = []
        for rank, row in enumerate(listed.items()):
            token = row.convert(_Special)
            if token.rank != rank:
                row.refuse(f"rank must be {rank}, got {shortened(token.rank)}")
            texts.append(token.token_str)
    if number > _MAX_SPECIAL_TOKENS:
        listed.refuse(f"must be at most {_MAX_SPECIAL_TOKENS:,} tokens, got {number:,}")
    more = [f"<SPECIAL_{rank}>" for rank in range(len(texts), number)]
    ids = {text: rank for rank, text in enumerate([*texts, *more])}
    if len(texts) > number or len(ids) < number:
        listed.refuse(f"must be at most {number:,} different tokens, got {len(texts):,}")
    return ids
