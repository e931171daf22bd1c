"""What of a URL must not be shown: users, passwords and signed queries."""

from __future__ import annotations

from bpe_beam.storage.names import SCHEME, WEB


def redact(url: str) -> str:
    """Return the URL without user, password and query, which may be secret."""
    scheme = SCHEME.match(url)
    if scheme is None:
        return url
    head, rest = url[: scheme.end()], url[scheme.end() :]
    host, slash, path = rest.partition("/")
    if scheme[1] in WEB:
        path = path.partition("?")[0]
    user, at, address = host.rpartition("@")
    # abfss://container@account is an address; a password has a colon before it
    secret = at and (":" in user or scheme[1] in WEB)
    return head + (address if secret else host) + slash + path
