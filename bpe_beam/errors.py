"""The two errors that a user can mend; everything else is a defect of this package."""

from __future__ import annotations

import re
from collections.abc import Callable

_PARAMETER = re.compile(r"\{([a-z_]+)\}")


class UsageError(ValueError):
    """Settings that cannot be used: wrong, missing or contradictory. Exit code 2.

    A `ValueError`, since callers from Python expect one. Where code catches the `ValueError` of a
    parser around a call that may raise this error, it must let this error pass first.

    The error knows parameters, not flags: the command line shows the flag of each, or the line of
    the configuration file that set it.

    Args:
        problem: What is wrong. With `parameters` it is a predicate, such as "must be positive".
        parameters: The settings that are wrong, by the names of their fields: the subject.
        remedy: The way out. `{name}` in it stands for another setting.
    """

    def __init__(self, problem: str, parameters: tuple[str, ...] = (), remedy: str = "") -> None:
        self.problem = problem
        self.parameters = parameters
        self.remedy = remedy
        super().__init__(self.message(str))

    def message(self, name_of: Callable[[str], str]) -> str:
        """Return the error as one sentence.

        Args:
            name_of: Returns how to call a parameter.
        """
        subject = " and ".join(map(name_of, self.parameters))
        remedy = _PARAMETER.sub(lambda match: name_of(match[1]), self.remedy)
        text = f"{subject} {self.problem}" if subject else self.problem
        return f"{text}; {remedy}" if remedy else text

    def __reduce__(self) -> tuple[type[UsageError], tuple[str, tuple[str, ...], str]]:
        """Return how to make the error again in another process."""
        return type(self), (self.problem, self.parameters, self.remedy)


class DataError(Exception):
    """A job that ran and failed on what it read or wrote. Exit code 1."""


class NotFoundError(DataError):
    """A file, or the folder of a file to be written, does not exist."""


class TextError(DataError):
    """One of many texts cannot be encoded.

    Attributes:
        number: Which one, from 0.
        reason: Why, without the number.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"text {number}: {reason}")
        self.number = number
        self.reason = reason

    def __reduce__(self) -> tuple[type[TextError], tuple[int, str]]:
        """Return how to make the error again in another process."""
        return TextError, (self.number, self.reason)


def require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices.

    Args:
        name: The parameter, for the message.
        value: Its value.
        choices: What it may be.

    Raises:
        UsageError: The value is not among them.
    """
    if value not in choices:
        raise UsageError(f"must be one of {', '.join(choices)}, got {value!r}", (name,))
