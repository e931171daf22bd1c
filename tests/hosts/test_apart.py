"""Hosts share nothing but their network: no file, process, memory or socket; what is broken on
purpose is broken, and nothing is left of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import hosts as hosts_module
import hosts_processes
import pytest
import waiting
from command_line import ROOT
from hosts import Host, Hosts
from hosts_inside import SECONDS, Missing

pytestmark = pytest.mark.hosts
wait_until = functools.partial(waiting.wait_until, seconds=2 * SECONDS)

SCRIPT = str(ROOT / "scripts" / "hosts.py")
CONNECT = """
import json, socket, sys, time
began = time.monotonic()
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).recv(1)
    said = "connected"
except OSError as error:
    said = type(error).__name__
print(json.dumps([said, time.monotonic() - began]))
"""
SERVE = """
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
while True:
    server.accept()[0].sendall(b"x")
"""

RECEIVE = """
import socket, time
sender = socket.create_server(("", 7001)).accept()[0]
received, began = 0, time.monotonic()
while data := sender.recv(1 << 20):
    received += len(data)
print(received / (time.monotonic() - began))
"""
SEND = """
import socket, time
for _ in range(600):
    try:
        to = socket.create_connection(("two", 7001), 1)
        break
    except OSError:
        time.sleep(0.1)
to.settimeout(60)
to.sendall(bytes(3_000_000))
"""
SPIN = """
import time
began = time.monotonic()
while time.process_time() < 0.2:
    pass
print(time.monotonic() - began)
"""
NAMESPACES = ("ipc", "uts", "net", "pid", "mnt")


def connect(
    host: Host, to: str, port: int = 7000, seconds: float = SECONDS / 2
) -> tuple[str, float]:
    """Connect from a host; return what came of it, and the seconds that it took."""
    out = host.run(sys.executable, "-c", CONNECT, to, str(port), str(seconds))
    said, took = json.loads(out)
    return said, took


def is_fast(host: Host, to: str) -> bool:
    """Return whether a host connects to another one at once."""
    said, took = connect(host, to)
    return said == "connected" and took < 0.2


def python(host: Host, code: str) -> str:
    """Return what a Python program prints on a host."""
    return host.run(sys.executable, "-c", code).decode().strip()


@contextlib.contextmanager
def running(line: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the block ends, however it ends."""
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


@pytest.fixture
def server(pair: Hosts) -> Iterator[Host]:
    """Return a host with a server on all of its addresses."""
    process = pair["two"].start(sys.executable, "-c", SERVE, "0.0.0.0")
    try:
        wait_until(lambda: connect(pair["two"], "127.0.0.1")[0] == "connected", "the server")
        yield pair["two"]
    finally:
        process.kill()
        process.wait(SECONDS)


def test_no_file_of_another(pair: Hosts) -> None:
    one, two = pair["one"], pair["two"]
    folders = ("/tmp", "/var/tmp", str(Path.home()), "/dev/shm", "/run", "/etc", str(ROOT / "docs"))
    for folder in folders:
        path = f"{folder}/written-by-one"
        try:
            one.write(path, b"by one")
        except Missing as error:
            # The tree, where it is on a mount of its own: nobody writes there.
            assert "Read-only file system" in str(error)
            continue
        assert one.run("cat", path) == b"by one"
        with pytest.raises(Missing, match="No such file"):
            two.run("cat", path)
        assert not Path(path).exists(), "the machine's own file"


def test_no_process_of_another(pair: Hosts) -> None:
    one, two = pair["one"], pair["two"]
    process = one.start("sleep", "1234.5")
    listing = (
        "import pathlib; print([p.read_bytes() for p in pathlib.Path('/proc').glob('*/cmdline')])"
    )
    try:
        wait_until(lambda: "1234.5" in python(one, listing), "the process")
        assert "1234.5" not in python(two, listing)
        assert str(os.getpid()) not in python(two, "import os; print(os.listdir('/proc'))")
        assert not set(one.processes()) & set(two.processes())
    finally:
        process.kill()
        process.wait(SECONDS)
    wait_until(lambda: "1234.5" not in python(one, listing), "its end, with its command")


def test_no_memory_and_no_name_of_another(pair: Hosts) -> None:
    one, two = pair["one"], pair["two"]
    code = f"import os; print(*(os.readlink(f'/proc/self/ns/{{n}}') for n in {NAMESPACES}))"
    found = [python(one, code).split(), python(two, code).split()]
    found.append([str(Path(f"/proc/self/ns/{name}").readlink()) for name in NAMESPACES])
    assert len({each for host in found for each in host}) == 15
    hostname = "import socket; print(socket.gethostname())"
    assert [python(one, hostname), python(two, hostname)] == ["one", "two"]


def test_no_socket_of_another_but_over_the_network(pair: Hosts, server: Host) -> None:
    one = pair["one"]
    assert connect(one, "two")[0] == "connected"
    assert connect(one, server.address)[0] == "connected"
    assert connect(one, "127.0.0.1")[0] == "ConnectionRefusedError", "its own loopback"
    with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
        socket.create_connection(("127.0.0.1", 7000), 2)
    with socket.create_server(("0.0.0.0", 0)) as listening:
        port = listening.getsockname()[1]
        assert connect(one, "127.0.0.1", port)[0] == "ConnectionRefusedError"
    assert connect(one, "192.0.2.1", 80)[0] == "OSError", "no way out of the network"
    ours = Path("/proc/thread-self/ns/net").readlink()
    with server.connection(7000) as within:
        assert within.recv(1) == b"x"
    with pytest.raises(ConnectionRefusedError):
        one.connection(7000)
    assert Path("/proc/thread-self/ns/net").readlink() == ours
    interfaces = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    assert server.link not in interfaces.stdout, "nothing of it is in the machine's network"
    named = "import socket; s = socket.socket(socket.AF_UNIX); s.{}(chr(0) + 'name'); {}"
    process = server.start(sys.executable, "-c", named.format("bind", "s.listen(); input()"))
    with pytest.raises(Missing, match="ConnectionRefusedError"):
        python(one, named.format("connect", "0"))
    process.kill()
    process.wait(SECONDS)


def test_a_cut_link_says_nothing(pair: Hosts, server: Host) -> None:
    one = pair["one"]
    for cut, heal in (
        (lambda: one.cut(server), lambda: one.heal(server)),
        (server.cut, server.heal),
    ):
        cut()
        said, took = connect(one, server.address, seconds=1)
        assert said == "TimeoutError"
        assert took >= 1
        heal()
        wait_until(lambda: connect(one, "two")[0] == "connected", "the link")


def test_a_slow_link(pair: Hosts, server: Host) -> None:
    one = pair["one"]
    server.slow(delay=0.2)
    wait_until(lambda: connect(one, "two")[0] == "connected", "the link")
    said, took = connect(one, "two")
    assert said == "connected"
    assert took >= 0.6, "there and back for the connection, then one way for the byte"
    server.slow(loss=1)
    assert connect(one, "two", seconds=1)[0] == "TimeoutError"
    server.heal()
    with running(server.command(sys.executable, "-c", RECEIVE)) as receiving:
        server.slow(rate=1_000_000)
        python(one, SEND)
        rate = float(receiving.communicate(timeout=SECONDS)[0])
    assert 100_000 < rate < 1_100_000
    server.heal()
    wait_until(lambda: is_fast(one, "two"), "a fast link")


def test_a_host_that_stands_still(pair: Hosts, server: Host) -> None:
    server.stop()
    assert connect(pair["one"], "two", seconds=1)[0] == "TimeoutError", "the kernel connects"
    server.resume()
    assert connect(pair["one"], "two")[0] == "connected"
    ran = len(server.processes())
    command = server.start("sh", "-c", "until [ -e /tmp/end ]; do sleep 0.1; done")
    wait_until(lambda: len(server.processes()) > ran, "the command")
    server.stop()
    state = Path(f"/proc/{command.pid}/status")
    wait_until(lambda: "\nState:\tT" in state.read_text(), "nsenter, which stops as well")
    server.resume()
    server.write("/tmp/end", b"")
    assert command.wait(SECONDS) == 0


def test_limits() -> None:
    with Hosts(["one"]) as hosts:
        one = hosts["one"]
        try:
            one.limit(cpus=0.1, memory=300_000_000)
        except Missing as error:
            pytest.skip(str(error))
        assert float(python(one, SPIN)) > 1, "0.2 s of a tenth of a processor"
        with pytest.raises(Missing, match=r"exit code (137|-9)"):
            python(one, "x = bytearray(600_000_000)")


def test_a_killed_host_and_a_new_one(pair: Hosts, server: Host) -> None:
    one = pair["one"]
    server.write("/tmp/of-before", b"")
    server.kill()
    assert server.processes() == []
    assert connect(one, "two", seconds=1)[0] == "TimeoutError", "no refusal: nobody is there"
    new = pair.start("two")
    assert new.address == server.address
    assert connect(one, "two")[0] == "ConnectionRefusedError"
    with pytest.raises(Missing, match="No such file"):
        new.run("cat", "/tmp/of-before")


def test_a_wrong_clock(pair: Hosts) -> None:
    one = pair["one"]
    one.clock = 3600
    try:
        found = float(python(one, "import time; print(time.time())"))
    except Missing as error:
        pytest.skip(str(error))
    finally:
        one.clock = 0
    assert 3590 < found - time.time() < 3610


def processes() -> list[str]:
    """Return the command lines of all processes of the machine."""
    ps = ["ps", "-A", "-ww", "-o", "args="]
    return subprocess.run(ps, capture_output=True, text=True, timeout=SECONDS).stdout.splitlines()


def test_the_number_of_a_killed_host_may_be_given_again() -> None:
    with Hosts(["one"]) as hosts:
        ended = dataclasses.replace(hosts["one"], pid=os.getpid())  # as if it had been given to us
        assert ended.processes() == []
        with pytest.raises(Missing, match="one has ended"):
            ended.run("true")
        ended.kill()


def test_nothing_is_left_after_a_crash() -> None:
    """The process that has made the network is killed, and had no time to do anything."""
    code = (
        f"import sys, time; sys.path.insert(0, {str(ROOT / 'scripts')!r}); import hosts\n"
        "net = hosts.Hosts(['one', 'two']).__enter__()\n"
        "try: net['one'].limit(cpus=.5)\nexcept hosts.Missing: pass\n"
        "net['one'].slow(delay=.1); nsenter = net['two'].start('sleep', '4321.5')\n"
        "while len(net['two'].processes()) < 2: time.sleep(.01)\n"
        "net['two'].stop()\n"
        "while ' T ' not in open(f'/proc/{nsenter.pid}/stat').read(): time.sleep(.01)\n"
        "print(net['one'].pid, net['two'].pid, net._switch, flush=True); time.sleep(1000)"
    )
    with running([sys.executable, "-c", code]) as owner:
        assert owner.stdout is not None
        assert select.select([owner.stdout], [], [], SECONDS)[0], "the network is not ready"
        firsts = [int(each) for each in owner.stdout.readline().split()]
        assert len(firsts) == 3
        assert all(map(hosts_processes.alive, firsts))

    def left() -> list[str]:
        marks = ("4321.5", f"{owner.pid} carry host")
        return [row for row in processes() if any(mark in row for mark in marks)]

    wait_until(lambda: not left() and not any(map(hosts_processes.alive, firsts)), "the end of all")
    with Hosts(["one"]):  # removes what the kernel does not
        name = f"bpe-beam-hosts-{firsts[2]}-*"
        for pattern in (name, f"*/{name}"):
            assert not [*hosts_module._CONTROL_GROUPS.glob(pattern)]


def test_leftovers_of_a_crash_end_when_the_next_network_begins() -> None:
    """As if a process that the maker forked had kept the pipe, so that the switch goes on."""
    gone = subprocess.Popen(["true"])
    gone.wait(SECONDS)
    switch = [sys.executable, hosts_module.INSIDE, str(gone.pid), "switch"]
    with running(["unshare", "--net", "--", *switch]) as left:
        assert left.stdout is not None
        assert select.select([left.stdout], [], [], SECONDS)[0], "the switch is not ready"
        with Hosts(["one"]) as hosts:
            hosts["one"].run("true")
        assert left.wait(SECONDS) == -signal.SIGKILL


def test_the_command_line() -> None:
    def call(*args: str, code: int = 0) -> str:
        ended = subprocess.run(
            [sys.executable, SCRIPT, *args], capture_output=True, text=True, timeout=2 * SECONDS
        )
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr

    if subprocess.run([sys.executable, SCRIPT, "list"], capture_output=True).returncode == 0:
        pytest.skip("this machine has a network of the command line")
    try:
        call("up", "left", "right")
        assert call("list") == "left 198.18.0.1\nright 198.18.0.2\n"
        assert call("run", "left", "sh", "-c", "hostname; exit 3", code=3) == "left\n"
        assert call("up", "other", code=1) == "hosts.py: a network runs: left, right\n"
        for action in ("cut", "heal", "stop", "continue", "kill", "start"):
            assert call(action, "right") == ""
        assert call("slow", "left", "--delay", "0.1") == ""
        assert call("limit", "right", "--cpus", "0.5") == ""
        with Hosts(["probe"]):  # which ends what is left of networks that have ended
            assert call("run", "right", "hostname") == "right\n"
            keeper = json.loads(hosts_module.STATE.read_text())["keeper"]
            assert any(f"{keeper} carry host1 " in row for row in processes())
        for action in ("cut", "start"):
            assert "must be one of the hosts left, right" in call(action, "lift", code=1)
    finally:
        subprocess.run([sys.executable, SCRIPT, "down"], capture_output=True, timeout=2 * SECONDS)
    assert call("list", code=1).startswith("hosts.py: there is no network")
