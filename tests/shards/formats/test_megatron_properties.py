"""Documents of any lengths come back from a Megatron pair, and differences are found."""

from __future__ import annotations

import tempfile

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.shards.verify import compare_split
from bpe_beam.storage import Storage

NAME = "shard-00000-of-00001"
STORAGE = Storage()
Documents = list[list[int]]
VOCAB_SIZES = st.sampled_from([1, 2, 300, 65_535, 65_536, 65_537, 200_000, 2**31])


@st.composite
def corpora(draw: st.DrawFn) -> tuple[int, Documents]:
    vocab_size = draw(VOCAB_SIZES)
    ids = st.integers(0, vocab_size - 1) | st.just(vocab_size - 1)
    return vocab_size, draw(st.lists(st.lists(ids, max_size=12), max_size=12))


def pack(documents: Documents) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([token for document in documents for token in document], dtype=np.uint32)
    return ids, np.cumsum([0, *map(len, documents)], dtype=np.int64)


def batches(documents: Documents, size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [pack(documents[at : at + size]) for at in range(0, len(documents), size)]


def write(folder: str, vocab_size: int, documents: Documents, size: int) -> MegatronStream:
    with MegatronWriter(STORAGE, folder, NAME, vocab_size) as writer:
        for ids, offsets in batches(documents, size):
            writer.write_documents(ids, offsets)
    result = writer.result()
    assert (result.documents, result.tokens) == (len(documents), sum(map(len, documents)))
    return MegatronStream.open(STORAGE, folder, NAME)


def with_a_token(documents: Documents) -> Documents:
    """Without any token there is no shard."""
    return documents if any(documents) else [*documents, [0]]


@settings(deadline=None)
@given(corpus=corpora(), size=st.integers(1, 13))
@example(corpus=(65_536, [[65_535], [], [0]]), size=1)
@example(corpus=(65_537, [[65_536], [], [0]]), size=3)
@example(corpus=(10, [[], [], []]), size=2)
def test_round_trip(corpus: tuple[int, Documents], size: int) -> None:
    vocab_size, documents = corpus[0], with_a_token(corpus[1])
    with (
        tempfile.TemporaryDirectory() as folder,
        write(folder, vocab_size, documents, size) as reader,
    ):
        assert len(reader) == len(documents)
        assert reader.dtype == np.dtype("uint16" if vocab_size <= 65_536 else "int32")
        assert [reader.document(index).tolist() for index in range(len(reader))] == documents
        ids = reader.tokens(0, reader.token_count)
        assert (ids.dtype, ids.tolist()) == (np.uint32, [id_ for row in documents for id_ in row])
        lengths = reader.lengths(0, len(documents))
        assert (lengths.dtype, lengths.tolist()) == (np.int32, [len(row) for row in documents])
        places = [
            (number, token)
            for number, document in enumerate(documents)
            for token in range(len(document))
        ]
        assert [reader.locate(token) for token in range(reader.token_count)] == places


def difference(found: Documents, expected: Documents) -> str | None:
    """What `compare_split` must say, by the definition."""
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=False)):
        for token, (mine, wanted) in enumerate(zip(ours, theirs, strict=False)):
            if mine != wanted:
                return f"document {number}, token {token}: the id is {mine}; expected {wanted}"
        if len(ours) != len(theirs):
            same = min(len(ours), len(theirs))
            return (
                f"document {number} has {len(ours)} tokens; expected {len(theirs)} (the first "
                f"{same} are the same)"
            )
    if len(found) < len(expected):
        return f"document {len(found)} is missing: the shard ends after {len(found)} documents"
    if len(found) > len(expected):
        return (
            f"unexpected extra document {len(expected)}: the shard has {len(found)}; expected "
            f"{len(expected)}"
        )
    return None


SMALL = st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=5)


@given(found=SMALL, expected=SMALL, size=st.integers(1, 6), edit=st.booleans())
@settings(max_examples=300, deadline=None)
@example(found=[[1]], expected=[[1], []], size=1, edit=False)
@example(found=[[1], []], expected=[[1]], size=1, edit=False)
@example(found=[[1], [2, 3]], expected=[[1], [2]], size=2, edit=False)
def test_the_first_difference(found: Documents, expected: Documents, size: int, edit: bool) -> None:
    if edit and expected:
        # Unrelated lists differ at once; these differ late.
        found = [*expected[:-1], found[0] if found else []]
    found = with_a_token(found)
    with (
        tempfile.TemporaryDirectory() as folder,
        write(folder, 4, found, 3) as reader,
    ):
        assert compare_split(reader, batches(expected, size)) == difference(found, expected)
        assert compare_split(reader, batches(found, size)) is None
