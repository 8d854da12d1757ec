"""One topic on its way to one cluster, as the page shows it."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.replication.replication_status import _FIELDS
from interpulse.console.pages.parts.replication_rows import (
    Summary,
    action_of,
    batch_of,
    catch_up,
    order,
    row_of,
)
from interpulse.model.names import TopicName
from interpulse.model.topics import Existence, TopicKind
from interpulse.replication.change_forms import hold_texts
from interpulse.rules.provisioning import plan_topic


def record(**values: Any) -> dict[str, Any]:
    start = {"topic": "persistent://a/b/c", "cluster": "west", "state": "REPLICATING"}
    return {**dict.fromkeys(_FIELDS), **start, **values}


@pytest.mark.parametrize("name", ["orders", "it's got $quotes", "a b) -p 9, here"])
@pytest.mark.parametrize(
    ("here", "there", "wanted"),
    [
        (Existence(TopicKind.PARTITIONED, 4), Existence(TopicKind.PARTITIONED, 8), "8"),
        (Existence(TopicKind.PARTITIONED, 8), Existence(TopicKind.PARTITIONED, 4), None),
        (Existence(TopicKind.NON_PARTITIONED), Existence(TopicKind.PARTITIONED, 4), None),
        (Existence(TopicKind.PARTITIONED, 4), Existence(TopicKind.NON_PARTITIONED), None),
    ],
)
def test_remedy_when_the_rule_tells_one_call_here_then_is_that_action(
    name: str, here: Existence, there: Existence, wanted: str | None
) -> None:
    """The sentence is the rule's own: should it be worded otherwise one day, this is red."""
    topic = TopicName.of("persistent", "a", "b", name)
    plan = plan_topic(topic, here, there, may_create=True)
    _, remedy = hold_texts(topic, here, topic, there, plan)
    found = action_of(remedy)
    if wanted is None:
        assert found is None, remedy
    else:
        assert found is not None, remedy
        assert (found["action"], found["fields"]) == ("expand-topic", {"topic": str(topic), "partitions": wanted})


@pytest.mark.parametrize("text", ["", "wait", "(topics update-partitioned-topic 'x -p 8, here)"])
def test_remedy_when_it_is_no_single_call_then_is_none(text: str) -> None:
    assert action_of(text) is None


@pytest.mark.parametrize(
    ("lag", "rate_out", "rate_in", "expected"),
    [
        (None, 1.0, 1.0, (None, "unknown")),
        (10, None, 1.0, (None, "unknown")),
        (0, 0.0, 5.0, (0.0, "caught up")),
        (10, 0.0, 0.0, (None, "nothing is being copied")),
        (100, 15.0, 5.0, (10.0, "")),
        (100, 10.0, None, (10.0, "")),
    ],
)
def test_catch_up(lag: int | None, rate_out: float | None, rate_in: float | None, expected: tuple[Any, ...]) -> None:
    assert tuple(catch_up(lag, rate_out, rate_in).values()) == expected


def test_catch_up_when_more_is_published_than_copied_then_never() -> None:
    assert catch_up(100, 5.0, 5.0)["seconds"] is None
    assert catch_up(100, 5.0, 9.0)["text"].startswith("not at this rate")


def test_order_has_held_topics_first_the_longest_before_others() -> None:
    rows = [
        row_of(record(topic="persistent://a/b/ok", lagMessages=5)),
        row_of(record(topic="persistent://a/b/behind", lagMessages=5000, since=1)),
        row_of(record(topic="persistent://a/b/na", state="NOT_APPLICABLE")),
        row_of(record(topic="persistent://a/b/new", state="PROVISIONING", since=9)),
        row_of(record(topic="persistent://a/b/away", state="DISCONNECTED", since=1)),
        row_of(record(topic="persistent://a/b/late", state="HELD", since=9)),
        row_of(record(topic="persistent://a/b/early", state="HELD", since=2)),
    ]
    found = [row["topic"].rpartition("/")[2] for row in sorted(rows, key=order)]
    assert found == ["early", "late", "away", "new", "behind", "ok", "na"]


def test_row_when_only_entries_are_known_then_shows_those() -> None:
    assert row_of(record(lagEntries=7))["lag_messages"] == 7
    assert row_of(record(lagEntries=7, lagMessages=70))["lag_messages"] == 70


def test_summary_adds_up() -> None:
    summary = Summary("west")
    summary.add(record(lagMessages=5, lagSeconds=2.0, msgRateOut=1.5, msgThroughputOut=10.0))
    summary.add(record(state="HELD", lagEntries=3, lagSeconds=9.0))
    summary.add(record(state="DISCONNECTED"))
    assert summary.states == {"REPLICATING": 1, "HELD": 1, "DISCONNECTED": 1}
    assert (summary.row(None)["troubled"], summary.lag_messages, summary.lag_seconds) == (2, 8, 9.0)
    assert (summary.rate_out, summary.throughput_out) == (1.5, 10.0)


def test_batch_tells_the_longest_phase_first() -> None:
    phases = {"triggerExecution": 100, "addBatch": 60, "walCommit": 10, "commitOffsets": 7, "commitBatch": 5, "new": 0}
    batch = batch_of({"batchId": 7, "batchMs": 100, "phasesMs": phases})
    assert batch is not None
    assert batch["phases"] == [("copy", 60), ("record the end", 12), ("record the range", 10)]
    assert batch_of(None) is None
    assert batch_of({}) is None
