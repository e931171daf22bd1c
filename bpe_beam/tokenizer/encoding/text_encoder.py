"""`TextEncoder`: text to ids. It checks the text, calls the native encoder, and explains errors.

Python reads no character of the text, unless the pre-tokenizer or the normalizer has a pattern
without a native scanner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bpe_beam import _native
from bpe_beam.errors import DataError, TextError, UsageError
from bpe_beam.tokenizer import text_input
from bpe_beam.tokenizer.components.added_tokens import AddedTokens
from bpe_beam.tokenizer.encoding import native_encoder
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_IDS_AT_ONCE = 4096

Ids = TypeVar("Ids")
NativeIds = tuple["npt.NDArray[np.uint32]", "npt.NDArray[np.int64]"]
"""The ids of many texts, and the offsets of the first of each."""
EncodeBatch = Callable[[list[int]], NativeIds]
TextAt = Callable[[int], bytes]


class SpecialRules(NamedTuple):
    """How special tokens in a text are encoded.

    Attributes:
        allowed: Ids of those that are recognized.
        refuse_others: Whether a text with another one is refused; else it is plain text there.
    """

    allowed: list[int]
    refuse_others: bool


class TextEncoder:
    """Encodes texts. Threads may share it."""

    def __init__(
        self, spec: TokenizerSpec, added: AddedTokens, *, like: TextEncoder | None = None
    ) -> None:
        self._spec = spec
        self._added = added
        self._like = like

    def rules(
        self, allowed_special: str | Collection[str], disallowed_special: str
    ) -> SpecialRules:
        """Return the rules for special tokens from the arguments of `Tokenizer.encode`."""
        if disallowed_special not in ("text", "error"):
            raise UsageError(
                f'disallowed_special must be "text" or "error", got {disallowed_special!r}'
            )
        return SpecialRules(self._added.allowed(allowed_special), disallowed_special == "error")

    def encode(self, data: bytes, rules: SpecialRules) -> list[int]:
        """Return the ids of a text."""
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
        try:
            return encode(data, rules.allowed)
        except _native.MissingSymbolError as missing:
            raise self._missing(data, missing, done=done) from None
        except _native.TextGrowthError as error:
            raise DataError(str(error)) from None

    def encode_with_offsets(
        self, data: bytes, rules: SpecialRules
    ) -> tuple[list[int], list[tuple[int, int]], frozenset[int]]:
        """Return the ids of a text with their offsets."""
        encode = self._native.encode_with_offsets
        ids, begins, ends, added = self._checked(encode, data, rules)
        offsets = text_input.in_characters(data, begins, ends)
        return ids.tolist(), offsets, frozenset(added.tolist())

    def encode_batch(
        self, texts: Sequence[str] | pa.Array | pa.ChunkedArray, rules: SpecialRules
    ) -> pa.LargeListArray:
        """Return the ids of many texts."""
        if isinstance(texts, (list, tuple)) and not rules.refuse_others:
            encode, text_at = self._list_encoder(list(texts))
        else:
            encode, text_at = self._buffer_encoder(texts, rules)
        return self._lists(lambda: encode(rules.allowed), text_at)

    def encode_words(self, words: pa.Array) -> pa.LargeListArray:
        """Return the ids of words that the pipeline leaves whole.

        The words should be different ones: what is found of one is not kept for the next.
        """
        data, offsets = text_input.to_batch(words)
        return self._lists(
            lambda: self._native.encode_words(data, offsets),
            lambda number: bytes(data[offsets[number] : offsets[number + 1]]),
        )

    def _lists(self, encode: Callable[[], NativeIds], text_at: TextAt) -> pa.LargeListArray:
        """Return native ids as an Arrow array; explain native errors."""
        import pyarrow as pa

        try:
            ids, id_offsets = encode()
        except _native.MissingSymbolError as missing:
            number = missing.args[0]
            raise TextError(number, str(self._missing(text_at(number), missing))) from None
        except _native.TextGrowthError as error:
            raise DataError(str(error)) from None
        # Over the memory of the arrays; `pa.array` would import `numpy.ma`.
        ends = pa.Array.from_buffers(pa.int64(), len(id_offsets), [None, pa.py_buffer(id_offsets)])
        values = pa.Array.from_buffers(pa.uint32(), len(ids), [None, pa.py_buffer(ids)])
        return pa.LargeListArray.from_arrays(ends, values)

    def _list_encoder(self, texts: list[str]) -> tuple[EncodeBatch, TextAt]:
        """Return what encodes a list of str, without a copy where it is ASCII, and its texts."""

        def encode(allowed: list[int]) -> NativeIds:
            try:
                return self._native.encode_texts(texts, allowed)
            except (TypeError, UnicodeEncodeError):
                text_input.to_batch(texts)  # raises the error that says which text
                raise

        return encode, lambda number: texts[number].encode()

    def _buffer_encoder(
        self, texts: Sequence[str] | pa.Array | pa.ChunkedArray, rules: SpecialRules
    ) -> tuple[EncodeBatch, TextAt]:
        """Return what encodes texts in one buffer, and its texts."""
        data, offsets = text_input.to_batch(texts)
        if rules.refuse_others:
            for number, (start, end) in enumerate(pairwise(offsets)):
                self._added.refuse(bytes(data[start:end]), rules.allowed, f"text {number}: ")
        return (
            lambda allowed: self._native.encode_batch(data, offsets, allowed),
            lambda number: bytes(data[offsets[number] : offsets[number + 1]]),
        )

    def encode_chunks(self, chunks: Iterable[str], rules: SpecialRules) -> Iterator[int]:
        """Return the ids of a text in chunks, one by one; see `Tokenizer.encode_iterable`."""
        if isinstance(chunks, (str, bytes)):
            raise UsageError("chunks must be a sequence of texts, got a single text; use encode")
        return self._ids_of_chunks(chunks, rules)

    def _ids_of_chunks(self, chunks: Iterable[str], rules: SpecialRules) -> Iterator[int]:
        from bpe_beam.tokenizer.encoding import text_chunks

        done = 0
        # A token that includes spaces, or matches normalized text, depends on the text around it.
        safe_cuts = text_chunks.safe_cuts_of(self._spec) if self._added.plain_text else None
        for chunk in text_chunks.encodable_chunks(chunks, safe_cuts, self._added, rules.allowed):
            ids = self._checked(self._native.encode, chunk, rules, done)
            # As Python integers, the ids of a very long word would take many times its size.
            for start in range(0, len(ids), _IDS_AT_ONCE):
                yield from ids[start : start + _IDS_AT_ONCE].tolist()
            done += text_input.count_characters(chunk)

    def clear_cache(self) -> None:
        """Free the memory of words encoded before."""
        if "_native" in vars(self):
            self._native.clear_cache()

    def _missing(self, data: bytes, missing: ValueError, done: int = 0) -> DataError:
        _, begin, end = missing.args
        as_bytes = self._spec.model_reads_bytes
        return text_input.missing_symbol(data, begin, end, as_bytes=as_bytes, done=done)

    @cached_property
    def _model(self) -> _native.Model:
        spec, like = self._spec, self._like
        if like is not None and _have_one_model(spec, like._spec):
            return like._model
        return native_encoder.make_model(spec)

    @cached_property
    def _native(self) -> _native.Encoder:
        try:
            return _native.Encoder(native_encoder.make_pipeline(self._spec), self._model)
        except _native.TextGrowthError as error:  # of an added token
            raise UsageError(str(error)) from None


def _have_one_model(one: TokenizerSpec, other: TokenizerSpec) -> bool:
    return one.model is other.model and one.model_reads_bytes == other.model_reads_bytes
