"""CRC32C: the check value of the standard, and that the library and the table agree."""

from hypothesis import given
from hypothesis import strategies as st

from interpulse.wire.checksum import crc32c, crc32c_slowly


def test_crc32c_of_the_nine_digits_is_the_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c_slowly(b"123456789") == 0xE3069283


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_crc32c_when_continued_then_equals_one_pass(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)
    assert crc32c_slowly(memoryview(second), crc32c_slowly(first)) == crc32c(first + second)
