"""Every state a topic can be in, and whether it goes then."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from interpulse.model.changes import Decision, DeletePartitionedMetadata
from interpulse.model.errors import InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import (
    DELETE_WHEN_CAUGHT_UP,
    DELETE_WHEN_NO_SUBSCRIPTIONS,
    InactiveTopicPolicies,
    RetentionPolicies,
)
from interpulse.model.topics import PartitionedTopicMetadata
from interpulse.rules.inactivity import (
    DELETE_MODES,
    TopicActivity,
    check_inactive_topics,
    decide_delete_orphaned_metadata,
    is_active,
    is_expendable,
)
from interpulse.rules.topic_view import TopicView

X = TopicName.parse("x")
UNSTORED = TopicName.parse("non-persistent://public/default/x")
SYSTEM = TopicName.parse("public/default/__change_events-partition-0")
ACTIVITIES = [TopicActivity(*flags) for flags in product((False, True), repeat=5)]
UNUSED = TopicActivity()
AT_ONCE = InactiveTopicPolicies(max_inactive_seconds=0)
NO_RETENTION = RetentionPolicies()


def goes(name: TopicName = X, activity: TopicActivity = UNUSED, **changed: Any) -> bool:
    given: dict[str, Any] = {"idle_ms": 60_000, "policies": InactiveTopicPolicies(), "retention": NO_RETENTION}
    return is_expendable(name, activity, **{**given, **changed})


@pytest.mark.parametrize("activity", ACTIVITIES, ids=str)
@pytest.mark.parametrize("mode", DELETE_MODES)
def test_need_when_every_use_is_tried_then_clients_and_copies_count_always(mode: str, activity: TopicActivity) -> None:
    needs = [activity.in_use, activity.unreplicated]
    needs.append(activity.subscribed if mode == DELETE_WHEN_NO_SUBSCRIPTIONS else activity.backlog)
    assert is_active(activity, mode) is any(needs)


@pytest.mark.parametrize("mode", DELETE_MODES)
@pytest.mark.parametrize("enabled", [False, True], ids=["disabled", "enabled"])
@pytest.mark.parametrize("minutes", [-1, 0, 1, 2])
@pytest.mark.parametrize("idle_ms", [0, 59_999, 60_000, 119_999, 120_000])
def test_topic_when_every_state_is_tried_then_goes_only_if_allowed_idle_and_not_retained(
    mode: str, enabled: bool, minutes: int, idle_ms: int
) -> None:
    limits: dict[str, Any] = {
        "idle_ms": idle_ms,
        "policies": InactiveTopicPolicies(mode, 60, enabled),
        "retention": RetentionPolicies(minutes, -1),
    }
    retained = minutes < 0 or idle_ms < minutes * 60_000
    for activity in ACTIVITIES:
        unneeded = enabled and idle_ms >= 60_000 and not is_active(activity, mode)
        expected = unneeded and not (retained and activity.holds_entries)
        assert goes(X, activity, **limits) is expected, activity
        assert goes(UNSTORED, activity, **limits) is expected, activity
        assert not goes(SYSTEM, activity, **limits), activity


@pytest.mark.parametrize("activity", [each for each in ACTIVITIES if each.backlog], ids=str)
def test_unconsumed_messages_when_subscriptions_must_have_caught_up_then_keep_their_topic(
    activity: TopicActivity,
) -> None:
    assert not goes(activity=activity, policies=InactiveTopicPolicies(DELETE_WHEN_CAUGHT_UP, 0))


def test_duration_when_zero_then_a_topic_goes_in_the_next_check() -> None:
    assert goes(idle_ms=0, policies=AT_ONCE)


@pytest.mark.parametrize("mode", DELETE_MODES)
@pytest.mark.parametrize("enabled", [False, True])
def test_body_when_it_can_be_meant_then_comes_back_as_it_was(mode: str, enabled: bool) -> None:
    body = {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": 5, "deleteWhileInactive": enabled}
    assert check_inactive_topics(body).to_json() == body
    assert InactiveTopicPolicies.from_json(body).to_json() == body


def test_body_when_it_names_the_mode_alone_then_nothing_is_deleted() -> None:
    policies = check_inactive_topics({"inactiveTopicDeleteMode": DELETE_WHEN_CAUGHT_UP})
    assert policies == InactiveTopicPolicies(DELETE_WHEN_CAUGHT_UP, 0, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inactiveTopicDeleteMode", "never"),
        ("inactiveTopicDeleteMode", None),
        ("maxInactiveDurationSeconds", -1),
    ],
)
def test_body_when_it_means_nothing_then_the_refusal_names_field_and_value(key: str, value: Any) -> None:
    body = InactiveTopicPolicies().to_json() | {key: value}
    with pytest.raises(InvalidRequest) as refusal:
        check_inactive_topics(body)
    assert key in str(refusal.value)
    assert str(value) in str(refusal.value)


def partitioned(name: TopicName = X, *, deleted: bool = False, records: frozenset[int] = frozenset()) -> TopicView:
    return TopicView(name, metadata={name: PartitionedTopicMetadata(3, deleted)}, partition_records=records)


@pytest.mark.parametrize(
    ("view", "loaded", "goes"),
    [
        pytest.param(partitioned(), False, True, id="nothing-left"),
        pytest.param(partitioned(records=frozenset({2})), False, False, id="one-left"),
        pytest.param(partitioned(records=frozenset({7})), False, False, id="one-left-beyond-the-count"),
        pytest.param(partitioned(UNSTORED), False, True, id="unstored-none-loaded"),
        pytest.param(partitioned(UNSTORED), True, False, id="unstored-one-loaded"),
        pytest.param(partitioned(deleted=True), False, False, id="deleted-already"),
        pytest.param(partitioned(SYSTEM.base), False, False, id="system-topic"),
        pytest.param(TopicView(X), False, False, id="not-partitioned"),
    ],
)
def test_partitioned_topic_when_its_partitions_are_gone_then_goes_too(
    view: TopicView, loaded: bool, goes: bool
) -> None:
    changes = (DeletePartitionedMetadata(view.name),) if goes else ()
    assert decide_delete_orphaned_metadata(view, loaded=loaded) == Decision(goes, changes)
