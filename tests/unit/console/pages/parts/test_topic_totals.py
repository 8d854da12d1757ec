"""What the charts draw."""

from __future__ import annotations

from interpulse.console.pages.parts.topic_totals import Sample


def test_sample_when_there_is_one_before_then_tells_rates() -> None:
    before = Sample(1000, 10, 20, 100, 200, 5)
    shown = Sample(3000, 30, 20, 300, 201, 7).since(before)
    assert shown == {
        "time": 3000,
        "messages_in": 10.0,
        "messages_out": 0.0,
        "bytes_in": 100.0,
        "bytes_out": 0.5,
        "backlog": 7,
    }


def test_sample_when_the_topic_was_loaded_again_then_has_a_gap() -> None:
    shown = Sample(2000, 1, 0, 0, 0, 0).since(Sample(1000, 10, 0, 0, 0, 0))
    assert shown["messages_in"] is None
    assert Sample(1000, 1, 1, 1, 1, 1).since(None)["messages_in"] is None
