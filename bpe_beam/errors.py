"""The two errors that a user can mend; everything else is a defect of ours."""

from __future__ import annotations


class UsageError(ValueError):
    """Settings that cannot work: wrong, missing or contradictory. Exit code 2.

    A `ValueError`, since callers from Python expect one. Where code catches the `ValueError` of a
    parser around a call that may raise this error, it must let this error pass first.
    """


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
        """Workers hand errors on."""
        return TextError, (self.number, self.reason)
