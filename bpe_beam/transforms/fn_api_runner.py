"""A correction of Beam's in-process runner, `FnApiRunner`, which can lose elements.

With several workers that runner flushes each stream of elements once a second, from a thread that
copies the buffered elements and then empties the buffer: an element that a worker adds between
these two steps is lost without an error. All other runners flush streams only by size.
"""

from __future__ import annotations

import warnings


def disable_timed_flush() -> None:
    """Make `FnApiRunner` flush streams only by size, for all later pipelines of this process."""
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    if not hasattr(worker_handlers, "DATA_BUFFER_TIME_LIMIT_MS"):
        warnings.warn(
            "bpe-beam does not know this version of Beam, whose FnApiRunner may lose elements with "
            "several workers; use one worker (--direct_num_workers=1)",
            stacklevel=2,
        )
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
