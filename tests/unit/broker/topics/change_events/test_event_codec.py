"""Policies of topics as messages: the bytes of a real Pulsar, and every policy there and back."""

from __future__ import annotations

import pytest

from interpulse.broker.topics.change_events.event_codec import (
    EVENT_SCHEMA,
    decode_policies,
    encode_policies,
    event_key,
    parse_event_key,
)
from interpulse.model.errors import InvalidTopicName, MetadataError, NotAllowed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import TopicPolicies
from interpulse.model.policies.policy_records import (
    BacklogQuota,
    DelayedDelivery,
    DispatchRate,
    InactiveTopicPolicies,
    Persistence,
    PublishRate,
    RetentionPolicies,
    SubscribeRate,
)

T = TopicName.parse("public/e/t")

# As Pulsar 5.0.0-M1 wrote them.
MAX_PRODUCERS_5 = (
    "020402000202147374616e64616c6f6e650002021470657273697374656e7402026502000200000000000000000000000200000000020a"
    "0000000000000000000000000000000002000200020c7075626c6963020274"
)
MAX_CONSUMERS_9_EVERYWHERE = (
    "020402000002021470657273697374656e7402026502000200000000000000000000000201021200000000000000000000000000000000"
    "00000002000200020c7075626c6963020274"
)
RATE_INACTIVITY_AND_RETENTION = (
    "020402000202147374616e64616c6f6e650002021470657273697374656e74020265020002000000000000000204020601000002010200"
    "4202000000000000000000000000000002100e00000000000002000200020c7075626c6963020274"
)

EVERY_POLICY = TopicPolicies(
    inactive_topics=InactiveTopicPolicies(),
    replication_clusters=("east", "west"),
    retention=RetentionPolicies(60, 10),
    message_ttl_seconds=1,
    subscription_expiration_minutes=2,
    backlog_quotas={
        "destination_storage": BacklogQuota(3, -1, "producer_exception"),
        "message_age": BacklogQuota(-1, 4),
    },
    publish_rate=PublishRate(5, 6),
    dispatch_rate=DispatchRate(7, 8, True, 9),
    subscription_dispatch_rate=DispatchRate(10, 11),
    subscribe_rate=SubscribeRate(12, 13),
    replicator_dispatch_rate=DispatchRate(14, 15),
    max_producers=16,
    max_consumers=17,
    max_consumers_per_subscription=18,
    max_subscriptions=19,
    max_unacked_per_consumer=20,
    max_unacked_per_subscription=21,
    max_message_size=22,
    delayed_delivery=DelayedDelivery(False, 23, 24),
    persistence=Persistence(3, 3, 2, 0.5),
    deduplication_enabled=False,
    deduplication_snapshot_seconds=25,
    compaction_threshold_bytes=26_000_000_000,
    subscription_types_enabled=frozenset({"Exclusive", "Key_Shared"}),
    auto_subscription_creation_allowed=False,
    schema_compatibility_strategy="FULL_TRANSITIVE",
    schema_validation_enforced=True,
    other={
        "offloadPolicies": {"offloadersDirectory": "./x"},
    },
)


def decode(raw: bytes) -> tuple[TopicPolicies, bool] | None:
    return decode_policies(raw, EVENT_SCHEMA.definition)


@pytest.mark.parametrize(
    ("raw", "policies", "everywhere"),
    [
        pytest.param(MAX_PRODUCERS_5, TopicPolicies(max_producers=5), False, id="here"),
        pytest.param(MAX_CONSUMERS_9_EVERYWHERE, TopicPolicies(max_consumers=9), True, id="everywhere"),
        pytest.param(
            RATE_INACTIVITY_AND_RETENTION,
            TopicPolicies(
                dispatch_rate=DispatchRate(1, 2, True, 3),
                inactive_topics=InactiveTopicPolicies.from_json(
                    {
                        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
                        "maxInactiveDurationSeconds": 33,
                        "deleteWhileInactive": True,
                    }
                ),
                retention=RetentionPolicies(7, 8),
            ),
            False,
            id="records",
        ),
    ],
)
def test_event_when_of_a_real_pulsar_then_is_read_and_written_alike(
    raw: str, policies: TopicPolicies, everywhere: bool
) -> None:
    assert decode(bytes.fromhex(raw)) == (policies, everywhere)
    assert encode_policies(T, policies, everywhere=everywhere, cluster="standalone").hex() == raw


@pytest.mark.parametrize("everywhere", [False, True])
def test_policies_when_written_then_are_read_the_same(everywhere: bool) -> None:
    raw = encode_policies(T, EVERY_POLICY, everywhere=everywhere, cluster="east")
    assert decode(raw) == (EVERY_POLICY, everywhere)


def test_policies_when_the_form_has_no_place_for_one_then_are_refused_by_its_name() -> None:
    with pytest.raises(NotAllowed, match="The policies tomorrow of topic"):
        encode_policies(T, TopicPolicies(other={"tomorrow": 1}), everywhere=False, cluster="east")


@pytest.mark.parametrize("raw", [b"\x02", b"\x02\x63", b"\xff" * 30])
def test_event_when_it_is_damaged_then_is_a_metadata_error(raw: bytes) -> None:
    with pytest.raises(MetadataError, match="not the policies of a topic"):
        decode(raw)


@pytest.mark.parametrize(
    ("name", "everywhere", "key"),
    [
        ("public/e/t", False, "persistent://public/e/t"),
        ("public/e/t-partition-3", True, "__G__persistent://public/e/t"),
        ("non-persistent://public/e/t", False, "non-persistent://public/e/t"),
    ],
)
def test_key_when_of_a_topic_then_leads_back_to_its_base_name(name: str, everywhere: bool, key: str) -> None:
    topic = TopicName.parse(name)
    assert event_key(topic, everywhere=everywhere) == key
    assert parse_event_key(key) == (topic.base, everywhere)


def test_key_when_it_is_none_then_is_refused() -> None:
    with pytest.raises(InvalidTopicName):
        parse_event_key("")
