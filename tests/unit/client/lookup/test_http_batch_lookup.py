"""Lookups of many topics over HTTP with one question (PIP-35), and brokers that do not offer it."""

import pytest

from interpulse.client.config import BrokerAddress, ClientConfig
from interpulse.client.lookup.http_lookup import HttpLookup
from interpulse.client.transport.connection_pool import ConnectionPool
from interpulse.model.errors import (
    PulsarError,
    ServiceNotReady,
    TopicNotFound,
)
from interpulse.model.names import TopicName
from tests.support.stub_web import StubWeb


def parsed(*names: str) -> list[TopicName]:
    return [TopicName.parse(name) for name in names]


HTTP_TOPICS = "/lookup/v2/topics"


def http_group(url: str, *names: str, response: str = "Connect") -> dict[str, object]:
    return {"brokerUrl": url, "response": response, "topics": [str(topic) for topic in parsed(*names)]}


async def over_http(web: StubWeb, *names: str, **options: object) -> dict[str, BrokerAddress | PulsarError]:
    config = ClientConfig(web.url, backoff_initial_ms=1, **options)  # type: ignore[arg-type]
    lookup = HttpLookup(config, ConnectionPool(config))
    answers = await lookup.brokers(parsed(*names))
    await lookup.close()
    return {topic.local_name: answer for topic, answer in answers.items()}


async def test_http_brokers_when_offered_then_one_question_answers_them_all(web: StubWeb) -> None:
    failure = {"code": 11, "status": 404, "reason": "gone", "topics": [str(TopicName.parse("b"))]}
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a", "c")], "failures": [failure]})
    answers = await over_http(web, "a", "b", "c", listener_name="inside")
    assert answers["a"] == answers["c"] == BrokerAddress("x", 1)
    assert isinstance(answers["b"], TopicNotFound)
    assert [asked.method for asked in web.asked] == ["POST"]
    assert web.last.body == {"topics": [str(topic) for topic in parsed("a", "b", "c")], "listenerName": "inside"}


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_http_brokers_when_not_offered_then_asks_one_by_one(web: StubWeb, status: int) -> None:
    web.answer_raw("POST", HTTP_TOPICS, b"", status=status)
    for name in "ab":
        web.answer("GET", f"/lookup/v2/topic/persistent/public/default/{name}", {"brokerUrl": "pulsar://x:1"})
    assert await over_http(web, "a", "b") == dict.fromkeys("ab", BrokerAddress("x", 1))


async def test_http_brokers_when_too_many_then_halves_are_asked(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "at most 1"}, status=413)
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a")], "failures": []})
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://y:1", "b")], "failures": []})
    assert await over_http(web, "a", "b") == {"a": BrokerAddress("x", 1), "b": BrokerAddress("y", 1)}


async def test_http_brokers_when_redirected_or_not_ready_then_those_are_asked_singly(web: StubWeb) -> None:
    failure = {"code": 6, "status": 503, "reason": "later", "topics": [str(TopicName.parse("c"))]}
    groups = [http_group("pulsar://x:1", "a"), http_group("pulsar://y:1", "b", response="Redirect")]
    web.answer("POST", HTTP_TOPICS, {"groups": groups, "failures": [failure]})
    for name in "bc":
        web.answer("GET", f"/lookup/v2/topic/persistent/public/default/{name}", {"brokerUrl": "pulsar://z:1"})
    answers = await over_http(web, "a", "b", "c")
    assert answers == {"a": BrokerAddress("x", 1), "b": BrokerAddress("z", 1), "c": BrokerAddress("z", 1)}


async def test_http_brokers_when_the_service_has_no_permits_then_asked_again(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "too many"}, status=503)
    web.answer("POST", HTTP_TOPICS, {"groups": [http_group("pulsar://x:1", "a", "b")], "failures": []})
    assert await over_http(web, "a", "b") == dict.fromkeys("ab", BrokerAddress("x", 1))


async def test_http_brokers_when_it_never_works_then_every_topic_has_that_failure(web: StubWeb) -> None:
    web.answer("POST", HTTP_TOPICS, {"reason": "too many"}, status=503)
    answers = await over_http(web, "a", "b", lookup_timeout_ms=200)
    assert [type(answer) for answer in answers.values()] == [ServiceNotReady, ServiceNotReady]
