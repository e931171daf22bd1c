"""ArrayRecord files by a short, slow definition: chunks of Riegeli, each with one record."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from bpe_beam import _native

BLOCK = 1 << 16
OPTIONS = b"group_size:1,transpose:false,pad_to_block_boundary:false,uncompressed,max_parallelism:1"

_BITS = (1 << 64) - 1
_KEY: tuple[int, ...] = struct.unpack("<4Q", 2 * b"Riegeli/records\n")
_MUL0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
_MUL1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)
_MIXED = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)


def highway_hash(data: bytes) -> int:
    """Return HighwayHash of 64 bits with Riegeli's key."""
    mul0, mul1 = list(_MUL0), list(_MUL1)
    v0: list[int] = [mul ^ key for mul, key in zip(_MUL0, _KEY, strict=True)]
    v1 = [mul ^ _swapped(key) for mul, key in zip(_MUL1, _KEY, strict=True)]

    def take(lanes: Sequence[int]) -> None:
        for i in range(4):
            v1[i] = (v1[i] + mul0[i] + lanes[i]) & _BITS
            mul0[i] ^= (v1[i] & 0xFFFFFFFF) * (v0[i] >> 32)
            v0[i] = (v0[i] + mul1[i]) & _BITS
            mul1[i] ^= (v0[i] & 0xFFFFFFFF) * (v1[i] >> 32)
        v0[:] = [(a + b) & _BITS for a, b in zip(v0, _mixed(v1), strict=True)]
        v1[:] = [(a + b) & _BITS for a, b in zip(v1, _mixed(v0), strict=True)]

    count = len(data) % 32
    for at in range(0, len(data) - count, 32):
        take(struct.unpack_from("<4Q", data, at))
    if count:
        rest = data[-count:]
        v0[:] = [(lane + (count << 32) + count) & _BITS for lane in v0]
        v1[:] = [
            _rotated(lane & 0xFFFFFFFF, count) | _rotated(lane >> 32, count) << 32 for lane in v1
        ]
        words, odd = rest[: count & ~3], rest[count & ~3 :]
        packet = words.ljust(32, b"\0")
        if count >= 16:
            packet = packet[:28] + rest[-4:]
        elif odd:
            three = bytes((odd[0], odd[len(odd) // 2], odd[-1]))
            packet = packet[:16] + three + packet[19:]
        take(struct.unpack("<4Q", packet))
    for _ in range(4):
        take([_swapped(v0[i]) for i in (2, 3, 0, 1)])
    return (v0[0] + v1[0] + mul0[0] + mul1[0]) & _BITS


def _swapped(lane: int) -> int:
    return lane >> 32 | lane << 32 & _BITS


def _rotated(half: int, count: int) -> int:
    return (half << count | half >> 32 - count) & 0xFFFFFFFF


def _mixed(lanes: Sequence[int]) -> tuple[int, ...]:
    data = struct.pack("<4Q", *lanes)
    return struct.unpack("<4Q", bytes(data[pair + i] for pair in (0, 16) for i in _MIXED))


def varint(number: int) -> bytes:
    """Return a number as protocol buffers and Riegeli write it."""
    low = number & 127
    return bytes([low | 128]) + varint(number >> 7) if number > 127 else bytes([low])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """Return a message of protocol buffers: numbers and values of its fields."""
    return b"".join(
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    )


class RiegeliFile:
    """The bytes of a file, chunk by chunk."""

    def __init__(self) -> None:
        self.data = b""

    def chunk(self, kind: bytes, records: Sequence[bytes], data: bytes) -> int:
        """Append a chunk, and return its position."""
        size = sum(map(len, records))
        head = struct.pack("<QQ", len(data), highway_hash(data))
        head += kind + len(records).to_bytes(7, "little") + struct.pack("<Q", size)
        content = struct.pack("<Q", highway_hash(head)) + head + data
        begin = end = len(self.data)
        for _ in content:
            end += 25 if end % BLOCK == 0 else 1
        while content:
            at = len(self.data)
            if at % BLOCK == 0:
                block = struct.pack("<QQ", at - begin, end - at)
                self.data += struct.pack("<Q", highway_hash(block)) + block
            room = BLOCK - len(self.data) % BLOCK
            self.data += content[:room]
            content = content[room:]
        return begin

    def records(self, records: Sequence[bytes]) -> int:
        """Append a chunk of records without compression, and return its position."""
        sizes = b"".join(varint(len(record)) for record in records)
        return self.chunk(b"r", records, b"\0" + varint(len(sizes)) + sizes + b"".join(records))

    def pad(self) -> None:
        """Fill the block, and the next one if there is no room for the head of a chunk."""
        room = -len(self.data) % BLOCK
        if room:
            self.chunk(b"p", (), bytes(room - 40 if room >= 40 else room + BLOCK - 24 - 40))


def array_record(records: Sequence[bytes]) -> bytes:
    """Return the file that package array_record writes with `group_size:1,uncompressed`."""
    file = RiegeliFile()
    file.chunk(b"s", (), b"")
    finish(file, [(file.records([record]), len(record)) for record in records])
    return file.data


def finish(file: RiegeliFile, entries: Sequence[tuple[int, int]]) -> int:
    """Append the index and the end of a file, and return the position of the index.

    Args:
        file: A file of chunks of one record each.
        entries: The position of each chunk, and the bytes of its record.
    """
    settings = message((1, 1), (2, len(entries)), (3, len(entries)), (4, OPTIONS))
    messages = [message((1, position), (2, size), (3, 1)) for position, size in entries]
    index = file.records([message((1, settings)), *messages])
    file.pad()
    file.records([message((1, index), (2, 0x71930E704FDAE05E))] * 3)
    file.pad()
    return index


def example(ids: Sequence[int]) -> bytes:
    """Return the tf.train.Example of a document."""
    data = _native.tf_records(np.array(ids, np.uint32), np.array([0, len(ids)], np.int64))
    return data.tobytes()[12:-4]
