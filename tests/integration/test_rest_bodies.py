"""No call drops a part of its body in silence: a table over every route that takes one."""

from __future__ import annotations

import re

import pytest

from interpulse.broker.rest import unsupported
from interpulse.broker.rest.http.admin_calls import IGNORED_FIELDS_HEADER
from interpulse.broker.rest.http.call import Route
from interpulse.broker.rest.server import ROUTES
from tests.support.rest_broker import rest_broker
from tests.support.rest_client import call

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
VALUES = {
    "tenant": "public",
    "namespace": "default",
    "topic": "x",
    "subscription": "s",
    "cluster": "standalone",
    "domain": "persistent",
    "bundle": "0x00000000_0xffffffff",
}
FREE = {
    ("PUT", TOPIC): "the properties of a topic have any name",
    ("PUT", f"{TOPIC}/properties"): "so have these",
    ("PUT", f"{NAMESPACE}/properties"): "so have those of a namespace",
    ("PUT", f"{TOPIC}/subscription/{{subscription}}/properties"): "so have these",
}
BODILESS = {
    ("POST", f"{NAMESPACE}/clearBacklog"),
    ("POST", f"{NAMESPACE}/clearBacklog/{{subscription}}"),
    ("POST", f"{NAMESPACE}/{{bundle}}/clearBacklog"),
    ("POST", f"{NAMESPACE}/{{bundle}}/clearBacklog/{{subscription}}"),
    ("POST", f"{NAMESPACE}/failover/apply"),
    ("POST", f"{NAMESPACE}/unsubscribe/{{subscription}}"),
    ("POST", f"{NAMESPACE}/{{bundle}}/unsubscribe/{{subscription}}"),
    ("PUT", f"{NAMESPACE}/unload"),
    ("PUT", f"{NAMESPACE}/{{bundle}}/unload"),
    ("POST", f"{TOPIC}/createMissedPartitions"),
    ("POST", f"{TOPIC}/trim"),
    ("PUT", f"{TOPIC}/unload"),
    ("PUT", f"{TOPIC}/compaction"),
    ("POST", f"{TOPIC}/terminate"),
    ("POST", f"{TOPIC}/terminate/partitions"),
    ("POST", f"{TOPIC}/subscription/{{subscription}}/resetcursor/{{time}}"),
    ("POST", f"{TOPIC}/subscription/{{subscription}}/skip_all"),
    ("POST", f"{TOPIC}/subscription/{{subscription}}/skip/{{count}}"),
    ("POST", f"{TOPIC}/subscription/{{subscription}}/expireMessages/{{seconds}}"),
    ("POST", f"{TOPIC}/all_subscription/expireMessages/{{seconds}}"),
    ("PUT", f"{NAMESPACE}/property/{{key}}/{{value}}"),
    ("POST", "/admin/v2/brokers/configuration/{key}/{value}"),
}
"""What they do is said by their paths; the body of such a call is not read, in Pulsar neither."""

WITH_BODY = [
    route
    for route in ROUTES
    if route.operation.method in ("POST", "PUT")
    and route not in unsupported.ROUTES
    and (route.operation.method, route.operation.path) not in BODILESS | FREE.keys()
]


def _path(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: VALUES.get(part[1], "new"), route.operation.path)


async def test_unknown_field_is_named_in_the_answer() -> None:
    passed = []
    async with rest_broker() as broker:
        assert (await call(broker.web_url, "PUT", "persistent/public/default/x/subscription/s")).status == 204
        for route in WITH_BODY:
            reply = await call(broker.web_url, route.operation.method, _path(route), {"nonsense": 1})
            if reply.headers.get(IGNORED_FIELDS_HEADER) != "nonsense" and reply.status not in (400, 409, 412, 422, 501):
                passed.append(f"{route.operation.method} {route.operation.path}: {reply.status} {reply.body!r}")
    assert not passed, "\n".join(passed)


async def test_ignored_fields_are_listed_where_they_stand_and_as_a_header_may_hold_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inner = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1, "size": 5}
    many = {f"f{number}\r\n\u00e9": number for number in range(30)}
    async with rest_broker() as broker:
        reply = await call(broker.web_url, "PUT", "namespaces/public/n", {"retention_policies": inner, **many})
        assert reply.status == 204
        listed = reply.headers[IGNORED_FIELDS_HEADER].split(", ")
        assert listed[:2] == ["retention_policies.size", "f0%0D%0A%C3%A9"]
        assert (listed[-1], len(listed)) == ("and 11 more", 21)
        kept = await call(broker.web_url, "GET", "namespaces/public/n/retention")
        assert kept.json == {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    [line] = [record.getMessage() for record in caplog.records if "fields of a request" in record.msg]
    assert "method=PUT path=/admin/v2/namespaces/public/n fields=retention_policies.size, f0%0D" in line


async def test_properties_keep_the_spelling_of_numbers_and_truth_values() -> None:
    async with rest_broker() as broker:
        sent = b'{"a": 1, "b": true, "c": 1.50, "d": "x", "e": 1E+3, "f": null}'
        assert (await call(broker.web_url, "PUT", "namespaces/public/default/properties", sent)).status == 204
        reply = await call(broker.web_url, "GET", "namespaces/public/default/properties")
        assert reply.json == {"a": "1", "b": "true", "c": "1.50", "d": "x", "e": "1E+3"}


def test_lists_of_other_routes_name_routes_only() -> None:
    assert BODILESS | FREE.keys() <= {(route.operation.method, route.operation.path) for route in ROUTES}
