"""Counting the words of texts: a word table, and the pipeline that splits texts into words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.counts.word_table import (
    PARTITIONS,
    Blocks,
    WordTable,
    string_buffers,
)
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.tokenizer import text_input
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.normalizers import normalizer_from_name
from bpe_beam.tokenizer.components.pretokenizers import pretokenizer_from_name
from bpe_beam.tokenizer.encoding.native_encoder import holds_gil, pipeline_of


@dataclass(frozen=True)
class WordRules:
    """The rules by which texts are split into words; plain and picklable.

    Attributes:
        pretokenizer: The pre-tokenizer by name, or `regex:PATTERN`.
        special_tokens: Tokens that are extracted from texts and never counted.
        with_places: Whether to keep where each word occurs first; `add_texts` then needs positions.
        added_tokens: The special tokens that a tokenizer's own settings extract.
    """

    normalizer: str = "none"
    pretokenizer: str = "gpt2"
    special_tokens: tuple[str, ...] = ()
    with_places: bool = False
    added_tokens: tuple[AddedToken, ...] = ()

    @property
    def of_counts(self) -> JsonObject:
        """The fields that a counts folder's manifest has."""
        names = ("normalizer", "pretokenizer", "special_tokens", "with_places")
        return {name: getattr(self, name) for name in names}

    @property
    def identity(self) -> JsonObject:
        """The fields as JSON values, by which an unfinished count is resumed."""
        added: list[Any] = msgspec.to_builtins(self.added_tokens)
        return {**self.of_counts, **({"added_tokens": added} if added else {})}

    @property
    def hold_gil(self) -> bool:
        """Return whether counting holds the GIL, so that threads take turns."""
        return holds_gil(
            normalizer_from_name(self.normalizer),
            pretokenizer_from_name(self.pretokenizer, byte_level=True),
        )


class WordCounter(WordTable):
    """A word table that counts words as text: for tokenizers of bytes and characters."""

    def __init__(self, rules: WordRules = WordRules()) -> None:
        super().__init__(with_places=rules.with_places)
        known = {token.content: token for token in rules.added_tokens}
        special_tokens = [
            replace(known.get(text, AddedToken(number, text)), id=number, special=True)
            for number, text in enumerate(rules.special_tokens)
        ]
        self._special_ids = range(len(special_tokens))
        self._pipeline = pipeline_of(
            special_tokens,
            normalizer_from_name(rules.normalizer),
            pretokenizer_from_name(rules.pretokenizer, byte_level=True),
            last_as_bytes=True,
        )

    def add_texts(
        self,
        texts: pa.Array,
        places: pa.Array | None = None,
        *,
        max_bytes: int = 0,
        on_full: Callable[[Blocks], None] | None = None,
    ) -> int:
        """Count the words of a batch of texts.

        Returns:
            The number of words in the texts, each occurrence counted.
        """
        data, offsets = string_buffers(texts)
        documents = None if places is None else places.to_numpy(zero_copy_only=False)
        to_count = (self._pipeline, self._special_ids, data, offsets, documents)
        return int(self._table.add_texts(*to_count, *self._limit(max_bytes, on_full)))

    def add_text_list(
        self,
        texts: list[str] | list[bytes],
        first_document: int = 0,
        *,
        max_bytes: int = 0,
        on_full: Callable[[Blocks], None] | None = None,
    ) -> tuple[int, int]:
        """Count the words of a list of texts, which is not copied.

        Returns:
            The number of words, each occurrence counted, and of bytes of UTF-8.
        """
        to_count = (self._pipeline, self._special_ids, texts, first_document)
        limit = self._limit(max_bytes, on_full)
        words, size, counted = self._table.add_text_list(*to_count, *limit)
        if counted < len(texts):
            text_input.refuse(texts[counted], first_document + counted)
        return words, size

    def _limit(self, max_bytes: int, on_full: Callable[[Blocks], None] | None) -> tuple[Any, ...]:
        """Return the arguments of the native table that limit its memory."""
        if on_full is None:
            return ()

        def hand_over(parts: list[Any]) -> None:
            on_full(self._blocks(parts))

        return max_bytes, PARTITIONS, hand_over
