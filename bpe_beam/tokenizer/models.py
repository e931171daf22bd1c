"""Models: how the symbols of a word become tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer import byte_level

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_ID = 2**31 - 1
"""The greatest id: the formats that hold token ids have 31 bits for them."""

MISSING_BYTE = 2**32 - 1
"""Stands in `BPE.byte_ids` for a byte that the vocabulary has no symbol of."""


@dataclass(frozen=True)
class Naming:
    """How to name the place of a fault; as paths in `tokenizer.json` unless told otherwise.

    Attributes:
        token: From a token of the vocabulary to its place.
        merge: From the rank of a merge to its place.
        added: From the number of an added token to its place.
    """

    token: Callable[[str], str] = field(default=lambda token: f"model.vocab[{shortened(token)}]")
    merge: Callable[[int], str] = field(default=lambda rank: f"model.merges[{rank}]")
    added: Callable[[int], str] = field(default=lambda number: f"added_tokens[{number}]")


@dataclass(frozen=True)
class BPE:
    """Byte-pair encoding over the byte-level alphabet (section 3 of the semantics).

    Attributes:
        vocab: Id by token, in the order of ids. Ids may have holes.
        merges: Pairs of tokens by rank; a pair listed twice has its last rank.
    """

    vocab: Mapping[str, int]
    merges: Sequence[tuple[str, str]]

    def check(self, added: Collection[str], naming: Naming) -> None:
        """Refuses a vocabulary or merges that cannot work.

        Args:
            added: The added tokens' texts: they may stand in the vocabulary, too.
            naming: How the message names the place.

        Raises:
            UsageError: Names the place, what stands there, and what may.
        """
        vocab = self.vocab
        tokens_by_id: dict[int, str] = {}
        for token, token_id in vocab.items():
            if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
                check_id(token_id, naming.token(token))
            other = tokens_by_id.setdefault(token_id, token)
            if other is not token:
                raise UsageError(
                    f"{naming.token(token)}: id {token_id} is taken by {shortened(other)}"
                )
            if not token:
                raise UsageError(f"{naming.token(token)}: an empty token")
            if not byte_level.is_byte_level(token) and token not in added:
                raise UsageError(
                    f"{naming.token(token)}: neither an added token nor written in the byte-level "
                    "alphabet"
                )
        for rank, (left, right) in enumerate(self.merges):
            if left in vocab and right in vocab and left + right in vocab:
                continue
            missing = next(token for token in (left, right, left + right) if token not in vocab)
            raise UsageError(
                f"{naming.merge(rank)}: {shortened(missing)} of {shortened([left, right])} is not "
                "in the vocabulary"
            )

    def token_bytes(self, token: str) -> bytes:
        """The bytes of the text that a token of the vocabulary stands for."""
        return byte_level.to_bytes(token)

    def merge_rows(self) -> npt.NDArray[np.uint32]:
        """The merges for the native encoder: uint32[merges, 3] of left, right and joined id."""
        import numpy as np

        ids = self.vocab
        rows = [(ids[left], ids[right], ids[left + right]) for left, right in self.merges]
        return np.array(rows, dtype=np.uint32).reshape(-1, 3)

    def byte_ids(self) -> npt.NDArray[np.uint32]:
        """The id of each byte's symbol: uint32[256], MISSING_BYTE where there is none."""
        import numpy as np

        symbols = byte_level.BYTE_TO_CHAR
        return np.array([self.vocab.get(char, MISSING_BYTE) for char in symbols], dtype=np.uint32)


def in_order_of_ids(vocab: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sorts a vocabulary by id."""
    return dict(sorted(vocab, key=lambda entry: entry[1]))


def check_id(token_id: object, place: str) -> int:
    """Refuses what cannot be a token's id.

    Raises:
        UsageError: It is not an integer from 0 to MAX_ID; names the place.
    """
    if isinstance(token_id, bool) or not isinstance(token_id, int):
        raise UsageError(f"{place}: the id {shortened(token_id)} is not an integer")
    if not 0 <= token_id <= MAX_ID:
        raise UsageError(f"{place}: the id {shortened(token_id)} is not from 0 to {MAX_ID}")
    return token_id


def shortened(value: object) -> str:
    """A value as JSON writes it, cut to what a message can hold."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()  # lone surrogates
    except (TypeError, ValueError, RecursionError):  # no JSON, an endless integer, too deep
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
