"""Cancels the job on a cluster of a driver that is interrupted or fails.

On SIGINT Beam ends its job server, but not the job. A Flink job then runs on, and Beam's own
cancellation does not reach it, so the request goes to Flink itself.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

_SECONDS = 10
_RUNNING = ("INITIALIZING", "CREATED", "RUNNING", "RESTARTING")


@contextlib.contextmanager
def cancelled_if_left(result: Any, flink_master: str | None) -> Iterator[None]:
    """Cancel a job if the block ends with an error; after an interrupt, end Beam's job server too.

    Args:
        result: The result of `Pipeline.run`.
        flink_master: The address of Flink's REST interface, with or without `http://`. None, or a
            word in brackets, means that there is none.

    Yields:
        Nothing.

    Raises:
        KeyboardInterrupt: After the cancellation; a second interrupt does not wait for it.
    """
    main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    beams = signal.signal(signal.SIGINT, signal.default_int_handler) if main else None
    try:
        yield
    except BaseException as error:
        # A failure here is not reported: there is an error already.
        with contextlib.suppress(Exception):
            result.cancel()
        if flink_master and not flink_master.startswith("["):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                _cancel_on_flink(flink_master, getattr(result, "_job_id", ""))
        if isinstance(error, KeyboardInterrupt) and callable(beams):
            beams(signal.SIGINT, None)
        raise
    finally:
        if main and beams is not None:  # None: not set by Python
            signal.signal(signal.SIGINT, beams)


def _cancel_on_flink(master: str, job_id: str) -> None:
    """Cancel the job of which Flink has the name that Beam's own id begins with."""
    url = (master if "://" in master else f"http://{master}").rstrip("/")
    with urllib.request.urlopen(f"{url}/jobs/overview", timeout=_SECONDS) as answer:
        jobs = json.load(answer)["jobs"]
    name = job_id.rpartition("_")[0]
    found = [job for job in jobs if job["name"] == name and job["state"] in _RUNNING]
    # Two jobs may have the same --job_name; then it is unknown which is ours.
    if len(found) == 1:
        to = f"{url}/jobs/{found[0]['jid']}?mode=cancel"
        request = urllib.request.Request(to, method="PATCH")
        urllib.request.urlopen(request, timeout=_SECONDS).close()
