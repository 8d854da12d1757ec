"""How fast topic-partitions are copied."""

from __future__ import annotations

from interpulse.spark.job.routes.route_lag import CopyRate, RouteRates


def test_rate_is_what_was_written_in_the_last_ten_seconds():
    rates = RouteRates()
    rates.note({"a": (1, 100, 1000), "b": (1, 1, 10)}, now=0.0)
    rates.note({"a": (2, 50, 500)}, now=5.0)
    assert rates.all(now=9.0) == {"a": CopyRate(15.0, 150.0), "b": CopyRate(0.1, 1.0)}
    assert rates.all(now=10.0) == {"a": CopyRate(5.0, 50.0)}
    assert rates.all(now=20.0) == {}


def test_messages_that_wait_are_counted_by_the_entries_written_last():
    rates = RouteRates()
    assert [rates.messages_in("a", entries) for entries in (None, 0, 3)] == [None, 0, None]
    rates.note({"a": (4, 4, 100)}, now=0.0)
    rates.note({"a": (2, 25, 100)}, now=1.0)
    assert rates.messages_in("a", 3) == 38
