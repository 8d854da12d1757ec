"""Previews of changes, asked only of brokers that offer them, and requests about single policies."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from interpulse import __version__
from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import NotSupported
from interpulse.model.policies.catalogue import NAMESPACE_CALLS, TOPIC_CALLS
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import (
    AutoTopicCreation,
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)
from tests.support.stub_web import StubWeb

VERSION = "/admin/v2/brokers/version"
DELETED = [{"change": "DeleteTenant", "name": "demo"}]


@pytest.mark.parametrize("version", [__version__, "1000.0.0", f"{__version__}.dev1"])
async def test_preview_when_the_broker_offers_it_then_gives_its_changes(
    web: StubWeb, admin: AdminClient, version: str
) -> None:
    web.answer("GET", VERSION, f"5.0.0+interpulse-{version}")
    web.answer("DELETE", "/admin/v2/tenants/demo", DELETED)
    assert await admin.tenants.delete("demo", force=True, previewed=True) == DELETED
    assert (web.last.method, web.last.target) == ("DELETE", "/admin/v2/tenants/demo?force=true&preview=true")


@pytest.mark.parametrize("version", ["4.0.4", "5.0.0-SNAPSHOT", "5.0.0+interpulse-0.0.9"])
async def test_preview_when_the_broker_would_make_the_change_then_it_is_not_asked(
    web: StubWeb, admin: AdminClient, version: str
) -> None:
    web.answer("GET", VERSION, version)
    with pytest.raises(NotSupported, match=f"offers no previews; use Interpulse {__version__}"):
        await admin.tenants.delete("demo", previewed=True)
    assert [asked.method for asked in web.asked] == ["GET"]


async def test_change_when_not_previewed_then_the_version_is_not_asked_for(web: StubWeb, admin: AdminClient) -> None:
    assert await admin.tenants.delete("demo") is None
    assert [asked.method for asked in web.asked] == ["DELETE"]


NAMESPACE, TOPIC = "/admin/v2/namespaces/t/ns", "/admin/v2/persistent/t/ns/a"
VALUES: dict[str, Any] = {
    "publish_rate": PublishRate(1, 2),
    "dispatch_rate": DispatchRate(1, 2, True, 3),
    "subscription_dispatch_rate": DispatchRate(1),
    "subscribe_rate": SubscribeRate(1, 2),
    "replicator_dispatch_rate": DispatchRate(3, 4),
    "inactive_topics": InactiveTopicPolicies(),
    "retention": RetentionPolicies(1, 2),
    "delayed_delivery": DelayedDelivery(True, 5, 6),
    "persistence": Persistence(3, 2, 2),
    "subscription_types_enabled": frozenset({"Shared", "Failover"}),
    "auto_subscription_creation_allowed": False,
    "schema_compatibility_strategy": "FULL",
    "schema_validation_enforced": True,
    "deduplication_enabled": True,
    "encryption_required": True,
    "auto_topic_creation": AutoTopicCreation(True, "partitioned", 3),
    "allow_auto_update_schema": False,
    "replication_clusters": ["east", "west"],
}


def value_of(name: str) -> Any:
    return VALUES.get(name, 7)


@pytest.mark.parametrize("name", NAMESPACE_CALLS)
async def test_policy_of_a_namespace_when_set_then_can_be_read_and_taken_away(
    web: StubWeb, admin: AdminClient, name: str
) -> None:
    call = NAMESPACE_CALLS[name].level
    await admin.namespaces.set_policy("t/ns", name, value_of(name))
    sent = web.last
    assert (sent.method, sent.target) == (call.method, f"{NAMESPACE}/{call.path}")
    web.answer("GET", sent.target, sent.body)
    assert await admin.namespaces.policy("t/ns", name) == value_of(name)
    await admin.namespaces.remove_policy("t/ns", name)
    removed = ("POST" if name == "deduplication_snapshot_seconds" else "DELETE", sent.target, None)
    assert (web.last.method, web.last.target, web.last.body) == removed


@pytest.mark.parametrize("name", TOPIC_CALLS)
async def test_policy_of_a_topic_when_set_then_can_be_read_and_taken_away(
    web: StubWeb, admin: AdminClient, name: str
) -> None:
    call = TOPIC_CALLS[name].level
    await admin.topic_policies.set("t/ns/a", name, value_of(name))
    sent = web.last
    assert sent.target == f"{TOPIC}/{call.path}" + (f"?{call.path}={value_of(name)}" if call.in_query else "")
    web.answer("GET", f"{TOPIC}/{call.path}", value_of(name) if call.in_query else sent.body)
    assert await admin.topic_policies.get("t/ns/a", name, applied=True) == value_of(name)
    assert web.last.target == f"{TOPIC}/{call.path}?applied=true"
    await admin.topic_policies.remove("t/ns/a", name)
    assert (web.last.method, web.last.target) == ("DELETE", f"{TOPIC}/{call.path}")


def test_policies_of_topics_when_listed_then_are_attributes_of_theirs() -> None:
    assert set(TOPIC_CALLS) < {each.name for each in fields(TopicPolicies)}


async def test_policy_when_not_set_then_is_none(web: StubWeb, admin: AdminClient) -> None:
    assert await admin.namespaces.policy("t/ns", "retention") is None
    assert await admin.topic_policies.get("t/ns/a", "retention") is None


async def test_policy_when_meant_for_all_clusters_then_says_so(web: StubWeb, admin: AdminClient) -> None:
    await admin.topic_policies.set("t/ns/a", "max_producers", 5, everywhere=True)
    assert (web.last.target, web.last.body) == (f"{TOPIC}/maxProducers?isGlobal=true", 5)
    await admin.topic_policies.remove("t/ns/a", "max_producers", everywhere=True)
    assert web.last.target == f"{TOPIC}/maxProducers?isGlobal=true"


async def test_quotas_when_set_then_can_be_read_and_taken_away(web: StubWeb, admin: AdminClient) -> None:
    quota = BacklogQuota(5, -1, "producer_exception")
    await admin.namespaces.set_backlog_quota("t/ns", quota)
    assert (web.last.target, web.last.body) == (
        f"{NAMESPACE}/backlogQuota?backlogQuotaType=destination_storage",
        quota.to_json(),
    )
    await admin.topic_policies.set_backlog_quota("t/ns/a", quota, "message_age")
    assert web.last.target == f"{TOPIC}/backlogQuota?backlogQuotaType=message_age"
    web.answer("GET", f"{NAMESPACE}/backlogQuotaMap", {"message_age": quota.to_json()})
    assert await admin.namespaces.backlog_quotas("t/ns") == {"message_age": quota}
    assert await admin.topic_policies.backlog_quotas("t/ns/a") == {}
    await admin.namespaces.remove_backlog_quota("t/ns", "message_age")
    assert (web.last.method, web.last.target) == ("DELETE", f"{NAMESPACE}/backlogQuota?backlogQuotaType=message_age")
    await admin.topic_policies.remove_backlog_quota("t/ns/a")
    assert web.last.target == f"{TOPIC}/backlogQuota?backlogQuotaType=destination_storage"
