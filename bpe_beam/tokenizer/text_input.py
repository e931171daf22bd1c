"""Text as it comes to a tokenizer, str or Arrow, checked and turned into UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

# The bytes of UTF-8 that do not begin a character.
_CONTINUATION = bytes(range(0x80, 0xC0))


def to_utf8(text: str, where: str = "", done: int = 0) -> bytes:
    """A text's UTF-8.

    Args:
        text: Any str.
        where: What the message says before the place.
        done: How many characters of the whole text came before.

    Raises:
        UsageError: It is no str.
        DataError: It holds a lone surrogate, which no UTF-8 can stand for; names the place.
    """
    if not isinstance(text, str):
        raise UsageError(f"{where}the text is of type {type(text).__name__}; must be str")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{where}character U+{ord(text[error.start]):04X} at {done + error.start} is a lone "
            "surrogate, which is not text; decode the source with errors='replace', or mend it"
        ) from None


def count_characters(data: bytes) -> int:
    """How many characters begin in these bytes of UTF-8."""
    return len(data.translate(None, _CONTINUATION))


def in_characters(
    data: bytes, begins: npt.NDArray[np.uint64], ends: npt.NDArray[np.uint64]
) -> list[tuple[int, int]]:
    """Places in characters, from places in bytes that are borders of characters.

    Args:
        data: The text, in UTF-8.
        begins: Where each place begins.
        ends: Where each ends.
    """
    import numpy as np

    # How many characters begin before each byte.
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80, out=before[1:])
    return list(zip(before[begins].tolist(), before[ends].tolist(), strict=True))


def missing_symbol(
    data: bytes, begin: int, end: int, *, as_bytes: bool, done: int = 0
) -> DataError:
    """The error for a piece of text that the vocabulary has no token for.

    Args:
        data: The text, in UTF-8.
        begin: Where the piece begins in it.
        end: Where it ends.
        as_bytes: Whether the model works on bytes.
        done: How many characters of the whole text came before.
    """
    number = count_characters(data[: begin + 1]) - 1
    text = data.decode()
    if as_bytes:
        character = text[number]
        return DataError(
            f"character {character!r} (U+{ord(character):04X}) at {done + number}: one of "
            'its bytes is not in the vocabulary; a tokenizer trained with the alphabet "bytes" '
            "has all of them"
        )
    piece = text[number : number + max(count_characters(data[begin:end]), 1)]
    what = f"character {piece!r} (U+{ord(piece):04X})" if len(piece) == 1 else f"{piece[:40]!r}"
    return DataError(
        f"{what} at {done + number} is not in the vocabulary, and the tokenizer has no "
        "unknown token for it"
    )


def portions(chunks: Iterable[str], size: int) -> Iterator[bytes]:
    """The chunks in portions of at most `size` characters, in UTF-8.

    Raises:
        UsageError: A chunk is no str.
        DataError: A lone surrogate; its place counts from the start of the first chunk.
    """
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
    """Many texts as one buffer of UTF-8, copied only where they are str.

    Args:
        texts: A sequence of str, or Arrow strings.

    Returns:
        The buffer, and int64[texts + 1]: where each text begins in it, and where the last ends.

    Raises:
        UsageError: Another type.
        DataError: A lone surrogate, a null, or broken UTF-8; names the text by its number.
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
    try:
        # Arrow trusts whoever made the array; what follows here would read where it points.
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"texts: broken Arrow strings: {error}") from None
    # 64-bit offsets first: joined chunks may hold more than 32 bits can count.
    array = texts.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not len(array):
        return b"", np.zeros(1, np.int64)
    _, offset_buffer, data = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None:  # texts that are all empty
        return b"", np.zeros(len(array) + 1, np.int64)
    return memoryview(data), offsets
