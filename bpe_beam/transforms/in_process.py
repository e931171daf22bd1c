"""Beam's runner in process, kept from losing elements.

With several workers (`--direct_running_mode=multi_threading` or `multi_processing`) that runner has
each stream of elements sent off once a second, by a thread of its own. That thread takes what the
stream has gathered and then empties it; what a worker writes between the two is gone, without an
error: 1.5 % of two million small elements in three seconds, with Beam 2.77. Streams that are sent
off by their size alone, as those of all other runners are, lose nothing.
"""

from __future__ import annotations


def lose_nothing() -> None:
    """Has Beam's runner in process send elements by the size of what was gathered alone.

    For all pipelines of this process that are run after the call.
    """
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0
