"""The registry of shard formats: names without imports, and one module a format."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from command_line import heavy_modules_of

from bpe_beam.shards import formats
from bpe_beam.shards.formats import SHARD_FORMATS, shard_format
from bpe_beam.shards.formats.interface import ShardFormat
from bpe_beam.storage import Storage

FOLDER = Path(formats.__file__).parent
SHARED = {
    "__init__",
    "batch_writer",
    "document_table",
    "id_stream",
    "interface",
    "offsets_file",
    "record_file",
    "spool",
    "table_schema",
    "table_writer",
    "trainer_columns",
}


def test_a_module_a_format() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - SHARED == set(SHARD_FORMATS)


@pytest.mark.parametrize("name", SHARD_FORMATS)
def test_a_format_is_called_after_its_module(name: str) -> None:
    module = importlib.import_module(f"bpe_beam.shards.formats.{name}")
    assert isinstance(module.FORMAT, ShardFormat)
    assert module.FORMAT.name == name
    assert shard_format(name) is module.FORMAT
    assert len(set(module.FORMAT.suffixes)) == len(module.FORMAT.suffixes) >= 1


@pytest.mark.parametrize("name", SHARD_FORMATS)
def test_what_a_format_writes_it_reads_and_checks(name: str, tmp_path: Path) -> None:
    format_ = shard_format(name)
    storage = Storage()
    ids = np.array([5, 6, 7, 299], np.uint32)
    offsets = np.array([0, 3, 3, 4], np.int64)
    with format_.writer(storage, str(tmp_path), "shard-00000-of-00001", 300) as writer:
        writer.write_documents(ids, offsets)
    result = writer.result()
    assert (result.documents, result.tokens) == (3, 4)
    assert [file.name for file in result.files] == [
        f"shard-00000-of-00001{suffix}" for suffix in format_.suffixes
    ]
    for vocab_size, found in ((300, 0), (299, 1)):
        check = format_.check("shard-00000-of-00001", vocab_size)
        for file, suffix in zip(result.files, format_.suffixes, strict=True):
            check.add(suffix, (tmp_path / file.name).read_bytes())
        with format_.reader(storage, str(tmp_path), "shard-00000-of-00001") as reader:
            assert len(list(check.problems(reader))) == found
            assert (len(reader), reader.token_count) == (3, 4)
            assert reader.lengths(0, 3).tolist() == [3, 0, 1]
            assert reader.tokens(0, 4).tolist() == ids.tolist()
            assert reader.document(0).tolist() == [5, 6, 7]


def test_a_name_that_is_no_format() -> None:
    with pytest.raises(ValueError, match=r"format must be one of megatron.* got 'tape'"):
        shard_format("tape")


def test_names_cost_no_imports() -> None:
    """Of Beam, Arrow and numpy."""
    assert not heavy_modules_of(
        "from bpe_beam.shards.formats import SHARD_FORMATS; assert SHARD_FORMATS"
    )


def test_no_other_module_knows_a_format_by_name() -> None:
    package = FOLDER.parents[1]
    knowing = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        # Some formats of input, and kinds of results, have the same names.
        if not {FOLDER, package / "corpus" / "formats", package / "tokenizer"} & {*path.parents}
        for name in SHARD_FORMATS
        for text in [path.read_text("utf-8").replace('output="arrow"', "")]
        if f"formats.{name}" in text or f'"{name}"' in text
    }
    assert not knowing
