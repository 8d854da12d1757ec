"""Previews of changes: the broker names them, refuses what it would refuse, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from tests.support.cli_cluster import CliCluster
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call

pytestmark = pytest.mark.usefixtures("demo_namespace")

INFO = {"adminRoles": ["a"], "allowedClusters": ["standalone"]}
WEST = {"serviceUrl": "http://w:8080"}
PREVIEWS: list[tuple[str, str, Any, list[tuple[str, str]]]] = [
    ("PUT", "tenants/other", INFO, [("SetTenant", "other")]),
    ("POST", "tenants/demo", INFO, [("SetTenant", "demo")]),
    ("POST", "tenants/demo", {"allowedClusters": ["standalone"]}, []),
    ("DELETE", "tenants/demo?force=true", None, [("DeleteNamespace", "demo/a"), ("DeleteTenant", "demo")]),
    ("PUT", "clusters/west", WEST, [("SetCluster", "west")]),
    ("POST", "clusters/standalone", WEST, [("SetCluster", "standalone")]),
    ("PUT", "namespaces/demo/b", None, [("SetNamespacePolicies", "demo/b")]),
    ("DELETE", "namespaces/demo/a", None, [("DeleteNamespace", "demo/a")]),
]
REFUSED: list[tuple[str, str, Any]] = [
    ("PUT", "tenants/demo", INFO),
    ("PUT", "tenants/other", {"allowedClusters": ["nowhere"]}),
    ("POST", "tenants/other", INFO),
    ("DELETE", "tenants/demo", None),
    ("DELETE", "tenants/other", None),
    ("PUT", "clusters/standalone", WEST),
    ("PUT", "clusters/west", {"serviceUrl": "west:8080"}),
    ("DELETE", "clusters/standalone", None),
    ("DELETE", "clusters/west", None),
    ("PUT", "namespaces/demo/a", None),
    ("PUT", "namespaces/other/a", None),
    ("PUT", "namespaces/demo/b", {"replication_clusters": ["nowhere"]}),
    ("DELETE", "namespaces/demo/b", None),
    ("DELETE", "namespaces/pulsar/system", None),
]


@pytest.fixture
async def broker() -> AsyncIterator[RestBroker]:
    """A broker that may delete by force."""
    config = BrokerConfig(force_delete_namespace_allowed=True, force_delete_tenant_allowed=True)
    async with rest_broker(config) as started:
        yield started


def previewed(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}preview=true"


def subjects(changes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(change["change"], change.get("name") or change["namespace"]) for change in changes]


async def picture(broker: RestBroker) -> dict[str, tuple[bytes, int]]:
    return dict(await broker.store.scan("/", limit=10_000))


@pytest.mark.parametrize(
    ("method", "path", "body", "changes"), PREVIEWS, ids=[f"{row[0]} {row[1]}" for row in PREVIEWS]
)
async def test_change_when_previewed_then_is_named_and_not_made(
    broker: RestBroker, method: str, path: str, body: Any, changes: list[tuple[str, str]]
) -> None:
    before = await picture(broker)
    answer = await call(broker.web_url, method, previewed(path), body)
    assert (answer.status, subjects(answer.json)) == (200, changes)
    assert await picture(broker) == before
    assert (await call(broker.web_url, method, path, body)).status == 204


@pytest.mark.parametrize(("method", "path", "body"), REFUSED, ids=[f"{row[0]} {row[1]}" for row in REFUSED])
async def test_change_when_it_is_refused_then_so_is_its_preview(
    broker: RestBroker, method: str, path: str, body: Any
) -> None:
    preview = await call(broker.web_url, method, previewed(path), body)
    made = await call(broker.web_url, method, path, body)
    assert preview.status >= 400
    assert (preview.status, preview.body) == (made.status, made.body)


async def test_preview_when_spelled_oddly_then_nothing_is_changed(broker: RestBroker) -> None:
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a?preview=yes")).status == 400
    assert (await call(broker.web_url, "GET", "namespaces/demo/a")).status == 200


async def test_namespace_when_it_holds_topics_then_only_a_forced_deletion_is_previewed(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "persistent/demo/a/t")
    assert (await call(broker.web_url, "DELETE", "namespaces/demo/a?preview=true")).status == 409
    answer = await call(broker.web_url, "DELETE", "namespaces/demo/a?force=true&preview=true")
    assert subjects(answer.json) == [("DeleteNamespace", "demo/a")]
    assert (await call(broker.web_url, "GET", "persistent/demo/a")).json == ["persistent://demo/a/t"]


COMMANDS = {
    "tenants create other -c standalone": "SetTenant",
    "tenants update demo -r a": "SetTenant",
    "tenants delete demo -f": "DeleteNamespace",
    "clusters create west --url http://w:8080": "SetCluster",
    "clusters update standalone --url http://w:8080": "SetCluster",
    "namespaces create demo/b": "SetNamespacePolicies",
    "namespaces delete demo/a": "DeleteNamespace",
}


async def test_command_when_previewed_then_prints_the_changes(broker: RestBroker) -> None:
    cluster = CliCluster(broker.web_url, "")
    before = await picture(broker)
    for line, change in COMMANDS.items():
        assert (await asyncio.to_thread(cluster.json, f"{line} --preview"))[0]["change"] == change
    code, _, error = await asyncio.to_thread(cluster.attempt, "clusters delete standalone --all --preview")
    assert (code, "--all excludes --preview" in error) == (2, True)
    assert await picture(broker) == before
