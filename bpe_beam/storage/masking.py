"""Masks secrets in texts, in every form in which a library may print them.

A process collects the secrets that it gets: from storage options, its last URLs and the variables
of the clouds. The command line masks all that it writes to stderr, and `error_messages` every error
of storage, on workers too.
"""

from __future__ import annotations

import base64
import functools
import os
import re
import threading
import traceback
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from bpe_beam.storage.names import redact

MASK = "***"
SECRET_NAME = re.compile(
    r"key|secret|token|passw|credential|sas|signature|^sig$|connection_string|auth|cookie|header",
    re.IGNORECASE,
)
"""The names of options that are secret."""

_SHORTEST = 5
"""Characters of the shortest text that is masked; "auto" or "true" would leave holes."""
_NO_SECRETS = ("anon", "cloud", "google_default")
"""Values of gcsfs's option `token` that are not secrets."""
_VARIABLES = (
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN"),
    *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"),
    *("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"),
    *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
)
"""The variables of the clouds' clients that are secret."""
_IN_TEXT = (
    r"(?i)\b((?:sig|signature|x-(?:amz|goog)-[a-z-]+|(?:account)?key|(?:access_)?token|password|"
    r"client_secret|sharedaccesssignature)(?:=|%3D))[^&;\s'\"<>]+"
)
_AUTHORIZATION = r"(?i)\b(basic|bearer)((?:\s|%20|\+)+)[\w.~+/=%-]{8,}"
_URL_IN_TEXT = r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"<>]+"

_NAMED_ESCAPES = {
    "\n": r"\\+n",
    "\t": r"\\+t",
    "\r": r"\\+r",
    "\b": r"\\+b",
    "\f": r"\\+f",
    " ": r"\+",
}

_KNOWN_URLS = 32
"""The number of URLs whose secrets a process knows: a pattern takes 0.1 MB and 20 ms, and a job may
read a million signed URLs."""

_lock = threading.Lock()
_of_options: set[str] = set()
_urls: OrderedDict[str, None] = OrderedDict()  # the last URLs with secrets, the newest at the end


def know_url(url: str) -> None:
    """Add the password and the query of a URL to the secrets of this process.

    Only those of the last `_KNOWN_URLS` URLs are known.
    """
    if redact(url) == url:
        return
    with _lock:
        _urls[url] = None
        _urls.move_to_end(url)
        while len(_urls) > _KNOWN_URLS:
            _urls.popitem(last=False)


def masked(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text with `***` in place of some secrets and those of this process."""
    with _lock:
        named, urls = frozenset({*secrets, *_of_options, *_of_environment()}), [*_urls]
    patterns = filter(None, (_pattern(named), *map(_pattern_of_url, urls)))
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(text))
    shown, end = [], 0
    for first, last in spans:
        if first >= end:  # otherwise a secret in another one
            shown += [text[end:first], MASK]
        end = max(end, last)
    return "".join((*shown, text[end:]))


def masked_message(text: str, secrets: Collection[str] = ()) -> str:
    """Return a library's message as `masked` does, also without anything that looks secret.

    That is users, passwords and queries of URLs, signatures, and headers of authorization.
    """
    text = re.sub(_URL_IN_TEXT, lambda url: redact(url[0]), text)
    text = re.sub(_AUTHORIZATION, rf"\1\2{MASK}", re.sub(_IN_TEXT, rf"\1{MASK}", text))
    return masked(text, secrets)


def masked_cause(error: BaseException, secrets: Collection[str]) -> BaseException:
    """Return an error; or its masked traceback as an error, if its messages show a secret."""
    each: BaseException | None = error
    seen: set[int] = set()
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if masked_message(str(each), secrets) != str(each):
            lines = "".join(traceback.format_exception(error))
            return RuntimeError(f"a message with secrets:\n{masked_message(lines, secrets)}")
        each = each.__cause__ or each.__context__
    return error


def secrets_of(options: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return all texts in storage options: some are secret, and nothing shows which.

    Those whose names are the names of secrets are known to this process from now on.
    """
    values = list(named_values(options))
    with _lock:
        _of_options.update(text for _, value, secret in values if secret for text in _parts(value))
    return frozenset(text for _, value, _ in values for text in _parts(value))


def named_values(
    options: object, path: str = "", secret: bool = False
) -> Iterator[tuple[str, str, bool]]:
    """Yield the full name of each text in storage options, the text, and if it looks secret."""
    if isinstance(options, Mapping):
        for name, each in options.items():
            inner = f"{path}.{name}".lstrip(".")
            # The first name, the protocol, is never a secret.
            named = secret or bool(path and SECRET_NAME.search(str(name)))
            yield from named_values(each, inner, named)
    elif isinstance(options, list | tuple):
        for each in options:
            yield from named_values(each, path, secret)
    elif isinstance(options, str):
        looks = (secret and options not in _NO_SECRETS) or redact(options) != options
        yield path, options, looks


def _parts(text: str) -> Iterator[str]:
    """Yield a text that may be secret, and the secrets in it.

    It may be a query, a connection string, or a user with a password.
    """
    from urllib.parse import unquote  # rarely needed

    pairs = re.findall(r"([\w-]+)=([^&;\n]+)", text)
    users = text.partition("://")[2].partition("/")[0].rpartition("@")[0]
    password = (users if "://" in text else text).partition(":")[2]
    texts = [text, password, *(value for name, value in pairs if SECRET_NAME.search(name))]
    for each in (*texts, *map(unquote, texts)):
        if len(each) >= _SHORTEST and ("://" not in each or redact(each) != each):
            yield each


def _of_environment() -> frozenset[str]:
    values = (os.environ.get(name, "") for name in _VARIABLES)
    return frozenset(value for value in values if len(value) >= _SHORTEST)


@functools.lru_cache(maxsize=_KNOWN_URLS)
def _pattern_of_url(url: str) -> re.Pattern[str] | None:
    host, _, path = url.partition("://")[2].partition("/")
    parts = (*_parts(host.rpartition("@")[0]), *_parts(path.partition("?")[2]))
    return _any_of(frozenset(parts))


@functools.lru_cache(maxsize=4)
def _pattern(secrets: frozenset[str]) -> re.Pattern[str] | None:
    return _any_of(secrets)


def _any_of(secrets: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern of any form of some secrets; None without secrets."""
    forms = [_any_form(secret) for secret in sorted(secrets, key=len, reverse=True)]
    base64_forms = {form for secret in secrets for form in _base64_forms(secret)}
    forms += map(re.escape, sorted(base64_forms, key=len, reverse=True))
    return re.compile("|".join(forms)) if forms else None


def _any_form(text: str) -> str:
    """Return a pattern of a text in which any character may be escaped for a URL, JSON or Python.

    Percent signs may themselves be escaped, and hex digits have either case.
    """
    return "".join(
        character if character.isascii() and character.isalnum() else _any_escape(character)
        for character in text
    )


def _any_escape(character: str) -> str:
    quoted = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    units = character.encode("utf-16-be", "surrogatepass")
    of_json = "".join(rf"\\+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    of_python = rf"\\+(?:x{ord(character):02x}|U{ord(character):08x})"
    of_bytes = "".join(rf"\\+x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
    hexadecimal = f"(?i:{quoted}|{of_json}|{of_python}|{of_bytes})"
    named = _NAMED_ESCAPES.get(character, r"(?!)")
    return rf"(?:\\*{re.escape(character)}|{hexadecimal}|{named})"


def _base64_forms(text: str) -> Iterator[str]:
    """Yield what base64 makes of a text after 0, 1 or 2 bytes, at the end and in the middle."""
    data = text.encode("utf-8", "surrogatepass")
    for before in range(3):
        whole = (before + len(data)) // 3 * 4
        start = (before * 8 + 5) // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            form = encode(bytes(before) + data).decode()
            yield from (each for each in (form[start:], form[start:whole]) if len(each) >= 8)
