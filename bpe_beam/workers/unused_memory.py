"""Freed memory that the allocators keep, given back to the system.

An allocator keeps what is freed, in case it is asked for again. Arrays of some MB, made and freed
side by side on several threads, so leave gaps that the next ones do not fit, and a process that
runs many tasks grows from one to the next.
"""

from __future__ import annotations

import contextlib
import ctypes

import pyarrow as pa


def release_unused_memory() -> None:
    """Give freed memory back to the system.

    Cost: some milliseconds, and those of getting as much memory again.
    """
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
