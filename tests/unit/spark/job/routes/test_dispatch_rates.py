"""The rates of replication as different sources answer for them."""

from types import SimpleNamespace

import pytest

from interpulse.model.errors import AuthorizationError, NotAllowed, NotConnected, NotSupported, TopicNotFound
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import DispatchRate
from interpulse.spark.job.routes.dispatch_rates import DispatchRates
from interpulse.spark.reading.throttle import Rate

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
