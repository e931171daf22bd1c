"""A Beam runner whose workers have another working directory than the command, as on a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from apache_beam.runners.portability.fn_api_runner import FnApiRunner

FOLDERS: list[Path] = []
"""Where the workers are: the last one counts."""


class ElsewhereRunner(FnApiRunner):  # type: ignore[misc]
    """A runner in process."""

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        """Run a pipeline to its end in the workers' folder."""
        here = Path.cwd()
        os.chdir(FOLDERS[-1])
        try:
            return super().run_pipeline(pipeline, options)
        finally:
            os.chdir(here)
