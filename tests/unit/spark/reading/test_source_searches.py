"""Searches on the source cluster, on a scripted broker."""

from __future__ import annotations

import pytest

from interpulse.client.config import ClientConfig
from interpulse.client.session import Session
from interpulse.model.ids import Position
from interpulse.model.numbers import LONG_MAX
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.reading.source_searches import ledger_is_there
from tests.unit.client.consuming.test_entry_reader import TOPIC, LogBroker, log_of


@pytest.mark.parametrize(
    ("ledger", "upto", "is_there"),
    [
        (1, Position(3, 0), True),
        (3, Position(3, LONG_MAX), True),
        (2, Position(3, 0), False),
        pytest.param(4, Position(4, LONG_MAX), False, marks=pytest.mark.slow),  # silence is believed after seconds
    ],
    ids=["before-an-entry", "the-last-one", "trimmed", "nothing-behind"],
)
async def test_ledger_is_there(ledger, upto, is_there):
    async with LogBroker(log_of(2) | log_of(2, ledger=3)) as broker:
        options = parse_read_options({"service.url": broker.url, "topics": str(TOPIC)})
        session = Session(ClientConfig(broker.url, operation_timeout_ms=60_000))
        try:
            assert await ledger_is_there(session, options, str(TOPIC), ledger, upto) is is_there
        finally:
            await session.close()
