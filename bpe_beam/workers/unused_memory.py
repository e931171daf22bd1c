"""Return of freed memory, which the allocators keep, to the system.

An allocator keeps freed memory for later. Several threads that allocate and free arrays of some MB
leave gaps that the next arrays do not fit, so a process that runs many tasks grows from one to the
next.
"""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa


class _MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc, whose last but one number is the freed bytes."""

    _fields_ = [("numbers", ctypes.c_size_t * 10)]


def release_unused_memory(above: int = 0) -> None:
    """Give freed memory back to the system.

    Cost: some milliseconds, and as many to allocate the memory again.
    """
    if above and _free_bytes() <= above:
        return
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _free_bytes() -> int:
    """Return the freed bytes that malloc keeps; 0 where it does not report them."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2  # since glibc 2.33
    except (AttributeError, OSError):
        return 0
    mallinfo2.restype = _MallocInfo
    return int(mallinfo2().numbers[8])
