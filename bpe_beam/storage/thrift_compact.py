"""Structs in Thrift's compact protocol, in which Parquet files say what is where.

A struct is a dict from a field's number to its value; a value knows its type, as two types may have
equal values. Sets, maps and floating-point numbers, which these files have no use for, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from io import BytesIO
from typing import Any, NamedTuple


class Kind(IntEnum):
    """The type of a value, as the protocol numbers it."""

    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    BINARY = 8
    LIST = 9
    STRUCT = 12


class Value(NamedTuple):
    """A value: a bool, an int, bytes, `Items` or a `Struct`."""

    kind: Kind
    value: Any


class Items(NamedTuple):
    """A list: the type of its items, and what each `Value` would have."""

    kind: Kind
    items: Sequence[Any]


Struct = dict[int, Value]


def int32(value: int) -> Value:
    return Value(Kind.INT32, value)


def int64(value: int) -> Value:
    return Value(Kind.INT64, value)


def struct(value: Struct) -> Value:
    """Return a struct as a field of another one."""
    return Value(Kind.STRUCT, value)


def listed(kind: Kind, items: Sequence[Any]) -> Value:
    return Value(Kind.LIST, Items(kind, items))


def varint(number: int) -> bytes:
    """Return a number of 0 or more in LEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def encode(fields: Struct) -> bytes:
    out = bytearray()
    before = 0
    for number, value in sorted(fields.items()):
        if 0 < number - before < 16:
            out.append(number - before << 4 | value.kind)
        else:
            out.append(value.kind)
            out += varint(_zigzag(number))
        before = number
        if value.kind not in _BOOLEANS:
            out += _encoded(*value)
    out.append(0)
    return bytes(out)


def decode(data: bytes) -> Struct:
    struct: Struct = _decoded(Kind.STRUCT, BytesIO(data))
    return struct


_BOOLEANS = (Kind.TRUE, Kind.FALSE)
_KINDS = {int(kind): kind for kind in Kind}  # faster than `Kind`, which refuses other numbers


def _kind(head: int) -> Kind:
    """Return the kind that the low half of a byte names."""
    return _KINDS.get(head & 15) or Kind(head & 15)


def _encoded(kind: Kind, content: Any) -> bytes:
    if kind == Kind.STRUCT:
        return encode(content)
    if kind == Kind.BINARY:
        return varint(len(content)) + bytes(content)
    if kind == Kind.LIST:
        size = len(content.items)
        head = bytes([min(size, 15) << 4 | content.kind]) + (varint(size) if size > 14 else b"")
        return head + b"".join(_encoded(content.kind, item) for item in content.items)
    if kind == Kind.INT8:
        return bytes([content & 0xFF])
    return varint(_zigzag(content))


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else -number * 2 - 1


def _decoded(kind: Kind, data: BytesIO) -> Any:
    """Return the value of this kind that the data continues with."""
    if kind == Kind.STRUCT:
        fields: Struct = {}
        number = 0
        while head := data.read(1)[0]:
            number = number + (head >> 4) if head >> 4 else _number(data)
            field = _kind(head)
            value = field == Kind.TRUE if field in _BOOLEANS else _decoded(field, data)
            fields[number] = Value(field, value)
        return fields
    if kind == Kind.BINARY:
        return data.read(_varint(data))
    if kind == Kind.LIST:
        head = data.read(1)[0]
        size = head >> 4 if head >> 4 < 15 else _varint(data)
        element = _kind(head)
        if element in _BOOLEANS:
            raise ValueError("a list of booleans")
        return Items(element, [_decoded(element, data) for _ in range(size)])
    if kind == Kind.INT8:
        return int.from_bytes(data.read(1), "little", signed=True)
    return _number(data)


def _varint(data: BytesIO) -> int:
    number = shift = 0
    while (byte := data.read(1)[0]) > 0x7F:
        number |= (byte & 0x7F) << shift
        shift += 7
    return number | byte << shift


def _number(data: BytesIO) -> int:
    coded = _varint(data)
    return coded >> 1 ^ -(coded & 1)
