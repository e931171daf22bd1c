"""The two errors that a user can mend; everything else is a defect of ours."""

from __future__ import annotations


class UsageError(Exception):
    """Settings that cannot work: wrong, missing or contradictory. Exit code 2."""


class DataError(Exception):
    """A job that ran and failed on what it read or wrote. Exit code 1."""
