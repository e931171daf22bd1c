"""The two errors that a user can solve; any other is a defect of this package."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bpe_beam.messages import did_you_mean

HUGE_BYTES = 1 << 32
"""More than any part of a valid file: a program that lacks so many bytes read a broken number."""

_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_ASKED = re.compile(r"alloc of size (\d+) failed")


class _NamesParameters(Exception):
    """An error about parameters, whose names differ between the command line and Python."""

    def __init__(
        self,
        problem: str,
        parameters: tuple[str, ...] = (),
        remedy: str = "",
        lines: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.problem = problem
        self.parameters = parameters
        self.remedy = remedy
        self.lines = lines
        super().__init__(self.message(str))

    def message(self, name_of: Callable[[str], str]) -> str:
        """Return the error as one sentence."""
        *names, last = [*map(name_of, self.parameters)] or [""]
        subject = f"{', '.join(names)} and {last}" if names else last
        remedy = _PARAMETER.sub(lambda match: name_of(match[1]), self.remedy)
        text = f"{subject} {self.problem}" if subject else self.problem
        text += "".join(f"\n  {name_of(name)}: {said}" for name, said in self.lines)
        if "\n" in text and remedy:
            return f"{text}\n{remedy[0].upper()}{remedy[1:]}"
        return f"{text}; {remedy}" if remedy else text

    def rename_parameter(self, old: str, new: str) -> None:
        """Give a parameter the name that it has for the caller."""
        self.parameters = tuple(new if name == old else name for name in self.parameters)
        self.remedy = self.remedy.replace(f"{{{old}}}", f"{{{new}}}")
        self.args = (self.message(str),)

    def __reduce__(self) -> tuple[type[_NamesParameters], tuple[object, ...]]:
        return type(self), (self.problem, self.parameters, self.remedy, self.lines)


class UsageError(_NamesParameters, ValueError):
    """Settings are wrong, missing or contradictory. Exit code 2.

    A `ValueError`, since callers from Python expect one. Code that catches the `ValueError` of a
    parser around a call that may raise this error must let this error pass first.

    The error names parameters, not flags: the command line shows the flag of each, or the line of
    the configuration file that set it.
    """


class DataError(_NamesParameters):
    """A job ran and failed on what it read or wrote. Exit code 1."""


class NotFoundError(DataError):
    """A file, or the folder of a file to be written, does not exist."""


class TextError(DataError):
    """One of many texts cannot be encoded.

    Attributes:
        number: The text's number, from 0.
        reason: The reason, without the number.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"text {number}: {reason}")
        self.number = number
        self.reason = reason

    def __reduce__(self) -> tuple[type[TextError], tuple[object, ...]]:
        return TextError, (self.number, self.reason)


@contextmanager
def parameter_renamed(old: str, new: str) -> Iterator[None]:
    """Rename a parameter in the errors of a block to the name that the caller knows."""
    try:
        yield
    except (UsageError, DataError) as error:
        error.rename_parameter(old, new)
        raise


def require(condition: bool, problem: str, *parameters: str, remedy: str = "") -> None:
    """Raise UsageError unless a condition is true."""
    if not condition:
        raise UsageError(problem, parameters, remedy)


def require_between(name: str, value: int, minimum: int, maximum: int) -> None:
    """Refuse a number outside of a range."""
    require(value >= minimum, f"must be at least {minimum:,}, got {value:,}", name)
    require(value <= maximum, f"must be at most {maximum:,}, got {value:,}", name)


def require_whole(name: str, value: Any, minimum: int) -> None:
    """Refuse anything but a whole number of at least `minimum`."""
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    kind = "" if whole else ", which is not a whole number"
    require(
        whole and operator.index(value) >= minimum,
        f"must be at least {minimum:,}, got {value!r}{kind}",
        name,
    )


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        near = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise UsageError(f"must be one of {', '.join(choices)}, got {value!r}{near}", (name,))


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error of pyarrow means too little memory.

    A broken file with the size of a huge part raises the same type of error.
    """
    asked = _ASKED.search(str(error))
    return isinstance(error, MemoryError) and (asked is None or int(asked[1]) < HUGE_BYTES)
