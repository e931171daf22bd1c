"""Structs in Thrift's compact protocol, in which Parquet files say what is where.

A struct is a dict from a field's number to its value; a value knows its type, as two types may have
equal values. Sets, maps and floating-point numbers, which these files have no use for, are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
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
    return _Decoder(data).struct()


_BOOLEANS = (Kind.TRUE, Kind.FALSE)


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


class _Decoder:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            step = head >> 4
            number = number + step if step else self._number()
            kind = Kind(head & 15)
            fields[number] = Value(kind, kind == Kind.TRUE if kind in _BOOLEANS else self._of(kind))
        return fields

    def _of(self, kind: Kind) -> Any:
        if kind == Kind.STRUCT:
            return self.struct()
        if kind == Kind.BINARY:
            size = self._varint()
            self._at += size
            return self._data[self._at - size : self._at]
        if kind == Kind.LIST:
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            element = Kind(head & 15)
            if element in _BOOLEANS:
                raise ValueError("a list of booleans")
            return Items(element, [self._of(element) for _ in range(size)])
        if kind == Kind.INT8:
            byte = self._byte()
            return byte - 256 if byte > 127 else byte
        return self._number()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _number(self) -> int:
        coded = self._varint()
        return coded >> 1 ^ -(coded & 1)
