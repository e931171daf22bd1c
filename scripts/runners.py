"""Build, start and stop runners of Beam: for a first try, and for tests.

    python scripts/runners.py command flink      a command for Flink inside one process
    python scripts/runners.py command prism      ... for Prism
    python scripts/runners.py command spark      ... for Spark inside one process
    python scripts/runners.py start              starts a Flink cluster here; a command for it
    python scripts/runners.py add                starts one more task manager in it
    python scripts/runners.py stop               ends it
    python scripts/runners.py serve jobmanager   one process of a cluster of several machines
    python scripts/runners.py get [PART ...]     builds parts, or all, and prints their paths

Run it with the Python of the environment that bpe-beam is installed in. It needs Java 17 for Flink
and Spark, Maven for their job servers, Go for Prism and for a cluster's workers. It keeps the parts
in `$BPE_BEAM_CACHE/runners`, by default `~/.cache/bpe-beam/runners`.

The cluster is a job manager and task managers as processes of this machine, without Flink's own
scripts. It serves one user on one machine; it has no security, and listens on loopback only.
Processes of `serve` listen on all addresses, for a network of your own: `serve taskmanager
--job-manager HOST` is run on each other machine. Their worker command is HOME/bin/worker. For
Spark's standalone cluster, the roles are `spark-master` and `spark-worker`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NoReturn

from get_runners import PARTS, Missing, cache, get, java

CONFIGS = Path(__file__).parents[1] / "configs" / "runners"
START_SECONDS = 300
STOP_SECONDS = 10
REST_PORT, RPC_PORT = 8081, 6123
"""The ports of the job manager of a cluster of several machines; Flink's defaults."""

# Packages that Flink needs opened since Java 17.
_EXPORTS = "java.base/sun.net.util java.rmi/sun.rmi.registry java.security.jgss/sun.security.krb5"
_OPENS = (
    "lang lang.invoke lang.reflect io net nio text time util util.concurrent "
    "util.concurrent.atomic util.concurrent.locks"
)

# A task manager has 896 MB of Java memory, a quarter of it for the network: with less, two tasks
# that shuffle to two others have too few buffers. The Python workers are separate processes.
_TASK_MANAGER_MEMORY = {
    "taskmanager.cpu.cores": "1.0",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "taskmanager.memory.managed.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
}
_JOB_MANAGER_JVM = ["-Xms128m", "-Xmx512m", "-XX:MaxMetaspaceSize=256m"]
_TASK_MANAGER_JVM = [
    "-Xms384m",
    "-Xmx384m",
    "-XX:MaxDirectMemorySize=384m",
    "-XX:MaxMetaspaceSize=256m",
    "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
]
_SPARK_PORT = 7077
_SPARK_JVM = [
    "-Xmx256m",
    # Each job brings its jar of 300 MB to all workers, which by default keep it for ever.
    "-Dspark.worker.cleanup.enabled=true",
    "-Dspark.worker.cleanup.interval=30",
    "-Dspark.worker.cleanup.appDataTtl=30",
]
_SPARK_SCALA = "2.12"
"""The version of Scala that Spark is of, which it does not find by itself."""
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_REGISTERED = "Successful registration at resource manager"
"""What a task manager writes to its log when it takes tasks."""

_LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c - %m%n
"""


def flags(runner: str) -> list[str]:
    """Return the flags for `flink`, `prism` or `spark` on this machine; build the missing parts."""
    config = ["--config", str(CONFIGS / f"{runner}.yaml")]
    if runner == "prism":
        return [*config, f"--prism_location={get('prism')}"]
    java()
    return [*config, f"--{runner}_job_server_jar={get(f'{runner}-job-server')}"]


def command(chosen: list[str]) -> str:
    """Return a command that users can paste."""
    arguments = ["--input", "CORPUS", "--output", "COUNTS"]
    return shlex.join(["bpe-beam", "count", *chosen, *arguments])


def start(home: Path, task_managers: int, slots: int, port: int | None) -> list[str]:
    """Start a cluster, wait until it takes jobs, and return the flags for `bpe-beam`.

    Its settings, logs and temporary files are in `home`. Each task manager runs `slots` tasks at a
    time. `port` is of the REST interface on loopback, which is also the web page; None: a free one.
    """
    if (home / "cluster.json").exists():
        raise Missing(f"{home} has a cluster already; stop it first")
    if home.exists() and {path.name for path in home.iterdir()} - {"log"}:
        raise Missing(f"{home} has other files: give a --home that is empty or new")
    program, boot = java(), get("boot")
    lib, jar = get("flink"), get("flink-job-server")
    for name in ("conf", "log", "tmp", "bin"):
        (home / name).mkdir(parents=True, exist_ok=True)
    port = port or _free_port()
    settings = {
        **_settings(home, slots),
        **_at("127.0.0.1", "127.0.0.1", port, _free_port()),
        "parallelism.default": str(task_managers * slots),
    }
    _write_settings(home, settings)
    worker = _write_worker(home, boot)
    ids: dict[str, int] = {}
    _record(home, port, ids)
    runs = {"jobmanager": [*_JOB_MANAGER_JVM, _JOB_MANAGER]}
    runs |= {f"taskmanager-{i}": _TASK_MANAGER_JVM for i in range(1, task_managers + 1)}
    for name, arguments in runs.items():
        ids[name] = _spawn(_java_line(program, lib, home, arguments), home, name)
        _record(home, port, ids)
    try:
        _wait(home, port, ids, task_managers)
    except Missing:
        stop(home)
        raise
    chosen = ["--config", str(CONFIGS / "flink_cluster.yaml")]
    environment = json.dumps({"command": str(worker)}, separators=(",", ":"))
    return [
        *chosen,
        f"--flink_master=127.0.0.1:{port}",
        f"--parallelism={task_managers * slots}",
        f"--environment_config={environment}",
        f"--flink_job_server_jar={jar}",
    ]


def add(home: Path) -> str:
    """Start one more task manager in a cluster, wait until it takes tasks, and return its name.

    A job that waits for slots gets them. A new job uses more task managers with a --parallelism of
    all slots.
    """
    record = home / "cluster.json"
    cluster = json.loads(record.read_text()) if record.exists() else {}
    if cluster.get("boot") != _boot_id():
        raise Missing(f"no cluster runs in {home}; start one first")
    ids = cluster["processes"]
    name = f"taskmanager-{1 + max(int(each.rpartition('-')[2]) for each in ids if '-' in each)}"
    line = _java_line(java(), get("flink"), home, _TASK_MANAGER_JVM)
    ids[name] = _spawn(line, home, name)
    _record(home, cluster["port"], ids)
    log = home / "log" / f"{name}.log"
    end = time.monotonic() + START_SECONDS
    while _REGISTERED not in log.read_text(errors="replace"):
        if ids[name] not in _members({ids[name]}, home):
            raise Missing(f"the {name} ended at once; {log} ends with:\n{_tail(log)}")
        if time.monotonic() > end:
            raise Missing(f"the {name} did not start in {START_SECONDS} s; its log is {log}")
        time.sleep(0.2)
    return name


def stop(home: Path) -> None:
    """Stop a cluster with all its processes, and remove its temporary files; its logs stay.

    Workers of killed task managers are stopped too.
    """
    record = home / "cluster.json"
    if not record.exists():
        print(f"no cluster in {home}", file=sys.stderr)
        return
    cluster = json.loads(record.read_text())
    # A session each: workers make their own process groups, but stay in the session. After a new
    # start of the machine, the numbers are of other processes.
    same_boot = cluster.get("boot") == _boot_id()
    sessions = set(cluster["processes"].values()) if same_boot else set()
    for number in (signal.SIGTERM, signal.SIGKILL):
        end = time.monotonic() + STOP_SECONDS
        while (running := _members(sessions, home)) and time.monotonic() < end:
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            time.sleep(0.3)
    for name in ("tmp", "bin", "conf"):
        shutil.rmtree(home / name, ignore_errors=True)
    record.unlink()


def _record(home: Path, port: int, ids: dict[str, int]) -> None:
    known = {"port": port, "processes": ids, "boot": _boot_id()}
    (home / "cluster.json").write_text(json.dumps(known))


def _boot_id() -> str:
    """Return the id of this start of the machine, or "" where the system has none."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _members(sessions: set[int], home: Path) -> list[int]:
    """Return the processes of sessions of this home.

    If a leader is of another home, its number has been given to another process.
    """
    try:
        listed = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,stat=,args="],
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError:
        raise Missing("ps is missing; on Debian and Ubuntu: apt-get install procps") from None
    rows = [[*line.split(maxsplit=2), ""][:3] for line in listed.stdout.splitlines()]
    rows = [row for row in rows if not row[1].startswith("Z")]
    leaders = {int(number): text for number, _, text in rows if int(number) in sessions}
    ours = {each for each in sessions if str(home) in leaders.get(each, str(home))}
    members = []
    for number, _, _ in rows:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(int(number)) in ours:
                members.append(int(number))
    return members


def serve(home: Path, role: str, address: str, job_manager: str, slots: int) -> NoReturn:
    """Become the job manager, or a task manager, of a cluster of several machines.

    Args:
        home: The folder of its settings and temporary files.
        role: `jobmanager` or `taskmanager`.
        address: The address or name of this machine.
        job_manager: The address or name of the machine of the job manager.
        slots: The number of tasks that a task manager runs at a time.
    """
    program, lib = java(), get("flink")
    for name in ("conf", "tmp", "bin"):
        (home / name).mkdir(parents=True, exist_ok=True)
    everywhere = {"jobmanager.bind-host": "0.0.0.0", "taskmanager.bind-host": "0.0.0.0"}
    at = _at(address, job_manager, REST_PORT, RPC_PORT)
    listening = {**everywhere, "rest.bind-address": "0.0.0.0"}
    _write_settings(home, {**_settings(home, slots), **at, **listening})
    _write_worker(home, get("boot"))
    arguments = _TASK_MANAGER_JVM if role == "taskmanager" else [*_JOB_MANAGER_JVM, _JOB_MANAGER]
    os.chdir(home)
    os.execv(program, _java_line(program, lib, home, arguments))


def serve_spark(home: Path, role: str, address: str, master: str, slots: int) -> NoReturn:
    """Become the master, or a worker, of Spark's standalone cluster; arguments as of `serve`."""
    program, jar = java(), get("spark-job-server")
    for name in ("tmp", "bin", "jars"):
        (home / name).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (home / "jars" / jar.name).symlink_to(jar)
    _write_worker(home, get("boot"))
    entry = "org.apache.spark.deploy.master.Master"
    arguments = ["--host", address]
    if role == "spark-master":
        arguments += ["--port", str(_SPARK_PORT)]
    else:
        entry = "org.apache.spark.deploy.worker.Worker"
        # The Java process of a job has 1 GB; the Python workers are separate.
        arguments += ["--cores", str(slots), "--memory", "1g", "--work-dir", str(home / "tmp")]
        arguments.append(f"spark://{master}:{_SPARK_PORT}")
    os.environ.update(SPARK_HOME=str(home), SPARK_SCALA_VERSION=_SPARK_SCALA)
    os.chdir(home)
    os.execv(program, [program, *_SPARK_JVM, "-cp", str(jar), entry, *arguments])


def _at(address: str, job_manager: str, rest_port: int, rpc_port: int) -> dict[str, str]:
    """Return the settings for a process at an address, which listens there only."""
    return {
        "jobmanager.rpc.address": job_manager,
        "jobmanager.rpc.port": str(rpc_port),
        "jobmanager.bind-host": address,
        "taskmanager.host": address,
        "taskmanager.bind-host": address,
        "rest.address": job_manager,
        "rest.bind-address": address,
        "rest.port": str(rest_port),
    }


def _settings(home: Path, slots: int) -> dict[str, str]:
    """Return Flink's settings without addresses."""
    return {
        "taskmanager.numberOfTaskSlots": str(slots),
        "io.tmp.dirs": str(home / "tmp"),
        # Without this, one task manager is filled before the next gets a task.
        "cluster.evenly-spread-out-slots": "true",
        # A lost task manager is noticed within seconds; a slow one is not taken for lost.
        "heartbeat.interval": "2000",
        "heartbeat.timeout": "20000",
        # Two task managers whose link is cut notice it in half a minute, not in two hours.
        "taskmanager.network.netty.client.tcp.keepIdleSec": "15",
        "taskmanager.network.netty.client.tcp.keepIntervalSec": "5",
        "taskmanager.network.netty.client.tcp.keepCount": "3",
        "taskmanager.network.netty.client.connectTimeoutSec": "30",
        # A machine that does much else needs more than the ten seconds of the default to start.
        "pekko.startup-timeout": "120 s",
        # Without this a job ends with the first task manager that is lost. A worker that raises is
        # tried again as often, though it will raise again.
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "2s",
        # Each job brings its jar of 160 MB to all task managers, which by default keep it an hour.
        "blob.service.cleanup.interval": "30",
        # By default, batch shuffles ask for 512 buffers a task.
        "taskmanager.network.sort-shuffle.min-buffers": "64",
        **_TASK_MANAGER_MEMORY,
    }


def _write_settings(home: Path, settings: dict[str, str]) -> None:
    """Write Flink's `conf/`."""
    lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
    (home / "conf" / "config.yaml").write_text("".join(lines))
    (home / "conf" / "log4j.properties").write_text(_LOGGING)


def _write_worker(home: Path, boot: Path) -> Path:
    """Return the command by which a task manager starts Python workers: Beam's boot program, which
    uses this Python as it is instead of making an environment."""
    bin_folder = home / "bin"
    # Boot asks pip three times what is installed, to log it: two seconds of a processor.
    unasked = 'case "$*" in "-m pip freeze"* | "-m pip show"*) exit ;; esac\n'
    _write_program(bin_folder / "python", f'{unasked}exec {shlex.quote(sys.executable)} "$@"')
    lines = [
        f"export PATH={shlex.quote(str(bin_folder))}:$PATH",
        "export RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1",
        # Boot writes the job's options into its working folder.
        f"folder=$(mktemp -d {shlex.quote(str(home / 'tmp' / 'worker-XXXXXXXX'))})",
        'cd "$folder" || exit 1',
        f'exec {shlex.quote(str(boot))} --semi_persist_dir="$folder" "$@"',
    ]
    return _write_program(bin_folder / "worker", "\n".join(lines))


def _write_program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _java_options(home: Path) -> list[str]:
    return [
        *(f"--add-exports={each}=ALL-UNNAMED" for each in _EXPORTS.split()),
        *(f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in _OPENS.split()),
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        f"-Djava.io.tmpdir={home / 'tmp'}",
        f"-Dlog4j.configurationFile={home / 'conf' / 'log4j.properties'}",
    ]


def _java_line(program: str, lib: Path | str, home: Path, arguments: list[str]) -> list[str]:
    """Return the command of a process of the cluster; the last argument is its class."""
    *memory, entry = arguments
    java_options = [*memory, *_java_options(home), "-cp", f"{lib}/*"]
    return [program, *java_options, entry, "--configDir", str(home / "conf")]


def _spawn(line: list[str], home: Path, name: str) -> int:
    """Start a process of the cluster, and return its id."""
    with (home / "log" / f"{name}.log").open("wb") as out:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=home,
            start_new_session=True,
        )
    return process.pid


def _wait(home: Path, port: int, ids: dict[str, int], task_managers: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        running = _members(set(ids.values()), home)
        for name, number in ids.items():
            if number not in running:
                log = home / "log" / f"{name}.log"
                raise Missing(f"the {name} ended at once; {log} ends with:\n{_tail(log)}")
        with contextlib.suppress(OSError, ValueError):
            url = f"http://127.0.0.1:{port}/overview"
            with urllib.request.urlopen(url, timeout=5) as answer:
                if json.load(answer)["taskmanagers"] == task_managers:
                    return
        time.sleep(0.2)
    raise Missing(f"the cluster did not start in {START_SECONDS} s; its logs are in {home / 'log'}")


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:].strip()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    one = actions.add_parser("get", help="builds parts, and prints their paths")
    one.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; or all")
    one = actions.add_parser("command", help="prints the command for a runner inside one process")
    one.add_argument("runner", choices=("flink", "prism", "spark"))
    one = actions.add_parser("start", help="starts a Flink cluster, and prints a command for it")
    one.add_argument("--task-managers", type=int, default=2, metavar="N", help="default 2")
    one.add_argument(
        "--slots", type=int, default=1, metavar="N", help="slots of each task manager, default 1"
    )
    one.add_argument("--port", type=int, metavar="P", help="of the web page; a free one")
    more = actions.add_parser("add", help="starts one more task manager in the cluster")
    ending = actions.add_parser("stop", help="ends the cluster")
    serving = actions.add_parser("serve", help="becomes a process of a cluster of machines")
    roles = ("jobmanager", "taskmanager", "spark-master", "spark-worker")
    serving.add_argument("role", choices=roles)
    serving.add_argument("--address", default=socket.gethostname(), help="of this machine")
    serving.add_argument("--job-manager", metavar="HOST", help="its machine, or the master's")
    serving.add_argument("--slots", type=int, default=1, metavar="N", help="default 1")
    for each in (one, more, ending, serving):
        each.add_argument(
            "--home", type=Path, default=cache() / "cluster", help="the cluster's folder"
        )
    return parser.parse_args()


def _main(arguments: argparse.Namespace) -> None:
    if arguments.action == "get":
        unknown = set(arguments.parts) - set(PARTS)
        if unknown:
            raise Missing(f"{', '.join(sorted(unknown))}: no part of {', '.join(PARTS)}")
        for part in arguments.parts or PARTS:
            print(part, get(part))
    elif arguments.action == "command":
        print(command(flags(arguments.runner)))
    elif arguments.action == "start":
        if arguments.task_managers < 1 or arguments.slots < 1:
            raise Missing("--task-managers and --slots must be 1 or more")
        home = arguments.home.absolute()
        print(command(start(home, arguments.task_managers, arguments.slots, arguments.port)))
    elif arguments.action == "serve":
        manager = arguments.job_manager or arguments.address
        home, slots = arguments.home.absolute(), arguments.slots
        become = serve_spark if arguments.role.startswith("spark") else serve
        become(home, arguments.role, arguments.address, manager, slots)
    elif arguments.action == "add":
        print(add(arguments.home.absolute()))
    else:
        stop(arguments.home.absolute())


if __name__ == "__main__":
    try:
        _main(_arguments())
    except Missing as error:
        sys.exit(f"runners.py: {error}")
