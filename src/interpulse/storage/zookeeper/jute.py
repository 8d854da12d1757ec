"""Jute, the encoding of ZooKeeper's records: big-endian fields one after another, without names or tags.

A `Field` writes and reads one type. `record` makes a `NamedTuple` class a field of its own, so that a record is
described once and used at both ends of a connection. Reading raises `Malformed` for any wrong bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class Malformed(ValueError):
    """The bytes are not the expected record."""


class Source:
    """The bytes of one frame, read from the front."""

    __slots__ = ("_offset", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._offset = 0

    @property
    def left(self) -> int:
        """The number of bytes that were not read yet."""
        return len(self._raw) - self._offset

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raise `Malformed` if there are too few."""
        begin = self._offset
        if count < 0 or count > len(self._raw) - begin:
            raise Malformed(f"a field of {count} bytes at byte {begin} of a record of {len(self._raw)}")
        self._offset = begin + count
        return self._raw[begin : self._offset]


class Field(Generic[T]):
    """A type of values, with the functions that write and read one."""

    __slots__ = ("read", "write")

    def __init__(self, write: Callable[[bytearray, T], None], read: Callable[[Source], T]) -> None:
        self.write = write
        self.read = read

    def encode(self, value: T) -> bytes:
        """Encode one value."""
        out = bytearray()
        self.write(out, value)
        return bytes(out)

    def decode(self, raw: bytes) -> T:
        """Decode one value and ignore bytes of a newer server's longer record behind it. Raise `Malformed`."""
        return self.read(Source(raw))


def _number(form: struct.Struct) -> Field[int]:
    def write(out: bytearray, value: int) -> None:
        out += form.pack(value)

    def read(source: Source) -> int:
        (value,) = form.unpack(source.take(form.size))
        return int(value)

    return Field(write, read)


INT: Field[int] = _number(_INT)
LONG: Field[int] = _number(_LONG)


BOOL: Field[bool] = Field(lambda out, value: out.append(1 if value else 0), lambda source: source.take(1) != b"\0")


def _write_buffer(out: bytearray, value: bytes) -> None:
    out += _INT.pack(len(value))
    out += value


def _read_buffer(source: Source) -> bytes:
    length = INT.read(source)
    return b"" if length == -1 else source.take(length)  # -1: null, as Java writes it for a node without a value


BUFFER: Field[bytes] = Field(_write_buffer, _read_buffer)


def _read_string(source: Source) -> str:
    try:
        return _read_buffer(source).decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"a string that is not UTF-8: {error}") from None


STRING: Field[str] = Field(lambda out, value: _write_buffer(out, value.encode()), _read_string)

NOTHING: Field[None] = Field(lambda out, value: None, lambda source: None)


def vector(item: Field[T]) -> Field[list[T]]:
    """Return the field of a list of items."""

    def write(out: bytearray, values: list[T]) -> None:
        out += _INT.pack(len(values))
        for value in values:
            item.write(out, value)

    def read(source: Source) -> list[T]:
        count = INT.read(source)
        if count > source.left:  # an item has at least one byte, so a wrong number allocates no huge list
            raise Malformed(f"a list of {count} items in {source.left} bytes")
        return [item.read(source) for _ in range(count)]

    return Field(write, read)


def record(make: Callable[..., T], *fields: Field[Any]) -> Field[T]:
    """Return the field of a `NamedTuple` whose parts are these fields, in this order."""

    def write(out: bytearray, value: Any) -> None:
        for field, part in zip(fields, value, strict=True):
            field.write(out, part)

    def read(source: Source) -> T:
        return make(*[field.read(source) for field in fields])

    return Field(write, read)


def fixed(make: Callable[..., T], form: str) -> Field[T]:
    """Return the field of a `NamedTuple` of numbers, in the notation of `struct`. Faster than `record`."""
    layout = struct.Struct(form)

    def write(out: bytearray, value: Any) -> None:
        out += layout.pack(*value)

    def read(source: Source) -> T:
        return make(*layout.unpack(source.take(layout.size)))

    return Field(write, read)
