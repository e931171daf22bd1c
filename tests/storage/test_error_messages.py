"""Messages about storage: short, and without secrets."""

from __future__ import annotations

import socket

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import Storage, named_errors, retry

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


def test_a_store_that_never_answers_is_one_sentence_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the link was cut: the connection stands, and nothing comes."""
    s3fs = pytest.importorskip("s3fs")
    monkeypatch.setattr(retry, "ATTEMPTS", 1)
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        limits = {"read_timeout": 0.2, "retries": {"max_attempts": 0}}
        s3 = {"key": "k", "secret": "s", "endpoint_url": endpoint, "config_kwargs": limits}
        with pytest.raises(DataError) as caught:
            Storage({"s3": s3}).stat("s3://bucket/key")
    here = socket.gethostname()
    said = str(caught.value)
    assert said.startswith("cannot read s3://bucket/key: ")
    assert f'"{endpoint}/bucket/key"; the store did not answer {here}: check the link' in said
    assert said.endswith("and run the same command again")
    assert "\n" not in said
