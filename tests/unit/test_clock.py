"""Times as text."""

import pytest

from interpulse.clock import iso_time


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (1_795_249_107_372, "2026-11-21T08:18:27.372Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**63 - 1, "9999-12-31T23:59:59.999Z"),
        (-(2**63), "0001-01-01T00:00:00.000Z"),
    ],
)
def test_iso_time(time_ms: int, text: str) -> None:
    assert iso_time(time_ms) == text
