"""Lookups over HTTP."""

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
    ServiceNotReady,
    TopicLimitReached,
    TopicNotFound,
    UnknownError,
)
from interpulse.model.names import NamespaceName, TopicName
from tests.support.stub_web import StubWeb


def parsed(*names: str) -> list[TopicName]:
    return [TopicName.parse(name) for name in names]


HTTP_TOPICS = "/lookup/v2/topics"


def http_group(url: str, *names: str, response: str = "Connect") -> dict[str, object]:
    return {"brokerUrl": url, "response": response, "topics": [str(topic) for topic in parsed(*names)]}


async def brokers_over_http(web: StubWeb, *names: str, **options: object) -> dict[str, BrokerAddress | PulsarError]:
    config = ClientConfig(web.url, backoff_initial_ms=1, **options)  # type: ignore[arg-type]
    lookup = HttpLookup(config, ConnectionPool(config))
    answers = await lookup.brokers(parsed(*names))
    await lookup.close()
    return {topic.local_name: answer for topic, answer in answers.items()}


async def test_http_brokers_when_offered_then_one_question_answers_them_all(web: StubWeb) -> None:
    failure = {"code": 11, "status": 404, "reason": "gone", "topics": [str(TopicName.parse("b"))]}
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a", "c")], "failures": [failure]})
    answers = await brokers_over_http(web, "a", "b", "c", listener_name="inside")
    assert answers["a"] == answers["c"] == BrokerAddress("x", 1)
    assert isinstance(answers["b"], TopicNotFound)
    assert [asked.method for asked in web.asked] == ["POST"]
    assert web.last.body == {"topics": [str(topic) for topic in parsed("a", "b", "c")], "listenerName": "inside"}


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_http_brokers_when_not_offered_then_asks_one_by_one(web: StubWeb, status: int) -> None:
    web.answer_raw("POST", HTTP_TOPICS, b"", status=status)
    for name in "ab":
        web.answer("GET", f"/lookup/v2/topic/persistent/public/default/{name}", {"brokerUrl": "pulsar://x:1"})
    assert await brokers_over_http(web, "a", "b") == dict.fromkeys("ab", BrokerAddress("x", 1))


async def test_http_brokers_when_too_many_then_halves_are_asked(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "at most 1"}, status=413)
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a")], "failures": []})
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://y:1", "b")], "failures": []})
    assert await brokers_over_http(web, "a", "b") == {"a": BrokerAddress("x", 1), "b": BrokerAddress("y", 1)}


async def test_http_brokers_when_redirected_or_not_ready_then_those_are_asked_singly(web: StubWeb) -> None:
    failure = {"code": 6, "status": 503, "reason": "later", "topics": [str(TopicName.parse("c"))]}
    groups = [http_group("pulsar://x:1", "a"), http_group("pulsar://y:1", "b", response="Redirect")]
    web.answer("POST", HTTP_TOPICS, {"groups": groups, "failures": [failure]})
    for name in "bc":
        web.answer("GET", f"/lookup/v2/topic/persistent/public/default/{name}", {"brokerUrl": "pulsar://z:1"})
    answers = await brokers_over_http(web, "a", "b", "c")
    assert answers == {"a": BrokerAddress("x", 1), "b": BrokerAddress("z", 1), "c": BrokerAddress("z", 1)}


async def test_http_brokers_when_the_service_has_no_permits_then_asked_again(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "too many"}, status=503)
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a", "b")], "failures": []})
    assert await brokers_over_http(web, "a", "b") == dict.fromkeys("ab", BrokerAddress("x", 1))


async def test_http_brokers_when_it_never_works_then_every_topic_has_that_failure(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "too many"}, status=503)
    answers = await brokers_over_http(web, "a", "b", lookup_timeout_ms=200)
    assert [type(answer) for answer in answers.values()] == [ServiceNotReady, ServiceNotReady]


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
