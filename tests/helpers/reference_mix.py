"""The definition of a mixture, for documents in memory: slow, and without any table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True)
class Document:
    """A document of a source: its tokens, and its id if it has one."""

    source: str
    tokens: tuple[int, ...]
    id: str | None = None


@dataclass(frozen=True)
class Part:
    """What to take of a source: `target` tokens after the first `skip` ones."""

    target: int
    skip: int = 0
    max_epochs: int = 1


@dataclass(frozen=True)
class Taken:
    """A document that is taken, and its key."""

    key: bytes
    document: Document
    epoch: int


def token_hash(document: Document) -> bytes:
    """Return the hash of tokens of a tokenizer with at most 65,536 ids."""
    data = b"".join(token.to_bytes(2, "little") for token in document.tokens)
    return blake2b(data, digest_size=16, person=b"tokens").digest()


def identity(document: Document, by: str) -> bytes:
    if by == "tokens":
        return token_hash(document)
    assert document.id is not None
    return blake2b(document.id.encode(), digest_size=16, person=b"id").digest()


def key(seed: int, epoch: int, source: str, identity_: bytes, counter: int) -> bytes:
    data = seed.to_bytes(8, "little") + epoch.to_bytes(8, "little") + source.encode()
    digest = blake2b(data, digest_size=32, person=b"key").digest()
    secret = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8, 16, 24)]
    left, right = int.from_bytes(identity_[:8], "big"), int.from_bytes(identity_[8:], "big")
    right = (right + counter) % 2**64
    for first, second in (secret[:2], secret[2:]):
        left ^= fmix64(right ^ first)
        right ^= fmix64(left ^ second)
    return left.to_bytes(8, "big") + right.to_bytes(8, "big")


def fmix64(value: int) -> int:
    """Return the last step of MurmurHash3 of a value."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value ^= value >> 33
        value = value * factor % 2**64
    return value ^ value >> 33


def has_unique_ids(documents: Sequence[Document]) -> bool:
    """Return whether each document of a source has an id of its own that is no position."""
    ids = [document.id for document in documents]
    positions = [each for each in ids if each and each.rpartition(":")[2].split("+")[0].isdecimal()]
    positions = [each for each in positions if ":" in each]
    return None not in ids and len(set(ids)) == len(ids) and not positions


def with_counters(documents: Sequence[Document], by: str) -> list[tuple[Document, bytes, int]]:
    """Return documents of a source with their identities and counters of equal documents."""
    seen: Counter[bytes] = Counter()
    result = []
    for document in sorted(documents, key=lambda each: blake2b_of_id(each)):
        name = identity(document, by)
        result.append((document, name, seen[name]))
        seen[name] += 1
    return result


def blake2b_of_id(document: Document) -> bytes:
    return blake2b(str(document.id).encode(), digest_size=16, person=b"id").digest()[:8]


def mixed(
    documents: Sequence[Document],
    parts: Mapping[str, Part],
    seed: int = 0,
    duplicates: str = "keep",
    by: str = "auto",
) -> list[Taken]:
    """Return the documents that are taken, in the order of their keys.

    Raises:
        ValueError: A source has too few tokens.
    """
    of_source: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        if document.source in parts:
            of_source[document.source].append(document)
    rows = {}
    for source, each in of_source.items():
        known_by = by
        if duplicates != "keep":
            known_by = "tokens"
        elif by == "auto":
            known_by = "id" if has_unique_ids(each) else "tokens"
        rows[source] = with_counters(each, known_by)
    if duplicates != "keep":
        rows = {source: [row for row in own if not row[2]] for source, own in rows.items()}
    if duplicates == "drop":
        best: dict[bytes, tuple[bytes, str]] = {}
        for source, each_row in rows.items():
            for _, name, _ in each_row:
                first = key(seed, 0, source, name, 0), source
                best[name] = min(first, best.get(name, first))
        rows = {s: [row for row in own if best[row[1]][1] == s] for s, own in rows.items()}
    result = []
    for source, part in parts.items():
        start = 0  # of a document among the tokens of all epochs
        for epoch in range(part.max_epochs):
            keyed = [
                (key(seed, epoch, source, name, counter), document)
                for document, name, counter in rows.get(source, [])
            ]
            for its_key, document in sorted(keyed, key=lambda row: row[0]):
                if part.skip <= start < part.skip + part.target:
                    result.append(Taken(its_key, document, epoch))
                start += len(document.tokens)
        if start < part.skip + part.target:
            raise ValueError(f"{source} has {start} tokens")
    return sorted(result, key=lambda each: each.key)
