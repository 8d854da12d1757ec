"""Subscriptions of a real Pulsar, as its statistics show them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import ServiceNotReady
from interpulse.model.ids import Position
from interpulse.model.names import TopicName
from interpulse.replication.acknowledgements import News, Span
from interpulse.spark.job.subscriptions import real_site
from interpulse.spark.job.subscriptions.real_site import RealSite
from interpulse.spark.job.subscriptions.site import WantedSubscriptions
from tests.support.waiting import eventually

TOPIC = TopicName.parse("persistent://public/default/orders")


class Topics:
    """The calls about one topic with the replicated subscription ``s``, and others that are left alone."""

    def __init__(self) -> None:
        self.mark_delete = "3:5"
        self.ranges = "[]"
        self.failure: Exception | None = None
        self.looks = 0
        self.moved_to: list[tuple[int, int]] = []

    async def stats(self, topic: TopicName) -> dict[str, Any]:
        shown = {"isReplicated": True, "consumers": [], "subscriptionProperties": {"a": "b"}}
        others = {"plain": {"isReplicated": False}, "interpulse.t": shown, "reader": {**shown, "isDurable": False}}
        return {"subscriptions": {"s": shown, **others}, "replication": {}}

    async def internal_stats(self, topic: TopicName) -> dict[str, Any]:
        self.looks += 1
        if self.failure is not None:
            raise self.failure
        cursor = {"markDeletePosition": self.mark_delete, "individuallyDeletedMessages": self.ranges}
        return {"cursors": {"s": cursor, "plain": cursor}}

    async def reset_cursor_to_message(self, topic: TopicName, name: str, message: Any, *, excluded: bool) -> None:
        self.mark_delete = f"{message.ledger}:{message.entry}"
        self.moved_to.append((message.ledger, message.entry))


class Admin:
    def __init__(self) -> None:
        self.topics = Topics()


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[RealSite, Topics]]:
    async def acknowledged(*_: Any, **__: Any) -> None: ...

    monkeypatch.setattr(real_site, "_PERIOD_S", 0.01)
    monkeypatch.setattr(real_site, "acknowledge_unread", acknowledged)
    admin = Admin()
    site = RealSite("west", cast(AdminClient, admin), WantedSubscriptions(), lambda: cast(Any, None), "east")
    site.follow([TOPIC])
    await eventually(lambda: site.states(TOPIC))
    yield site, admin.topics
    await site.close()


async def looked_again(topics: Topics) -> None:
    before = topics.looks
    await eventually(lambda: topics.looks > before + 1)


async def test_replicated_subscriptions_are_shown_and_changes_noted_once(
    site: tuple[RealSite, Topics],
) -> None:
    west, topics = site
    assert west.states(TOPIC).keys() == {"s"}
    assert west.states(TOPIC)["s"].properties == {"a": "b"}
    assert west.take_changed() == {str(TOPIC)}
    await looked_again(topics)
    assert west.take_changed() == set()
    topics.ranges = "[(3:7..3:9]]"
    await eventually(lambda: west.take_changed() == {str(TOPIC)})
    assert west.states(TOPIC)["s"].acknowledgements.beyond == (Span(Position(3, 8), Position(3, 9)),)


async def test_parts_of_batches_that_were_sent_are_not_sent_again_until_a_reset(site: tuple[RealSite, Topics]) -> None:
    west, topics = site
    assert await west.acknowledge(TOPIC, "s", News([], {Position(3, 8): 6}), resets=0) == 1
    west.take_changed()
    await looked_again(topics)
    assert west.states(TOPIC)["s"].acknowledgements.masks == {Position(3, 8): 6}
    assert west.take_changed() == set()
    topics.mark_delete = "3:2"
    await eventually(lambda: west.states(TOPIC)["s"].resets == 1)
    assert west.states(TOPIC)["s"].acknowledgements.masks == {}


async def test_a_reset_that_was_carried_counts_as_the_one_it_came_from(site: tuple[RealSite, Topics]) -> None:
    west, topics = site
    await west.reset(TOPIC, "s", Position(3, 1), before=0, resets=4)
    await looked_again(topics)
    assert topics.moved_to == [(3, 1)]
    assert west.states(TOPIC)["s"].resets == 4


async def test_a_cluster_that_does_not_answer_is_the_problem_of_its_topics(site: tuple[RealSite, Topics]) -> None:
    west, topics = site
    topics.failure = ServiceNotReady("away")
    await eventually(lambda: west.problem(TOPIC) == "away")
    topics.failure = None
    await eventually(lambda: west.problem(TOPIC) is None)


async def test_what_ends_the_polling_unexpectedly_is_raised_and_it_starts_again(site: tuple[RealSite, Topics]) -> None:
    west, topics = site
    topics.failure = RuntimeError("unforeseen")
    with pytest.raises(RuntimeError, match="unforeseen"):
        await eventually(lambda: west.follow([TOPIC]))
    topics.failure = None
    west.follow([TOPIC])
    await looked_again(topics)
