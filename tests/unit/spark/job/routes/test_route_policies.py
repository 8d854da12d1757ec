"""The rates of replication as different sources answer for them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from interpulse.model.errors import (
    AuthorizationError,
    NotAllowed,
    NotConnected,
    NotSupported,
    PreconditionFailed,
    TopicNotFound,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import DispatchRate
from interpulse.spark.job.routes import route_policies
from interpulse.spark.job.routes.route_policies import DispatchRates, GlobalPolicies
from interpulse.spark.reading.throttle import Rate
from tests.support.fake_clock import FakeClock

A, B = TopicName.parse("persistent://t/ns/a"), TopicName.parse("persistent://t/ns/b")


class Source:
    """Answers what it was given: by namespace as brokers of ours do, or topic by topic."""

    def __init__(self, *, at_once=None, singly=None, namespace=None, broker=None):
        self.at_once, self.singly, self.namespace, self.broker = at_once, singly or {}, namespace, broker
        self.asked = 0
        self.namespaces = SimpleNamespace(replicator_dispatch_rates=self.rates, policy=self.policy)
        self.topic_policies = SimpleNamespace(get=self.of_topic)
        self.brokers = SimpleNamespace(runtime_configuration=self.configuration)

    async def rates(self, namespace):
        return given(NotSupported("not ours") if self.at_once is None else self.at_once)

    async def of_topic(self, topic, name, *, applied):
        assert (name, applied) == ("replicator_dispatch_rate", True)
        self.asked += 1
        return given(self.singly[topic])

    async def policy(self, namespace, name):
        assert name == "replicator_dispatch_rate"
        return self.namespace

    async def configuration(self):
        return given(self.broker)


def given(answer):
    if isinstance(answer, Exception):
        raise answer
    return answer


async def rates(source, *topics):
    found = DispatchRates(source)
    await found.refresh(topics)
    return [found.of(topic) for topic in topics]


async def test_broker_of_ours_answers_for_a_namespace_at_once():
    source = Source(at_once=(DispatchRate(10), {str(B): DispatchRate(-1, 500, True, 2)}))
    assert await rates(source, A, B) == [Rate(10, -1), Rate(-1, 500, 2, relative=True)]


async def test_rates_without_a_limit_are_none():
    assert await rates(Source(at_once=(DispatchRate(0, 0), {})), A) == [None]
    assert await rates(Source(singly={A: None, B: TopicNotFound("gone")}), A, B) == [None, None]


async def test_other_brokers_are_asked_for_each_topic_and_not_at_every_look():
    source = Source(singly={A: DispatchRate(5)})
    found = DispatchRates(source)  # type: ignore[arg-type]
    for _ in range(3):
        await found.refresh([A])
    assert (found.of(A), source.asked) == (Rate(5, -1), 1)


async def test_topic_that_comes_back_is_asked_for_at_once():
    source = Source(singly={A: DispatchRate(5)})
    found = DispatchRates(source)  # type: ignore[arg-type]
    for topics in ([A], [], [A]):
        await found.refresh(topics)
    assert (found.of(A), source.asked) == (Rate(5, -1), 2)


OFF = NotAllowed("Topic level policies are disabled")
CONFIGURATION = {
    "dispatchThrottlingRatePerReplicatorInMsg": "7",
    "dispatchThrottlingRatePerReplicatorInByte": "0",
}


@pytest.mark.parametrize(
    ("source", "rate"),
    [
        (Source(singly={A: OFF}, namespace=DispatchRate(3)), Rate(3, -1)),
        (Source(singly={A: OFF}, broker=CONFIGURATION), Rate(7, 0)),
        (Source(singly={A: OFF}, broker=AuthorizationError("super-users only")), None),
    ],
    ids=["namespace", "broker", "not-told"],
)
async def test_where_topics_have_no_policies_the_namespace_counts_and_then_the_broker(source, rate):
    assert await rates(source, A) == [rate]


@pytest.mark.parametrize("at_once", [True, False])
async def test_rates_stay_while_the_source_does_not_answer(at_once, caplog):
    source = (
        Source(at_once=(DispatchRate(5), {})) if at_once else Source(singly={A: DispatchRate(5), B: DispatchRate(6)})
    )
    found = DispatchRates(source)  # type: ignore[arg-type]
    await found.refresh([A])
    source.at_once, source.singly[B] = NotConnected("east is away") if at_once else None, NotConnected("east is away")
    for _ in range(2):
        await found.refresh([A, B])
    assert found.of(A) == Rate(5, -1)
    assert caplog.text.count("east is away") == 1


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
    monkeypatch.setattr(route_policies, "time", clock)
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
