"""Input that no client sends: both front ends refuse it with a reason, nothing comes of it, and the broker goes on.

Names that only look dangerous are names like any other.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus, urlsplit

import psutil
import pytest

from interpulse.model.schemas import SchemaInfo, SchemaType
from interpulse.testing import InProcessBroker
from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient

REASON_MAX = 10_000
HERE = "persistent://public/default"
AVRO = SchemaInfo(SchemaType.STRING, b"", {})

# Encoded as they go into a path.
NO_NAMES = {
    "64 KB": "x" * 65_536,
    "64 KB of what takes three times the room": "%00" * 65_536,
    "5 KB": "x" * 5_000,
    "5 KB when encoded": "%F0%9F%9A%80" * 420,
    "NUL": "a%00b",
    "blank": "%20",
    "encoded slash": "a%2Fb",
    "dots and encoded slashes": "..%2f..%2fetc%2fpasswd",
    "percent sign alone": "100%",
    "percent sign before no digits": "%zz",
    "no UTF-8": "%ff%fe",
    "a slash that is no UTF-8": "%c0%af",
    "half a character": "%ed%a0%80",
}
ODD_NAMES = ["%F0%9F%9A%80", "a+b", "a%2Bb", "..", ".", "a%0d%0aX-Header:%20y", "a%E2%80%AEb", "'%3B--", "%22", "%5C.."]
PATHS = [
    "PUT persistent/public/default/{}",
    "PUT non-persistent/public/default/{}",
    "PUT persistent/public/default/{}/partitions 2",
    "PUT non-persistent/public/default/{}/partitions 2",
    "POST persistent/public/default/{}/partitions 2",
    "GET persistent/public/default/{}/partitions?checkAllowAutoCreation=true",
    "PUT persistent/public/default/{}/subscription/s",
    'PUT persistent/public/default/{}/properties {{"k":"v"}}',
    "DELETE persistent/public/default/{}",
    "DELETE persistent/public/default/{}/truncate",
    "GET persistent/public/default/{}/subscription/s/position/1",
    'PUT tenants/{} {{"allowedClusters":["standalone"]}}',
    "PUT namespaces/public/{}",
    "PUT namespaces/{}/a",
    "POST brokers/configuration/{}/1",
]
NO_NUMBERS = ["-1", "0", "2147483648", "1000000000", "1.5", "1e9", "true", '"two"', "[2]", "9" * 5_000, "NaN", "{}", ""]
NO_OBJECTS = ["", "x", "1", '"x"', "[]", "[" * 100_000, '{"a":' * 100_000, "\ud800", "9" * 5_000]
WRONG_FIELDS = [
    ("PUT tenants/t", "adminRoles", ["x", 1, {"a": 1}, [1], [None]]),
    ("PUT tenants/t", "allowedClusters", ["standalone", 1, [["standalone"]]]),
    ("PUT clusters/c", "serviceUrl", [1, ["http://x"], {}]),
    ("PUT clusters/c", "peerClusterNames", ["x", [[1]], {"a": "b"}]),
    ("PUT clusters/c", "brokerClientTlsEnabled", ["yes", 1.5, []]),
    ("PUT namespaces/public/n", "replication_clusters", ["standalone", 1, [1], {}]),
    (
        "PUT namespaces/public/n",
        "bundles",
        ["x", 4, [4], {"numBundles": "four"}, {"numBundles": 2**40}, {"boundaries": 5}],
    ),
    ("PUT namespaces/public/n", "autoTopicCreationOverride", ["x", 1, [], {"defaultNumPartitions": "two"}]),
    ("PUT namespaces/public/n", "retention_policies", ["x", 1, {"retentionTimeInMinutes": []}]),
    ("PUT namespaces/public/n", "max_topics_per_namespace", ["x", 2**31, 1.5, {}]),
    ("POST namespaces/public/default/retention", "retentionTimeInMinutes", ["x", {}, [], 2**31, 1e300]),
    ("POST schemas/public/default/t/schema", "type", [1, [], {}, "NOTHING"]),
    ("PUT persistent/public/default/t", "k", [[], {}, [1]]),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with InProcessBroker(tmp_path_factory.mktemp("hostile")) as started:
        yield started


def call(web_url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, str, bytes]:
    """Status, content type and body of one call, whose path goes out exactly as it is written."""
    address = urlsplit(web_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    try:
        connection.request(method, f"/admin/v2/{path}", body=body)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    finally:
        connection.close()


def everything(broker: InProcessBroker) -> list[Any]:
    """Whatever could have been created."""
    lists = (
        "tenants",
        "clusters",
        "namespaces/public",
        "namespaces/public/default",
        "persistent/public/default",
        "persistent/public/default/partitioned",
        "non-persistent/public/default",
        "non-persistent/public/default/partitioned",
        "brokers/configuration/values",
    )
    return [json.loads(call(broker.web_url, "GET", path)[2]) for path in lists]


def refused(broker: InProcessBroker, *lines: str) -> None:
    """Each ``METHOD path [body]`` must be refused for what it is, and nothing may be left behind."""
    before = everything(broker)
    for line in lines:
        method, path, *body = line.split(" ", 2)
        raw = body[0].encode(errors="surrogatepass") if body else None
        status, content_type, answer = call(broker.web_url, method, path, raw)
        assert (400 <= status < 500, content_type) == (True, "application/json"), (line[:100], answer[:200])
        assert 0 < len(json.loads(answer)["reason"]) <= REASON_MAX, line[:100]
    assert everything(broker) == before


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES.keys())
def test_name_when_it_is_none_then_is_refused_over_rest(broker: InProcessBroker, name: str) -> None:
    refused(broker, *(line.format(name) for line in PATHS))


def test_text_that_utf_8_cannot_hold_when_it_names_a_cluster_then_is_refused(broker: InProcessBroker) -> None:
    call(broker.web_url, "PUT", "persistent/public/default/t")
    half = r'["standalone","\ud800"]'
    refused(
        broker,
        "PUT namespaces/public/n " + r'{"replication_clusters":["\ud800"]}',
        f"POST namespaces/public/default/replication {half}",
        f"POST namespaces/public/default/allowedClusters {half}",
        f"POST persistent/public/default/t/replication {half}",
    )


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_number_that_json_cannot_hold_when_it_is_in_a_body_then_is_refused(
    broker: InProcessBroker, number: str
) -> None:
    refused(broker, f'PUT namespaces/public/n {{"of_a_newer_tool":{number}}}')


@pytest.mark.parametrize("name", ["64 KB", "NUL", "no UTF-8", "percent sign alone"])
def test_subscription_when_its_name_is_none_then_is_refused_over_rest(broker: InProcessBroker, name: str) -> None:
    call(broker.web_url, "PUT", "persistent/public/default/subscribed")
    refused(broker, f"PUT persistent/public/default/subscribed/subscription/{NO_NAMES[name]}")
    assert call(broker.web_url, "GET", "persistent/public/default/subscribed/subscriptions")[2] == b"[]"


@pytest.mark.parametrize("name", ODD_NAMES)
def test_name_when_it_is_only_odd_then_is_that_name(broker: InProcessBroker, name: str) -> None:
    before = everything(broker)
    for domain in ("persistent", "non-persistent"):
        path = f"{domain}/public/default/{name}"
        assert call(broker.web_url, "PUT", path)[0] == 204
        listed = json.loads(call(broker.web_url, "GET", f"{domain}/public/default")[2])
        assert f"{domain}://public/default/{unquote_plus(name)}" in listed
        assert call(broker.web_url, "DELETE", path)[0] == 204
    assert everything(broker) == before


@pytest.mark.parametrize("body", NO_NUMBERS, ids=lambda body: body[:12] or "nothing")
def test_partition_count_when_it_is_none_then_is_refused(broker: InProcessBroker, body: str) -> None:
    call(broker.web_url, "PUT", "persistent/public/default/grown/partitions", b"2")
    created = [f"{domain}/public/default/x/partitions" for domain in ("persistent", "non-persistent")]
    refused(
        broker,
        *(f"PUT {path} {body}" for path in created),
        *(f'PUT {path} {{"partitions":{body or "null"}}}' for path in created),
        *(f"PUT {path}?createLocalTopicOnly=true {body}" for path in created),
        f"POST persistent/public/default/grown/partitions {body}",
    )


@pytest.mark.parametrize("body", NO_OBJECTS, ids=lambda body: repr(body[:12]))
def test_body_when_it_is_no_object_then_is_refused(broker: InProcessBroker, body: str) -> None:
    retention = [f"POST namespaces/public/default/retention {body}"] if body else []  # none takes it away
    refused(
        broker,
        f"PUT clusters/c {body}",
        *retention,
        f"POST persistent/public/default/t/subscription/s/resetcursor {body}",
        f"POST schemas/public/default/t/schema {body}",
    )


@pytest.mark.parametrize(("line", "field", "values"), WRONG_FIELDS)
def test_field_when_its_type_is_wrong_then_is_refused(
    broker: InProcessBroker, line: str, field: str, values: list[Any]
) -> None:
    refused(broker, *(f"{line} {json.dumps({field: value})}" for value in values))


TEXTS = {
    "64 KB": f"{HERE}/{'x' * 65_536}",
    "64 KB partition": f"{HERE}/{'x' * 65_536}-partition-0",
    "64 KB tenant": f"persistent://{'x' * 65_536}/default/t",
    "NUL": f"{HERE}/a\0b",
    "slashes": f"{HERE}/../../etc/passwd",
    "blank": f"{HERE}/ ",
    "no domain": "file://public/default/t",
    "namespace with dots": "persistent://public/../default/t",
    "emoji as a tenant": "persistent://🚀/default/t",
    "nothing": "",
}
QUESTIONS = {
    "metadata": lambda topic: commands.partitioned_metadata(1, topic, create=True),
    "producer": lambda topic: commands.producer(1, 1, topic),
    "consumer": lambda topic: commands.subscribe(1, 1, topic, "s"),
    "schema": lambda topic: commands.get_schema(1, topic),
}


@pytest.mark.parametrize("topic", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("question", QUESTIONS)
def test_name_when_it_is_none_then_is_refused_over_the_binary_port(
    broker: InProcessBroker, question: str, topic: str
) -> None:
    before = everything(broker)
    with RawClient(broker.service_url) as client:
        _check_error(client.ask(QUESTIONS[question](topic)))
        assert client.ask(commands.partitioned_metadata(2, f"{HERE}/after", create=True)).partitions == 0
    assert everything(broker) == before


@pytest.mark.parametrize("name", ["x" * 65_536, "a\0b", " ", ""], ids=["64 KB", "NUL", "blank", "nothing"])
def test_subscription_when_its_name_is_none_then_is_refused_over_the_binary_port(
    broker: InProcessBroker, name: str
) -> None:
    call(broker.web_url, "PUT", "persistent/public/default/consumed")
    with RawClient(broker.service_url) as client:
        _check_error(client.ask(commands.subscribe(1, 1, f"{HERE}/consumed", name)))
    assert call(broker.web_url, "GET", "persistent/public/default/consumed/subscriptions")[2] == b"[]"


def test_text_when_it_is_no_utf8_then_its_connection_ends_and_no_other(broker: InProcessBroker) -> None:
    before = everything(broker)
    with RawClient(broker.service_url) as other:
        for question in QUESTIONS.values():
            with RawClient(broker.service_url) as client:
                client.send(question(f"{HERE}/AAAA").replace(b"AAAA", b"\xff\xfe\xed\xa0"))
                answer = _answer_or_none(client)
                assert answer is None or _check_error(answer)
        assert other.ask(commands.partitioned_metadata(1, f"{HERE}/after", create=True)).partitions == 0
    assert everything(broker) == before


def test_names_when_hundreds_of_long_ones_are_asked_for_then_none_is_remembered(broker: InProcessBroker) -> None:
    """They would be 32 MB each time; whatever else lives in this process does not grow three times in a row."""
    process = psutil.Process()

    def growth(attempt: int) -> int:
        before = process.memory_info().rss
        for number in range(500):
            name = f"{HERE}/{attempt}{'x' * 65_536}{number}"
            client.ask(commands.partitioned_metadata(number, name, create=True))
        return process.memory_info().rss - before

    with RawClient(broker.service_url) as client:
        growth(0)  # until the allocator has what it needs
        assert any(growth(attempt) < 16 * 1024 * 1024 for attempt in (1, 2, 3))


def _check_error(answer: Any) -> bool:
    """A number of the protocol, and a sentence."""
    code = answer.error_code if "error_code" in answer.DESCRIPTOR.fields_by_name else answer.error
    assert code > 0 or answer.message
    text = answer.error_message if "error_message" in answer.DESCRIPTOR.fields_by_name else answer.message
    assert text or code == pb.TopicNotFound  # real brokers say no more than this about missing metadata
    return True


def _answer_or_none(client: RawClient) -> Any:
    try:
        return client.receive().command.ListFields()[1][1]
    except (EOFError, ConnectionResetError):
        return None
