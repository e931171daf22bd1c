"""Make hosts out of namespaces on one Linux machine: for tests of clusters that fail.

    python scripts/hosts.py up one two three     makes a network of three hosts
    python scripts/hosts.py run one COMMAND ...  runs a command on a host
    python scripts/hosts.py list                 prints the hosts and their addresses
    python scripts/hosts.py cut one [two]        a host is unreachable, or two for each other
    python scripts/hosts.py heal one [two]       ... is reachable again, at full speed
    python scripts/hosts.py slow one --rate 1000000 --delay 0.2 --loss 0.02
    python scripts/hosts.py limit one --cpus 0.05 --memory 1000000000
    python scripts/hosts.py stop one             its processes stand still; `continue` lets them run
    python scripts/hosts.py kill one             ends a host at once, with its files
    python scripts/hosts.py start one            a new host of the same name and address
    python scripts/hosts.py down                 removes all hosts

A host has its own processes, network, name and shared memory. Its files are the machine's files
below a layer of its own: it reads the machine's programs, and what it writes is in its own memory
and ends with it. The mounts of the machine are missing in it, except those that hold this tree,
its Python and its caches, which are read-only.

All hosts are on one switch, which is in a namespace too, so nothing reaches the machine's network
or the internet. Addresses are of 198.18.0.0/24, a range for tests; names are in `/etc/hosts`.
Loopback is different on each host. Links are delayed by a process of the switch: kernels
without netem have no other means.

It needs root and Linux, and the programs of iproute2 and util-linux. The kernel removes a network,
with all its processes and files, when the process that made it ends in any way. Limits are control
groups, which are empty then; if that process was killed, the next network removes them.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hosts_inside
from hosts_inside import FOLDER, SECONDS, Missing, call
from hosts_processes import alive, beginning, namespace, numbers, removed, wait_until

STATE = FOLDER / "network.json"
INSIDE = str(Path(hosts_inside.__file__))
SUBNET = "198.18.0"
CLOCKS = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")
"""Where Debian, Ubuntu and Fedora have libfaketime."""

_PROGRAMS = {
    "ip": "iproute2",
    "mount": "mount",
    **dict.fromkeys(("nsenter", "setpriv"), "util-linux"),
}
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_NOBODY = "02:00:00:00:00:fe"
"""A hardware address that no host has: what is sent to it is lost without an error."""


_children: list[subprocess.Popen[bytes]] = []


def unavailable() -> str:
    """Return why this machine cannot have hosts, or "" if it can."""
    if sys.platform != "linux":
        return "hosts need Linux: they are made of its namespaces"
    if os.geteuid() != 0:
        return "hosts need root, which may make namespaces and mounts"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"there is no {program} (Debian, Ubuntu: apt-get install {package})"
    try:
        with Hosts(["probe"]) as hosts:
            hosts["probe"].run("true")
    except (Missing, OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return ""


@dataclass
class Host:
    """One host.

    Attributes:
        name: Its name, also in the network.
        number: The last number of its address, from 1 on.
        pid: Its first process, by the machine's numbers. The host ends with it.
        switch: The process in whose namespace the switch is.
        keeper: The process that made the network.
        began: When the first process began, by the kernel's clock: its number may be given again.
        clock: Seconds by which the clock of commands started from now on is wrong.
    """

    name: str
    number: int
    pid: int
    switch: int
    keeper: int
    began: str
    clock: float = 0

    @property
    def address(self) -> str:
        """The address of the host."""
        return f"{SUBNET}.{self.number}"

    @property
    def link(self) -> str:
        """The switch's end of the link to the host."""
        return f"host{self.number}"

    @property
    def ended(self) -> bool:
        """Whether the host has ended."""
        return not self.began or beginning(self.pid) != self.began

    def command(self, *args: str | Path) -> list[str]:
        """Return the command that runs a command on the host, which is killed when this one is."""
        if self.ended:
            raise Missing(f"{self.name} has ended")
        killed = "setpriv --pdeathsig KILL --"  # also nsenter, which stops when its command does
        into = f"{killed} nsenter -t {self.pid} -m -u -i -n -p -r -w -- {killed}"
        joins = "".join(f"echo $$ > {group}/cgroup.procs && " for group in self._groups())
        environment = []
        if self.clock:
            found = [str(path) for each in CLOCKS for path in Path("/").glob(each[1:])]
            if not found:
                raise Missing("there is no libfaketime (Debian, Ubuntu: apt-get install faketime)")
            # Java and Python wait by the monotonic clock, which is right on machines, too.
            environment = ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME={self.clock:+.0f}"]
            environment += ["FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"]
        return ["sh", "-c", f'{joins}exec {into} "$@"', "sh", *environment, *map(str, args)]

    def run(self, *args: str | Path, data: bytes = b"", seconds: float = SECONDS) -> bytes:
        """Run a command on the host; return its stdout.

        Raises:
            Missing: If it fails.
            subprocess.TimeoutExpired: If it takes longer than `seconds`.
        """
        return call(*self.command(*args), data=data, seconds=seconds)

    def start(self, *args: str | Path, log: str = "/dev/null") -> subprocess.Popen[bytes]:
        """Start a command on the host, whose output goes to a file there."""
        shell = ("sh", "-c", 'log=$1; shift; exec "$@" > "$log" 2>&1', "sh", log)
        return subprocess.Popen(self.command(*shell, *args), stdin=subprocess.DEVNULL)

    def write(self, path: str | Path, data: bytes) -> None:
        """Write a file on the host, and its folder."""
        self.run("sh", "-c", 'mkdir -p "$(dirname "$1")" && cat > "$1"', "sh", path, data=data)

    def connection(self, port: int, seconds: float = 10) -> socket.socket:
        """Return a connection to a port of the host, from within; this starts no process."""
        if self.ended:
            raise ConnectionRefusedError(f"{self.name} has ended")
        ours, theirs = (Path(f"/proc/{each}/ns/net") for each in ("thread-self", self.pid))
        with ours.open("rb") as back, theirs.open("rb") as network:
            _enter(network.fileno())  # of this thread alone; a socket stays in its network
            try:
                return socket.create_connection(("127.0.0.1", port), seconds)
            finally:
                _enter(back.fileno())

    def processes(self) -> list[int]:
        """Return the processes of the host, by the machine's numbers; none if it has ended."""
        return self._within("pid")

    def _within(self, kind: str) -> list[int]:
        ours = "" if self.ended else namespace(self.pid)
        return [each for each in numbers() if ours and namespace(each, kind) == ours]

    def stop(self) -> None:
        """Let all processes stand still, as on a machine that hangs; its network answers."""
        self._signal(signal.SIGSTOP, self.processes())

    def _signal(self, number: int, processes: Iterable[int]) -> None:
        for process in {*processes} - {self.pid}:  # which ends with the network
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def resume(self) -> None:
        """Let all processes run again."""
        # nsenter is not on the host, but what it starts is; it stops with its command.
        self._signal(signal.SIGCONT, self._within("pid_for_children"))

    def cut(self, other: Host | None = None) -> None:
        """Lose all that is sent from and to the host, or between two hosts, without a word."""
        if other is None:
            self._switch("ip", "link", "set", self.link, "down")
            return
        for one, two in ((self, other), (other, self)):
            wrong = ("lladdr", _NOBODY, "nud", "permanent", "dev", "eth0")
            one._network("ip", "neigh", "replace", two.address, *wrong)

    def heal(self, other: Host | None = None) -> None:
        """Undo `cut` and `slow`."""
        if other is None:
            self._switch("ip", "link", "set", self.link, "up", "master", "switch")
            with contextlib.suppress(Missing):  # its process ends with it
                self._switch("ip", "link", "delete", f"{self.link}b")
            return
        for one, two in ((self, other), (other, self)):
            one._network("ip", "neigh", "delete", two.address, "dev", "eth0")

    def slow(self, *, rate: float = 0, delay: float = 0, loss: float = 0, seed: int = 0) -> None:
        """Make the link of the host slow, in both directions.

        Args:
            rate: Bytes a second; 0: as many as there are.
            delay: Seconds from one end to the other.
            loss: The share of frames that are lost, from 0 to 1. A frame may have 64 KB.
            seed: Decides which frames are lost.
        """
        self.heal()
        near, far = f"{self.link}b", f"{self.link}c"
        self._switch("ip", "link", "set", self.link, "nomaster")
        self._switch("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        self._switch("ip", "link", "set", near, "up")
        self._switch("ip", "link", "set", far, "up", "master", "switch")
        numbers = map(str, (rate, delay, loss, seed))
        line = [*_inside(self.keeper, "carry"), self.link, near, *numbers]
        into = ("nsenter", "-t", str(self.switch), "-n", "--")
        nothing = subprocess.DEVNULL
        carrying = subprocess.Popen(
            [*into, *line], start_new_session=True, stdin=nothing, stdout=nothing, stderr=nothing
        )
        _children.append(carrying)

    def limit(self, *, cpus: float | None = None, memory: int | None = None) -> None:
        """Limit the processors (0.05: a twentieth of one) and the bytes of memory of the host."""
        one_tree = (_CONTROL_GROUPS / "cgroup.controllers").exists()
        limits: list[tuple[str, str, str]] = []
        if cpus is not None:
            quota = str(max(1000, int(cpus * 100_000)))
            name, value = (
                ("cpu.max", f"{quota} 100000") if one_tree else ("cpu.cfs_quota_us", quota)
            )
            limits.append(("cpu", name, value))
            limits += [] if one_tree else [("cpuacct", "cpuacct.usage", "0")]  # only measured
        if memory is not None:
            name = "memory.max" if one_tree else "memory.limit_in_bytes"
            limits.append(("memory", name, str(memory)))
        try:
            for controller, name, value in limits:
                top = _CONTROL_GROUPS / ("" if one_tree else controller)
                if one_tree:
                    (top / "cgroup.subtree_control").write_text(f"+{controller}")
                group = top / self._group
                group.mkdir(exist_ok=True)
                (group / name).write_text(value)
                for process in self.processes():
                    with contextlib.suppress(ProcessLookupError):
                        (group / "cgroup.procs").write_text(str(process))
        except OSError as error:
            raise Missing(f"this machine has no control groups to limit a host: {error}") from error

    def kill(self) -> None:
        """End the host at once: its link first, so that no other host is told."""
        with contextlib.suppress(Missing):
            self.cut()
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(), f"the end of {self.name}")
        with contextlib.suppress(Missing):  # the kernel removes it, but later
            self._switch("ip", "link", "delete", self.link)
        wait_until(
            lambda: all(map(removed, self._groups())), f"the end of the limits of {self.name}"
        )

    @property
    def _group(self) -> str:
        return f"bpe-beam-hosts-{self.switch}-{self.number}"

    def _groups(self) -> list[Path]:
        tops = [_CONTROL_GROUPS, *(_CONTROL_GROUPS / name for name in ("cpu", "cpuacct", "memory"))]
        return [top / self._group for top in tops if (top / self._group).exists()]

    def _network(self, *command: str) -> None:
        if self.ended:
            raise Missing(f"{self.name} has ended")
        call("nsenter", "-t", str(self.pid), "-n", "--", *command)

    def _switch(self, *command: str) -> None:
        call("nsenter", "-t", str(self.switch), "-n", "--", *command)


@dataclass
class Hosts:
    """A network of hosts, from entry to exit of a `with` block.

    Attributes:
        names: The names of the hosts; `hosts[name]` is one of them.
        disk: The bytes that a host may write, as `mount` takes them. They are in memory.
        show: Folders of the machine that hosts see although they are on mounts of their own.
    """

    names: Sequence[str]
    disk: str = "2G"
    show: Sequence[Path] = ()
    _hosts: dict[str, Host] = field(default_factory=dict)
    _switch: int = 0
    _gate: str = ""
    _keeper: int = field(default_factory=os.getpid)

    def __enter__(self) -> Hosts:
        _end_leftovers()
        _remove_old_groups()
        FOLDER.mkdir(exist_ok=True)
        # All first processes read this pipe, which ends when this process does.
        self._read, self._write = os.pipe()
        self._gate = f"/proc/{os.getpid()}/fd/{self._read}"
        try:
            self._switch = self._spawn("switch")
            for name in self.names:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._write)  # which ends all hosts, also those that another process has started
        os.close(self._read)
        with contextlib.ExitStack() as each:  # one that fails keeps no other
            for host in self._hosts.values():
                each.callback(host.kill)
        if self._switch:
            wait_until(lambda: not alive(self._switch), "the end of the switch")

    def __getitem__(self, name: str) -> Host:
        if name not in self._hosts:
            raise Missing(f"{name} must be one of the hosts {', '.join(self._hosts)}")
        return self._hosts[name]

    def start(self, name: str) -> Host:
        """Make a host, or one of the same name and address in place of one that was killed."""
        if name not in self.names:
            raise Missing(f"{name} must be one of the hosts {', '.join(self.names)}")
        if name in self._hosts:
            self._hosts[name].kill()
        shown = [str(each) for each in (*_needed(), *self.show)]
        settings = {"name": name, "disk": self.disk, "hosts": self._table(), "show": shown}
        pid = self._spawn("host", json.dumps(settings))
        host = self._hosts[name] = self._host(name, pid, beginning(pid))
        ends = ("name", host.link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        host._switch("ip", "link", "add", *ends)
        mac = f"02:00:00:00:00:{host.number:02x}"  # the same for a new host of the name
        host._network("ip", "link", "set", "eth0", "address", mac, "up")
        host._network("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host._network("ip", "link", "set", "lo", "up")
        host.heal()
        return host

    def state(self) -> dict[str, Any]:
        """Return what another process needs to use these hosts (`of`)."""
        hosts = {name: (host.pid, host.began) for name, host in self._hosts.items()}
        known: dict[str, Any] = {
            "names": list(self.names),
            "disk": self.disk,
            "show": list(map(str, self.show)),
        }
        known |= {"switch": self._switch, "gate": self._gate, "keeper": self._keeper}
        return {**known, "hosts": hosts}

    @staticmethod
    def of(state: dict[str, Any]) -> Hosts:
        """Return the hosts of another process."""
        hosts = Hosts(state["names"], state["disk"], list(map(Path, state["show"])))
        hosts._switch, hosts._gate = state["switch"], state["gate"]
        hosts._keeper = state["keeper"]
        for name, (pid, began) in state["hosts"].items():
            hosts._hosts[name] = hosts._host(name, pid, began)
        return hosts

    def _host(self, name: str, pid: int, began: str) -> Host:
        number = 1 + list(self.names).index(name)
        return Host(name, number, pid, self._switch, self._keeper, began)

    def _table(self) -> str:
        rows = [f"{SUBNET}.{number} {name}" for number, name in enumerate(self.names, 1)]
        return "\n".join(["127.0.0.1 localhost", *rows, ""])

    def _spawn(self, *action: str) -> int:
        """Start the first process of a namespace; return its number when it is ready."""
        flags = ["--net"]
        if action[0] == "host":
            flags += ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        with open(self._gate, "rb") as gate:  # noqa: PTH123 - a pipe
            process = subprocess.Popen(
                ["unshare", *flags, "--", *_inside(self._keeper, *action)],
                stdin=gate,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the command, which then ends the network
            )
        assert process.stdout is not None
        _children.append(process)
        ready = b""
        if select.select([process.stdout], [], [], SECONDS)[0]:
            ready = process.stdout.readline()
        if not ready:
            process.kill()  # it waits, or has ended
            said = process.communicate(timeout=SECONDS)[1].decode(errors="replace").strip()
            why = said[-1000:] or f"the {action[0]} is not ready after {SECONDS} s"
            raise Missing(f"this machine makes no hosts: {why}")
        return int(ready)


def _needed() -> list[Path]:
    """Return what of the machine every host must see."""
    tree = Path(__file__).resolve().parents[1]
    cache = os.environ.get("BPE_BEAM_CACHE")
    kept = Path(cache) if cache else Path.home() / ".cache" / "bpe-beam"
    return [each for each in (tree, Path(sys.prefix), Path(sys.base_prefix), kept) if each.exists()]


def _enter(network: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(network, 0) != 0:
        raise OSError(ctypes.get_errno(), "the network of a host cannot be entered")


def _inside(keeper: int, *action: str) -> list[str]:
    return [sys.executable, INSIDE, str(keeper), *action]


def _end_leftovers() -> None:
    """End the processes of networks whose makers have ended without them."""

    def leftovers() -> list[int]:
        rows = []
        for number in numbers():
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace")
                script, owner = [*line.split("\0"), "", ""][1:3]
                if script == INSIDE and owner.isdigit() and not alive(int(owner)):
                    rows.append(number)
        return rows

    def ended() -> bool:
        for number in (found := leftovers()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        return not found

    wait_until(ended, "the end of what an earlier network left")


def _remove_old_groups() -> None:
    """Remove the control groups of networks that ended without their own `__exit__`."""
    for pattern in ("bpe-beam-hosts-*", "*/bpe-beam-hosts-*"):
        for group in _CONTROL_GROUPS.glob(pattern):
            if not alive(int(group.name.split("-")[3])):
                removed(group)


def _keep(names: list[str], disk: str) -> None:
    """Keep a network for the command line, until `down`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with Hosts(names, disk) as hosts:
        half = STATE.with_suffix(".half")
        half.write_text(json.dumps(hosts.state()))
        half.rename(STATE)
        try:
            signal.pause()
        finally:
            STATE.unlink()


def _known() -> dict[str, Any]:
    """Return the network of the command line."""
    with contextlib.suppress(OSError, ValueError):
        state: dict[str, Any] = json.loads(STATE.read_text())
        if alive(state["switch"]):
            return state
    raise Missing("there is no network: `hosts.py up NAME ...` makes one")


def _up(names: list[str], disk: str) -> None:
    with contextlib.suppress(Missing):
        raise SystemExit(f"hosts.py: a network runs: {', '.join(_known()['names'])}")
    FOLDER.mkdir(exist_ok=True)
    STATE.unlink(missing_ok=True)
    line = [sys.executable, __file__, "_keep", disk, *names]
    with (FOLDER / "log").open("wb") as log:  # our own streams may be a pipe that should end
        keeper = subprocess.Popen(
            line, start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: STATE.exists() or keeper.poll() is not None, "the hosts")
    except Missing:
        keeper.terminate()
        raise
    if keeper.poll() is not None:
        raise Missing(f"the hosts were not made: {(FOLDER / 'log').read_text()[-2000:].strip()}")


def _down() -> None:
    keeper = _known()["keeper"]
    os.kill(keeper, signal.SIGTERM)
    wait_until(lambda: not alive(keeper), "the end of the network")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser("up", help="makes a network")
    up.add_argument("names", nargs="+", metavar="NAME")
    up.add_argument("--disk", default="2G", help="what a host may write, in memory; default 2G")
    actions.add_parser("down", help="removes it")
    actions.add_parser("list", help="prints the hosts")
    each = {
        name: actions.add_parser(name, help=text)
        for name, text in {
            "run": "runs a command",
            "cut": "cuts a link",
            "heal": "heals a link",
            "slow": "makes a link slow",
            "limit": "limits a host",
            "stop": "stops all processes",
            "continue": "lets them run",
            "kill": "ends a host",
            "start": "makes a host again",
        }.items()
    }
    for one in each.values():
        one.add_argument("host")
    each["run"].add_argument(
        "--clock", type=float, default=0, metavar="SECONDS", help="clock error"
    )
    each["run"].add_argument("command", nargs=argparse.REMAINDER)
    for name in ("cut", "heal"):
        each[name].add_argument("other", nargs="?")
    for name, unit in {"rate": "bytes a second", "delay": "seconds", "loss": "0 to 1"}.items():
        each["slow"].add_argument(f"--{name}", type=float, default=0, help=unit)
    each["limit"].add_argument("--cpus", type=float)
    each["limit"].add_argument("--memory", type=int, help="bytes")
    return parser.parse_args()


def _act(arguments: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code."""
    if arguments.action in ("up", "down"):
        _up(arguments.names, arguments.disk) if arguments.action == "up" else _down()
        return 0
    hosts = Hosts.of(_known())
    if arguments.action == "list":
        for name in hosts.names:
            print(name, hosts[name].address)
        return 0
    if arguments.action == "start":
        hosts.start(arguments.host)
        STATE.write_text(json.dumps(hosts.state()))
        return 0
    host = hosts[arguments.host]
    if arguments.action == "run":
        host.clock = arguments.clock
        return subprocess.run(host.command(*arguments.command), check=False).returncode
    if arguments.action == "slow":
        host.slow(rate=arguments.rate, delay=arguments.delay, loss=arguments.loss)
    elif arguments.action == "limit":
        host.limit(cpus=arguments.cpus, memory=arguments.memory)
    elif arguments.action in ("cut", "heal"):
        getattr(host, arguments.action)(hosts[arguments.other] if arguments.other else None)
    else:
        {"stop": host.stop, "continue": host.resume, "kill": host.kill}[arguments.action]()
    return 0


def _main() -> int:
    if sys.argv[1:2] == ["_keep"]:
        _keep(sys.argv[3:], sys.argv[2])
        return 0
    arguments = _arguments()
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Missing("hosts need root and Linux: they are made of its namespaces")
    return _act(arguments)


if __name__ == "__main__":
    try:
        sys.exit(_main())
    except Missing as error:
        sys.exit(f"hosts.py: {error}")
