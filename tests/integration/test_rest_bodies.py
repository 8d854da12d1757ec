"""No call drops a part of its body in silence: a table over every route that could take one."""

from __future__ import annotations

import re

from interpulse.broker.rest import unsupported
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
    if route.method in ("POST", "PUT")
    and route not in unsupported.ROUTES
    and (route.method, route.path) not in BODILESS | FREE.keys()
]


def _path(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: VALUES.get(part[1], "new"), route.path)


async def test_unknown_field_is_named_in_a_refusal() -> None:
    passed = []
    async with rest_broker() as broker:
        assert (await call(broker.web_url, "PUT", "persistent/public/default/x/subscription/s")).status == 204
        for route in WITH_BODY:
            reply = await call(broker.web_url, route.method, _path(route), {"nonsense": 1})
            named = reply.status in (400, 412) and re.search(
                "nonsense|must be|Unknown schema|in the query", reply.reason
            )
            if not named:
                passed.append(f"{route.method} {route.path}: {reply.status} {reply.body!r}")
    assert not passed, "\n".join(passed)


def test_lists_of_other_routes_name_routes_only() -> None:
    assert BODILESS | FREE.keys() <= {(route.method, route.path) for route in ROUTES}
