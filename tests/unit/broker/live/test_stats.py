from __future__ import annotations

from interpulse.broker.live.stats import TrafficMeter


def test_meter_knows_the_rates_of_the_last_period() -> None:
    meter = TrafficMeter()
    meter.messages, meter.bytes = 10, 1000
    meter.tick(5)
    assert (meter.message_rate, meter.byte_rate, meter.average_bytes) == (2.0, 200.0, 100.0)
    meter.tick(5)
    assert (meter.message_rate, meter.average_bytes) == (0.0, 0.0)


def test_meter_when_it_absorbs_another_then_its_rates_do_not_jump() -> None:
    total, gone = TrafficMeter(), TrafficMeter()
    gone.messages = 7
    gone.tick(1)
    gone.messages = 9
    total.absorb(gone)
    assert total.messages == 9
    total.tick(1)
    assert total.message_rate == 2.0
