"""What a client that is interrupted, or fails, does about its job on a cluster: it cancels it.

Beam ends its job server on SIGINT and leaves the job alone. A Flink job then runs on, and Beam's
own cancelling does not reach it, so Flink itself is asked.
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
    """Cancel a job if the block is left by an error; if interrupted, end Beam's job server too.

    Args:
        result: Of `Pipeline.run`.
        flink_master: The address of Flink's REST interface, with or without `http://`; None or a
            word in brackets: there is none.

    Raises:
        KeyboardInterrupt: After that. A second one ends it at once.
    """
    main = threading.current_thread() is threading.main_thread()  # which alone gets signals
    beams = signal.signal(signal.SIGINT, signal.default_int_handler) if main else None
    try:
        yield
    except BaseException as error:
        # What cannot be reached now: there is an error to report already.
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
    """Cancel the job that Flink knows by the name that Beam's own id begins with."""
    url = (master if "://" in master else f"http://{master}").rstrip("/")
    with urllib.request.urlopen(f"{url}/jobs/overview", timeout=_SECONDS) as answer:
        jobs = json.load(answer)["jobs"]
    name = job_id.rpartition("_")[0]
    found = [job for job in jobs if job["name"] == name and job["state"] in _RUNNING]
    # With a --job_name that was given twice nobody can tell which of them is ours.
    if len(found) == 1:
        to = f"{url}/jobs/{found[0]['jid']}?mode=cancel"
        request = urllib.request.Request(to, method="PATCH")
        urllib.request.urlopen(request, timeout=_SECONDS).close()
