"""The table of words: blocks, partitions and buffers."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from reference_encoding import pretokenize
from word_counts import block_of, counts_in, random_texts, words_of

from bpe_beam import _native
from bpe_beam.counts.word_table import (
    BLOCK_BYTES,
    PARTITIONS,
    WordCounter,
    WordRules,
    decode_block,
    encode_block,
    string_buffers,
)
from bpe_beam.errors import DataError

pytestmark = pytest.mark.quick


class TestBlocks:
    @pytest.mark.parametrize("with_places", [False, True])
    @pytest.mark.parametrize("partitions", [1, 3, PARTITIONS])
    def test_partitions_and_order(self, partitions: int, with_places: bool) -> None:
        counts = WordCounter(WordRules(with_places=with_places))
        texts = random_texts(300, 4)
        counts.add_texts(pa.array(texts), pa.array(range(300), pa.uint64()))
        last = (-1, b"")
        for partition, block in counts.blocks(partitions, max_bytes=2000):
            for word in block.column("word").to_pylist():
                assert _native.partition_of(word.encode(), partitions) == partition
                assert (partition, word.encode()) > last
                last = (partition, word.encode())
        assert counts_in(counts.blocks(partitions)) == Counter(
            word for text in texts for word in words_of(text)
        )

    @pytest.mark.parametrize("with_places", [False, True])
    @pytest.mark.parametrize("max_bytes", [2000, 20_000, BLOCK_BYTES])
    def test_size(self, max_bytes: int, with_places: bool) -> None:
        """At most `max_bytes`, but for a single word that is longer; and not far less."""
        made = random.Random(max_bytes)
        counts = WordCounter(WordRules(with_places=with_places))
        longest = 30 + max_bytes // 10_000
        words = ["x" * made.randint(1, longest) + str(i) for i in range(max_bytes // 15)]
        words += ["y" * (max_bytes - 1100), "y" * max_bytes, "y" * 3 * max_bytes, "a", "zz"]
        texts = pa.array(words)
        counts.add_texts(texts, pa.array(range(len(words)), pa.uint64()))
        sizes = []
        for _, block in counts.blocks(2, max_bytes):
            size = len(encode_block(block))
            if block.num_rows > 1:
                assert size <= max_bytes
            sizes.append(size)
        assert max(sizes) > 3 * max_bytes
        assert len(sizes) < 3 * sum(sizes) / max_bytes
        assert counts_in(counts.blocks(2, max_bytes)) == Counter(
            word for text in words for word in pretokenize(text)
        )

    def test_there_and_back(self) -> None:
        for with_places in (False, True):
            counts = WordCounter(WordRules(with_places=with_places))
            counts.add_texts(pa.array(random_texts(50, 5)), pa.array(range(50), pa.uint64()))
            for _, block in counts.blocks(max_bytes=2000):
                assert decode_block(encode_block(block), with_places).equals(block)
                assert decode_block(pa.py_buffer(encode_block(block)), with_places).equals(block)

    def test_what_is_no_block(self) -> None:
        whole = encode_block(block_of(("word", 1), ("other", 2)))
        for data in (b"no block", whole[:8], whole[:-1], whole[: len(whole) // 2]):
            with pytest.raises(DataError, match="block of word counts cannot be read"):
                decode_block(data, False)
        with pytest.raises(DataError):
            decode_block(whole, True)

    def test_no_words(self) -> None:
        assert list(WordCounter().blocks()) == []


class TestStringBuffers:
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
    def test_any_slice(self, kind: pa.DataType) -> None:
        texts = ["", "é", "abc", "", "语语"]
        for start, length in itertools.product(range(5), range(6)):
            expected = texts[start : start + length]
            data, offsets = string_buffers(pa.array(texts, kind).slice(start, length))
            assert offsets.dtype == np.int64
            whole = bytes(data)
            assert [
                whole[begin:end].decode() for begin, end in itertools.pairwise(offsets)
            ] == expected
