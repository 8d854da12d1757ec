"""Policies for all clusters between two clusters made of dictionaries, with a job in each direction."""

from __future__ import annotations

import pytest

from interpulse.model.errors import NotSupported, PreconditionFailed
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.spark.job.routes import global_policies
from interpulse.spark.job.routes.global_policies import GlobalPolicies
from tests.support.fake_clock import FakeClock

X = TopicName.parse("t/ns/x")
NAMESPACE = NamespaceName("t", "ns")


class Cluster:
    """An admin API that knows what is set for all clusters of one topic."""

    def __init__(self, *, ours=True):
        self.set_for_x = TopicPolicies()
        self.ours, self.calls, self.refused = ours, 0, set()
        self.namespaces = self.topic_policies = self

    async def global_topic_policies(self, namespace):
        if not self.ours:
            raise NotSupported("not one of ours")
        return {str(X): self.set_for_x} if self.set_for_x.to_json() else {}

    async def set(self, topic, name, value, *, everywhere):
        assert (topic, everywhere) == (X, True)
        self.calls += 1
        if name in self.refused:
            raise PreconditionFailed(f"{name} is not possible")
        self.set_for_x = self.set_for_x.changed(**{name: value})

    async def remove(self, topic, name, *, everywhere):
        await self.set(topic, name, None, everywhere=everywhere)


@pytest.fixture
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(global_policies, "time", clock)
    return clock


class Job:
    """One direction."""

    def __init__(self, directory, source, target, patience_s=30):
        self.source, self.target = source, target
        self.policies = GlobalPolicies(source, directory / "policies.json", patience_s=patience_s)

    async def turn(self, held=()):
        return await self.policies.carry([NAMESPACE], self.target, held=held)


@pytest.fixture
def both(tmp_path, clock):
    east, west = Cluster(), Cluster()
    return east, west, Job(tmp_path / "e", east, west, 30), Job(tmp_path / "w", west, east, 90)


async def test_what_came_from_there_is_not_carried_back_when_it_changes_here_meanwhile(both):
    east, west, eastward, westward = both
    east.set_for_x = TopicPolicies(max_producers=5)
    await eastward.turn()
    east.set_for_x = TopicPolicies(max_producers=9)
    await westward.turn()
    assert east.set_for_x == TopicPolicies(max_producers=9)
    await eastward.turn()
    await westward.turn()
    assert east.set_for_x == west.set_for_x == TopicPolicies(max_producers=9)
    east.set_for_x = TopicPolicies()
    await westward.turn()
    await eastward.turn()
    assert east.set_for_x == west.set_for_x == TopicPolicies()


async def test_what_both_changed_ends_as_one_and_is_not_exchanged_for_ever(both, clock):
    east, west, eastward, westward = both
    east.set_for_x, west.set_for_x = TopicPolicies(max_producers=1), TopicPolicies(max_producers=2)
    for clock.now in range(0, 200, 10):
        await westward.turn()
        await eastward.turn()
    assert east.set_for_x == west.set_for_x == TopicPolicies(max_producers=1)
    assert west.calls + east.calls == 1


async def test_other_policies_that_are_set_there_stay(both):
    east, west, eastward, _ = both
    east.set_for_x = TopicPolicies(max_producers=1, max_consumers=2)
    await eastward.turn()
    west.set_for_x = west.set_for_x.changed(max_consumers=20, max_subscriptions=30)
    east.set_for_x = TopicPolicies(max_producers=3, max_consumers=2)
    await eastward.turn()
    assert west.set_for_x == TopicPolicies(max_producers=3, max_consumers=20, max_subscriptions=30)


async def test_refusal_is_told_until_it_is_not_asked_any_more_and_the_others_are_carried_once(both, clock):
    east, west, eastward, _ = both
    west.refused = {"max_consumers"}
    east.set_for_x = TopicPolicies(max_producers=1, max_consumers=2)
    assert "not possible" in str((await eastward.turn())[X])
    assert west.set_for_x == TopicPolicies(max_producers=1)
    assert X in await eastward.turn()
    assert west.calls == 2, "it is tried again after a pause"
    clock.now += 31
    await eastward.turn()
    assert west.calls == 3
    east.set_for_x = TopicPolicies()
    clock.now += 31
    assert await eastward.turn() == {}
    assert west.set_for_x == TopicPolicies()


async def test_another_kind_of_target_is_told_what_changed_and_nothing_twice_also_after_a_restart(tmp_path, clock):
    east, real = Cluster(), Cluster(ours=False)
    east.set_for_x = TopicPolicies(max_producers=1)
    for _ in range(2):
        await Job(tmp_path, east, real).turn()
    assert (real.set_for_x, real.calls) == (TopicPolicies(max_producers=1), 1)
    job = Job(tmp_path, east, real)
    job.policies.forget([X])
    await job.turn()
    assert real.calls == 2


async def test_another_kind_of_source_is_asked_once_and_held_topics_wait(tmp_path, clock):
    real, west = Cluster(ours=False), Cluster()
    job = Job(tmp_path, real, west)
    assert await job.turn() == {}
    real.ours, real.set_for_x = True, TopicPolicies(max_producers=1)
    await job.turn()
    assert west.calls == 0
    east = Cluster()
    east.set_for_x = TopicPolicies(max_producers=1)
    job = Job(tmp_path / "east", east, west)
    await job.turn(held=[X])
    assert west.calls == 0
    await job.turn()
    assert west.calls == 1


async def test_deduplication_is_the_targets_own_matter(both):
    east, west, eastward, _ = both
    east.set_for_x = TopicPolicies(deduplication_enabled=False)
    await eastward.turn()
    assert west.calls == 0
