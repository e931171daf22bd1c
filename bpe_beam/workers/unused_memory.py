"""Freed memory that the allocators keep, given back to the system.

An allocator keeps what is freed, in case it is asked for again. Arrays of some MB, made and freed
side by side on several threads, so leave gaps that the next ones do not fit, and a process that
runs many tasks grows from one to the next.
"""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa

_MALLINFO2 = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO2]


def release_unused_memory(above: int = 0) -> None:
    """Give freed memory back to the system.

    Cost: some milliseconds, and those of getting as much memory again.
    """
    if above and _kept_free() <= above:
        return
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _kept_free() -> int:
    """Return the freed bytes that malloc keeps; 0 where it does not say."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2  # since glibc 2.33
    except (AttributeError, OSError):
        return 0
    mallinfo2.restype = _MallocInfo
    return int(mallinfo2().fordblks)
