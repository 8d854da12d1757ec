"""Variable-length integers of Protocol Buffers and Avro, for all rows of an Arrow column in one call."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_DIGIT: Final = 1 << 14
"""Numbers are split into digits of two bytes."""
_EMPTY: Final = 2 * _DIGIT
_BYTES_MAX: Final = 10


class OddBytes(ValueError):
    """Bytes that are not what the schema says."""


def varints(numbers: pa.Array) -> pa.Array:
    """Encode UINT64 without nulls as BINARY."""
    import pyarrow.compute as pc

    digits = _digits()
    highest = pc.max(numbers).as_py() or 0
    digits_of = [digits.take(_digit(numbers))]
    while highest := highest >> 14:
        numbers = pc.shift_right(numbers, _uint64(14))
        index = pc.if_else(pc.equal(numbers, _uint64(0)), _uint64(_EMPTY), _digit(numbers))
        digits_of.append(digits.take(index))
    return digits_of[0] if len(digits_of) == 1 else pc.binary_join_element_wise(*digits_of, b"")


def _digit(numbers: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    follows = pc.add(pc.bit_wise_and(numbers, _uint64(_DIGIT - 1)), _uint64(_DIGIT))
    return pc.if_else(pc.less(numbers, _uint64(_DIGIT)), numbers, follows)


@lru_cache(maxsize=1)
def _digits() -> pa.Array:
    """Return the last digit of each number, marked with ``_DIGIT`` if another follows, and empty for none."""
    import pyarrow as pa

    last = [bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7]) for number in range(_DIGIT)]
    followed = [bytes([number & 127 | 128, number >> 7 | 128]) for number in range(_DIGIT)]
    return pa.array([*last, *followed, b""], pa.binary())


@lru_cache(maxsize=256)
def _uint64(number: int) -> pa.Scalar:
    import pyarrow as pa

    return pa.scalar(number, pa.uint64())


def zigzag(numbers: pa.Array) -> pa.Array:
    """Map INT64 to UINT64 so that small numbers of either sign are short."""
    import pyarrow as pa
    import pyarrow.compute as pc

    one = pa.scalar(1, pa.int64())
    # Arrow leaves a number as it is that is to be shifted by 63 bits at once.
    sign = pc.shift_right(pc.shift_right(numbers, pa.scalar(62, pa.int64())), one)
    return pc.bit_wise_xor(pc.shift_left(numbers, one), sign).view(pa.uint64())


def zigzag_undone(numbers: pa.Array) -> pa.Array:
    """Map UINT64 back to INT64."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sign = pc.subtract(_uint64(0), pc.bit_wise_and(numbers, _uint64(1)))
    return pc.bit_wise_xor(pc.shift_right(numbers, _uint64(1)), sign).view(pa.int64())


def read_varints(data: pa.Array, at: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Read the numbers in these bytes (UINT8) at these positions (INT64), as UINT64, and the positions behind them.

    Raises OddBytes for a number without an end.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    last = pa.scalar(max(len(data) - 1, 0), pa.int64())
    one = pa.scalar(1, pa.int64())
    byte = data.take(at)
    numbers = pc.bit_wise_and(byte, _uint8(127)).cast(pa.uint64())
    at = pc.add(at, one)
    goes_on = pc.greater(byte, _uint8(127))
    shift = 0
    while pc.any(goes_on).as_py():
        shift += 7
        byte = pc.if_else(goes_on, data.take(pc.min_element_wise(at, last)), _uint8(0))
        if shift == 7 * (_BYTES_MAX - 1) and pc.max(byte).as_py() > 1:
            raise OddBytes("a number of more than 64 bits")
        digit = pc.bit_wise_and(byte, _uint8(127)).cast(pa.uint64())
        numbers = pc.bit_wise_or(numbers, pc.shift_left(digit, _uint64(shift)))
        at = pc.add(at, goes_on.cast(pa.int64()))
        goes_on = pc.greater(byte, _uint8(127))
    return numbers, at


@lru_cache(maxsize=256)
def _uint8(number: int) -> pa.Scalar:
    import pyarrow as pa

    return pa.scalar(number, pa.uint8())


@lru_cache(maxsize=1)
def _single_bytes() -> pa.Array:
    import pyarrow as pa

    return pa.array([bytes([number]) for number in range(256)], pa.binary())


def byte_strings(numbers: pa.Array) -> pa.Array:
    """Return small numbers as BINARY of one byte each."""
    return _single_bytes().take(numbers)
