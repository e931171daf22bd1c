"""Task managers and clients that are killed in the middle of a job, and jobs that outlive them: the
bytes of an undisturbed run.

The middle is chosen by what the job has finished, never by the clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import run_process, run_whole
from corpora import Long, make_long
from engines import Cluster, finished_pieces, launched
from read_back import tree
from waiting import SECONDS, wait_until

pytestmark = pytest.mark.runners

SPLITS = 600
# Each fault has one job in CI, and the other in the scheduled tests.
SCHEDULED_COUNT = pytest.param("count", marks=pytest.mark.scheduled)
SCHEDULED_TOKENIZE = pytest.param("tokenize", marks=pytest.mark.scheduled)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Long:
    """A corpus on which a job takes a while."""
    return make_long(tmp_path_factory.mktemp("long"), SPLITS)


def wait_for_the_middle(client: subprocess.Popen[bytes], out: Path) -> None:
    """Waits until some pieces are finished, and most are not."""
    wait_until(lambda: client.poll() is not None or finished_pieces(out) >= 10, "first receipts")
    assert client.poll() is None, "ended too early"
    assert finished_pieces(out) < SPLITS * 9 // 10, "not the middle any more"


@pytest.mark.parametrize("job", [SCHEDULED_COUNT, "tokenize"])
def test_a_task_manager_is_killed(job: str, cluster: Cluster, long: Long, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expected = long.undisturbed(job)
    before = cluster.jobs()
    # Each task manager has work for one of its two slots, and takes on the other's.
    with launched(*long.command(job), *cluster.engine(2).flags, "--output", out) as client:
        wait_for_the_middle(client, out)
        os.kill(cluster.processes["taskmanager-1"], signal.SIGKILL)
        _, err = client.communicate(timeout=SECONDS)
    assert (client.returncode, err) == (0, b"")
    assert tree(out) == expected
    (ran,) = (name for name in cluster.jobs() if name not in before)
    lost = cluster.ask(f"jobs/{ran}/exceptions")["exceptionHistory"]["entries"]
    assert lost, "the job has lost nothing"
    assert not cluster.whole


@pytest.mark.parametrize("job", [SCHEDULED_COUNT, "tokenize"])
def test_a_client_is_killed_and_started_again(
    job: str, cluster: Cluster, long: Long, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    expected = long.undisturbed(job)
    orphan(job, cluster, long, out)
    cluster.wait_until_idle()  # or it ends well, or by itself
    arguments = (*long.command(job), *cluster.engine(2).flags, "--output", out)
    ran = run_process(*arguments, "--quiet", timeout=SECONDS)
    assert (ran.code, ran.err) == (0, "")
    assert tree(out) == expected


def orphan(job: str, cluster: Cluster, long: Long, out: Path) -> None:
    """Leaves a job running in a folder, whose client is dead."""
    with launched(*long.command(job), *cluster.engine(1).flags, "--output", out) as client:
        wait_for_the_middle(client, out)
    assert cluster.running, "the job has ended with its client"


@pytest.mark.parametrize("job", ["count", SCHEDULED_TOKENIZE])
def test_beside_a_job_whose_client_died(
    job: str, cluster: Cluster, long: Long, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    expected = long.undisturbed(job)
    orphan(job, cluster, long, out)
    arguments = (*long.command(job), *cluster.engine(2).flags, "--output", out)
    ran = run_process(*arguments, "--quiet", timeout=SECONDS)
    assert (ran.code, ran.err) == (0, "")
    assert published(out) == expected
    cluster.wait_until_idle()
    assert published(out) == expected, "the orphan has changed it afterwards"


@pytest.mark.scheduled
def test_over_a_job_whose_client_died(cluster: Cluster, long: Long, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expected = long.undisturbed("tokenize", "other")
    assert expected != long.undisturbed("tokenize")
    orphan("tokenize", cluster, long, out)
    arguments = (*long.command("tokenize", "other"), *cluster.engine(2).flags, "--output", out)
    ran = run_process(*arguments, "--overwrite", "--quiet", timeout=SECONDS)
    assert (ran.code, ran.err) == (0, "")
    assert published(out) == expected
    cluster.wait_until_idle()
    assert published(out) == expected, "the orphan has changed it afterwards"
    data = ("--full", "--input", str(long.folder / "data.jsonl"))
    assert run_whole("verify", out, *data).summary["whole"] is True


def published(out: Path) -> dict[str, bytes]:
    """What a job's folder holds, but for what an orphan has left in its own corner."""
    return tree(out, corner="work/run-")
