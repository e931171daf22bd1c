"""A Beam runner as users may have their own: found by its full name, and remembered when it ran."""

from __future__ import annotations

from typing import Any

from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

RAN: list[int] = []
"""The number of threads of each pipeline that was run."""

PIPELINES: list[Any] = []
"""Their descriptions."""


class RecordingRunner(FnApiRunner):  # type: ignore[misc]
    """A runner in process."""

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        """Record that it ran."""
        RAN.append(options.view_as(DirectOptions).direct_num_workers)
        PIPELINES.append(pipeline.to_runner_api())
        return super().run_pipeline(pipeline, options)
