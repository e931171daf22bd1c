"""`.tiktoken` files: a line a token, its bytes in base64 and its rank, which is its id.

In such a file a merge has the rank of the merged bytes, and a word that is a token is never
split. The same can be written as a list of merges: native/encode/bpe_ranks.hpp has the proof.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import NoReturn

from msgspec.structs import replace

from bpe_beam import _native
from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.decoders import ByteLevelDecoder
from bpe_beam.tokenizer.components.models import (
    BPE,
    MAX_ID,
    MAX_TOKEN_CHARS,
    ErrorLocation,
    in_order_of_ids,
)
from bpe_beam.tokenizer.components.pretokenizers import (
    PRETOKENIZERS,
    ByteLevelPreTokenizer,
    Digits,
    PreTokenizer,
    Split,
    flat,
    pretokenizer_from_name,
)
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.files.hugging_face_ids import is_one_word
from bpe_beam.tokenizer.spec import TokenizerSpec

_SPLITTING = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": "gpt2",  # r50k_base
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": "gpt2",  # p50k_base
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": "cl100k",  # cl100k_base
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": "o200k",  # o200k_base
}
"""The pre-tokenizers of the files that OpenAI published, by their SHA-256."""


def pretokenizer_of(data: bytes) -> str | None:
    """Return the name of the pre-tokenizer of a published file; None: the file is another one."""
    return _SPLITTING.get(hashlib.sha256(data).hexdigest())


def read(
    data: bytes, source: str, pretokenizer: str, special_tokens: Mapping[str, int]
) -> TokenizerSpec:
    """Return the tokenizer in a `.tiktoken` file."""
    with explained(data, source, ".tiktoken"):
        ranks = _read_lines(data, source)
    lines = {token: number for number, (token, _) in enumerate(ranks, start=1)}
    texts = sorted(special_tokens, key=lambda text: special_tokens[text])
    location = ErrorLocation(
        token=lambda token: f"{source}: line {lines[byte_level.to_bytes(token)]}",
        added=lambda number: f"special_tokens: {shortened(texts[number])}",
    )
    splitting = pretokenizer_from_name(pretokenizer, byte_level=True)
    return spec_of(ranks, source, splitting, special_tokens, location)


def spec_of(
    ranks: list[tuple[bytes, int]],
    source: str,
    pre_tokenizer: PreTokenizer | None,
    special_tokens: Mapping[str, int],
    location: ErrorLocation,
) -> TokenizerSpec:
    """Return the tokenizer of tokens that have ranks only."""
    vocab = {byte_level.to_chars(token): token_id for token, token_id in ranks}
    rows = _rank_merges([token for token, _ in ranks], source)
    names = list(vocab)
    merges = [(names[left], names[right]) for left, right, _ in rows]
    by_id = sorted(special_tokens.items(), key=lambda entry: entry[1])
    added = tuple(AddedToken(token_id, text) for text, token_id in by_id)
    model = BPE(vocab, merges, ignore_merges=True)
    spec = TokenizerSpec(model, added, pre_tokenizer=pre_tokenizer, decoder=ByteLevelDecoder())
    spec.check(location)
    # The model's vocabulary has the special tokens too: Hugging Face numbers other added tokens by
    # itself, which is wrong where ids have holes. As a whole word a text would get their ids.
    apart = {text: i for text, i in special_tokens.items() if not is_one_word(pre_tokenizer, text)}
    whole = in_order_of_ids({**vocab, **apart}.items())
    return replace(spec, model=replace(model, vocab=whole))


def write(spec: TokenizerSpec) -> bytes:
    """Return a byte-level BPE tokenizer as a `.tiktoken` file, without its special tokens."""
    model = spec.model
    if not isinstance(model, BPE) or not spec.model_reads_bytes or spec.normalizer is not None:
        _refuse("can only represent byte-level BPE without normalizer")
    _check_splitting(spec.pre_tokenizer)
    _check_added_tokens(spec, model)
    added = {token.content for token in spec.added_tokens}
    vocab = {token: rank for token, rank in model.vocab.items() if token not in added}
    other = next((token for token in vocab if not byte_level.is_byte_level(token)), None)
    if other is not None:
        _refuse(
            f"cannot represent the token {shortened(other)}, which is not in the byte-level "
            "alphabet"
        )
    tokens = [byte_level.to_bytes(token) for token in vocab]
    _check_merges(model, list(vocab), tokens)
    rows = zip(tokens, vocab.values(), strict=True)
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in rows)


def _refuse(why: str) -> NoReturn:
    raise UsageError(f".tiktoken: {why}; save this tokenizer as tokenizer.json")


def _check_splitting(pre_tokenizer: PreTokenizer | None) -> None:
    """Refuse a pre-tokenizer for which readers have neither a name nor a pattern."""
    parts = flat(pre_tokenizer)
    patterns = all(
        isinstance(part, Digits)
        or (isinstance(part, Split) and part.behavior == "Isolated" and not part.invert)
        or (isinstance(part, ByteLevelPreTokenizer) and not part.add_prefix_space)
        for part in parts
    )
    named = (pretokenizer_from_name(name, byte_level=True) for name in PRETOKENIZERS)
    if not patterns and pre_tokenizer not in named:
        _refuse(
            "readers of such a file split texts by one pattern, and this tokenizer's "
            "pre-tokenizer changes texts or is a sequence"
        )


def _check_added_tokens(spec: TokenizerSpec, model: BPE) -> None:
    """Refuse added tokens that are no special tokens of tiktoken, or that the model makes too."""
    made = {left + right for left, right in model.merges}
    for token in spec.added_tokens:
        name = f"cannot represent the added token {shortened(token.content)}"
        if not token.special or token.single_word or token.lstrip or token.rstrip:
            _refuse(
                f"{name}: to readers of such a file it would be plain text or match exactly where "
                "it occurs"
            )
        of_model = token.content in made or len(token.content) == 1
        if not of_model and model.ignore_merges:
            of_model = is_one_word(spec.pre_tokenizer, token.content)
        if of_model and token.content in model.vocab:
            _refuse(f"{name}: a token of the model has the same id")


def _read_lines(data: bytes, source: str) -> list[tuple[bytes, int]]:
    """Return (token, rank) in the order of ranks."""
    ranks: dict[int, bytes] = {}
    seen: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        where = f"{source}: line {number}"
        text, digits = fields[0], b" ".join(fields[1:])
        try:
            token = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise UsageError(f"{where}: {shortened(repr(text))} is not base64: {error}") from None
        if not digits.isdigit() or len(digits) > 10 or int(digits) > MAX_ID:
            raise UsageError(
                f"{where}: {shortened(repr(digits))} is not a rank: an integer from 0 to {MAX_ID}"
            )
        if not token:
            raise UsageError(f"{where}: an empty token")
        if len(token) > MAX_TOKEN_CHARS:
            raise UsageError(
                f"{where}: a token must have at most {MAX_TOKEN_CHARS:,} bytes, got {len(token):,}"
            )
        rank = int(digits)
        if rank in ranks or token in seen:
            raise UsageError(f"{where}: the {'rank' if rank in ranks else 'token'} is repeated")
        ranks[rank] = token
        seen[token] = rank
    if not ranks:
        raise UsageError(f"{source}: the file must have a token a line, got none")
    return [(token, rank) for rank, token in sorted(ranks.items())]


def _rank_merges(tokens: list[bytes], source: str) -> list[tuple[int, int, int]]:
    """Return the merges of tokens with ranks, as (left, right, merged)."""
    try:
        return list(map(tuple, _native.rank_merges(tokens).tolist()))
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None


def _check_merges(model: BPE, names: list[str], tokens: list[bytes]) -> None:
    """Refuse merges that do not follow from the tokens' ranks."""
    rows = _rank_merges(tokens, ".tiktoken")
    number_of = {name: number for number, name in enumerate(names)}
    made = [number_of.get(left + right, -1) for left, right in model.merges]
    if any(later < earlier for earlier, later in pairwise(made)):
        _refuse(
            "the merges are not in the order of the ids that they make, so ranks cannot replace "
            "them"
        )
    known = set(model.merges)
    by_ranks = {(names[left], names[right]) for left, right, _ in rows}
    if not by_ranks <= known:
        left, right = min(by_ranks - known)
        _refuse(
            f"by ranks, {shortened(left)} and {shortened(right)} would be joined, and there is no "
            "such merge"
        )
    reached = {left + right for left, right in by_ranks}
    for name in names:
        if len(name) > 1 and name not in reached and not model.ignore_merges:
            _refuse(
                f"the token {shortened(name)} is made by no merge, but a word that is this token "
                "would become it"
            )
