"""End the process with one sentence after SIGINT (Ctrl-C) or SIGTERM, also while modules load.

Imports almost nothing, so that it can be the first module of the command line.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # no signal is handled while `typing` loads
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import NoReturn

_VERBS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

_received: list[int] = []


def end_at_once() -> None:
    """Let a signal end the process; for the time before and after the job."""
    _handle_by(_end)


def end_by_exception() -> None:
    """Let the first signal raise KeyboardInterrupt in the job; a second one ends the process."""
    _handle_by(_raise)


def exit_code() -> int:
    """Return the code of a process that a signal ended: 130 or 143, as in shells."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def sentence() -> str:
    """Return the word for the signal, such as "interrupted"."""
    return _VERBS[signal.Signals(exit_code() - 128)]


def was_received() -> bool:
    """Return whether a signal has come: an import may turn the exception into another error."""
    return bool(_received)


def end_now(text: str, code: int) -> NoReturn:
    """Write a sentence to stderr, and end the process."""
    # `contextlib` would load before signals are handled.
    try:  # noqa: SIM105
        os.write(2, f"bpe-beam: {text}\n".encode())
    except OSError:
        pass
    os._exit(code)


def _handle_by(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _VERBS:
        # A background job of a shell has SIGINT ignored.
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL, _end, _raise):
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    _received.append(number)
    end_now(sentence(), exit_code())


def _raise(number: int, frame: FrameType | None) -> None:
    if _received:
        _end(number, frame)
    _received.append(number)
    raise KeyboardInterrupt
