"""What failed, in one sentence, whatever a runner wrapped it in."""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bpe_beam.cli.error_reporting import describe
from bpe_beam.engines.runner_errors import failure_of_runner, is_out_of_memory, our_error
from bpe_beam.errors import DataError, UsageError

pytestmark = pytest.mark.quick

MESSAGE = "corpus/a [b].jsonl, byte 12: broken JSON ('x')\n  mend it"


class Fails(beam.DoFn):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def process(self, element: int) -> None:
        try:
            int("no number")
        except ValueError as cause:
            raise self.error from cause


def failure_of(error: Exception, mode: str) -> BaseException:
    flags = ["--direct_num_workers=2", f"--direct_running_mode={mode}"]
    with (
        pytest.raises(BaseException) as caught,  # noqa: PT011 (what Beam wraps it in varies)
        beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(flags)) as pipeline,
    ):
        numbers = pipeline | "Numbers" >> beam.Create([1, 2]) | "Spread" >> beam.Reshuffle()
        numbers | "A [while running 'step']" >> beam.ParDo(Fails(error))
    return caught.value


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
@pytest.mark.parametrize("kind", [UsageError, DataError])
def test_our_error_comes_out_of_beam(kind: type[Exception], mode: str) -> None:
    found = our_error(failure_of(kind(MESSAGE), mode))
    assert type(found) is kind
    assert str(found) == MESSAGE


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_another_error_of_beam_is_one_line(mode: str) -> None:
    failure = failure_of(KeyError("lost"), mode)
    assert our_error(failure) is None
    assert describe(failure).startswith("KeyError: ")
    assert "lost" in describe(failure)
    assert "Traceback" not in describe(failure)


def test_a_runner_that_has_failed_itself() -> None:
    failed = "Pipeline bpe-beam-count-77_15 failed in state FAILED: "
    failure = failure_of_runner(RuntimeError(f"{failed}java.net.Lost: worker-1:38697"))
    assert str(failure) == (
        "the runner ended the job: java.net.Lost: worker-1:38697; when the runner and its hosts "
        "work, run the same command again"
    )
    traceback = "Traceback (most recent call last):\n  File x\nKeyError: 1"
    for said in (
        f"java.Lost: {traceback}",
        f"{traceback}\nbpe_beam.errors.DataError: no",
        "\nbad_alloc",
    ):
        assert failure_of_runner(RuntimeError(failed + said)) is None
    assert failure_of_runner(KeyError("failed")) is None


def test_our_error_is_found_in_other_wrappings() -> None:
    cause = RuntimeError("outer")
    cause.__cause__ = DataError("inner")
    java = (
        "Pipeline failed: java.lang.RuntimeException: Error received from SDK harness: "
        "Traceback (most recent call last):\n  File x\n"
        f"bpe_beam.errors.DataError: {MESSAGE} [while running 'Count/Read']\n\n"
        "\tat org.apache.beam.runners.Foo(Foo.java:1)\n"
    )
    at_once = "bpe_beam.errors.UsageError: wrong\n\tat org.apache.Foo"
    for error, said in (
        (cause, "inner"),
        (RuntimeError(java), MESSAGE),
        (RuntimeError(at_once), "wrong"),
        (DataError("plain"), "plain"),
    ):
        assert str(our_error(error)) == said
    assert our_error(RuntimeError("bpe_beam.errors is fine")) is None


JAR = "https://repo.maven.apache.org/maven2/beam-runners-flink-1.19-job-server-2.74.0.jar"
PRISM = "https://github.com/apache/beam/releases/prism-linux-amd64.zip"
NO_NAME = "<urlopen error [Errno -3] Temporary failure in name resolution>"


@pytest.mark.parametrize(
    ("beam_says", "said"),
    [
        (
            f"Unable to fetch remote job server jar at {JAR}: {NO_NAME}. Also failed to fetch from "
            f"Google Maven mirror at {JAR}: {NO_NAME}. If no Internet access, stage the jar at /c",
            f"job server jar cannot be fetched from {JAR} ([Errno -3] Temporary failure in name "
            "resolution): python scripts/runners.py get builds it",
        ),
        (
            f"Unable to fetch remote job server jar at {JAR}: HTTP Error 403: Forbidden. If no "
            "Internet access at runtime, stage the jar at /c",
            f"job server jar cannot be fetched from {JAR} (HTTP Error 403: Forbidden): ",
        ),
        (
            f"Unable to fetch remote prism binary at {PRISM}: {NO_NAME}",
            f"prism binary cannot be fetched from {PRISM} ([Errno -3] Temporary failure in name "
            "resolution): ",
        ),
    ],
)
def test_a_runner_that_cannot_be_fetched(beam_says: str, said: str) -> None:
    error = our_error(RuntimeError(beam_says))
    assert type(error) is DataError
    assert said in str(error)
    assert "docs/runners.md" in str(error)
    assert "urlopen" not in str(error)
    assert "\n" not in str(error)


def test_an_error_that_came_while_handling_ours_is_ours() -> None:
    try:
        try:
            raise DataError("first")
        except DataError:
            raise KeyError("second") from None
    except KeyError as error:
        assert str(our_error(error)) == "first"


def test_little_memory_is_no_error_of_ours() -> None:
    """What failed for want of memory is neither damaged nor missing; a broken size is damage."""

    def raised(error: Exception, inner: Exception) -> Exception:
        try:
            raise error from inner
        except type(error) as found:
            return found

    small = pa.ArrowMemoryError("malloc of size 16777216 failed")
    for error in (
        raised(DataError("x cannot be read"), small),
        raised(MemoryError(), DataError("y")),
    ):
        assert our_error(error) is None
        assert is_out_of_memory(error)
    huge = pa.ArrowMemoryError(f"malloc of size {1 << 60} failed")
    assert str(our_error(raised(DataError("x cannot be read"), huge))) == "x cannot be read"
