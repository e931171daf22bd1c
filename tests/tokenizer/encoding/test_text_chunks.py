"""Texts that come in chunks: lazily, in bounded memory, equal to encoding them joined."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text_strategies import ALLOWED, FRAGMENTS, TEXTS

from bpe_beam.errors import DataError
from bpe_beam.tokenizer.components.added_tokens import AddedTokens
from bpe_beam.tokenizer.encoding import text_chunks
from bpe_beam.tokenizer.encoding.text_chunks import safe_cuts
from bpe_beam.tokenizer.tokenizer import Tokenizer


class TestIterable:
    """`encode_iterable` against `encode` of the joined text."""

    @pytest.fixture(autouse=True)
    def small_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Cuts as soon as it can, so that short texts are cut at all."""
        monkeypatch.setattr(text_chunks, "_CHUNK_BYTES", 1)

    @given(
        fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=40),
        allowed=ALLOWED,
        sizes=st.lists(st.integers(0, 5), min_size=1),
    )
    @example(fragments=["<|end|>", "<|end|>", " a b c d"], allowed=("<|end|>",), sizes=[3])
    @example(fragments=["a", " ", "<|end", "oftext|>", "b"], allowed="all", sizes=[1])
    @settings(max_examples=600, deadline=None)
    def test_equal_to_encode(
        self,
        tokenizer: Tokenizer,
        fragments: list[str],
        allowed: str | tuple[str, ...],
        sizes: list[int],
    ) -> None:
        text = "".join(fragments)
        chunks: list[str] = []
        rest = text
        for size in itertools.cycle([*sizes, 1]):
            if not rest:
                break
            chunks.append(rest[:size])
            rest = rest[size:]
        found = tokenizer.encode_iterable(chunks, allowed_special=allowed)
        assert list(found) == tokenizer.encode(text, allowed_special=allowed)

    @given(text=TEXTS, allowed=ALLOWED)
    @settings(max_examples=200, deadline=None)
    def test_any_character(
        self, tokenizer: Tokenizer, text: str, allowed: str | tuple[str, ...]
    ) -> None:
        found = tokenizer.encode_iterable(iter(text), allowed_special=allowed)
        assert list(found) == tokenizer.encode(text, allowed_special=allowed)

    @given(fragments=st.lists(st.sampled_from(FRAGMENTS), max_size=40))
    @settings(max_examples=200, deadline=None)
    def test_refuses_what_encode_refuses(self, tokenizer: Tokenizer, fragments: list[str]) -> None:
        """The same special token at the same place."""
        text = "".join(fragments)
        outcomes: list[object] = []
        for encode in (
            tokenizer.encode,
            lambda text, **settings: list(tokenizer.encode_iterable(list(text), **settings)),
        ):
            try:
                outcomes.append(encode(text, allowed_special=["<s>"], disallowed_special="error"))
            except DataError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def endless(text: str) -> Iterator[str]:
    while True:
        yield text


def test_iterable_is_lazy(tokenizer: Tokenizer) -> None:
    found = tokenizer.encode_iterable(endless("the other "))
    expected = tokenizer.encode("the other " * 100)[:100]
    assert list(itertools.islice(found, 100)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "chunk", ["the other weather\n", "x ", "你好。", "<|end|>", "a" * 100_000 + " "]
)
def test_iterable_needs_little_memory(tokenizer: Tokenizer, chunk: str) -> None:
    """A few times the longest word, whatever the length of the text."""

    def peak() -> int:
        chunks = itertools.repeat(chunk, max(300_000 // len(chunk), 20))
        tracemalloc.start()
        try:
            for _ in tokenizer.encode_iterable(chunks, allowed_special="all"):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Other threads of the process are counted, too: they add to one look, not to each.
    assert any(peak() < 250_000 + 10 * len(chunk) for _ in range(3))


def test_an_endless_word_is_searched_rarely(tokenizer: Tokenizer) -> None:
    """Searched at every chunk, it would take time as the square of its length."""
    searched: list[int] = []

    def cuts(data: bytes) -> Iterator[int]:
        searched.append(len(data))
        return safe_cuts("gpt2", data)

    added = AddedTokens(tokenizer.spec.added_tokens)
    chunks = ["a b ", *["a" * 100] * 10_000]
    pieces = list(text_chunks.encodable_chunks(chunks, cuts, added, ()))
    assert b"".join(pieces) == "".join(chunks).encode()
    assert len(pieces) == 2
    assert len(searched) < 10
    assert tokenizer.decode(tokenizer.encode_iterable(chunks)) == "".join(chunks)
