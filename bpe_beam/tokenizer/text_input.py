"""The inputs of a tokenizer, str or Arrow strings: checked, and converted to UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from bpe_beam import _native
from bpe_beam.errors import DataError, UsageError
from bpe_beam.messages import has_pair_at

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

# The bytes of UTF-8 that are not the first of a character.
_CONTINUATION = bytes(range(0x80, 0xC0))


def to_utf8(text: str, where: str = "", done: int = 0) -> bytes:
    """Return a text's UTF-8."""
    if not isinstance(text, str):
        raise UsageError(f"{where}the text is of type {type(text).__name__}; must be str")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        kind, remedy = "a lone surrogate", "decode the source with errors='replace', or correct it"
        if has_pair_at(text, error.start):
            kind = "the first of a surrogate pair"
            remedy = "join pairs by text.encode('utf-16', 'surrogatepass').decode('utf-16')"
        raise DataError(
            f"{where}character U+{ord(text[error.start]):04X} at {done + error.start} is {kind}, "
            f"which is not text; {remedy}"
        ) from None


def refuse(text: object, number: int) -> NoReturn:
    """Raise the error of a text that is neither str nor UTF-8 in bytes, or has a lone surrogate."""
    if isinstance(text, bytes):
        try:
            text.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"text {number}: byte {error.start} is not UTF-8; decode the source, or correct it"
            ) from None
    elif isinstance(text, str):
        to_utf8(text, f"text {number}: ")
    raise UsageError(f"text {number} must be str or bytes, got {type(text).__name__}")


def count_characters(data: bytes) -> int:
    """Return the number of characters that begin in these bytes of UTF-8."""
    return len(data.translate(None, _CONTINUATION))


def in_characters(
    data: bytes, begins: npt.NDArray[np.uint64], ends: npt.NDArray[np.uint64]
) -> list[tuple[int, int]]:
    """Return offsets (start, end) in characters from offsets in bytes, where characters begin."""
    import numpy as np

    # The number of characters that begin before each byte.
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80, out=before[1:])
    return list(zip(before[begins].tolist(), before[ends].tolist(), strict=True))


def missing_symbol(
    data: bytes, begin: int, end: int, *, as_bytes: bool, done: int = 0
) -> DataError:
    """Return the error for a symbol that the vocabulary does not have."""
    number = count_characters(data[: begin + 1]) - 1
    text = data.decode()
    if as_bytes:
        character = text[number]
        return DataError(
            f"character {character!r} (U+{ord(character):04X}) at {done + number}: one of "
            'its bytes is not in the vocabulary; a tokenizer trained with the alphabet "bytes" '
            "has all of them"
        )
    symbol = text[number : number + max(count_characters(data[begin:end]), 1)]
    what = repr(symbol[:40])
    if len(symbol) == 1:
        what = f"character {what} (U+{ord(symbol):04X})"
    return DataError(
        f"{what} at {done + number} is not in the vocabulary, and the tokenizer has no "
        "unknown token for it"
    )


def portions(chunks: Iterable[str], size: int) -> Iterator[bytes]:
    """Yield a text in portions of at most `size` characters, in UTF-8."""
    done = 0
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, str):
            raise UsageError(
                f"chunks: number {number} is of type {type(chunk).__name__}; must be str"
            )
        for start in range(0, len(chunk), size):
            portion = chunk[start : start + size]
            yield to_utf8(portion, done=done)
            done += len(portion)


def to_batch(
    texts: Sequence[str] | pa.Array | pa.ChunkedArray,
) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return many texts as one buffer of UTF-8, and int64[texts + 1]: the offsets of the texts.

    Arrow strings are not copied.
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(texts)
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Sequence):
        raise UsageError(
            f"texts: {type(texts).__name__}; must be a sequence of str, or Arrow strings"
        )
    encoded = [to_utf8(text, f"text {number}: ") for number, text in enumerate(texts)]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return b"".join(encoded), offsets


def _from_arrow(texts: pa.Array | pa.ChunkedArray) -> tuple[Any, npt.NDArray[np.int64]]:
    import numpy as np
    import pyarrow as pa

    kind = texts.type
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        raise UsageError(f"texts: an Arrow array of {kind}; must be string or large_string")
    if texts.null_count:
        number = texts.is_null().index(True).as_py()
        raise DataError(f"text {number}: null; {texts.null_count} of {len(texts)} texts are null")
    if isinstance(texts, pa.ChunkedArray) and texts.num_chunks == 1:
        texts = texts.chunk(0)
    # Joining chunks, and copying views, reads what their offsets say.
    _validate(texts, full=not isinstance(texts, pa.Array) or pa.types.is_string_view(kind))
    # 64-bit offsets first: joined chunks may exceed 32-bit offsets. A cast imports Arrow's compute
    # functions, which takes a tenth of a small job's time.
    array = texts if pa.types.is_large_string(kind) else texts.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not len(array):
        return b"", np.zeros(1, np.int64)
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None:  # texts that are all empty
        return b"", np.zeros(len(array) + 1, np.int64)
    view = memoryview(data)
    try:
        sound = _native.texts_are_utf8(view, offsets)
    except ValueError:  # the offsets do not ascend within the data
        sound = False
    if not sound:
        _validate(texts, full=True)
        raise DataError("texts: broken Arrow strings: invalid UTF-8")
    return view, offsets


def _validate(texts: pa.Array | pa.ChunkedArray, *, full: bool) -> None:
    """Raise DataError if Arrow strings are invalid; with `full`, also for each text."""
    import pyarrow as pa

    try:
        texts.validate(full=full)
    except pa.ArrowInvalid as error:
        raise DataError(f"texts: broken Arrow strings: {error}") from None
