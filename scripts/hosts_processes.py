"""What `/proc` says of processes, and waiting for it, for `hosts.py`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hosts_inside import SECONDS, Missing


def numbers() -> Iterable[int]:
    """Return the numbers of all processes of the machine."""
    return (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())


def namespace(process: int, kind: str = "pid") -> str:
    """Return the namespace of a process's number; "" if it has ended."""
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{process}/ns/{kind}").readlink())
    return ""


def beginning(process: int) -> str:
    """Return when a process began, in ticks since the machine did; "" if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def alive(process: int) -> bool:
    """Return whether a process is there and is no zombie."""
    with contextlib.suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    return False


def removed(group: Path) -> bool:
    """Remove an empty control group; return whether it is gone."""
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def wait_until(reached: Callable[[], object], what: str) -> None:
    """Wait until something is reached; raise `Missing` after a minute."""
    end = time.monotonic() + SECONDS
    while not reached():
        if time.monotonic() > end:
            raise Missing(f"waited {SECONDS} s for {what}")
        time.sleep(0.02)
