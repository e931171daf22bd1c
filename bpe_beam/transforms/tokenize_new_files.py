"""`TokenizeNewFiles`: the transform of the streaming job, from a folder to windows of shards.

The watcher is one element that never ends: it lists the folder, writes new windows to the log,
returns their splits, and completes windows by the records of their shards. The runner's state does
not decide what is read, so it may be lost at any time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.metrics import Metrics
from apache_beam.transforms import trigger
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.shared import Shared
from apache_beam.utils.timestamp import Duration

from bpe_beam.transforms import metrics as counters
from bpe_beam.workers.stream.status import ReportingWatcher
from bpe_beam.workers.stream.watcher import Lag, Stream, Watcher, tokenize_window_split
from bpe_beam.workers.task_results import TaskResult

_END = 1 << 60
_LONGEST_SLEEP = 0.5


@beam.typehints.with_output_types(str)
class TokenizeNewFiles(beam.PTransform):
    """Tokenizes files as they arrive; the output is the names of the shards.

    Needs a runner of streaming pipelines.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self.stream = stream

    def expand(self, begin: beam.pvalue.PBegin) -> beam.pvalue.PCollection:
        return (
            begin
            | "Start" >> beam.Impulse()
            | "WatchFiles" >> beam.ParDo(_WatchFiles(self.stream))
            # Fire at once: the watermark does not advance while the watcher runs.
            | "EachAtOnce"
            >> beam.WindowInto(
                GlobalWindows(),
                trigger=trigger.Repeatedly(trigger.AfterCount(1)),
                accumulation_mode=trigger.AccumulationMode.DISCARDING,
            )
            | "Spread" >> beam.GroupByKey()
            | "TokenizeSplit" >> beam.FlatMap(_tokenize_splits, self.stream).with_output_types(str)
        )


class _Listings(OffsetRestrictionTracker):
    """The numbers of listings. Only later numbers are split off, so there is one watcher."""

    def try_split(self, fraction_of_remainder: float) -> Any:
        return super().try_split(fraction_of_remainder) if fraction_of_remainder == 0 else None


class _Endless(RestrictionProvider):
    def initial_restriction(self, element: bytes) -> OffsetRange:
        return OffsetRange(0, _END)

    def create_tracker(self, restriction: OffsetRange) -> _Listings:
        return _Listings(restriction)

    def restriction_size(self, element: bytes, restriction: OffsetRange) -> int:
        return 1

    def truncate(self, element: bytes, restriction: OffsetRange) -> None:
        """End the watcher when the pipeline is drained."""
        return None


_TRACKER = beam.DoFn.RestrictionParam(_Endless())


@beam.typehints.with_input_types(bytes)
@beam.typehints.with_output_types(tuple[int, str])
class _WatchFiles(beam.DoFn):
    """The watcher: one listing per call."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._shared = Shared()

    def setup(self) -> None:
        """Make one watcher per process, however many instances the runner makes."""
        self.watcher: Watcher = self._shared.acquire(lambda: ReportingWatcher(self.stream))

    @beam.DoFn.unbounded_per_element()
    def process(self, element: bytes, tracker: Any = _TRACKER) -> Iterator[tuple[int, str]]:
        """List the folder if it is time, and ask to be called again."""
        position = tracker.current_restriction().start
        if not tracker.try_claim(position):
            return
        # The watcher survives a bundle that fails, whatever the runner did with its output.
        self.watcher.resume_from(position)
        wait = self.watcher.next_look - time.monotonic()
        if wait > 0:
            # Some runners call again at once, whatever delay they are asked for.
            time.sleep(min(wait, _LONGEST_SLEEP))
        else:
            yield from self.watcher.look(time.monotonic(), position)
            counts, self.watcher.counts = self.watcher.counts, Counter()
            counters.record(TaskResult([], counts))
            _set_gauges(self.watcher.lag)
        if self.watcher.ended:
            tracker.try_claim(_END)  # the end
            return
        tracker.defer_remainder(Duration(max(0.0, self.watcher.next_look - time.monotonic())))


def _set_gauges(lag: Lag) -> None:
    """Show the lag in the runner's own metrics."""
    since = lag.oldest_since
    seconds = 0 if since is None else max(0, round(time.time() - since))
    for name, value in (
        ("files_waiting", lag.files_waiting),
        ("oldest_waiting_seconds", seconds),
        ("windows_open", lag.windows_open),
    ):
        Metrics.gauge(counters.NAMESPACE, name).set(value)


def _tokenize_splits(element: tuple[int, Iterable[str]], stream: Stream) -> Iterator[str]:
    """Write the shards of splits, unless they exist; yield their names."""
    for text in element[1]:
        result = tokenize_window_split(stream, text)
        if result is not None:
            counters.record(result)
            yield from result.outputs
