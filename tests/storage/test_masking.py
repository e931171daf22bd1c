"""Secrets are masked in every form in which libraries print them."""

from __future__ import annotations

import base64
import json
import re
import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_beam.errors import DataError
from bpe_beam.storage import masking, named_errors
from bpe_beam.storage.masking import know_url, masked, masked_message, secrets_of

SECRET = "hunter/2+é\\ \"2'=\n%"
FORMS: list[Callable[[str], str]] = [
    str,
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: re.sub("%..", lambda match: match[0].lower(), quote(text, safe="")),
    lambda text: quote(quote(text, safe=""), safe=""),
    json.dumps,
    lambda text: json.dumps(json.dumps(text)),
    lambda text: json.dumps(text, ensure_ascii=False),
    repr,
    lambda text: repr(repr(text)),
    ascii,
    lambda text: repr(text.encode()),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.b64encode(f"me:{text}".encode()).decode(),
    lambda text: base64.urlsafe_b64encode(f"us:{text}".encode()).decode(),
]


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_every_form_is_masked(form: int) -> None:
    text = f"said <{FORMS[form](SECRET)}> there"
    shown = masked(text, {SECRET})
    assert "***" in shown
    assert shown.startswith("said <")
    assert shown.endswith("> there")
    for part in ("hunter", "2+", base64.b64encode(b"hunter/2").decode()[:8]):
        assert part not in shown


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=9, max_size=30), st.integers(0, len(FORMS) - 1))
def test_no_form_of_any_secret_is_left(secret: str, form: int) -> None:
    text = FORMS[form](secret)
    shown = masked(text, {secret})
    assert text not in shown


def test_which_options_are_taken_for_secrets() -> None:
    options = {
        "s3": {"key": "somebody", "secret": "hunter2", "anon": False, "profile": "dev"},
        "https": {"headers": {"Authorization": "Bearer T0ken"}, "auth": ["me", "password"]},
        "gs": {"endpoint_url": "http://host:1", "proxy": "http://me:hunter3@host"},
        "az": {
            "connection_string": "Protocol=https;AccountName=somewhere;AccountKey=hunter/4==;",
            "sas_token": "sv=2022-11-02&sig=hunter%2F5%3D",
        },
    }
    assert secrets_of(options) == {
        *("somebody", "hunter2", "Bearer T0ken", "password", "http://me:hunter3@host", "hunter3"),
        *("Protocol=https;AccountName=somewhere;AccountKey=hunter/4==;", "hunter/4=="),
        *("sv=2022-11-02&sig=hunter%2F5%3D", "sv=2022-11-02&sig=hunter/5="),
        *("hunter%2F5%3D", "hunter/5="),
    }
    assert masked("key hunter%2f5%3d of a https://somewhere") == "key *** of a https://somewhere"


def test_what_looks_secret_in_a_message_of_a_library() -> None:
    for text, shown in (
        ("Authorization: Basic bWU6aHVudGVyMg==", "Authorization: Basic ***"),
        ("'Bearer eyJhb.Gci-Oi'", "'Bearer ***'"),
        ("GET /a?X-Amz-Signature=abc&sig=d%2Fe f", "GET /a?X-Amz-Signature=***&sig=*** f"),
        ("AccountKey=abc==;Endpoint=x", "AccountKey=***;Endpoint=x"),
        ("at https://me:pw@host/a?b=c", "at https://host/a"),
        ("the key of the token", "the key of the token"),
    ):
        assert masked_message(text) == shown


def test_secrets_of_urls_and_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    know_url("https://me:of-the-url@host/a?sig=of%2Fthe%2Fquery&spr=https")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of/the/environment")
    for text in ("of-the-url", "of/the/query", "of%2fthe%2Fenvironment"):
        assert masked(f"so {text}.") == "so ***."
    assert masked("https") == "https"


def test_only_the_last_urls_are_known_and_messages_show_none() -> None:
    """Patterns of all URLs of a job with many signed ones took gigabytes and minutes."""

    def url(number: int) -> str:
        return f"https://host/{number}.txt?credential=signed%2Fby%2Fme{number:05}"

    compiled = masking._pattern_of_url.cache_info().misses
    for number in range(masking._KNOWN_URLS + 1):
        know_url(url(number))
        assert masked(f"so signed/by/me{number:05}.") == "so ***."
    assert masking._pattern_of_url.cache_info().misses - compiled == masking._KNOWN_URLS + 1
    assert len(masking._urls) == masking._KNOWN_URLS
    text = f"GET {url(0)} and /0.txt?credential=signed/by/me00000"
    assert masked(text) == text
    assert "signed" not in masked_message(f"GET {url(0)}: no")
    with pytest.raises(DataError) as caught, named_errors("read", url(0)):
        raise OSError(text)
    assert "signed" not in "".join(traceback.format_exception(caught.value))


def test_a_secret_in_another_one_leaves_nothing_of_it() -> None:
    know_url("https://host/a?sig=abc-within-xyz")
    assert masked("so abc-within-xyz.", {"so abc", "within"}) == "***."


def test_a_traceback_has_no_secret_of_its_causes() -> None:
    secret = "/".join(("lines", "of", "sources"))
    with pytest.raises(DataError) as caught, named_errors("read", "s3://b/k", {secret}):
        try:
            raise ValueError(f"with {quote_plus(secret)}")
        except ValueError as error:
            raise RuntimeError("no") from error
    text = "".join(traceback.format_exception(caught.value))
    assert quote_plus(secret) not in text
    assert "with ***" in text
    with pytest.raises(DataError) as caught, named_errors("read", "s3://b/k", {secret}):
        raise RuntimeError("no")
    assert type(caught.value.__cause__) is RuntimeError
    assert str(caught.value.__cause__) == "no"
