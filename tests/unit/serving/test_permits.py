"""Permits are given back on every path and follow a limit that changes."""

from __future__ import annotations

import pytest

from interpulse.model.errors import TooManyRequests
from interpulse.serving.permits import LookupPermits


def test_permit_when_work_fails_then_given_back() -> None:
    permits = LookupPermits(lambda: 1)
    with pytest.raises(ZeroDivisionError), permits:
        raise ZeroDivisionError
    with permits:
        pass


def test_permit_when_limit_is_lowered_then_the_next_one_is_refused() -> None:
    limit = 2
    permits = LookupPermits(lambda: limit)
    with permits:
        limit = 1
        with pytest.raises(TooManyRequests, match="too many pending lookup requests"), permits:
            pass
        assert (permits.taken, permits.rejected) == (1, 1)
        limit = 2
        with permits:
            pass
