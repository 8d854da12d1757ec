"""Policies of namespaces over REST, where ours go further than Pulsar's or are in force at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interpulse.model.names import TopicName
from interpulse.model.policies.policy_records import BacklogQuota, DispatchRate, PublishRate
from tests.support.joined_clusters import done
from tests.support.rest_broker import RestBroker
from tests.support.rest_client import call

DEFAULT = "namespaces/public/default"


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


async def test_auto_creation_of_a_new_namespace_is_read_as_one_that_is_set(broker: RestBroker) -> None:
    override = {"allowAutoTopicCreation": True, "topicType": "PARTITIONED", "defaultNumPartitions": "3"}
    await call(broker.web_url, "PUT", "namespaces/public/new", {"autoTopicCreationOverride": override})
    shown = (await call(broker.web_url, "GET", "namespaces/public/new/autoTopicCreation")).json
    assert shown == {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}


async def test_applied_auto_subscription_creation_is_the_brokers_until_the_namespace_says_something(
    broker: RestBroker,
) -> None:
    path = f"{DEFAULT}/autoSubscriptionCreation"
    unset = await call(broker.web_url, "GET", path)
    assert (unset.status, unset.body) == (200, b"")
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


async def test_subscription_operations_that_need_a_log_are_refused_without_one(broker: RestBroker) -> None:
    await call(broker.web_url, "PUT", "non-persistent/public/default/n")
    reply = await call(broker.web_url, "POST", "non-persistent/public/default/n/subscription/s/skip_all")
    assert (reply.status, "keeps no messages" in reply.reason) == (405, True)


async def test_subscription_is_moved_and_expired(broker: RestBroker) -> None:
    subscription = "persistent/public/default/x/subscription/s"
    await call(broker.web_url, "PUT", subscription)
    excluded = {"ledgerId": 1, "entryId": 0, "partitionIndex": -1, "excluded": True}
    assert (await call(broker.web_url, "POST", f"{subscription}/resetcursor", excluded)).status == 204
    assert (await call(broker.web_url, "POST", f"{subscription}/expireMessages/10")).status == 409


async def test_messaging_policies_are_in_force_when_the_call_returns(broker: RestBroker) -> None:
    topic = "persistent/public/default/limited"
    await call(broker.web_url, "PUT", topic)
    loaded = await broker.context.registry.open(TopicName.parse("limited"))
    await call(broker.web_url, "POST", f"{DEFAULT}/maxProducersPerTopic", 3)
    assert loaded.settings.max_producers == 3
    await call(broker.web_url, "POST", f"{topic}/maxProducers", 0)
    assert loaded.settings.max_producers == 0
    await call(broker.web_url, "DELETE", f"{topic}/maxProducers")
    assert loaded.settings.max_producers == 3
    await call(broker.web_url, "POST", f"{DEFAULT}/publishRate", {"publishThrottlingRateInMsg": 5})
    assert loaded.settings.publish_rate == PublishRate(5)
    await call(broker.web_url, "POST", f"{topic}/backlogQuota", {"limitSize": 5, "policy": "producer_exception"})
    assert loaded.settings.backlog_quotas == {"destination_storage": BacklogQuota(5, -1, "producer_exception")}


async def test_policies_for_all_clusters_count_where_the_topic_has_none_here(broker: RestBroker) -> None:
    x = "persistent/public/default/x"
    await done(broker, "PUT", x)
    await done(broker, "POST", f"{x}/maxProducers?isGlobal=true", 5)
    await done(broker, "POST", f"{x}/messageTTL?isGlobal=true&messageTTL=9")
    quota = {"limitSize": 100, "limitTime": -1, "policy": "producer_exception"}
    await done(broker, "POST", f"{x}/backlogQuota?backlogQuotaType=destination_storage&isGlobal=true", quota)
    assert (await done(broker, "GET", f"{x}/maxProducers")).body == b""
    assert (await done(broker, "GET", f"{x}/maxProducers?isGlobal=true")).json == 5
    assert (await done(broker, "GET", f"{x}/maxProducers?applied=true")).json == 5
    assert (await done(broker, "GET", f"{x}/backlogQuotaMap")).json == {}
    topic = await broker.context.registry.open(TopicName.parse("x"))
    assert (topic.settings.max_producers, topic.settings.message_ttl_seconds) == (5, 9)
    await done(broker, "POST", f"{x}/maxProducers", 7)
    assert topic.settings.max_producers == 7
    found = await done(broker, "GET", "namespaces/public/default/replication/globalTopicPolicies")
    assert found.json["persistent://public/default/x"]["maxProducerPerTopic"] == 5
    await done(broker, "DELETE", f"{x}/maxProducers?isGlobal=true")
    assert (await done(broker, "GET", f"{x}/maxProducers")).json == 7
    await done(broker, "DELETE", f"{x}/policies")
    assert (await done(broker, "GET", "namespaces/public/default/replication/globalTopicPolicies")).json == {}
    assert topic.settings.max_producers == 0


async def test_dynamic_rates_of_the_broker_count_where_nothing_else_is_said(broker: RestBroker) -> None:
    topic = "persistent/public/default/limited"
    await call(broker.web_url, "PUT", topic)
    await call(broker.web_url, "POST", "brokers/configuration/dispatchThrottlingRatePerTopicInMsg/7")
    shown = (await call(broker.web_url, "GET", f"{topic}/dispatchRate?applied=true")).json
    assert shown["dispatchThrottlingRateInMsg"] == 7


async def test_policies_document_shows_what_limits_messages(broker: RestBroker) -> None:
    await call(broker.web_url, "POST", f"{DEFAULT}/dispatchRate", {"dispatchThrottlingRateInMsg": 5})
    await call(broker.web_url, "POST", f"{DEFAULT}/compactionThreshold", 9)  # set with PUT
    await call(broker.web_url, "PUT", f"{DEFAULT}/compactionThreshold", 10)
    await call(broker.web_url, "POST", f"{DEFAULT}/subscriptionTypesEnabled", ["Shared", "Failover"])
    document = (await call(broker.web_url, "GET", DEFAULT)).json
    assert document["topicDispatchRate"]["standalone"]["dispatchThrottlingRateInMsg"] == 5
    assert document["compaction_threshold"] == 10
    assert document["subscription_types_enabled"] == ["Failover", "Shared"]
    assert document["backlog_quota_map"] == {}
    assert document["encryption_required"] is False


@pytest.mark.parametrize("path", ["namespaces/public/default", "persistent/public/default/x"])
async def test_copies_of_a_standalone_broker_are_one(broker: RestBroker, path: str) -> None:
    await call(broker.web_url, "PUT", "persistent/public/default/x")
    one = {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}
    assert (await call(broker.web_url, "POST", f"{path}/persistence", one)).status == 204
    shown = (await call(broker.web_url, "GET", f"{path}/persistence")).json
    assert shown == {**one, "managedLedgerMaxMarkDeleteRate": -1.0}
    reply = await call(broker.web_url, "POST", f"{path}/persistence", {**one, "bookkeeperEnsemble": 2})
    assert (reply.status, "keeps one copy" in reply.reason) == (501, True)
    reply = await call(broker.web_url, "POST", f"{path}/persistence", None)
    assert (reply.status, reply.reason) == (400, "persistence policies should not be null")
    assert (await call(broker.web_url, "DELETE", f"{path}/persistence")).status == 204
    assert (await call(broker.web_url, "GET", f"{path}/persistence")).body == b""
    applied = (await call(broker.web_url, "GET", "persistent/public/default/x/persistence?applied=true")).json
    assert applied["bookkeeperEnsemble"] == 1


async def test_namespace_with_more_copies_than_a_standalone_broker_keeps_is_not_created(broker: RestBroker) -> None:
    reply = await call(broker.web_url, "PUT", "namespaces/public/copied", {"persistence": {}})
    assert (reply.status, "not 2, 2 and 2" in reply.reason) == (501, True)
    assert (await call(broker.web_url, "GET", "namespaces/public/copied")).status == 404


async def test_rates_of_other_clusters_are_kept(broker: RestBroker) -> None:
    elsewhere = {"publishThrottlingRateInMsg": 9, "publishThrottlingRateInByte": -1}
    await call(broker.web_url, "PUT", "namespaces/public/new", {"publishMaxMessageRate": {"west": elsewhere}})
    await call(broker.web_url, "POST", "namespaces/public/new/publishRate", {"publishThrottlingRateInMsg": 5})
    await call(broker.web_url, "DELETE", "namespaces/public/new/publishRate")
    policies = (await call(broker.web_url, "GET", "namespaces/public/new")).json
    assert policies["publishMaxMessageRate"] == {"west": elsewhere}


async def test_refusal_of_a_policy_names_it_and_what_it_may_be(broker: RestBroker) -> None:
    reply = await call(broker.web_url, "POST", f"{DEFAULT}/maxProducersPerTopic", -1)
    assert (reply.status, reply.reason) == (412, "maxProducersPerTopic must be 0 or more")
    reply = await call(
        broker.web_url, "POST", f"{DEFAULT}/dispatchRate", {"dispatchThrottlingRateInMsg": 5, "ratePeriodInSecond": 0}
    )
    assert (reply.status, reply.reason) == (400, "ratePeriodInSecond must be 1 or more, not 0")


async def test_replication_job_reads_every_rate_with_one_question(broker: RestBroker) -> None:
    async def rates() -> Any:
        return (await done(broker, "GET", f"{DEFAULT}/replication/dispatchRates")).json

    by_broker, by_namespace, by_topic = (DispatchRate(count).to_json() for count in (0, 10, 5))
    assert await rates() == {"default": by_broker | {"dispatchThrottlingRateInByte": 0}, "topics": {}}
    await done(broker, "POST", f"{DEFAULT}/replicatorDispatchRate", by_namespace)
    await done(broker, "PUT", "persistent/public/default/x/partitions", 2)
    await done(broker, "POST", "persistent/public/default/x/replicatorDispatchRate", by_topic)
    assert await rates() == {"default": by_namespace, "topics": {"persistent://public/default/x": by_topic}}
    await done(broker, "DELETE", f"{DEFAULT}/replicatorDispatchRate")
    await done(broker, "DELETE", "persistent/public/default/x/replicatorDispatchRate")
    await done(broker, "POST", "brokers/configuration/dispatchThrottlingRatePerReplicatorInMsg/7")
    assert (await rates())["default"]["dispatchThrottlingRateInMsg"] == 7


@pytest.mark.parametrize(
    ("path", "sent", "shown"),
    [("messageTTL", "12", 12), ("maxTopicsPerNamespace", "3", 3), ("deduplication", "TRUE", True)],
)
async def test_bare_value_may_come_as_a_text_as_to_pulsar(broker: RestBroker, path: str, sent: str, shown: Any) -> None:
    assert (await call(broker.web_url, "POST", f"{DEFAULT}/{path}", sent)).status == 204
    assert (await call(broker.web_url, "GET", f"{DEFAULT}/{path}")).json == shown


@pytest.mark.parametrize(("path", "sent"), [("messageTTL", "soon"), ("deduplication", "yes"), ("deduplication", 1.5)])
async def test_bare_value_of_another_type_is_named(broker: RestBroker, path: str, sent: Any) -> None:
    refused = await call(broker.web_url, "POST", f"{DEFAULT}/{path}", sent)
    assert refused.status == 400
    assert f"not {json.dumps(sent)}" in refused.reason
