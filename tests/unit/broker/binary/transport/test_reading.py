"""Reading from a client stops with the first reason and goes on without the last one."""

import pytest

from interpulse.broker.binary.transport.reading import OUTPUT, PUBLISHES, REQUESTS, Reading
from tests.unit.broker.binary.conftest import FakeTransport


@pytest.fixture
def transport() -> FakeTransport:
    return FakeTransport()


def test_reading_when_held_for_two_reasons_then_goes_on_when_both_are_gone(transport: FakeTransport) -> None:
    reading = Reading(transport)
    for reason in (PUBLISHES, OUTPUT, PUBLISHES):
        reading.hold(reason)
        assert not transport.reading
    reading.release(PUBLISHES)
    assert (transport.reading, reading.held_by) == (False, {OUTPUT})
    reading.release(OUTPUT)
    assert (transport.reading, reading.held_by) == (True, set())


def test_reading_when_released_from_what_did_not_hold_it_then_stays_as_it_is(transport: FakeTransport) -> None:
    reading = Reading(transport)
    reading.release(OUTPUT)
    assert transport.reading
    reading.hold(PUBLISHES)
    reading.release(REQUESTS)
    assert not transport.reading


def test_reading_when_the_transport_is_closing_then_is_not_resumed(transport: FakeTransport) -> None:
    reading = Reading(transport)
    reading.hold(OUTPUT)
    transport.close()
    reading.release(OUTPUT)
    assert not transport.reading
