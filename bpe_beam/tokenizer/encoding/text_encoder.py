"""`TextEncoder`: text to ids. It checks the text, calls the native encoder, and explains errors.

Python reads no character of the text, unless the pre-tokenizer or the normalizer has a pattern
without a native scanner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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


class SpecialRules(NamedTuple):
    """How special tokens in a text are encoded."""

    allowed: list[int]  # ids of the recognized ones
    refuse_others: bool  # if false, others are plain text


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
        encode = self._native.encode_with_offsets
        ids, begins, ends, added = self._checked(encode, data, rules)
        offsets = text_input.in_characters(data, begins, ends)
        return ids.tolist(), offsets, frozenset(added.tolist())

    def encode_batch(
        self, texts: Sequence[str] | pa.Array | pa.ChunkedArray, rules: SpecialRules
    ) -> pa.LargeListArray:
        if isinstance(texts, (list, tuple)) and not rules.refuse_others:
            copied = list(texts)
            try:  # without a buffer, where texts in ASCII would be copied
                return self._lists(
                    lambda: self._native.encode_texts(copied, rules.allowed),
                    lambda number: copied[number].encode(),
                )
            except (TypeError, UnicodeEncodeError):
                text_input.to_batch(texts)  # raises the error that says which text
                raise
        data, offsets = text_input.to_batch(texts)
        text_at = partial(_text_at, data, offsets)
        for number in range(len(offsets) - 1 if rules.refuse_others else 0):
            self._added.refuse(text_at(number), rules.allowed, f"text {number}: ")
        return self._lists(lambda: self._native.encode_batch(data, offsets, rules.allowed), text_at)

    def encode_words(self, words: pa.Array) -> pa.LargeListArray:
        """Return the ids of words that the pipeline leaves whole.

        The words should be different ones: what is found of one is not kept for the next.
        """
        data, offsets = text_input.to_batch(words)
        return self._lists(
            lambda: self._native.encode_words(data, offsets), partial(_text_at, data, offsets)
        )

    def _lists(
        self,
        encode: Callable[[], tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]],
        text_at: Callable[[int], bytes],
    ) -> pa.LargeListArray:
        """Return native ids and the offset of each text's first as an Arrow array."""
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

    def encode_chunks(self, chunks: Iterable[str], rules: SpecialRules) -> Iterator[int]:
        """Yield the ids of a text in chunks; see `Tokenizer.encode_iterable`."""
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
        if "_native" in vars(self):
            self._native.clear_cache()

    def _missing(self, data: bytes, missing: ValueError, done: int = 0) -> DataError:
        _, begin, end = missing.args
        as_bytes = self._spec.model_reads_bytes
        return text_input.missing_symbol(data, begin, end, as_bytes=as_bytes, done=done)

    @cached_property
    def _model(self) -> _native.Model:
        spec, like = self._spec, self._like
        if (
            like is not None
            and like._spec.model is spec.model
            and like._spec.model_reads_bytes == spec.model_reads_bytes
        ):
            return like._model
        return native_encoder.make_model(spec)

    @cached_property
    def _native(self) -> _native.Encoder:
        try:
            spec = self._spec
            pipeline = native_encoder.pipeline_of(
                spec.added_tokens,
                spec.normalizer,
                spec.pre_tokenizer,
                last_as_bytes=spec.model_reads_bytes,
            )
            return _native.Encoder(pipeline, self._model)
        except _native.TextGrowthError as error:  # of an added token
            raise UsageError(str(error)) from None


def _text_at(data: Any, offsets: npt.NDArray[np.int64], number: int) -> bytes:
    return bytes(data[offsets[number] : offsets[number + 1]])
