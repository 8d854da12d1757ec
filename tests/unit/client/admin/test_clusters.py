"""Requests about clusters."""

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.clusters import ClusterData, FailureDomain
from interpulse.model.errors import InvalidRequest
from interpulse.model.isolation import BrokerIsolation, IsolationPolicy
from tests.support.stub_web import StubWeb

CLUSTER = {"serviceUrl": "http://w:8080", "brokerClientTlsEnabled": False, "tlsAllowInsecureConnection": False}
ISOLATION = {
    "namespaces": ["t/.*"],
    "primary": ["a"],
    "secondary": ["b"],
    "auto_failover_policy": {
        "policy_type": "min_available",
        "parameters": {"min_limit": "1", "usage_threshold": "80"},
    },
    "unload_scope": "none",
}


async def test_cluster_when_changed_then_requests_are_as_pulsars(web: StubWeb, admin: AdminClient) -> None:
    await admin.clusters.create("west", ClusterData(service_url="http://w:8080"))
    await admin.clusters.update("west", ClusterData(service_url="http://w:8080"))
    await admin.clusters.delete("west")
    assert [(asked.method, asked.target, asked.body) for asked in web.asked] == [
        ("PUT", "/admin/v2/clusters/west", CLUSTER),
        ("POST", "/admin/v2/clusters/west", CLUSTER),
        ("DELETE", "/admin/v2/clusters/west", None),
    ]


async def test_cluster_when_read_then_is_a_value(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/clusters", ["east"])
    web.answer("GET", "/admin/v2/clusters/east", CLUSTER | {"newer": 1})
    assert await admin.clusters.list() == ["east"]
    assert (await admin.clusters.get("east")).service_url == "http://w:8080"
    assert await admin.clusters.get_json("east") == CLUSTER | {"newer": 1}


async def test_peers_and_failure_domains_when_read_then_are_values(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", "/admin/v2/clusters/east/peers", ["west"])
    web.answer("GET", "/admin/v2/clusters/east/failureDomains", {"d": {"brokers": ["a:1"]}})
    web.answer("GET", "/admin/v2/clusters/east/failureDomains/two%20words", {"brokers": ["b:1"]})
    assert await admin.clusters.peers("east") == ["west"]
    assert await admin.clusters.peers("west") is None
    assert await admin.clusters.failure_domains("east") == {"d": FailureDomain(("a:1",))}
    assert await admin.clusters.failure_domain("east", "two words") == FailureDomain(("b:1",))


async def test_peers_and_failure_domains_when_changed_then_requests_are_as_pulsars(
    web: StubWeb, admin: AdminClient
) -> None:
    await admin.clusters.set_peers("east", ["west"])
    await admin.clusters.set_failure_domain("east", "d", FailureDomain(("a:1",)))
    await admin.clusters.delete_failure_domain("east", "d")
    assert [(asked.method, asked.target, asked.body) for asked in web.asked] == [
        ("POST", "/admin/v2/clusters/east/peers", ["west"]),
        ("POST", "/admin/v2/clusters/east/failureDomains/d", {"brokers": ["a:1"]}),
        ("DELETE", "/admin/v2/clusters/east/failureDomains/d", None),
    ]


async def test_isolation_policies_when_used_then_requests_are_as_pulsars(web: StubWeb, admin: AdminClient) -> None:
    root = "/admin/v2/clusters/east/namespaceIsolationPolicies"
    named = {"brokerName": "a:1", "policyName": "p", "namespaceRegex": ["t/.*"], "primary": True}
    unnamed = {"brokerName": "b:1", "namespaceRegex": [], "primary": False}
    web.answer("GET", root, {"p": ISOLATION | {"newer": 1}})
    web.answer("GET", f"{root}/p", ISOLATION)
    web.answer("GET", f"{root}/brokers", [named, unnamed])
    web.answer("GET", f"{root}/brokers/a%3A1", named)
    policy = IsolationPolicy(
        ("t/.*",), ("a",), ("b",), {"min_limit": "1", "usage_threshold": "80"}, unload_scope="none"
    )
    found = BrokerIsolation("a:1", "p", ("t/.*",), primary=True)
    assert await admin.clusters.isolation_policies("east") == {"p": policy}
    assert await admin.clusters.isolation_policy("east", "p") == policy
    assert await admin.clusters.isolation_of_brokers("east") == [found, BrokerIsolation("b:1")]
    assert await admin.clusters.isolation_of_broker("east", "a:1") == found
    assert [each.to_json() for each in (found, BrokerIsolation("b:1"))] == [named, unnamed]
    await admin.clusters.set_isolation_policy("east", "p/q", policy)
    assert (web.last.method, web.last.target, web.last.body) == ("POST", f"{root}/p%2Fq", ISOLATION)
    await admin.clusters.delete_isolation_policy("east", "p")
    assert (web.last.method, web.last.target) == ("DELETE", f"{root}/p")


async def test_name_when_empty_or_of_odd_letters_then_asks_for_nothing_else(web: StubWeb, admin: AdminClient) -> None:
    """Brokers take a path that ends with a slash for the one without."""
    for ask in (
        lambda: admin.clusters.get(""),
        lambda: admin.clusters.failure_domain("east", ""),
        lambda: admin.tenants.delete(""),
        lambda: admin.namespaces.list(""),
        lambda: admin.namespaces.clear_backlog("t/ns", subscription=""),
    ):
        with pytest.raises(InvalidRequest, match="must not be empty"):
            await ask()
    web.answer("GET", "/admin/v2/namespaces/a%2Fb", ["a/b/c"])
    assert await admin.namespaces.list("a/b") == ["a/b/c"]
    assert len(web.asked) == 1
