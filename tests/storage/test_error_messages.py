"""Messages about storage: short, and without secrets."""

from __future__ import annotations

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import named_errors

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError("No way for hunter2 at endpoint"), "No way for *** at endpoint"),
        (RuntimeError("no\nRequestId:1\nTime:2"), "RuntimeError: no"),
        (
            RuntimeError("of https://me:pw@host/a?X-Amz-Signature=1 and sig=abc&x"),
            "RuntimeError: of https://host/a and sig=***&x",
        ),
        (RuntimeError("x" * 900), "RuntimeError: " + "x" * 500 + "…"),
        (FileNotFoundError("b/k"), "No such file or directory"),
    ],
)
def test_messages_are_short_and_keep_secrets(error: Exception, why: str) -> None:
    with pytest.raises(DataError) as caught, named_errors("read", "s3://b/k", {"hunter2"}):
        raise error
    assert str(caught.value) == f"cannot read s3://b/k: {why}"
