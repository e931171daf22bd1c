"""The processes inside of the namespaces that `hosts.py` makes: it starts them.

    hosts_inside.py KEEPER switch                the switch of a network
    hosts_inside.py KEEPER host SETTINGS         the first process of a host
    hosts_inside.py KEEPER carry ONE OTHER ...   a slow link

They end with the pipe on their stdin; `carry` ends with its links. KEEPER is the number of the
process that made the network: where it has ended and they have not, `hosts.py` kills them.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path("/run/bpe-beam-hosts")
"""An empty folder of the machine; a host makes its files there, which nobody else sees."""
SECONDS = 60
_QUEUE = 2000
"""Frames that wait on a slow link; more are lost."""
_ALL_PROTOCOLS = 3
_PACKET_LEVEL, _KERNEL_NOTES = 263, 15
_SENT_BY_US = 4
"""Numbers of Linux's `if_packet.h` that Python does not have."""


class Missing(Exception):
    """Something that hosts need and this machine does not have."""


def call(*command: str | Path, data: bytes = b"", seconds: float = SECONDS) -> bytes:
    """Run a command; return its stdout.

    Raises:
        Missing: If it fails.
        subprocess.TimeoutExpired: If it takes longer than `seconds`.
    """
    line = list(map(str, command))
    done = subprocess.run(line, input=data, capture_output=True, timeout=seconds, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise Missing(f"{' '.join(line)} failed with exit code {done.returncode}: {said[-2000:]}")
    return done.stdout


def be_switch() -> None:
    """Be the process in whose namespace the switch is, until the network ends."""
    call("ip", "link", "add", "switch", "type", "bridge")
    call("ip", "link", "set", "switch", "up")
    print(os.getpid(), flush=True)
    sys.stdin.buffer.read()


def be_host(settings: dict[str, Any]) -> None:
    """Be the first process of a host: make its files, then wait for the end of the network."""
    pid = Path("/proc/self").readlink()  # by the machine's numbers, before the host has its own
    call("mount", "--make-rprivate", "/")
    call("mount", "-t", "tmpfs", "-o", f"size={settings['disk']}", "tmpfs", FOLDER)
    root, upper, work = (FOLDER / name for name in ("root", "upper", "work"))
    for folder in (root, upper, work):
        folder.mkdir()
    layers = f"lowerdir=/,upperdir={upper},workdir={work}"
    call("mount", "-t", "overlay", "-o", layers, "overlay", root)
    call("mount", "-t", "proc", "proc", root / "proc")
    call("mount", "-t", "sysfs", "-o", "ro", "sysfs", root / "sys")
    _make_devices(root / "dev")
    for shown in map(Path, settings["show"]):
        if shown.stat().st_dev != Path("/").stat().st_dev:
            target = root / shown.relative_to("/")
            target.mkdir(parents=True, exist_ok=True)
            call("mount", "--bind", shown, target)
            call("mount", "-o", "remount,bind,ro", target)
    (root / "etc/hosts").write_text(settings["hosts"])
    socket.sethostname(settings["name"])
    os.chroot(root)
    os.chdir("/")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel takes what others leave
    print(pid, flush=True)
    sys.stdin.buffer.read()


def _make_devices(dev: Path) -> None:
    """Make a `/dev` that shares no shared memory and no terminals with others."""
    call("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", dev)
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (dev / name).touch()
        call("mount", "--bind", f"/dev/{name}", dev / name)
    for name in ("shm", "pts"):
        (dev / name).mkdir()
    (dev / "shm").chmod(0o1777)
    call("mount", "-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", dev / "pts")
    (dev / "ptmx").symlink_to("pts/ptmx")
    for number, name in enumerate(("fd", "fd/0", "fd/1", "fd/2")):
        target = ("fd", "stdin", "stdout", "stderr")[number]
        (dev / target).symlink_to(f"/proc/self/{name}")


def carry(one: str, other: str, rate: float, delay: float, loss: float, seed: float) -> None:
    """Carry frames between two links of the switch, late, until one of them ends."""
    ends = []
    for name in (one, other):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
        # With the kernel's notes on checksums and segments that are still to be made.
        end.setsockopt(_PACKET_LEVEL, _KERNEL_NOTES, 1)
        try:
            end.bind((name, 0))
        except OSError:  # the link has ended already
            return
        ends.append(end)
    chance = random.Random(seed)
    waiting: list[collections.deque[tuple[float, bytes]]] = [collections.deque() for _ in ends]
    free = [0.0, 0.0]
    while True:
        now = time.monotonic()
        for queue, target in zip(waiting, reversed(ends), strict=True):
            while queue and queue[0][0] <= now:
                with contextlib.suppress(OSError):  # the link is cut: it is lost
                    target.send(queue.popleft()[1])
        due = min((queue[0][0] for queue in waiting if queue), default=now + 1)
        ready = select.select(ends, [], [], max(0.0, due - now))[0]
        if not ready and {one, other} - {name for _, name in socket.if_nameindex()}:
            return
        for end in ready:
            try:
                frame, (_, _, kind, *_) = end.recvfrom(1 << 17)
            except OSError:
                continue  # it is cut, or about to end
            way = ends.index(end)
            if kind == _SENT_BY_US or len(waiting[way]) >= _QUEUE or chance.random() < loss:
                continue
            now = time.monotonic()
            free[way] = max(now, free[way]) + (len(frame) / rate if rate else 0)
            waiting[way].append((free[way] + delay, frame))


if __name__ == "__main__":
    _, _action, *_rest = sys.argv[1:]
    if _action == "switch":
        be_switch()
    elif _action == "host":
        be_host(json.loads(_rest[0]))
    else:
        carry(_rest[0], _rest[1], *map(float, _rest[2:]))
