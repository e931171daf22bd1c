"""Records between separators: long ones, many, and separators that overlap."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from corpus_reading import expected_text, read_file

from bpe_beam.corpus.reading import records as records_module
from bpe_beam.corpus.reading import slice_reader
from bpe_beam.errors import DataError

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("separator", ["\n\n", "aa", "aabaa"])
def test_the_phase_of_a_long_run_is_found_far_back(tmp_path: Path, separator: str) -> None:
    raw = separator.encode()
    content = b"start" + raw[:1] + raw[:1] * 100_000 + raw * 20_001 + raw[:1] + b"end" + raw
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    good, _ = expected_text(content, raw)
    for cut in (1, 5, 6, 7, 8, 4096, 50_001, 50_002, 100_003, 100_004, len(content) - 3):
        assert read_file(path, cuts=[cut], document_separator=separator).documents == good


@pytest.mark.parametrize("separator", ["\n", "<|endoftext|>", "file"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_record_that_is_too_long(
    tmp_path: Path, separator: str, compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "MAX_RECORD_BYTES", 100_000)
    for length in (100_000, 100_001, 100_014, 500_000, 3_000_000):
        between = b"" if separator == "file" else separator.encode()
        records = [b"x" * length] if separator == "file" else [b"before", b"x" * length, b"after"]
        content = between.join(records)
        path = tmp_path / "x"
        path.write_bytes(gzip.compress(content) if compressed else content)
        for batch in (1000, 70_000, 1 << 20, 8 << 20):
            found = read_file(path, batch=batch, document_separator=separator)
            if length == 100_000:
                assert found.texts == [record.decode() for record in records]
                continue
            assert found.texts == [r.decode() for r in records if len(r) < 10]
            (reject,) = found.rejects
            assert reject.reason == "record too long"
            assert reject.offset == content.index(b"xx")
            assert reject.line == (2 if separator == "\n" else None)
            assert reject.bytes_total == length
            assert reject.data == b"x" * (64 << 10)


def test_a_file_too_large_for_places_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_reader, "MAX_FILE_BYTES", 1000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a line\n" * 1000))
    with pytest.raises(DataError, match=r"x\.gz: the decompressed size must be at most 1,000 b"):
        read_file(tmp_path / "x.gz", batch=100)
