"""Jute, the encoding of ZooKeeper's records: big-endian fields one after another, without names or tags.

A `Field` knows how one type is written and read. `record` makes a `NamedTuple` class a field of its own, so that a
record is described once and used at both ends of a connection. Reading raises `Malformed`, whatever the bytes are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = [
    "BOOL",
    "BUFFER",
    "INT",
    "LONG",
    "NOTHING",
    "STRING",
    "Field",
    "Malformed",
    "Source",
    "fixed",
    "record",
    "vector",
]

T = TypeVar("T")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class Malformed(ValueError):
    """The bytes are not the record that was expected."""


class Source:
    """Bytes of one frame, read from the front."""

    __slots__ = ("_offset", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._offset = 0

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self._raw) - self._offset

    def take(self, count: int) -> bytes:
        """The next bytes; raises `Malformed` if there are not so many."""
        begin = self._offset
        if count < 0 or count > len(self._raw) - begin:
            raise Malformed(f"a field of {count} bytes at byte {begin} of a record of {len(self._raw)}")
        self._offset = begin + count
        return self._raw[begin : self._offset]


class Field(Generic[T]):
    """How values of one type are written and read."""

    __slots__ = ("read", "write")

    def __init__(self, write: Callable[[bytearray, T], None], read: Callable[[Source], T]) -> None:
        self.write = write
        self.read = read

    def encode(self, value: T) -> bytes:
        """The bytes of one value."""
        out = bytearray()
        self.write(out, value)
        return bytes(out)

    def decode(self, raw: bytes) -> T:
        """The value of these bytes; raises `Malformed`. Bytes behind it are those of a newer server's longer record."""
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


def _write_bool(out: bytearray, value: bool) -> None:
    out.append(1 if value else 0)


BOOL: Field[bool] = Field(_write_bool, lambda source: source.take(1) != b"\0")


def _write_buffer(out: bytearray, value: bytes) -> None:
    out += _INT.pack(len(value))
    out += value


def _read_buffer(source: Source) -> bytes:
    length = INT.read(source)
    return b"" if length == -1 else source.take(length)  # -1: null, as Java writes it for a node without a value


BUFFER: Field[bytes] = Field(_write_buffer, _read_buffer)


def _write_string(out: bytearray, value: str) -> None:
    _write_buffer(out, value.encode())


def _read_string(source: Source) -> str:
    try:
        return _read_buffer(source).decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"a string that is not UTF-8: {error}") from None


STRING: Field[str] = Field(_write_string, _read_string)

NOTHING: Field[None] = Field(lambda out, value: None, lambda source: None)


def vector(item: Field[T]) -> Field[list[T]]:
    """A list of items."""

    def write(out: bytearray, values: list[T]) -> None:
        out += _INT.pack(len(values))
        for value in values:
            item.write(out, value)

    def read(source: Source) -> list[T]:
        count = INT.read(source)
        if count > source.left:  # an item has at least one byte: no huge list is made for a wrong number
            raise Malformed(f"a list of {count} items in {source.left} bytes")
        return [item.read(source) for _ in range(count)]

    return Field(write, read)


def record(make: Callable[..., T], *fields: Field[Any]) -> Field[T]:
    """A `NamedTuple` whose parts are these fields, in this order."""

    def write(out: bytearray, value: Any) -> None:
        for field, part in zip(fields, value, strict=True):
            field.write(out, part)

    def read(source: Source) -> T:
        return make(*[field.read(source) for field in fields])

    return Field(write, read)


def fixed(make: Callable[..., T], form: str) -> Field[T]:
    """A `NamedTuple` of numbers, in the notation of `struct`: as `record`, in one step."""
    layout = struct.Struct(form)

    def write(out: bytearray, value: Any) -> None:
        out += layout.pack(*value)

    def read(source: Source) -> T:
        return make(*layout.unpack(source.take(layout.size)))

    return Field(write, read)
