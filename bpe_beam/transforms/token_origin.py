"""The origin of the tokens in a pipeline: the transforms that make ids, and the tokens around
documents.

Batches carry the fingerprint of their tokenizer in the schema. Other elements have no place for it;
for these, `makers_of` follows the pipeline back to the transforms that made the ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpe_beam.errors import DataError, UsageError, require
from bpe_beam.messages import list_few
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.formats.table_schema import TEXT_BYTES
from bpe_beam.storage import PathName, Storage, path_name
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.transforms.producers import producers_of
from bpe_beam.workers.document_encoding import Encoding, cached_tokenizer
from bpe_beam.workers.tokenize_split import origin_of

FINGERPRINT = b"bpe_beam.tokenizer"
"""The key in a batch's schema of the fingerprint of the tokenizer that made its ids."""

SIZES = pa.field(TEXT_BYTES, pa.int64(), metadata={"bpe_beam.tokenizer": "size of the text"})
"""The column that `Tokenize` adds for the sizes of texts. A column of the same name of somebody
else has no such metadata."""

TokenizerInput: TypeAlias = "Tokenizer | PathName | beam.pvalue.AsSideInput"
"""A tokenizer; a path or URL of one; or a side input with the text of one, as `LearnMerges` makes
it."""


class ChosenTokenizer(NamedTuple):
    """The tokenizer that a transform got: known now, or a side input. `url` is that of its file."""

    known: Tokenizer | None
    url: str | None = None
    learned: beam.pvalue.AsSideInput | None = None

    @staticmethod
    def of(tokenizer: TokenizerInput, storage: Storage) -> ChosenTokenizer:
        """Return the tokenizer of a transform's argument, and read its file if it is named."""
        if isinstance(tokenizer, Tokenizer):
            return ChosenTokenizer(tokenizer)
        if isinstance(tokenizer, beam.pvalue.AsSingleton):
            return ChosenTokenizer(None, learned=tokenizer)
        if isinstance(tokenizer, beam.pvalue.AsSideInput | beam.pvalue.PCollection):
            raise UsageError(
                f"tokenizer must be one, got {type(tokenizer).__name__}: give "
                "beam.pvalue.AsSingleton of a collection of one tokenizer.json"
            )
        url = absolute(path_name(tokenizer, "tokenizer"))
        return ChosenTokenizer(Tokenizer.from_file(url, storage=storage), url)

    def travelling(self, encoding: Encoding, storage: Storage) -> Encoding:
        """Return an encoding that travels without the tokenizer if workers can read its file."""
        return encoding if self.url is None else encoding.kept_at(storage, self.url, is_exact=False)

    @property
    def side_inputs(self) -> list[beam.pvalue.AsSideInput]:
        return [] if self.learned is None else [self.learned]

    def is_not(self, other: ChosenTokenizer) -> bool:
        """Return whether both are known to be different tokenizers."""
        if self.known is not None and other.known is not None:
            return self.known.fingerprint != other.known.fingerprint
        if self.learned is not None and other.learned is not None:
            return self.learned.pvalue is not other.learned.pvalue
        return False

    def __str__(self) -> str:
        if self.known is None:
            return "a side input"
        return f"{self.known.fingerprint[:12]}… of {self.known.vocab_size:,} tokens"


@contextmanager
def tokenizer_errors() -> Iterator[None]:
    """Refuse a tokenizer that cannot be used, which is no fault of one document: no dead letter."""
    try:
        yield
    except DataError as error:
        raise UsageError(f"the tokenizer cannot be used: {error}") from error


class TokensMaker(beam.PTransform):
    """The base of transforms whose output has ids.

    Attributes:
        encoding: The tokens around documents, and the tokenizer if it is known.
        tokenizer: The tokenizer; None if each window has its own (`updates`).
    """

    encoding: Encoding
    tokenizer: ChosenTokenizer | None


def encoding_display(encoding: Encoding) -> dict[str, Any]:
    """Return the display data of an encoding: its settings, and the fingerprint of its tokenizer if
    it is known."""
    settings = {key: value for key, value in encoding.settings.items() if value is not None}
    if not isinstance(settings["allowed_special"], str):
        settings["allowed_special"] = " ".join(settings["allowed_special"])
    if encoding.has_tokenizer:
        settings["tokenizer"] = encoding.tokenizer().fingerprint
    return settings


def makers_of(tokens: beam.pvalue.PCollection) -> dict[str, TokensMaker]:
    """Return the transforms that made the ids of a collection, the nearest on each way back, by
    their labels in the pipeline."""
    found = {part.full_label: part.transform for _, part in producers_of(tokens, TokensMaker)}
    return dict(sorted(found.items()))


class TokenFacts(NamedTuple):
    """What follows from a tokenizer: one more than its greatest id, the origin of the ids, and the
    id of the padding token, if there is one."""

    vocab_size: int
    origin: ShardOrigin
    pad: int | None


class WrittenTokens(NamedTuple):
    """What `WriteTokens` knows of the ids: how documents became ids, and what is written.

    Attributes:
        encoding: The tokens around documents, without a tokenizer.
        columns: The columns for trainers.
        pad_token: The token that fills sequences.
        known: What follows from the tokenizer; None if that is a side input.
    """

    encoding: Encoding
    columns: tuple[str, ...]
    pad_token: str | None
    known: TokenFacts | None

    @staticmethod
    def of(
        tokenizer: Tokenizer | None,
        settings: Mapping[str, Any],
        columns: tuple[str, ...],
        pad_token: str | None = None,
    ) -> WrittenTokens:
        """Return it for a tokenizer, if that is known, and the settings of an encoding."""
        tokens = WrittenTokens(Encoding.of(None, **settings), columns, pad_token, None)
        return tokens if tokenizer is None else tokens._replace(known=tokens._with(tokenizer))

    def facts(self, learned: str | None) -> TokenFacts:
        """Return what follows from the tokenizer, which may be a side input."""
        return self.known or self._with(cached_tokenizer(learned or ""))

    def _with(self, tokenizer: Tokenizer) -> TokenFacts:
        pad = None if self.pad_token is None else tokenizer.token_to_id(self.pad_token)
        require(
            pad is not None or self.pad_token is None,
            f"must be a token of the tokenizer, got {self.pad_token!r}",
            "pad_token",
        )
        origin = origin_of(self.encoding, self.columns, tokenizer)
        return TokenFacts(tokenizer.max_id + 1, origin, pad)


def settings_of(makers: Mapping[str, TokensMaker], tokenizer: ChosenTokenizer) -> dict[str, Any]:
    """Return the settings of encoding that all transforms before `WriteTokens` share.

    Raises:
        UsageError: They have different settings, or another tokenizer than `tokenizer`.
    """
    by_text: dict[str, dict[str, Any]] = {}
    for label, maker in makers.items():
        if maker.tokenizer is None:
            raise UsageError(
                f"WriteTokens: {label} has updates, so the ids may be of several tokenizers, "
                "and a folder has one: tokenize without updates"
            )
        if maker.tokenizer.is_not(tokenizer):
            raise UsageError(
                f"WriteTokens has another tokenizer ({tokenizer}) than {label} before it "
                f"({maker.tokenizer}): give both the same"
            )
        by_text[json.dumps(maker.encoding.settings)] = maker.encoding.settings
    if len(by_text) > 1:
        raise UsageError(
            f"WriteTokens: {list_few([*makers])} put different tokens "
            f"around documents: {'; '.join(by_text)}. Let them put the same, or set append and "
            "prepend of WriteTokens to the tokens that each document has"
        )
    return next(iter(by_text.values()), {})


def require_framed(
    ids: npt.NDArray[np.uint32], bounds: npt.NDArray[np.int64], origin: ShardOrigin
) -> None:
    """Refuse documents without the tokens that should be around them.

    `bounds`, int64[documents + 1], has the first id of each document and the end of the last.
    """
    before = [token_id for _, token_id in origin.prepend]
    after = [token_id for _, token_id in origin.append]
    if not before and not after:
        return
    starts, ends = bounds[:-1], bounds[1:]
    framed = ends - starts >= len(before) + len(after)
    for positions, tokens in ((starts, before), (ends - len(after), after)):
        for offset, token_id in enumerate(tokens):
            at = np.where(framed, positions + offset, 0)
            framed &= ids[at] == token_id if ids.size else False
    wrong = np.flatnonzero(~framed)
    if wrong.size:
        expected = " and ".join(
            f"{side} with {' '.join(token for token, _ in tokens)}"
            for side, tokens in (("begin", origin.prepend), ("end", origin.append))
            if tokens
        )
        first = ids[starts[wrong[0]] : ends[wrong[0]]]
        raise DataError(
            f"WriteTokens: each document must {expected}, got one of {first.size:,} ids that "
            f"begins with {first[:4].tolist()} and ends with {first[-4:].tolist()}: a step after "
            "Tokenize has changed the ids; set prepend and append of WriteTokens to the tokens "
            "that each document still has, or to None"
        )
