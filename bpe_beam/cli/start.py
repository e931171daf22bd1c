"""The command's first module: a signal or a lack of memory ends it with a sentence at any time."""

from __future__ import annotations

import gc
import sys

from bpe_beam.cli import interrupts

TYPE_CHECKING = False  # no signal is handled while `typing` loads
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def run(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command, by default with the arguments of the process, and end the process."""
    interrupts.end_at_once()
    # Imports make a million long-lived objects; searching them for garbage repeatedly takes a
    # tenth of a small job's time.
    gc.set_threshold(1_000_000, 50, 50)
    try:
        if sys.version_info >= (3, 11) and "typing_extensions" not in sys.modules:
            # msgspec imports it wherever it is installed, which takes 4 ms, and needs it for 3.10.
            sys.modules["typing_extensions"] = None  # type: ignore[assignment]
            import msgspec  # noqa: F401

            del sys.modules["typing_extensions"]
        from bpe_beam.cli.main import run as run_command
    except (ImportError, MemoryError) as error:
        if isinstance(error, MemoryError) or "failed to map segment" in str(error):
            interrupts.end_now("not enough memory to load the program", 1)
        raise
    run_command(argv)
