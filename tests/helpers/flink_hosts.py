"""Flink on hosts that share no file: a job manager, three task managers with their Python workers,
a server of S3 or GCS, and two hosts from which jobs are started."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from command_line import COMMAND, ROOT
from engines import script
from hosts import Host, Hosts
from starting import go_server
from stores import BUCKET, SECRET, USER, s3_options
from waiting import wait_until

WORKERS = ("worker-1", "worker-2", "worker-3")
NAMES = ("manager", *WORKERS, "store", "driver", "other-driver")
SLOTS = 2
PARALLELISM = 3
"""Less than all slots, so that a job goes on without one task manager."""
_PORT = 9000
_STORE = f"http://store:{_PORT}"
_DATA = "/srv/store"
HOME = "/var/tmp/cluster"
_SHORT = (
    *("env", "-u", "PYTHONDONTWRITEBYTECODE"),
    "JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
"""Java and Python for short processes on few cores."""
_FEW_RETRIES = "echo 8 > /proc/sys/net/ipv4/tcp_retries2"
"""Packets to a host that is lost are sent again for two minutes, not for a quarter of an hour."""
_ENDED = ("FINISHED", "FAILED", "CANCELED")
NO_ANSWER = (OSError, http.client.HTTPException, ValueError, KeyError)
_REFUSE = """
import http.server, sys
class Refusing(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Refusing).serve_forever()
"""
_PUT = """
import json, pathlib, sys
from bpe_beam.storage import Storage
storage, folder = Storage(json.loads(sys.argv[1])), pathlib.Path(sys.argv[2])
for path in folder.rglob("*"):
    if path.is_file():
        storage.write_bytes(f"{sys.argv[3]}/{path.relative_to(folder)}", path.read_bytes())
"""


class FlinkHosts:
    """The cluster and its hosts; `hosts[NAME]` is one of NAMES.

    Attributes:
        hosts: The hosts.
        gcs: Whether the store is GCS; otherwise S3.
        top: The URL of the store's bucket.
    """

    slots, parallelism = SLOTS, PARALLELISM
    store_flags: Sequence[str] = ()
    disk = "2G"
    job_server = "flink-job-server"
    roles = ("jobmanager", "taskmanager")

    def __init__(self, hosts: Hosts, gcs: bool) -> None:
        self.hosts, self.gcs = hosts, gcs
        self.top = f"{'gs' if gcs else 's3'}://{BUCKET}"
        self.jar = script("get", self.job_server).split()[-1]
        self._server = go_server("fake-gcs-server" if gcs else "versitygw")
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    @contextlib.contextmanager
    def running(cls, *shown: Path, gcs: bool = False) -> Iterator[FlinkHosts]:
        """Yield the cluster.

        Args:
            *shown: Folders of the machine that the hosts read, complete from now on.
            gcs: Whether the store is GCS; otherwise S3.
        """
        script("get", "flink")
        script("get", "boot")
        with Hosts(NAMES, cls.disk, show=shown) as hosts:
            cluster = cls(hosts, gcs)
            cluster.start_store()
            for name in ("manager", *WORKERS):
                cluster.start_flink(name)
            cluster.wait_for_workers()
            yield cluster

    @property
    def options(self) -> str:
        """The storage options of all jobs, as JSON."""
        if self.gcs:
            return json.dumps({"gs": {"endpoint_url": _STORE, "token": "anon"}})
        return json.dumps(s3_options(_PORT, endpoint_url=_STORE))

    def start_store(self) -> None:
        """Start the store's server, with what it had before."""
        store = self.hosts["store"]
        store.run("mkdir", "-p", f"{_DATA}/{BUCKET}")
        if self.gcs:
            line = ["-scheme", "http", "-host", "0.0.0.0", "-port", str(_PORT)]
            line += ["-external-url", _STORE, "-backend", "filesystem", "-filesystem-root", _DATA]
        else:
            line = [*self.store_flags, "--access", USER, "--secret", SECRET]
            line += [
                "--region",
                "us-east-1",
                "--keep-alive",
                "--port",
                f"0.0.0.0:{_PORT}",
                "posix",
                _DATA,
            ]
        self._running["store"] = store.start(self._server, *line, log="/var/tmp/store.log")
        wait_until(lambda: _answers(store, _PORT), "the store")

    def start_flink(self, name: str) -> None:
        """Start the job manager, or a task manager, on its host."""
        self.hosts[name].run("sh", "-c", _FEW_RETRIES)
        role = self.roles[name != "manager"]
        line = [*_SHORT, sys.executable, str(ROOT / "scripts" / "runners.py"), "serve", role]
        line += ["--home", HOME, "--address", name, "--job-manager", "manager"]
        line += ["--slots", str(self.slots)]
        self._running[name] = self.hosts[name].start(*line, log="/var/tmp/cluster.log")

    def end(self, name: str) -> None:
        """Kill the command that runs a server on a host."""
        self._running[name].kill()
        self._running.pop(name).wait()

    def ask(self, path: str, method: str = "GET") -> Any:
        """Return an answer of Flink's REST interface."""
        return json.loads(ask(self.hosts["manager"], 8081, path, method))

    def workers(self) -> int:
        """Return the number of task managers; 0 while the job manager does not answer."""
        with contextlib.suppress(*NO_ANSWER):
            return int(self.ask("overview")["taskmanagers"])
        return 0

    def replace(self, name: str, *, clock: float = 0) -> None:
        """Kill a host, and start a new one with its server; its clock may be wrong by seconds."""
        self.hosts[name].kill()  # its link first, so that others see no connection close
        if name in self._running:
            self.end(name)
        self.hosts.start(name).clock = clock
        if name == "manager" or name in WORKERS:
            self.start_flink(name)

    def restore(self) -> None:
        """End all jobs, and make everything as it was: hosts, links and servers."""
        for name in NAMES:
            if not self.hosts[name].processes():
                self.replace(name)
        for name in NAMES:
            self.hosts[name].heal()
            self.hosts[name].run("ip", "neigh", "flush", "all", "nud", "permanent", "dev", "eth0")
        wait_until(lambda: all([self._ended(), self._complete()]), "the cluster", pause=1)

    def _ended(self) -> bool:
        """Cancel all jobs; return whether all have ended."""
        with contextlib.suppress(*NO_ANSWER):
            states = {job["jid"]: job["state"] for job in self.ask("jobs/overview")["jobs"]}
            left = [job for job, state in states.items() if state not in _ENDED]
            for job in left:
                self.ask(f"jobs/{job}?mode=cancel", "PATCH")
            return not left
        return False

    def start_refusing_store(self) -> None:
        """Start a server that answers 503 in the store's place."""
        line = (sys.executable, "-c", _REFUSE, str(_PORT))
        self._running["store"] = self.hosts["store"].start(*line)

    def wait_for_workers(self) -> None:
        """Wait until all task managers take tasks."""
        wait_until(self._complete, "the task managers", pause=0.2)

    def _complete(self) -> bool:
        """Start again what has ended by itself; return whether all task managers are there.

        A task manager ends after five minutes without a job manager, and a job manager may fail to
        start on a machine that is very busy.
        """
        for name in ("manager", *WORKERS):
            if self._running[name].poll() is not None:
                self.start_flink(name)
        return self.workers() == len(WORKERS)

    def command(self, *args: str | Path, driver: str = "driver") -> list[str]:
        """Return the command that runs a job on the cluster, or without a runner on the driver."""
        return self.hosts[driver].command(
            *_SHORT, *COMMAND, *args, "--storage-options", self.options
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that choose the cluster."""
        environment = json.dumps({"command": f"{HOME}/bin/worker"})
        return (
            *("--config", str(ROOT / "configs" / "runners" / "flink_cluster.yaml")),
            "--flink_master=manager:8081",
            f"--parallelism={self.parallelism}",
            f"--environment_config={environment}",
            f"--flink_job_server_jar={self.jar}",
        )

    def put(self, folder: Path, url: str) -> None:
        """Copy the files of a folder that the hosts see into the store."""
        self.hosts["driver"].run(sys.executable, "-c", _PUT, self.options, folder, url, seconds=300)

    def names(self, url: str) -> list[str]:
        """Return the names of all objects below a URL: no request to the server, no process."""
        top = Path(f"/proc/{self.hosts['store'].pid}/root{_folder(url)}")
        walked = ((Path(folder), files) for folder, _, files in os.walk(top))
        return [str((folder / file).relative_to(top)) for folder, files in walked for file in files]

    def stored(self, url: str) -> dict[str, str]:
        """Return the SHA-256 of all objects below a URL, by relative name."""
        line = 'cd "$1" 2>/dev/null && find . -type f -exec sha256sum {} + || true'
        shown = self.hosts["store"].run("sh", "-c", line, "sh", _folder(url)).decode()
        rows = (row.split("  ./", 1) for row in shown.splitlines())
        return {name: digest for digest, name in rows}

    def log(self, name: str) -> str:
        """Return the log of Flink, or of the store, on a host."""
        path = "/var/tmp/store.log" if name == "store" else "/var/tmp/cluster.log"
        return self.hosts[name].run("cat", path).decode(errors="replace")


def _folder(url: str) -> str:
    """Return the folder of a URL on the store's host."""
    return f"{_DATA}/{url.partition('://')[2]}"


def ask(host: Host, port: int, path: str = "", method: str = "GET") -> bytes:
    """Return the answer of a server on a host to a request from the host, whatever its status."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    with contextlib.closing(host.connection(port)) as connection.sock:
        connection.request(method, f"/{path}")
        return connection.getresponse().read()


def _answers(host: Host, port: int) -> bool:
    with contextlib.suppress(*NO_ANSWER):
        ask(host, port)
        return True
    return False
