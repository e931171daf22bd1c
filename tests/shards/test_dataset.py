"""`bpe_beam.shards.open`: any document, any order, from any format, on disk or in a store."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import pydoc
import random
import re
import signal
import subprocess
import sys
import tracemalloc
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from token_folders import Documents, made_documents, write_folder

import bpe_beam
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.dataset import TokenDataset
from bpe_beam.shards.formats import SHARD_FORMATS
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.verify import verify
from bpe_beam.storage import Storage

SHARDS = [made_documents(40, 30, seed=seed) for seed in range(3)]
DOCUMENTS = [document for shard in SHARDS for document in shard]
IDS = [token for document in DOCUMENTS for token in document]


def lists(items: object) -> Documents:
    """Arrays of ids as lists."""
    return [item.tolist() for item in items]  # type: ignore[attr-defined]


@pytest.fixture(params=["disk", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a new folder's path or URL."""
    if request.param == "disk":
        return str(tmp_path / "tokens [1]*")
    return f"memory://{uuid.uuid4().hex}/tokens [1]*"


@pytest.fixture
def dataset(tmp_path: Path) -> TokenDataset:
    """Return the documents above as Megatron shards."""
    return bpe_beam.shards.open(write_folder(tmp_path / "tokens", "megatron", SHARDS))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("vocab_size", [200, 300, 70_000])
@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_any_document_of_any_format(place: str, format_name: str, vocab_size: int) -> None:
    shards = [made_documents(40, 30, vocab_size, seed) for seed in range(3)]
    documents = [document for shard in shards for document in shard]
    data = bpe_beam.shards.open(write_folder(place, format_name, shards, vocab_size))

    assert len(data) == len(documents)
    assert data.format == format_name
    assert data.vocab_size == vocab_size
    assert lists(data) == documents
    order = random.Random(1).sample(range(len(data)), len(data))
    assert [data[at].tolist() for at in order] == [documents[at] for at in order]
    assert lists(data[order]) == [documents[at] for at in order]
    assert lists(data[-5:]) == documents[-5:]
    assert data[0].dtype == np.uint32
    assert data[0].flags.writeable
    ids = [token for document in documents for token in document]
    assert data.token_count == len(ids)
    assert lists(data.sequences(64)) == [ids[at : at + 64] for at in range(0, len(ids) - 63, 64)]
    assert data.to_arrow(7).read_all().column("input_ids").to_pylist() == documents


def test_positions_as_lists_have_them(dataset: TokenDataset) -> None:
    expected = np.array(DOCUMENTS, object)
    for index in (0, -1, np.int64(5), 119, -120):
        assert dataset[index].tolist() == DOCUMENTS[index]
    for chosen in ([3, -1, 3], (0,), np.array([7, 2], np.uint8), []):
        assert lists(dataset[chosen]) == expected[list(chosen)].tolist()
    for bounds in (slice(5, 60, 7), slice(None, None, -1), slice(70, 3, -2), slice(9, 9)):
        view = dataset[bounds]
        assert len(view) == len(DOCUMENTS[bounds])
        assert lists(view) == DOCUMENTS[bounds]
        assert lists(view[1:][::2]) == DOCUMENTS[bounds][1:][::2]
    for wrong in (120, -121, [0, 120], [-121]):
        with pytest.raises(IndexError, match="from -120 to 119, got"):
            dataset[wrong]
    not_integers: tuple[Any, ...] = (1.0, "1", None, [0.5], [[1]])
    for wrong in not_integers:
        with pytest.raises(TypeError):
            dataset[wrong]


def test_an_order_has_each_document_once(dataset: TokenDataset) -> None:
    view = dataset.shuffled(3)
    found = lists(view)
    assert found != DOCUMENTS
    assert sorted(found) == sorted(DOCUMENTS)
    assert [view[at].tolist() for at in range(len(view))] == found
    assert [view[at].tolist() for at in (50, 3, 4, 119)] == [found[at] for at in (50, 3, 4, 119)]
    assert lists(dataset.shuffled(3)) == found
    assert lists(dataset.shuffled(4)) != found
    assert lists(view[20:50].shuffled(1)) != found[20:50]
    assert sorted(lists(view[20:50].shuffled(1))) == sorted(found[20:50])
    parts = [view.part(rank, 7) for rank in range(7)]
    assert [lists(part) for part in parts] == [found[rank::7] for rank in range(7)]


@pytest.mark.parametrize("format_name", ["megatron", "arrow"])
def test_items_of_other_types(tmp_path: Path, format_name: str) -> None:
    data = bpe_beam.shards.open(write_folder(tmp_path / "tokens", format_name, SHARDS))
    for view in (data.astype(np.int64), data.astype("i4").sequences(10)[3:], data.astype("u2")):
        assert {item.dtype for item in view} == {view[0].dtype} == {view.dtype}
        assert view.shuffled(1).dtype == view.dtype
    assert lists(data.astype("u2")) == DOCUMENTS
    for wrong in ("u1", "f8", bool, "S3"):
        with pytest.raises(UsageError, match="dtype must be a type of integers that holds 299"):
            data.astype(wrong)


@pytest.mark.parametrize("format_name", ["megatron", "datatrove", "flat", "arrow", "tfrecord"])
def test_where_documents_begin_in_sequences(place: str, format_name: str) -> None:
    shards: list[Documents] = [[[], [], *SHARDS[0]], [*SHARDS[1], [], [7]], SHARDS[2]]
    data = bpe_beam.shards.open(write_folder(place, format_name, shards))
    lengths = [len(document) for shard in shards for document in shard]
    begins = {sum(lengths[:at]) for at, length in enumerate(lengths) if length}
    for length, stride in ((1, 37), (40, 40), (500, 130), (data.token_count, 1)):
        view = data.sequences(length, stride=stride)
        for at in range(len(view)):
            expected = [begin - at * stride for begin in sorted(begins)]
            assert view.document_starts(at).tolist() == [
                begin for begin in expected if 0 <= begin < length
            ]
    shuffled = data.sequences(40).shuffled(1)
    item = int(shuffled.order.items(np.array([len(shuffled) - 1]))[0])
    assert (
        shuffled.document_starts(-1).tolist() == data.sequences(40).document_starts(item).tolist()
    )
    with pytest.raises(IndexError):
        shuffled.document_starts(len(shuffled))


def test_arrow_batches_are_limited(dataset: TokenDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_beam.shards.token_view._MAX_ARROW_IDS", 50)
    batches = [batch.column(0).to_pylist() for batch in dataset.shuffled(2).to_arrow(4)]
    assert [ids for batch in batches for ids in batch] == lists(dataset.shuffled(2))
    assert {len(batch) for batch in batches} <= {1, 2, 3, 4}
    assert 40 < max(sum(map(len, batch)) for batch in batches) <= 50


def test_batches(dataset: TokenDataset) -> None:
    found = [lists(batch) for batch in dataset[:50].batches(8)]
    assert found == [DOCUMENTS[at : min(at + 8, 50)] for at in range(0, 50, 8)]
    sequences = list(dataset.sequences(10).batches(4))
    assert [batch.shape for batch in sequences[:-1]] == [(4, 10)] * (len(sequences) - 1)
    assert np.concatenate(sequences).ravel().tolist() == IDS[: len(IDS) // 10 * 10]


def test_sequences_of_any_length_and_stride(dataset: TokenDataset) -> None:
    for length, stride in ((1, 1), (33, 32), (10, 25), (len(IDS), 5), (len(IDS) + 1, 3)):
        view = dataset.sequences(length, stride=stride)
        expected = [IDS[at : at + length] for at in range(0, len(IDS) - length + 1, stride)]
        assert lists(view) == expected
        shuffled = view.shuffled(5)
        assert lists(shuffled) == [shuffled[at].tolist() for at in range(len(view))]
    with pytest.raises(UsageError, match="sequences are of a whole folder"):
        dataset[:5].sequences(3)


@pytest.mark.parametrize("size", [None, 1, 7])
def test_reading_goes_on_where_it_was_saved(dataset: TokenDataset, size: int | None) -> None:
    def started() -> Any:
        view = dataset.shuffled(9).part(1, 2)
        return iter(view) if size is None else view.batches(size)

    def plain(items: Any) -> list[Any]:
        return [item.tolist() if size is None else lists(item) for item in items]

    whole = plain(started())
    iterator = started()
    head = plain(next(iterator) for _ in range(4))
    state = json.loads(json.dumps(iterator.state_dict()))
    resumed = started()
    resumed.load_state_dict(state)
    assert head + plain(resumed) == whole
    assert plain(iterator) == whole[4:]
    resumed.load_state_dict(iterator.state_dict())
    assert plain(resumed) == []


@pytest.mark.parametrize("size", [None, 7])
def test_an_error_does_not_end_the_data(tmp_path: Path, size: int | None) -> None:
    folder = Path(write_folder(tmp_path, "flat", SHARDS))
    hidden = tmp_path / "hidden"
    (shard,) = folder.glob("shard-00001-*.bin")
    view = bpe_beam.shards.open(str(folder))
    items: Any = iter(view) if size is None else view.batches(size)
    shard.rename(hidden)
    found: list[Any] = []
    with pytest.raises(DataError, match="shard-00001"):
        found += items  # the list gets what comes before the error
    with pytest.raises(DataError, match="shard-00001"):
        next(items)
    hidden.rename(shard)
    found += items
    documents = found if size is None else [document for batch in found for document in batch]
    assert lists(documents) == DOCUMENTS


def test_a_state_is_of_its_order_and_documents_only(dataset: TokenDataset, tmp_path: Path) -> None:
    iterator = iter(dataset.shuffled(9))
    next(iterator)
    state = iterator.state_dict()
    converted = bpe_beam.shards.open(write_folder(tmp_path / "arrow", "arrow", SHARDS))
    same = iter(converted.shuffled(9))
    same.load_state_dict(state)
    assert lists(same) == lists(dataset.shuffled(9)[1:])
    iter(dataset.shuffled(np.int64(9))).load_state_dict(state)
    fewer = bpe_beam.shards.open(write_folder(tmp_path / "fewer", "arrow", SHARDS[:2]))
    # As many documents and tokens, in another order.
    turned = bpe_beam.shards.open(write_folder(tmp_path / "turned", "arrow", SHARDS[::-1]))
    others = (dataset, dataset.shuffled(8), dataset.sequences(9), fewer.shuffled(9))
    for other in (*others, turned.shuffled(9)):
        with pytest.raises(UsageError, match="state is of another data set"):
            iter(other).load_state_dict(state)
    with pytest.raises(UsageError, match="state must be of version 1, got 2; read from the start"):
        iter(dataset.shuffled(9)).load_state_dict({**state, "version": 2})
    none: list[Any] = [None, [], "x", 5]
    for wrong in none:
        with pytest.raises(UsageError, match="state must be the result of state_dict, got"):
            iter(dataset.shuffled(9)).load_state_dict(wrong)
    for position in (-1, 121, None, "5"):
        with pytest.raises(UsageError, match="position from 0 to 120"):
            iter(dataset.shuffled(9)).load_state_dict({**state, "position": position})


def test_it_describes_itself(dataset: TokenDataset) -> None:
    name = f"{dataset.reader.url!r}, {dataset.format}"
    assert repr(dataset[:5]) == f"<TokenDataset: {name}, 5 documents>"
    sequences = dataset.sequences(10)[:5]
    assert repr(sequences) == f"<TokenSequences: {name}, 5 sequences of 10 tokens>"


def test_it_pickles_without_what_was_read(place: str) -> None:
    view = bpe_beam.shards.open(write_folder(place, "dolma", SHARDS)).shuffled(2)[5:]
    expected, name = lists(view), repr(view)
    data = pickle.dumps(view)
    assert len(data) < 5_000
    assert lists(pickle.loads(data)) == expected
    assert repr(pickle.loads(data)) == name


def test_a_forked_process_reads_on(place: str) -> None:
    data = bpe_beam.shards.open(write_folder(place, "flat", SHARDS))
    assert data[7].tolist() == DOCUMENTS[7]
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a process that waits for threads of its parent
        os._exit([data[7].tolist(), data[100].tolist()] != [DOCUMENTS[7], DOCUMENTS[100]])
    assert os.waitpid(child, 0)[1] == 0


def test_forked_processes_read_at_positions_of_their_own(tmp_path: Path) -> None:
    documents = made_documents(20, 20_000)
    data = bpe_beam.shards.open(write_folder(tmp_path, "tfrecord", [documents]))
    assert data[0].tolist() == documents[0]
    children = []
    for number in range(3):
        children.append(os.fork())
        if not children[-1]:
            wrong = True
            try:
                order = np.random.default_rng(number).integers(0, 20, 100).tolist()
                wrong = any(data[at].tolist() != documents[at] for at in order)
            finally:
                os._exit(wrong)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


@pytest.mark.parametrize("format_name", ["flat", "parquet", "arrow"])
def test_threads_share_a_folder(place: str, format_name: str) -> None:
    data = bpe_beam.shards.open(write_folder(place, format_name, SHARDS))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda at: data[at].tolist(), range(120))) == DOCUMENTS


@pytest.mark.parametrize("format_name", ["megatron", "tfrecord"])
def test_many_shards_need_no_file_descriptors(tmp_path: Path, format_name: str) -> None:
    url = write_folder(tmp_path / "tokens", format_name, [[[1, number]] for number in range(60)])
    code = (
        "import os, resource, sys\n"
        "import bpe_beam\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "data = bpe_beam.shards.open(sys.argv[1])\n"
        "assert [ids.tolist() for ids in data] == [[1, number] for number in range(60)]\n"
    )
    subprocess.run([sys.executable, "-c", code, url], check=True)


def test_a_long_folder_is_read_in_little_memory(tmp_path: Path) -> None:
    shards = [made_documents(2_000, 1_000, seed=seed) for seed in range(2)]
    data = bpe_beam.shards.open(write_folder(tmp_path / "tokens", "flat", shards))
    tracemalloc.start()
    try:
        read = sum(ids.size for ids in data)
        kept = [ids for ids in data if ids.size > 990]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read == data.token_count
    # The ids of documents that are read at a time, and the documents that were kept.
    assert peak < 5 << 20 < 4 * read
    assert len(kept) < 60


def test_damaged_and_foreign_folders(place: str) -> None:
    storage = Storage()
    url = write_folder(place, "megatron", SHARDS)
    name = storage.join(url, "shard-00001-of-00003.bin")
    whole = storage.read_bytes(name)
    storage.write_bytes(name, whole[:-2])
    with pytest.raises(
        DataError, match=rf"00001-of-00003.bin: has {len(whole) - 2} bytes; the man"
    ):
        bpe_beam.shards.open(url)
    storage.remove(name)
    with pytest.raises(DataError, match=r"00001-of-00003.bin: is missing"):
        bpe_beam.shards.open(url)
    storage.write_bytes(name, whole)
    assert lists(bpe_beam.shards.open(url)) == DOCUMENTS
    storage.remove(storage.join(url, "__manifest"))
    with pytest.raises(DataError, match=r"__manifest"):
        bpe_beam.shards.open(url)
    storage.write_bytes(storage.join(url, "__job"), b"{}")
    with pytest.raises(DataError, match="not finished: the job failed"):
        bpe_beam.shards.open(url)


@pytest.mark.parametrize("format_name", SHARD_FORMATS)
def test_reading_in_order_is_limited_by_ids(tmp_path: Path, format_name: str) -> None:
    reader = bpe_beam.shards.open(write_folder(tmp_path / "tokens", format_name, SHARDS)).reader
    dtype = np.dtype(np.int64)
    for limit in (1, 30, 64, 10**6):
        start = 0
        while start < len(DOCUMENTS):
            found = reader.documents_from(start, len(DOCUMENTS), limit, dtype)
            assert lists(found) == DOCUMENTS[start : start + len(found)]
            assert len(found) == 1 or sum(ids.size for ids in found) <= limit
            start += len(found)
            if limit == 10**6:
                assert start % 40 == 0


def test_wrong_bounds_are_named(tmp_path: Path) -> None:
    url = write_folder(tmp_path / "tokens", "flat", SHARDS)
    path = Path(url) / "shard-00001-of-00003.document_offsets.npy"
    bounds = np.fromfile(path, "<i8", offset=128)
    for wrong in (-1, bounds[-1] + 1, bounds[4] - 1):
        changed = bounds.copy()
        changed[5] = wrong
        path.write_bytes(path.read_bytes()[:128] + changed.tobytes())
        data = bpe_beam.shards.open(url)
        assert data[40 + 2].tolist() == DOCUMENTS[40 + 2]
        for read in (lambda: data[40 + 4], lambda: list(data)):  # noqa: B023
            with pytest.raises(DataError, match=r"00001-of-00003.*document [45] goes from token"):
                read()


def test_rows_of_dolma_must_follow_each_other(tmp_path: Path) -> None:
    url = write_folder(tmp_path / "tokens", "dolma", SHARDS)
    path = Path(url) / "shard-00000-of-00003.csv.gz"
    rows = gzip.decompress(path.read_bytes()).split(b"\r\n")
    start, rest = rows[3].split(b",", 1)
    rows[3] = b"%d,%s" % (int(start) + 1, rest)
    path.write_bytes(gzip.compress(b"\r\n".join(rows)))
    manifest = Path(url) / "__manifest"
    read = Manifest.from_bytes(manifest.read_bytes())
    shard = read.shards[0]
    files = (shard.files[0], replace(shard.files[1], bytes=path.stat().st_size))
    changed = replace(read, shards=(replace(shard, files=files), *read.shards[1:]))
    manifest.write_bytes(changed.to_bytes())
    data = bpe_beam.shards.open(url)
    assert data[40].tolist() == DOCUMENTS[40]
    with pytest.raises(DataError, match=r"00000-of-00003\.csv\.gz: row 3: does not start where"):
        data[0]


def test_a_folder_of_folders_lists_them(place: str) -> None:
    for names in (("parquet", "flat"), ("train", "validation")):
        for name in names:
            write_folder(Storage.join(place, name), "flat", SHARDS)
        for read in (bpe_beam.shards.open, partial(verify, Storage())):
            with pytest.raises(
                UsageError, match=rf"folders of shards, {' and '.join(names)}: give one of them$"
            ):
                read(place)


def test_wrong_arguments(dataset: TokenDataset) -> None:
    with pytest.raises(UsageError, match="memory must be at least"):
        bpe_beam.shards.open(dataset.reader.url, memory=5)
    for call, name in (
        (lambda: dataset.batches(0), "size"),
        (lambda: dataset.shuffled(-1), "seed"),
        (lambda: dataset.part(2, 2), "number"),
        (lambda: dataset.part(0, 0), "count"),
        (lambda: dataset.sequences(0), "length"),
        (lambda: dataset.sequences(5, stride=0), "stride"),
        (lambda: dataset.to_arrow(0), "rows"),
    ):
        with pytest.raises(UsageError, match=f"{name} must be"):
            call()


def test_the_page_about_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_folder(tmp_path / "tokens", "flat", [made_documents(100, 40)])
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/reading.md").read_text("utf-8")
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, {})
    assert capsys.readouterr().out.startswith("100 ")


def test_torch_is_asked_for_where_it_is_needed(
    dataset: TokenDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match="to_torch needs torch"):
        dataset.to_torch()


def test_a_folder_without_tokens(tmp_path: Path) -> None:
    data = bpe_beam.shards.open(write_folder(tmp_path / "tokens", "megatron", []))
    assert len(data) == 0
    assert lists(data) == lists(data.shuffled(1)) == lists(data.sequences(5)) == []
    assert data.to_arrow().read_all().num_rows == 0


def test_the_help_and_the_page_of_the_api_have_what_open_returns(
    dataset: TokenDataset,
) -> None:
    shown = pydoc.plain(pydoc.render_doc(bpe_beam.shards))
    page = (Path(__file__).parents[2] / "docs/api.md").read_text("utf-8")
    for found in (dataset, dataset.sequences(5), dataset.batches(2)):
        name = type(found).__name__
        assert getattr(bpe_beam.shards, name) is type(found)
        assert name in bpe_beam.shards.__all__
        assert name in dir(bpe_beam.shards)
        assert f"    class {name}(" in shown
        assert f".. autoclass:: bpe_beam.shards.{name}\n" in page
    for method in ("shuffled", "labels", "loss_mask", "document_starts", "load_state_dict"):
        assert f"{method}(" in shown
    assert "TokenDataset" in pydoc.plain(pydoc.render_doc(bpe_beam))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bpe_beam.shards.nothing  # noqa: B018
