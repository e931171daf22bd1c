"""The order of documents, and the sequences made of them, as settings and manifests name them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from bpe_beam.folders.artifact_names import PARTS

MAX_SEED = 2**32 - 1
"""The greatest seed of an order."""

SHARD_TOKENS = 1 << 25
"""The maximum tokens of a shard, unless it is one row; a worker has them in memory."""

MAX_SEQUENCE_LENGTH = 1 << 22
"""The maximum tokens of a sequence: a plan has some rows for each, and takes minutes beyond."""


class Arrangement(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The order of documents, and the sequences made of them, as `__job` has them.

    Attributes:
        sequence_length: The maximum tokens of a sequence; None: documents stay as they are.
        packing: `concatenate` or `best_fit`; None without sequences.
        max_documents_per_sequence: The maximum slices of documents in a sequence; None: no limit.
        pad_token: The token that fills each sequence; None: sequences may be shorter.
        shuffle_seed: Chooses the order of documents or sequences; None: the order of the corpus.
        validation_share: The share of the documents that are for validation, such as `0.5%`.
        shard_tokens: About the maximum tokens of a shard.
        validation_by: What decides whether a document is for validation: its `text` or its `id`.
    """

    sequence_length: Annotated[int, Meta(ge=1)] | None = None
    packing: Literal["concatenate", "best_fit"] | None = None
    max_documents_per_sequence: Annotated[int, Meta(ge=1)] | None = None
    pad_token: str | None = None
    shuffle_seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    validation_share: str | None = None
    shard_tokens: Annotated[int, Meta(ge=1)] = SHARD_TOKENS
    validation_by: Literal["text", "id"] = "id"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that documents are divided into; one empty name if undivided."""
        return ("",) if self.validation_share is None else PARTS

    @property
    def rows(self) -> str:
        """The kind of the rows in words; rows with equal words are read alike."""
        if self.sequence_length is None:
            return "documents"
        pad = "" if self.pad_token is None else f", padded with {self.pad_token}"
        return f"sequences of {self.sequence_length:,} tokens, {self.packing}{pad}"

    @property
    def is_best_fit(self) -> bool:
        """True if sequences are planned from the lengths of all documents."""
        return self.packing == "best_fit"
