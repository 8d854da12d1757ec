"""Times as visitors write them."""

import pytest

from interpulse.console.pages.messages import read_time
from interpulse.model.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("0", 0),
        ("1769860800000", 1_769_860_800_000),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00", 1_769_860_800_000),
        (" 2026-01-31T13:00:00.5+01:00 ", 1_769_860_800_500),
        ("2026-01-31", 1_769_817_600_000),
    ],
)
def test_time_when_written_then_is_read(text: str, time_ms: int) -> None:
    assert read_time(text) == time_ms


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "99999999999999999999", "2026-13-01", "\u0663"])
def test_time_when_it_is_none_then_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="A time is milliseconds since 1970"):
        read_time(text)
