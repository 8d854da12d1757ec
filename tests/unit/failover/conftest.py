"""Operations of a pair that has no clusters."""

from __future__ import annotations

import pytest

from interpulse.failover.journal import Operation


@pytest.fixture
def operation() -> Operation:
    return Operation("20261130T210000-ab12cd", "switch", "west", 5, "2026-11-30T21:00:00.000Z", "anna@desk, process 7")
