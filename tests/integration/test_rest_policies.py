"""Policies of namespaces over REST, where ours go further than Pulsar's or are in force at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.rest_broker import RestBroker, rest_broker
from tests.integration.rest_client import call

DEFAULT = "namespaces/public/default"


@pytest.fixture
async def broker() -> AsyncIterator[RestBroker]:
    async with rest_broker() as started:
        yield started


@pytest.mark.parametrize(
    ("override", "applied"),
    [
        (None, {"allowAutoTopicCreation": True, "topicType": "non-partitioned"}),
        ({"allowAutoTopicCreation": False}, {"allowAutoTopicCreation": False}),
        (
            {"allowAutoTopicCreation": True, "topicType": "PARTITIONED", "defaultNumPartitions": 3},
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
        ),
    ],
)
async def test_applied_auto_creation_can_be_posted_back(broker: RestBroker, override: Any, applied: Any) -> None:
    if override is not None:
        await call(broker.web_url, "POST", f"{DEFAULT}/autoTopicCreation", override)
    shown = (await call(broker.web_url, "GET", f"{DEFAULT}/autoTopicCreation?applied=true")).json
    assert shown == applied
    assert (await call(broker.web_url, "POST", f"{DEFAULT}/autoTopicCreation", shown)).status == 204


async def test_applied_auto_subscription_creation_is_the_brokers_until_the_namespace_says_something(
    broker: RestBroker,
) -> None:
    path = f"{DEFAULT}/autoSubscriptionCreation"
    assert (await call(broker.web_url, "GET", path)).status == 204
    assert (await call(broker.web_url, "GET", f"{path}?applied=true")).json == {"allowAutoSubscriptionCreation": True}


async def test_schema_switch_for_replicators_changes_only_when_given(broker: RestBroker) -> None:
    path = f"{DEFAULT}/isAllowAutoUpdateSchema"
    field = "is_allow_auto_update_schema_with_replicator"
    await call(broker.web_url, "POST", f"{path}?allowAutoUpdateSchemaWithReplicator=false", False)
    assert (await call(broker.web_url, "GET", DEFAULT)).json[field] is False
    await call(broker.web_url, "POST", path, True)
    policies = (await call(broker.web_url, "GET", DEFAULT)).json
    assert (policies[field], policies["is_allow_auto_update_schema"]) == (False, True)


async def test_policies_show_the_brokers_schema_switch_while_none_is_set(broker: RestBroker) -> None:
    await call(broker.web_url, "POST", "brokers/configuration/isAllowAutoUpdateSchemaEnabled/false")
    assert (await call(broker.web_url, "GET", DEFAULT)).json["is_allow_auto_update_schema"] is False


async def test_unknown_policies_of_newer_tools_are_kept(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "namespaces/public/new", {"something_new": {"a": 1}})
    await call(broker.web_url, "POST", "namespaces/public/new/messageTTL", 5)
    policies = (await call(broker.web_url, "GET", "namespaces/public/new")).json
    assert (policies["something_new"], policies["message_ttl_in_seconds"]) == ({"a": 1}, 5)


async def test_subscription_operations_that_need_a_log_are_refused_without_one(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "non-persistent/public/default/n")
    reply = await call(broker.web_url, "POST", "non-persistent/public/default/n/subscription/s/skip_all")
    assert (reply.status, "keeps no messages" in reply.reason) == (405, True)


async def test_subscription_is_moved_and_expired(broker: RestBroker) -> None:
    subscription = "persistent/public/default/x/subscription/s"
    await call(broker.web_url, "PUT", subscription)
    excluded = {"ledgerId": 1, "entryId": 0, "partitionIndex": -1, "isExcluded": True}
    assert (await call(broker.web_url, "POST", f"{subscription}/resetcursor", excluded)).status == 204
    assert (await call(broker.web_url, "POST", f"{subscription}/expireMessages/10")).status == 409
