"""Reports in JSON, and what is at stake by them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from interpulse.failover.reporting.reports import Report, Stake, Totals, at_stake, totals
from interpulse.model.ids import Position
from interpulse.model.names import TopicName

PAID, SENT = (TopicName.parse(f"persistent://shop/orders/{name}") for name in ("paid", "sent"))
REPORT = Report("east", 5000, Position(7, 50), Position(7, 20), 900, 30, 60, 6000, 400, 95.0)
COPIED = replace(REPORT, copied=Position(7, 50), behind_entries=0, behind_messages=0, behind_bytes=0, oldest_ms=None)


def test_report_when_written_and_read_then_is_the_same() -> None:
    assert Report.from_json(json.loads(json.dumps(REPORT.to_json()))) == REPORT
    sums = Totals("east", 5000, 2, 60, 95.0)
    assert Totals.from_json(json.loads(json.dumps(sums.to_json()))) == sums


def test_totals_when_made_then_have_the_sums() -> None:
    assert totals("east", 7000, {PAID: REPORT, SENT: COPIED}) == Totals("east", 7000, 2, 60, 190.0)


@pytest.mark.parametrize(
    ("copied", "messages", "size"),
    [
        (Position(7, 20), 60, 6000),
        (Position(7, 35), 30, 3000),
        (Position(7, 49), 2, 200),
        (Position(7, 5), 60, 6000),
        (Position(6, 99), 60, 6000),
        (None, 60, 6000),
    ],
    ids=["as reported", "half of it", "one entry left", "before the report", "in a ledger before", "not read"],
)
def test_stake_when_copies_arrived_after_the_report_then_counts_the_rest(
    copied: Position | None, messages: int, size: int
) -> None:
    found = at_stake("east", {PAID: REPORT}, {} if copied is None else {PAID: copied})
    assert found is not None
    upto = max(copied or REPORT.copied, REPORT.copied)
    assert found.stakes == [Stake(PAID, Position(7, 50), upto, messages, size, 400)]


@pytest.mark.parametrize("copied", [Position(7, 50), Position(8, 0)])
def test_stake_when_everything_is_copied_now_then_has_none(copied: Position) -> None:
    found = at_stake("east", {PAID: REPORT, SENT: COPIED}, {PAID: copied})
    assert found is not None
    assert (found.topics, found.messages, list(found.stakes)) == (2, 0, [])


def test_stake_when_the_site_has_no_report_then_is_not_known() -> None:
    assert at_stake("west", {PAID: REPORT}, {}) is None
    assert at_stake("west", {}, {}, Totals("east", 1, 1, 1, 1.0)) is None


def test_stake_when_nothing_has_changed_for_long_then_the_sums_give_the_time() -> None:
    found = at_stake("east", {SENT: COPIED}, {}, Totals("east", 65_000, 120, 0, 0.0))
    assert found is not None
    assert (found.reported_ms, found.topics) == (65_000, 120)
    assert found.sentences() == [
        "At stake by the report of 1970-01-01T00:01:05.000Z: 0 messages in 0 of 120 topic-partitions.",
        "Not known: what was published after 1970-01-01T00:01:05.000Z, at the last rate about 95 messages a second.",
    ]
    assert found.to_json()["notKnownMessagesPerSecond"] == 95.0
