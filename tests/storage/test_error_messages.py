"""Messages about storage: short, and without secrets."""

from __future__ import annotations

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import named_errors, redact

pytestmark = pytest.mark.quick


def test_redact() -> None:
    assert redact("https://me:pw@host/a/b?sig=1") == "https://host/a/b"
    assert redact("https://token@host/a") == "https://host/a"
    assert redact("s3://key:secret@bucket/a?b") == "s3://bucket/a?b"
    assert redact("abfss://container@account/a") == "abfss://container@account/a"
    assert redact("/a/me:pw@host?x") == "/a/me:pw@host?x"
    url = "https://me:hunter2@127.0.0.1:1/x?sig=hunter2"
    for error in (RuntimeError, OSError):
        with (
            pytest.raises(DataError, match=r"cannot read https://127") as caught,
            named_errors("read", url),
        ):
            raise error(f"{url} does not answer")
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OSError("Forbidden for hunter2 at endpoint"), "Forbidden for *** at endpoint"),
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
