"""Errors of credentials say what to do; others do not."""

from __future__ import annotations

import pytest

from bpe_beam.errors import DataError
from bpe_beam.storage import named_errors

pytestmark = pytest.mark.quick


class NoCredentialsError(Exception):
    """Has the name of botocore's error."""


class HttpResponseError(Exception):
    """An error with the status of an answer."""

    status_code = 403


@pytest.mark.parametrize(
    ("url", "error", "state", "way"),
    [
        ("s3://b/k", NoCredentialsError("none"), "no credentials were found", "AWS_PROFILE"),
        ("s3a://b/k", PermissionError("Forbidden"), "the store refuses", "AWS_ACCESS_KEY_ID"),
        ("s3://b/k", OSError(22, "Bad Request"), "have expired", "AWS_SESSION_TOKEN"),
        ("s3://b/k", OSError("The provided token has expired."), "have expired", "key and secret"),
        ("gs://b/k", OSError("Forbidden: me does not have access"), "refuses", "gcloud auth"),
        ("az://b/k", HttpResponseError("no"), "the store refuses", "sas_token"),
        ("hf://datasets/o/n", RuntimeError("401 Unauthorized"), "refuses", "HF_TOKEN"),
    ],
)
def test_what_to_do(url: str, error: Exception, state: str, way: str) -> None:
    with pytest.raises(DataError, match=state) as caught, named_errors("read", url):
        raise error
    assert way in str(caught.value)
    assert ".;" not in str(caught.value)
    assert "--storage-options" in caught.value.message(lambda _: "--storage-options")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("s3://b/k", FileNotFoundError("no key")),
        ("s3://b/k", OSError("SlowDown")),
        ("gs://b/k", RuntimeError("cut")),
        ("sftp://h/k", PermissionError("no")),
        ("/a", PermissionError("no")),
    ],
)
def test_other_errors(url: str, error: Exception) -> None:
    with pytest.raises(DataError) as caught, named_errors("read", url):
        raise error
    assert "credentials" not in str(caught.value)


def test_connecting_reads_credentials() -> None:
    with pytest.raises(DataError, match="GOOGLE_APPL"), named_errors("reach", "gs://b/k"):
        raise KeyError("refresh_token")
