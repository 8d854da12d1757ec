"""Lookups over HTTP: the paths of Pulsar, and which failures are asked again."""

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.http_lookup import HttpLookup
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    InvalidTopicName,
    NotAllowed,
    PulsarError,
    TopicLimitReached,
    TopicNotFound,
    UnknownError,
)
from interpulse.model.names import NamespaceName, TopicName
from tests.support.stub_web import StubWeb

TOPIC = TopicName.parse("t")
PARTITIONS = "/admin/v2/persistent/public/default/t/partitions"


async def test_http_lookup_when_asked_then_uses_the_paths_of_pulsar(web: StubWeb) -> None:
    web.answer("GET", "/admin/v2/persistent/public/default/t/partitions", {"partitions": 3})
    web.answer("GET", "/lookup/v2/topic/persistent/public/default/t", {"brokerUrl": "pulsar://b:1", "brokerUrlTls": ""})
    web.answer("GET", "/admin/v2/namespaces/public/default/topics", ["x"])
    config = ClientConfig(web.url)
    lookup = HttpLookup(config, ConnectionPool(config))
    assert await lookup.partitions(TOPIC, create=False) == 3
    assert web.last.target.endswith("?checkAllowAutoCreation=false")
    assert await lookup.broker(TOPIC) == BrokerAddress("b", 1)
    assert await lookup.topics_of_namespace(NamespaceName.parse("public/default"), "ALL") == (["x"], False)
    assert web.last.target.endswith("?mode=ALL")
    await lookup.close()


def over_http(web: StubWeb) -> HttpLookup:
    config = ClientConfig(web.url, backoff_initial_ms=1)
    return HttpLookup(config, ConnectionPool(config))


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (401, "Unauthorized", AuthenticationError),
        (403, "Not allowed to look up", AuthorizationError),
        (404, f"Topic {TOPIC} not found", TopicNotFound),
        (404, "Namespace not found: public/default", TopicNotFound),
        (404, "Tenant does not exist", TopicNotFound),
        (406, "Number of partitions should be less than or equal to 3", NotAllowed),
        (409, "Something stands in the way", PulsarError),
        (412, "Invalid topic name: t", InvalidTopicName),
        (412, "Exceed maximum number of topics in namespace public/default", TopicLimitReached),
    ],
)
async def test_http_partitions_when_the_failure_is_final_then_asks_once(
    web: StubWeb, status: int, reason: str, expected: type[PulsarError]
) -> None:
    web.answer("GET", PARTITIONS, {"reason": reason}, status=status)
    lookup = over_http(web)
    with pytest.raises(expected, match=reason):
        await lookup.partitions(TOPIC, create=False)
    assert len(web.asked) == 1
    await lookup.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_http_partitions_when_the_failure_may_pass_then_asks_again(web: StubWeb, status: int) -> None:
    web.answer("GET", PARTITIONS, {"reason": "later"}, status=status)
    web.answer("GET", PARTITIONS, {"partitions": 3})
    lookup = over_http(web)
    assert await lookup.partitions(TOPIC, create=True, fallback_on_old_broker=True) == 3
    assert len(web.asked) == 2
    await lookup.close()


@pytest.mark.parametrize("answer", [[1], 3, {"partitions": "many"}])
async def test_http_partitions_when_the_answer_is_something_else_then_asks_once(web: StubWeb, answer: object) -> None:
    web.answer("GET", PARTITIONS, answer)
    lookup = over_http(web)
    with pytest.raises(UnknownError, match=r"answered GET .* with something other than"):
        await lookup.partitions(TOPIC, create=False)
    await lookup.close()
    assert len(web.asked) == 1
