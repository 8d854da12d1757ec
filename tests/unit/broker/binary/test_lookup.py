"""BATCH_LOOKUP on the wire: groups, failures, and refusals of the whole request (PIP-35)."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.model.errors import ServerError
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands

X, Y = "persistent://public/default/x", "persistent://public/default/y"
MISSING = "persistent://public/default/missing"


async def test_batch_when_all_is_well_then_one_group_to_connect_to(client: Any) -> None:
    answer = await client.ask(commands.batch_lookup(7, [X, Y, X]))
    assert isinstance(answer, pb.CommandBatchLookupTopicResponse)
    assert answer.request_id == 7
    (group,) = answer.groups
    assert list(group.topicname) == [X, Y]
    assert (group.brokerServiceUrl, group.HasField("brokerServiceUrlTls")) == ("pulsar://127.0.0.1:6650", False)
    assert (group.response, group.authoritative) == (pb.CommandLookupTopicResponse.Connect, True)
    assert not group.proxy_through_service_url
    assert not answer.HasField("error")
    assert not answer.failures
    assert not answer.partitions


async def test_batch_when_topics_fail_then_each_reason_holds_its_topics(client: Any) -> None:
    answer = await client.ask(commands.batch_lookup(7, ["a/b", "no/such/t", X, "no/such/u"]))
    assert [list(group.topicname) for group in answer.groups] == [[X]]
    failures = [(failure.error, list(failure.topicname)) for failure in answer.failures]
    assert failures == [(pb.InvalidTopicName, ["a/b"]), (pb.TopicNotFound, ["no/such/t", "no/such/u"])]
    assert answer.failures[1].message == "Namespace no/such does not exist"


async def test_batch_when_topics_must_exist_then_missing_ones_fail_with_11(client: Any) -> None:
    answer = await client.ask(commands.batch_lookup(7, [X, MISSING], create_if_missing=False))
    assert [list(group.topicname) for group in answer.groups] == [[X]]
    assert [(each.error, list(each.topicname)) for each in answer.failures] == [(pb.TopicNotFound, [MISSING])]


async def test_batch_when_partitions_are_wanted_then_they_are_counted_and_named(client: Any) -> None:
    answer = await client.ask(commands.batch_lookup(7, [MISSING], expand_partitions=True))
    assert [(each.topic, each.partitions) for each in answer.partitions] == [(MISSING, 4)]
    assert list(answer.groups[0].topicname) == [f"{MISSING}-partition-{index}" for index in range(4)]


@pytest.mark.parametrize(
    ("limits", "topics", "code"),
    [
        pytest.param(
            BrokerConfig(supports_batch_lookup=False), [X], ServerError.UnsupportedVersionError, id="switched-off"
        ),
        pytest.param(BrokerConfig(), [], ServerError.NotAllowedError, id="no-topics"),
        pytest.param(
            BrokerConfig(max_topics_per_batch_lookup=1), [X, Y], ServerError.NotAllowedError, id="too-many-topics"
        ),
    ],
)
async def test_batch_when_refused_as_a_whole_then_its_own_answer_says_why(
    client: Any, limits: BrokerConfig, topics: list[str], code: ServerError
) -> None:
    client.context.batch_limits = limits
    answer = await client.ask(commands.batch_lookup(7, topics))
    assert isinstance(answer, pb.CommandBatchLookupTopicResponse)
    assert (answer.request_id, answer.error) == (7, code)
    assert answer.message
    assert not answer.groups
    assert not answer.failures


async def test_batch_when_no_permit_is_left_then_14(client: Any) -> None:
    client.context.permits_max = 0
    assert (await client.ask(commands.batch_lookup(7, [X]))).error == ServerError.TooManyRequests
    client.context.permits_max = 1
    for _ in range(3):
        assert (await client.ask(commands.batch_lookup(7, [X, "a/b"]))).groups


async def test_batch_when_the_listener_is_unknown_then_its_topics_fail_as_a_single_lookup(client: Any) -> None:
    single = await client.ask(commands.lookup(1, X, listener_name="inside"))
    answer = await client.ask(commands.batch_lookup(7, [X, Y], listener_name="inside"))
    (failure,) = answer.failures
    assert (failure.error, failure.message, list(failure.topicname)) == (single.error, single.message, [X, Y])


async def test_batches_when_pipelined_then_all_are_answered_beside_other_requests(client: Any) -> None:
    client.context.permits_max = 100
    frames = [commands.batch_lookup(number, [f"t-{number}", X]) for number in range(20)]
    client.send(*frames, commands.lookup(99, X))
    answered: dict[int, Any] = {}
    for _ in range(10):
        for frame in await client.answers():
            content = frame.command.ListFields()[1][1]
            answered[content.request_id] = content
    assert set(answered) == {*range(20), 99}
    assert list(answered[13].groups[0].topicname) == ["t-13", X]
