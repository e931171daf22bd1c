"""How documents become ids, as it travels to workers."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from bpe_beam import Tokenizer
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components.byte_level import BYTE_TO_CHAR
from bpe_beam.workers.document_encoding import Encoding, cached_tokenizer

pytestmark = pytest.mark.quick


def tokenizer(number: int = 0) -> Tokenizer:
    token = f"<{number}>"
    return Tokenizer.from_learned([*BYTE_TO_CHAR, token], [], [token])


def test_the_tokenizer_is_one_object_a_process() -> None:
    made = tokenizer()
    encoding = Encoding.of(made)
    assert encoding.tokenizer() is made
    there = pickle.loads(pickle.dumps(encoding))
    assert there.tokenizer() is made
    assert cached_tokenizer(made.to_json()) is made


def test_a_token_that_the_tokenizer_lacks() -> None:
    with pytest.raises(
        UsageError, match=r"append must be a token of the tokenizer, got '<2>'; inspect "
    ):
        Encoding.of(tokenizer(), append="<2>").frame(tokenizer())


def test_no_more_than_some_tokenizers_are_kept() -> None:
    first = cached_tokenizer(tokenizer().to_json())
    for number in range(1, 10):
        cached_tokenizer(tokenizer(number).to_json())
    assert cached_tokenizer(tokenizer().to_json()) is not first


def test_a_file_travels_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "tokenizer.json")
    made = tokenizer()
    made.save(url)
    encoding = Encoding.of(made, append="<0>").kept_at(Storage(), url)
    data = pickle.dumps(encoding)
    assert len(data) < 1000 < len(made.to_json())
    for number in range(1, 10):  # so that it is forgotten here
        cached_tokenizer(tokenizer(number).to_json())
    reads = []
    read = Storage.read_bytes

    def counted(self: Storage, url: str) -> bytes:
        reads.append(url)
        return read(self, url)

    monkeypatch.setattr(Storage, "read_bytes", counted)
    there = pickle.loads(data)
    assert pickle.loads(data).tokenizer() is there.tokenizer()
    assert reads == [url]
    assert there.encode(pa.array(["a"], pa.large_string())).to_pylist() == [[97, 256]]
    tokenizer(5).save(url)
    for number in range(1, 10):
        cached_tokenizer(tokenizer(number).to_json())
    with pytest.raises(DataError, match="has changed since the job began"):
        pickle.loads(data).tokenizer()
    Path(url).unlink()
    with pytest.raises(DataError, match="No such file"):
        pickle.loads(data).tokenizer()
