"""Errors that users see."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from bpe_beam.errors import (
    DataError,
    NotFoundError,
    TextError,
    UsageError,
    lacks_memory,
    parameter_renamed,
)

pytestmark = pytest.mark.quick


def test_errors_name_parameters_in_the_words_of_the_caller() -> None:
    """A parameter is the flag on the command line; text that is quoted stays."""
    error = UsageError("must be 1, got 'a_b'", ("a_b",), "give {c} or {d}, not {}")
    names = {"a_b": "--a-b", "c": "c.yaml, line 1: c"}
    assert str(error) == "a_b must be 1, got 'a_b'; give c or d, not {}"
    assert error.message(lambda name: names.get(name, name)) == (
        "--a-b must be 1, got 'a_b'; give c.yaml, line 1: c or d, not {}"
    )
    assert str(UsageError("exclude each other", ("a", "b"))) == "a and b exclude each other"
    assert str(UsageError("differs:\n  a", remedy="give {b}")) == "differs:\n  a\nGive b"
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert (copy.parameters, copy.remedy) == (error.parameters, error.remedy)
    # As Beam adds the name of the step.
    assert str(UsageError(error.args[0] + " [step]", *error.args[1:])) == f"{error} [step]"


def test_bad_data_names_parameters_in_its_remedy() -> None:
    error = DataError("3 records were lost, got 'a_b' {c}", remedy="allow them with {c}")
    assert str(error) == "3 records were lost, got 'a_b' {c}; allow them with c"
    assert error.message(str.upper) == "3 records were lost, got 'a_b' {c}; allow them with C"
    for each in (error, NotFoundError("x"), TextError(3, "y")):
        copy = pickle.loads(pickle.dumps(each))
        assert (type(copy), str(copy), vars(copy)) == (type(each), str(each), vars(each))


@pytest.mark.parametrize("kind", [UsageError, DataError, NotFoundError])
def test_a_parameter_has_the_name_that_it_has_for_the_caller(kind: type[DataError]) -> None:
    with pytest.raises(kind) as caught, parameter_renamed("output", "work"):
        raise kind("is taken", ("output",), "give another {output}, not {b}")
    assert str(caught.value) == "work is taken; give another work, not b"
    assert caught.value.message(str.upper) == "WORK is taken; give another WORK, not B"


def test_too_little_memory_is_told_from_a_broken_size() -> None:
    assert lacks_memory(pa.ArrowMemoryError("malloc of size 4194304 failed"))
    assert lacks_memory(MemoryError())
    assert not lacks_memory(pa.ArrowMemoryError(f"realloc of size {1 << 40} failed"))
    assert not lacks_memory(pa.ArrowInvalid("malloc of size 4194304 failed"))
