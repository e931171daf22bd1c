"""The deadline of a text: the parts of a tokenizer come out of files, and some never end.

One text may take `text_seconds()`, and one second more for each TEXT_BYTES_PER_SECOND bytes,
whatever is done to it: normalizing, cutting into words, finding added tokens, decoding. The native
code keeps the deadline of each thread; the searches that Python runs for it ask how much is left.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from bpe_beam.errors import UsageError

if TYPE_CHECKING:
    from bpe_beam import _native

VARIABLE = "BPE_BEAM_TEXT_SECONDS"
"""The environment variable that sets the seconds; it is read when a tokenizer encodes or decodes
for the first time."""

DEFAULT_SECONDS = 20.0


def text_seconds() -> float:
    """The seconds that a short text may take.

    Raises:
        UsageError: The environment variable is not a number above 0.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return DEFAULT_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise UsageError(f"{VARIABLE} must be a number of seconds above 0, got {given!r}")
    return seconds


def deadline_of(size: int) -> _native.TextDeadline:
    """A context that sets this thread's deadline for a text of `size` bytes, if none is set."""
    from bpe_beam import _native

    return _native.TextDeadline(text_seconds() + size / _native.TEXT_BYTES_PER_SECOND)


def seconds_left(size: int) -> float:
    """The seconds that a search through `size` bytes has, of the text at hand if there is one."""
    from bpe_beam import _native

    left = _native.seconds_left()
    return left if left < math.inf else text_seconds() + size / _native.TEXT_BYTES_PER_SECOND
