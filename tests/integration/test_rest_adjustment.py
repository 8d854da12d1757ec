"""Replication previewed and remote clusters adjusted over REST: nothing by surprise, everything told (PIP-433)."""

from __future__ import annotations

from collections import Counter

import pytest

from interpulse.broker.config.broker_config import BrokerConfig
from tests.support.adjustable_namespace import (
    ADJUST,
    ALL_CHANGES,
    PREVIEW,
    REPLICATION,
    differ,
    in_between,
    kinds,
    state,
    stored,
)
from tests.support.joined_clusters import BOTH, done, join_both
from tests.support.rest_broker import RestBroker, rest_broker
from tests.support.rest_client import call
from tests.support.stub_web import Asked


async def test_preview_adjust_preview_again_is_empty(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    before = await state(west)
    previewed = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (previewed.status, previewed.json["outcome"], kinds(previewed)) == (200, "NEEDS_ADJUSTMENT", ALL_CHANGES)
    assert previewed.json["addedClusters"] == ["west"]
    assert "applied" not in previewed.json
    assert await state(west) == before
    assert await stored(east) == ["east"]

    adjusted = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (adjusted.status, adjusted.json["applied"]) == (200, True)
    changes = adjusted.json["clusters"][0]["changes"]
    assert {each.pop("status") for each in changes} == {"DONE"}
    assert changes == previewed.json["clusters"][0]["changes"]
    assert await stored(east) == BOTH
    after = await state(west)
    assert after["counts"] == {"persistent://demo/a/__change_events": 4, "persistent://demo/a/p": 4}
    expected = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    assert after["policies"]["autoTopicCreationOverride"] == expected
    assert after["policies"]["schema_compatibility_strategy"] == "BACKWARD"

    await done(east, "POST", REPLICATION, ["east"])
    again = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (again.json["outcome"], kinds(again), kinds(again, "conflicts")) == ("READY", [], [])
    await done(east, "POST", f"{REPLICATION}?compareTopicPartitions=true", BOTH)
    assert (await call(east.web_url, "POST", PREVIEW, BOTH)).json["clusters"] == []


async def test_plan_that_was_shown_is_applied_and_no_other(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    shown = (await call(east.web_url, "POST", PREVIEW, BOTH)).json["digest"]
    await done(west, "PUT", "namespaces/demo/a/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE")
    before = await state(west)
    refused = await call(east.web_url, "POST", f"{ADJUST}&planDigest={shown}", BOTH)
    assert (refused.status, refused.json["applied"]) == (409, False)
    assert refused.json["reason"] == f"The plan is another one than that with the digest {shown}: preview it again"
    assert (await state(west), await stored(east)) == (before, ["east"])
    newer = (await call(east.web_url, "POST", PREVIEW, BOTH)).json["digest"]
    adjusted = await call(east.web_url, "POST", f"{ADJUST}&planDigest={newer}", BOTH)
    assert (adjusted.status, adjusted.json["applied"], adjusted.json["digest"]) == (200, True, newer)


async def test_preview_wins_over_adjustment(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    before = await state(west)
    reply = await call(east.web_url, "POST", f"{ADJUST}&preview=true", BOTH)
    assert (reply.status, "applied" in reply.json) == (200, False)
    assert (await state(west), await stored(east)) == (before, ["east"])


@pytest.mark.parametrize("parameter", ["preview", "adjustNamespaceLevelPoliciesAutomatically"])
async def test_parameter_that_is_neither_true_nor_false_is_not_taken_for_an_order_to_store(
    east: RestBroker, west: RestBroker, parameter: str
) -> None:
    await join_both(east, west)
    for value in ("yes", "1", ""):
        reply = await call(east.web_url, "POST", f"{REPLICATION}?{parameter}={value}", BOTH)
        assert (reply.status, f"{parameter} must be true or false" in reply.reason) == (400, True)
    assert await stored(east) == ["east"]


async def test_adjustment_that_meets_a_conflict_changes_nothing(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    await done(east, "PUT", "persistent/demo/a/shrunk/partitions", 2)
    await done(west, "PUT", "persistent/demo/a/shrunk/partitions", 8)
    await done(east, "PUT", "persistent/demo/a/plain-here")
    await done(west, "PUT", "persistent/demo/a/plain-here/partitions", 1)
    await done(east, "PUT", "persistent/demo/a/plain-there/partitions", 1)
    await done(west, "PUT", "persistent/demo/a/plain-there")
    before = await state(west)
    previewed = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert (previewed.status, previewed.json["outcome"]) == (200, "CONFLICT")
    expected = ["PARTITIONS_CANNOT_SHRINK", "TOPIC_TYPE_MISMATCH", "TOPIC_TYPE_MISMATCH"]
    assert kinds(previewed, "conflicts") == expected
    adjusted = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (adjusted.status, adjusted.json["applied"], kinds(adjusted)) == (409, False, ALL_CHANGES)
    assert "shrunk -p 8), or delete it on west" in adjusted.reason
    assert (await state(west), await stored(east)) == (before, ["east"])


async def test_topics_of_one_side_only_are_no_problem_and_told(east: RestBroker, west: RestBroker) -> None:
    await join_both(east, west)
    await done(east, "PUT", "persistent/demo/a/only-here/partitions", 3)
    await done(west, "PUT", "persistent/demo/a/only-there/partitions", 4)
    reply = await call(east.web_url, "POST", ADJUST, BOTH)
    assert (reply.status, reply.json["outcome"], reply.json["applied"]) == (200, "READY", True)
    assert reply.json["clusters"][0]["info"] == [
        {"kind": "REMOTE_ONLY_TOPIC", "topic": "persistent://demo/a/only-there", "partitions": 4}
    ]


async def test_namespace_that_is_missing_there_is_a_conflict(east: RestBroker, west: RestBroker) -> None:
    await join_both(east, west)
    await done(west, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", PREVIEW, BOTH)
    assert kinds(reply, "conflicts") == ["NAMESPACE_MISSING"]
    assert (await call(east.web_url, "POST", ADJUST, BOTH)).status == 409
    assert await stored(east) == ["east"]


@pytest.mark.parametrize(
    ("clusters", "status"), [([], 412), (["east", "nowhere"], 403), (BOTH, 404)], ids=["none", "unknown", "namespace"]
)
@pytest.mark.parametrize("path", [PREVIEW, ADJUST])
async def test_preconditions_answer_before_anything_is_planned(
    east: RestBroker, west: RestBroker, path: str, clusters: list[str], status: int
) -> None:
    await join_both(east, west)
    if status == 404:
        await done(east, "DELETE", "namespaces/demo/a")
    reply = await call(east.web_url, "POST", path, clusters)
    assert (reply.status, "outcome" in reply.json) == (status, False)


async def test_list_without_the_local_cluster_is_not_compared(east: RestBroker, west: RestBroker) -> None:
    await differ(east, west)
    reply = await call(east.web_url, "POST", PREVIEW, ["west"])
    assert (reply.json["outcome"], reply.json["clusters"]) == ("READY", [])


async def test_broker_where_it_is_switched_off_refuses_and_says_so(west: RestBroker) -> None:
    config = BrokerConfig(cluster_name="east", supports_replication_preview=False)
    async with rest_broker(config) as east:
        await differ(east, west)
        reply = await call(east.web_url, "POST", PREVIEW, BOTH)
        assert (reply.status, "supportsReplicationPreview" in reply.reason) == (405, True)
        assert await stored(east) == ["east"]


async def test_runtime_configuration_says_that_it_is_offered(east: RestBroker) -> None:
    settings = (await done(east, "GET", "brokers/configuration/runtime")).json
    assert settings["supportsReplicationPreview"] == "true"


async def test_comparison_asks_a_cluster_of_ours_five_questions_however_many_topics_there_are(
    east: RestBroker, west: RestBroker
) -> None:
    await join_both(east, west)
    for index in range(20):
        for broker in (east, west):
            await done(broker, "PUT", f"persistent/demo/a/p{index}/partitions", 2)
    asked: Counter[str] = Counter()

    def meet(question: Asked) -> None:
        asked[f"{question.method} {question.target.partition('?')[0]}"] += 1

    with in_between(west, meet) as url:
        await done(east, "POST", "clusters/west", {"serviceUrl": url})
        assert (await done(east, "POST", PREVIEW, BOTH)).json["outcome"] == "READY"
    assert asked == {
        "GET /admin/v2/namespaces/demo/a": 1,
        "GET /admin/v2/brokers/configuration/runtime": 1,
        "GET /admin/v2/persistent/demo/a": 1,
        "GET /admin/v2/persistent/demo/a/partitioned": 1,
        "GET /admin/v2/non-persistent/demo/a/partitioned": 1,
    }
