"""Text to ids: checks what comes in, hands bytes to the native encoder, names faults by place.

Python touches no character of the text on the way, unless the pre-tokenizer or the normalizer has
a pattern without a scanner of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from bpe_beam.errors import DataError, TextError, UsageError
from bpe_beam.record import record
from bpe_beam.tokenizer import native_encoder, text_chunks, text_input
from bpe_beam.tokenizer.added_tokens import AddedTokens
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    import pyarrow as pa

    from bpe_beam import _native

_IDS_AT_ONCE = 4096

Ids = TypeVar("Ids")


@record
class SpecialRules:
    """What becomes of special tokens that stand in a text.

    Attributes:
        allowed: Ids of those that count.
        refuse_others: Whether a text that holds another one is refused, or has it as plain text.
    """

    allowed: list[int]
    refuse_others: bool


class TextEncoder:
    """Encodes texts with a tokenizer's spec. Threads may share it."""

    def __init__(self, spec: TokenizerSpec, added: AddedTokens) -> None:
        self._spec = spec
        self._added = added

    def rules(
        self, allowed_special: str | Collection[str], disallowed_special: str
    ) -> SpecialRules:
        """The rules for special tokens from the settings of `Tokenizer.encode`.

        Raises:
            UsageError: A setting that cannot be.
        """
        if disallowed_special not in ("text", "error"):
            raise UsageError(
                f'disallowed_special={disallowed_special!r}: must be "text" or "error"'
            )
        return SpecialRules(self._added.allowed(allowed_special), disallowed_special == "error")

    def encode(self, data: bytes, rules: SpecialRules) -> list[int]:
        """Return the ids of a text.

        Args:
            data: The text in UTF-8.
            rules: What becomes of special tokens.

        Raises:
            DataError: A piece that the vocabulary lacks, or a special token that is refused.
        """
        return self._checked(self._native.encode_to_list, data, rules)

    def _checked(
        self,
        encode: Callable[[bytes, list[int]], Ids],
        data: bytes,
        rules: SpecialRules,
        done: int = 0,
    ) -> Ids:
        """Call a native encoding of one text; errors as `encode`, positions counted from `done`."""
        if rules.refuse_others:
            self._added.refuse(data, rules.allowed, done=done)
        from bpe_beam import _native

        try:
            return encode(data, rules.allowed)
        except _native.MissingSymbolError as missing:
            raise self._missing(data, missing, done=done) from None
        except _native.TextGrowthError as error:
            raise DataError(str(error)) from None

    def encode_placed(
        self, data: bytes, rules: SpecialRules
    ) -> tuple[list[int], list[tuple[int, int]], frozenset[int]]:
        """The ids of a text of UTF-8, the place of each in characters, and the numbers of those
        that are added tokens found in the text; errors as `encode`."""
        if rules.refuse_others:
            self._added.refuse(data, rules.allowed)
        from bpe_beam import _native

        try:
            ids, begins, ends, added = self._native.encode_placed(data, rules.allowed)
        except _native.MissingSymbolError as missing:
            raise self._missing(data, missing) from None
        except _native.TextGrowthError as error:
            raise DataError(str(error)) from None
        places = text_input.in_characters(data, begins, ends)
        return ids.tolist(), places, frozenset(added.tolist())

    def encode_batch(
        self, texts: Sequence[str] | pa.Array | pa.ChunkedArray, rules: SpecialRules
    ) -> pa.LargeListArray:
        """The ids of many texts; errors as `encode`, with the text's number, from 0."""
        import pyarrow as pa

        from bpe_beam import _native

        data, offsets = text_input.to_batch(texts)
        if rules.refuse_others:
            for number, (start, end) in enumerate(pairwise(offsets)):
                self._added.refuse(bytes(data[start:end]), rules.allowed, f"text {number}: ")
        try:
            ids, id_offsets = self._native.encode_batch(data, offsets, rules.allowed)
        except _native.MissingSymbolError as missing:
            number = missing.args[0]
            text = bytes(data[offsets[number] : offsets[number + 1]])
            raise TextError(number, str(self._missing(text, missing))) from None
        except _native.TextGrowthError as error:
            raise DataError(str(error)) from None
        return pa.LargeListArray.from_arrays(pa.array(id_offsets), pa.array(ids))

    def encode_pieces(self, chunks: Iterable[str], rules: SpecialRules) -> Iterator[int]:
        """The ids of a text that comes in chunks, one by one; see `Tokenizer.encode_iterable`."""
        if isinstance(chunks, (str, bytes)):
            raise UsageError("chunks: a single text; give a sequence of them, or use encode")
        return self._ids_of_pieces(chunks, rules)

    def _ids_of_pieces(self, chunks: Iterable[str], rules: SpecialRules) -> Iterator[int]:
        done = 0
        # A token that may take spaces or be found in normalized text can depend on all around it.
        safe_cuts = text_chunks.cuts_of(self._spec) if self._added.plain_text else None
        active = self._added.active(rules.allowed)
        for piece in text_chunks.pieces(chunks, safe_cuts, self._added, active):
            ids = self._checked(self._native.encode, piece, rules, done)
            # As Python integers, the ids of a very long word would be many times its size.
            for start in range(0, len(ids), _IDS_AT_ONCE):
                yield from ids[start : start + _IDS_AT_ONCE].tolist()
            done += text_input.count_characters(piece)

    def _missing(self, data: bytes, missing: ValueError, done: int = 0) -> DataError:
        _, begin, end = missing.args
        as_bytes = self._spec.model_reads_bytes
        return text_input.missing_symbol(data, begin, end, as_bytes=as_bytes, done=done)

    @cached_property
    def _native(self) -> _native.Encoder:
        from bpe_beam import _native

        try:
            return native_encoder.make_encoder(self._spec)
        except _native.TextGrowthError as error:  # of an added token
            raise UsageError(str(error)) from None
