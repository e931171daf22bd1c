"""GPT-2's pair of files, `vocab.json` and `merges.txt`, written and read.

They have the model and nothing else: the reader must name the special tokens. The written bytes
equal the files of Hugging Face's own export.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import models
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.files import foreign_files
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.files.json_node import Node, decoded, parse
from bpe_beam.tokenizer.files.tokenizer_json import read_vocab
from bpe_beam.tokenizer.spec import TokenizerSpec, byte_level_spec

_VERSION = "#version"


def vocab_json(model: models.Model) -> bytes:
    """Return the vocabulary as `vocab.json`: an object of ids by token, in the order of ids."""
    return msgspec.json.encode(model.vocab)


def vocab_txt(model: models.Model) -> bytes:
    """Return the vocabulary as BERT's `vocab.txt`: one token a line, whose number is the id."""
    for token_id, (token, own) in enumerate(model.vocab.items()):
        if own != token_id:
            raise UsageError(f"vocab.txt: cannot represent ids with holes: no id {token_id}")
        if "\n" in token or "\r" in token:
            raise UsageError(f"vocab.txt: cannot represent the token {shortened(token)}")
    return "".join(f"{token}\n" for token in model.vocab).encode()


def read_vocab_txt(data: bytes, source: str) -> dict[str, int]:
    """Return the vocabulary in BERT's `vocab.txt`: one token a line, whose number is the id.

    A repeated token has the id of its last line; an empty line is no token, and takes an id.
    """
    # Any lines are tokens, even lines of another file.
    if other := foreign_files.describe_foreign_file(data, "vocab.txt"):
        raise UsageError(f"{source}: {other}")
    lines = decoded(data, source).removesuffix("\n").split("\n")
    ids = {line.removesuffix("\r"): number for number, line in enumerate(lines)}
    ids.pop("", None)
    if not ids:
        raise UsageError(f"{source}: the file must have a token a line, got none")
    return models.in_order_of_ids(ids.items())


def merges_txt(model: models.Model) -> bytes:
    """Return the merges as `merges.txt`: a line of version, then one merge a line, by rank."""
    if not isinstance(model, models.BPE):
        raise UsageError(f"merges.txt: a {model.json_type} model has no merges")
    lines = [f"{_VERSION}: 0.2", *map(" ".join, model.merges)]
    text = "\n".join(lines) + "\n"
    counts = text.count(" "), text.count("\n"), text.count(_VERSION)
    if counts != (len(lines), len(lines), 1):
        for merge, line in zip(model.merges, lines[1:], strict=True):
            if line.startswith(_VERSION) or line.count(" ") != 1 or "\n" in line:
                raise UsageError(f"merges.txt: cannot represent the merge {shortened([*merge])}")
    return text.encode()


def read_vocab_and_merges(
    vocab: tuple[bytes, str], merges: tuple[bytes, str], special_tokens: Sequence[str]
) -> TokenizerSpec:
    """Return the byte-level BPE tokenizer in GPT-2's pair of files."""
    (_, vocab_source), (_, merges_source) = vocab, merges
    with explained(*vocab, "vocab.json"):
        ids = read_vocab(Node(vocab_source, "the vocabulary", parse(*vocab)))
    with explained(*merges, "merges.txt"):
        pairs, first_line = _read_merges(*merges)
    location = models.ErrorLocation(
        token=lambda token: f"{vocab_source}: {shortened(token)}",
        merge=lambda rank: f"{merges_source}: line {first_line + rank}",
        added=lambda _: "special_tokens",
    )
    with explained(*vocab, "vocab.json"):
        models.check_vocab(ids, location)
    next_id = max(ids.values(), default=-1) + 1
    added: list[AddedToken] = []
    for content in dict.fromkeys(special_tokens):
        token_id = ids.get(content, next_id)
        next_id += token_id == next_id
        added.append(AddedToken(id=token_id, content=content))
    by_id = tuple(sorted(added, key=lambda token: token.id))
    return byte_level_spec(models.BPE(vocab=ids, merges=pairs), by_id, location)


def _read_merges(data: bytes, source: str) -> tuple[list[tuple[str, str]], int]:
    """Return the merges, and the number of the first one's line."""
    # Two words with a space between them are a merge, even those of another file.
    if other := foreign_files.describe_beginning(data[:4096], len(data)):
        raise UsageError(f"{source}: {other}")
    text = decoded(data, source)
    # Not splitlines, which would also split at characters that are not line breaks here.
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    first = 2 if text.startswith(_VERSION) else 1
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines[first - 1 :], start=first):
        line = line.removesuffix("\r")
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise UsageError(
                f"{source}: line {number}: {shortened(line)} is not two tokens with one space "
                "between them"
            )
        pairs.append((left, right))
    return pairs, first
