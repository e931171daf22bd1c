"""Structs in Thrift's compact protocol: bytes by its rules, and those that pyarrow writes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bpe_beam.storage.thrift_compact import (
    Items,
    Kind,
    Struct,
    Value,
    decode,
    encode,
    int32,
    int64,
    listed,
    struct,
    varint,
)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\1"), (1 << 35, b"\x80\x80\x80\x80\x80\1")],
)
def test_varint(number: int, expected: bytes) -> None:
    assert varint(number) == expected


def test_bytes_by_the_rules_of_the_protocol() -> None:
    """A field's head is its distance from the field before and its type; numbers are zigzag."""
    fields: Struct = {
        1: int32(-1),
        2: int64(64),
        4: Value(Kind.TRUE, True),
        5: Value(Kind.FALSE, False),
        6: Value(Kind.BINARY, b"ab"),
        30: struct({1: Value(Kind.INT8, -2)}),
        31: listed(Kind.INT32, [1, -2]),
    }
    assert encode(fields) == (b"\x15\1\x16\x80\1\x21\x12\x18\2ab\x0c\x3c\x13\xfe\0\x19\x25\2\3\0")
    assert decode(encode(fields)) == fields


@pytest.mark.parametrize("size", [0, 1, 14, 15, 300])
def test_lists_of_any_size(size: int) -> None:
    fields: Struct = {
        3: listed(Kind.STRUCT, [{1: Value(Kind.INT16, n)} for n in range(size)]),
        5: listed(Kind.BINARY, [b"x" * n for n in range(size)]),
        7: listed(Kind.LIST, [Items(Kind.INT64, [n] * n) for n in range(size)]),
    }
    assert decode(encode(fields)) == fields


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])
def test_numbers(number: int) -> None:
    assert decode(encode({1: int64(number)})) == {1: int64(number)}


def test_footers_of_pyarrow_come_back_as_they_were() -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"n": [1, 2**40, None], "s": ["a", "b" * 300, ""], "l": [[True], [], None]})
    pq.write_table(table, sink, row_group_size=1, sorting_columns=[pq.SortingColumn(0)])
    file = sink.getvalue().to_pybytes()
    footer = file[-8 - int.from_bytes(file[-8:-4], "little") : -8]
    assert encode(decode(footer)) == footer


@pytest.mark.parametrize(
    "data", [b"\x17", b"\x1a\0", b"\x1b\0", b"\x19\x11\1\0"], ids=["double", "set", "map", "bools"]
)
def test_types_that_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Kind|booleans"):
        decode(data)


def test_bytes_that_end_too_early() -> None:
    with pytest.raises(IndexError):
        decode(b"\x15")
