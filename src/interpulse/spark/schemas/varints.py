"""Variable-length integers of Protocol Buffers and Avro, for all rows of an Arrow column in one call."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_DIGIT: Final = 1 << 14
"""Numbers are split into digits of two bytes."""
_EMPTY: Final = 2 * _DIGIT
_BYTES_MAX: Final = 10


@lru_cache(maxsize=256)
def _uint64(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint64())


_SEVEN_BITS: Final = pa.scalar(127, pa.uint8())
_NO_BYTE: Final = pa.scalar(0, pa.uint8())
_SINGLE_BYTES: Final = pa.array([bytes([number]) for number in range(256)], pa.binary())


class OddBytes(ValueError):
    """Bytes that are not what the schema says."""


def varints(numbers: pa.Array) -> pa.Array:
    """Encode UINT64 without nulls as BINARY."""
    digits = _digits()
    highest = pc.max(numbers).as_py() or 0
    digits_of = [digits.take(_digit(numbers))]
    while highest := highest >> 14:
        numbers = pc.shift_right(numbers, _uint64(14))
        index = pc.if_else(pc.equal(numbers, _uint64(0)), _uint64(_EMPTY), _digit(numbers))
        digits_of.append(digits.take(index))
    return digits_of[0] if len(digits_of) == 1 else pc.binary_join_element_wise(*digits_of, b"")


def _digit(numbers: pa.Array) -> pa.Array:
    follows = pc.add(pc.bit_wise_and(numbers, _uint64(_DIGIT - 1)), _uint64(_DIGIT))
    return pc.if_else(pc.less(numbers, _uint64(_DIGIT)), numbers, follows)


@lru_cache(maxsize=1)
def _digits() -> pa.Array:
    """Return the last digit of each number, marked with ``_DIGIT`` if another follows, and empty for none."""
    last = [bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7]) for number in range(_DIGIT)]
    followed = [bytes([number & 127 | 128, number >> 7 | 128]) for number in range(_DIGIT)]
    return pa.array([*last, *followed, b""], pa.binary())


def zigzag(numbers: pa.Array) -> pa.Array:
    """Map INT64 to UINT64 so that small numbers of either sign are short."""
    one = pa.scalar(1, pa.int64())
    # Arrow leaves a number as it is that is to be shifted by 63 bits at once.
    sign = pc.shift_right(pc.shift_right(numbers, pa.scalar(62, pa.int64())), one)
    return pc.bit_wise_xor(pc.shift_left(numbers, one), sign).view(pa.uint64())


def zigzag_undone(numbers: pa.Array) -> pa.Array:
    """Map UINT64 back to INT64."""
    sign = pc.subtract(_uint64(0), pc.bit_wise_and(numbers, _uint64(1)))
    return pc.bit_wise_xor(pc.shift_right(numbers, _uint64(1)), sign).view(pa.int64())


def read_varints(data: pa.Array, at: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Read the numbers in these bytes (UINT8) at these positions (INT64), as UINT64, and the positions behind them.

    Raises OddBytes for a number without an end.
    """
    last = pa.scalar(max(len(data) - 1, 0), pa.int64())
    byte, shift = data.take(at), 0
    numbers = pc.bit_wise_and(byte, _SEVEN_BITS).cast(pa.uint64())
    at = pc.add(at, pa.scalar(1, pa.int64()))
    goes_on = pc.greater(byte, _SEVEN_BITS)
    while pc.any(goes_on).as_py():
        shift += 7
        byte = pc.if_else(goes_on, data.take(pc.min_element_wise(at, last)), _NO_BYTE)
        if shift == 7 * (_BYTES_MAX - 1) and pc.max(byte).as_py() > 1:
            raise OddBytes("a number of more than 64 bits")
        digit = pc.bit_wise_and(byte, _SEVEN_BITS).cast(pa.uint64())
        numbers = pc.bit_wise_or(numbers, pc.shift_left(digit, _uint64(shift)))
        at = pc.add(at, goes_on.cast(pa.int64()))
        goes_on = pc.greater(byte, _SEVEN_BITS)
    return numbers, at


def byte_strings(numbers: pa.Array) -> pa.Array:
    """Return small numbers as BINARY of one byte each."""
    return _SINGLE_BYTES.take(numbers)
