"""How documents become ids: plain data that travels to the workers, and what they do with it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection
from copy import copy
from typing import Any, Literal

import pyarrow as pa

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.framing import framed
from bpe_beam.tokenizer.tokenizer import Tokenizer

AllowedSpecial = Literal["all"] | Collection[str]


_MAX_CACHED = 4
"""The most tokenizers in the cache of a process."""

_lock = threading.Lock()
_cached: dict[str, Tokenizer] = {}


def cached_tokenizer(tokenizer_json: str, made: Tokenizer | None = None) -> Tokenizer:
    """Return the tokenizer of a file's text: one object a process.

    Args:
        tokenizer_json: The text.
        made: The tokenizer, if it already exists.
    """
    key = _digest(tokenizer_json)
    return cached_under(key, lambda: Tokenizer.from_json(tokenizer_json) if made is None else made)


def cached_under(key: str, make: Callable[[], Tokenizer]) -> Tokenizer:
    """Return the cached tokenizer of a key, or make and cache it.

    Args:
        key: The key, different for different tokenizers.
        make: Makes the tokenizer if the cache does not have it.
    """
    with _lock:  # also while it is made, so that no other thread makes it too
        found = _cached.pop(key, None)
        tokenizer = make() if found is None else found
        _cached[key] = tokenizer
        while len(_cached) > _MAX_CACHED:
            del _cached[next(iter(_cached))]
    return tokenizer


def _digest(tokenizer_json: str) -> str:
    return hashlib.sha256(tokenizer_json.encode()).hexdigest()


def _read(storage: Storage, url: str, digest: str) -> str:
    text = storage.read_bytes(url).decode("utf-8", "replace")
    if _digest(text) != digest:
        raise DataError(f"{url}: the tokenizer has changed since the job began; run it again")
    return text


class Encoding:
    """How documents become ids. Made by `of`; travels as the tokenizer's file and three settings.

    Args:
        tokenizer_json: The tokenizer's file.
        append: Token put after each document.
        prepend: Token put before each document.
        allowed_special: Special tokens that count as such in the text.
    """

    def __init__(
        self,
        tokenizer_json: str,
        append: str | None,
        prepend: str | None,
        allowed_special: AllowedSpecial,
    ) -> None:
        self.tokenizer_json = tokenizer_json
        self.append = append
        self.prepend = prepend
        self.allowed_special = allowed_special
        self._tokenizer: Tokenizer | None = None
        self._file: tuple[Storage, str, str] | None = None

    @staticmethod
    def of(
        tokenizer: Tokenizer,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: str | Collection[str] = (),
    ) -> Encoding:
        """Checks the settings against the tokenizer.

        Args:
            tokenizer: What encodes.
            append: Token put after each document.
            prepend: Token put before each document.
            allowed_special: Special tokens that count as such in the text: "all", "none", or some.

        Raises:
            UsageError: A token that the tokenizer does not have.
        """
        if not isinstance(tokenizer, Tokenizer):
            raise UsageError(
                f"tokenizer must be a Tokenizer, got {type(tokenizer).__name__}: "
                "Tokenizer.from_file(path) reads one"
            )
        if isinstance(allowed_special, str):
            allowed: AllowedSpecial = "all" if allowed_special == "all" else ()
            if allowed_special not in ("all", "none"):
                raise UsageError(
                    f"allowed_special is {allowed_special!r}: 'all', 'none', or a list of tokens"
                )
        else:
            allowed = tuple(allowed_special)
        encoding = Encoding(tokenizer.to_json(), append, prepend, allowed)
        encoding._tokenizer = cached_tokenizer(encoding.tokenizer_json, tokenizer)
        encoding.frame(tokenizer)
        tokenizer.encode("", allowed_special=allowed)
        return encoding

    def kept_at(self, storage: Storage, url: str) -> Encoding:
        """The same, to travel without the file, which workers read from storage: large tokenizers
        do not fit into what some runners take as a job's description.

        Args:
            storage: How workers reach it.
            url: Where the tokenizer's file stands.
        """
        encoding = copy(self)
        encoding._file = (storage, url, _digest(self.tokenizer_json))
        return encoding

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, made once a process.

        Raises:
            DataError: Its file has gone or changed since.
        """
        if self._tokenizer is None:
            if self._file is None:
                self._tokenizer = cached_tokenizer(self.tokenizer_json)
            else:
                storage, url, digest = self._file
                self._tokenizer = cached_under(
                    digest, lambda: Tokenizer.from_json(_read(storage, url, digest))
                )
        return self._tokenizer

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone: a tokenizer is made again where it is needed."""
        text = self.tokenizer_json if self._file is None else ""
        return {**vars(self), "tokenizer_json": text, "_tokenizer": None}

    def frame(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """The ids before and after each document.

        Raises:
            UsageError: A token that the tokenizer does not have.
        """
        return _ids("prepend", self.prepend, tokenizer), _ids("append", self.append, tokenizer)

    def encode(self, texts: pa.Array, tokenizer: Tokenizer | None = None) -> pa.LargeListArray:
        """The ids of each text, with what goes before and after it; by another tokenizer, if one
        is given.

        Raises:
            UsageError: The other tokenizer lacks a token.
        """
        tokenizer = self.tokenizer() if tokenizer is None else tokenizer
        ids = tokenizer.encode_batch(texts, allowed_special=self.allowed_special)
        before, after = self.frame(tokenizer)
        return framed(ids, before, after)


def _ids(name: str, token: str | None, tokenizer: Tokenizer) -> list[int]:
    if token is None:
        return []
    found = tokenizer.token_to_id(token)
    if found is None:
        raise UsageError(f"{name}: the tokenizer has no token {token!r}")
    return [found]
