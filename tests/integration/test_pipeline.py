"""The control side of the replication job between two brokers of ours, without Spark: what it does to the target."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interpulse.model.clusters import ClusterData, TenantInfo
from interpulse.model.policies.policy_records import BacklogQuota, DispatchRate
from interpulse.spark.job.pipeline_config import ProvisionRules, Selection
from interpulse.spark.job.routes.route_topics import JobEnds
from interpulse.spark.job.start import parse_start
from interpulse.testing import InProcessBroker
from tests.support.pipeline_turns import (
    BY_HAND,
    BY_POLICIES,
    FIRST,
    OTHER,
    PLAIN,
    TOPIC,
    Job,
    avro,
    backlog_at_source,
    cursors_are_put_where_the_pipeline_begins,
    is_ready,
    namespaces_are_created,
    schemas_come_while_they_are_wanted,
    topics_are_written_under_other_names,
)


@pytest.fixture
async def job(tmp_path: Path) -> AsyncIterator[Job]:
    with (
        InProcessBroker(tmp_path / "east", {"clusterName": "east", "replicationJob": "external"}) as east,
        InProcessBroker(tmp_path / "west", {"clusterName": "west", "allowAutoTopicCreation": "false"}) as west,
    ):
        job = Job(tmp_path / "job", east, west)
        await job.east.topics.create_partitioned(TOPIC, 2)
        yield job
        await job.pipeline.stop()
        await asyncio.gather(job.east.close(), job.west.close())


async def test_topic_that_grows_at_home_alone_is_held_until_both_are_equal(job: Job) -> None:
    """Policies name the clusters, so a source that grew alone was told to."""
    await job.until(2, is_ready)
    await job.east.topics.expand(TOPIC, 4, local_only=True)
    held = await job.until(4, lambda record: record["state"] == "HELD")
    assert "4 partitions on the source cluster and a partitioned topic of 2" in held["reason"]
    assert f"update-partitioned-topic {TOPIC} -p 4" in held["remedy"]
    assert (await job.west.topics.partitioned_metadata(TOPIC)).partitions == 2
    await job.west.topics.expand(TOPIC, 4)
    ready = await job.until(4, is_ready)
    assert ready["state"] == "PROVISIONING"


async def test_stream_is_told_the_rate_of_each_topic(job: Job) -> None:
    """Of the topic, else of the namespace, else of the broker; those without a limit are not listed."""

    async def rates() -> dict[str, list[Any]]:
        await job.until(2, is_ready)
        return dict(json.loads(job.pipeline.route.topics_file.read_text())["rates"])

    assert await rates() == {}
    await job.east.namespaces.set_policy(
        "public/default", "replicator_dispatch_rate", DispatchRate(-1, 500, period_seconds=2)
    )
    names = [str(TOPIC.partition(index)) for index in range(2)]
    assert await rates() == {name: [-1, 500, 2, False] for name in names}
    await job.east.topic_policies.set(TOPIC, "replicator_dispatch_rate", DispatchRate(5))
    assert await rates() == {name: [5, -1, 1, False] for name in names}


async def test_topics_are_held_while_the_target_calls_itself_by_another_name(job: Job) -> None:
    """East would be asked to replicate to a name that messages of the target do not carry: loops are not noticed."""
    job.clusters["west"] = replace(job.clusters["west"], cluster="best")
    job.pipeline = job.selecting(BY_POLICIES, "pulsar.repl.best")
    held = await job.turn(2)
    assert (held["state"], held["reason"]) == (
        "HELD",
        f"the cluster at {job.clusters['west'].admin_url} calls itself west, not best",
    )
    assert "clusters create" in held["remedy"]
    assert await job.west.topics.list("public/default") == []


async def test_held_topic_that_grows_is_looked_at_at_once(job: Job) -> None:
    """A remedy that was followed is not shown until the pause is over."""
    await job.west.topics.create_partitioned(TOPIC, 4)
    await job.until(2, lambda record: record["state"] == "HELD")
    states = job.pipeline.topics.states
    states[TOPIC] = replace(states[TOPIC], retry_at=math.inf)
    await job.east.topics.expand(TOPIC, 4)
    assert is_ready(await job.turn(4))


async def test_topic_that_is_copied_by_hand_grows_on_the_target_too(job: Job) -> None:
    """The source knows nothing of the target, so it does not do it."""
    job.pipeline = job.selecting(BY_HAND)
    await job.until(2, is_ready)
    await job.east.topics.expand(TOPIC, 4)
    await job.until(4, lambda record: record["provisioned"] == "flights expanded to 4 partitions: the source has grown")
    assert (await job.west.topics.partitioned_metadata(TOPIC)).partitions == 4


@pytest.mark.parametrize(("select", "kept"), [(BY_HAND, ["west"]), (BY_POLICIES, [])], ids=["by-hand", "by-policies"])
async def test_source_keeps_for_the_target_what_a_job_by_hand_copies(
    job: Job, select: Selection, kept: list[str]
) -> None:
    """Policies open their cursors themselves; none of them lists the cluster here."""
    job.pipeline = job.selecting(select)
    await job.until(2, is_ready)
    await job.east.topics.expand(TOPIC, 3)
    await job.west.topics.expand(TOPIC, 3)
    await job.until(3, lambda record: is_ready(record) and job.pipeline.topics.states[TOPIC].partitions == 3)
    names = [str(TOPIC.partition(index)) for index in range(3)]
    assert [[*(await job.east.topics.stats(name))["replication"]] for name in names] == [kept] * 3


@pytest.mark.parametrize("select", [BY_HAND, BY_POLICIES], ids=["by-hand", "by-policies"])
async def test_source_of_another_kind_keeps_topic_and_messages_before_spark_starts(job: Job, select: Selection) -> None:
    """Without a subscription a Pulsar deletes an inactive topic, with all that was published to it."""
    job.pipeline = job.selecting(select, "interpulse.t")
    await job.until(2, is_ready)
    names = [str(TOPIC.partition(index)) for index in range(2)]
    assert [[*(await job.east.topics.stats(name))["subscriptions"]] for name in names] == [["interpulse.t"]] * 2


async def test_policies_for_all_clusters_are_carried_when_they_change_and_no_others(job: Job) -> None:
    here, there = job.east.topic_policies, job.west.topic_policies

    async def set_there(name: str) -> Any:
        return await there.get(TOPIC, name, everywhere=True)

    await here.set(TOPIC, "max_producers", 5, everywhere=True)
    await here.set(TOPIC, "max_consumers", 6, everywhere=True)
    await here.set(TOPIC, "max_unacked_per_consumer", 7)
    await here.set_backlog_quota(
        TOPIC, BacklogQuota(-1, 9, "consumer_backlog_eviction"), "message_age", everywhere=True
    )
    await job.until(2, is_ready)
    assert (await set_there("max_producers"), await set_there("max_consumers")) == (5, 6)
    assert await there.get(TOPIC, "max_unacked_per_consumer") is None
    assert list(await there.backlog_quotas(TOPIC, everywhere=True)) == ["message_age"]

    await there.set(TOPIC, "max_consumers", 60, everywhere=True)
    await here.remove(TOPIC, "max_producers", everywhere=True)
    await here.remove_backlog_quota(TOPIC, "message_age", everywhere=True)
    await job.pipeline.stop()
    job.pipeline = job.selecting(BY_POLICIES)
    await job.until(2, is_ready)
    assert (await set_there("max_producers"), await set_there("max_consumers")) == (None, 60)
    assert await there.backlog_quotas(TOPIC, everywhere=True) == {}

    await job.west.topics.delete_partitioned(TOPIC, force=True)
    states = job.pipeline.topics.states
    states[TOPIC] = replace(states[TOPIC], retry_at=0)  # what is ready is looked at every few seconds
    await job.until(2, lambda record: "absent" in str(record["provisioned"]))
    assert await set_there("max_consumers") == 6


async def test_policy_for_all_clusters_that_the_target_refuses_is_told_and_the_topic_goes_on(job: Job) -> None:
    names = await replicate_to_west(job)
    await job.east.topic_policies.set(TOPIC, "replication_clusters", names, everywhere=True)
    record = await job.until(2, lambda record: "not carried" in str(record["reason"]))
    assert "namespace-level replication is not enabled" in record["reason"]
    assert record["state"] == "PROVISIONING"  # Spark is not there; nothing else is wrong
    assert record["remedy"]


async def replicate_to_west(job: Job) -> list[str]:
    names = ["east", "west"]
    await job.east.clusters.create("west", ClusterData(service_url=job.clusters["west"].admin_url))
    await job.east.tenants.update("public", TenantInfo(allowed_clusters=tuple(names)))
    await job.east.namespaces.set_replication_clusters(TOPIC.namespace_name, names, partitions_compared=False)
    return names


async def test_target_sees_that_its_topic_is_in_use_until_it_is_asked_for_no_more(job: Job) -> None:
    """Else it would be deleted as inactive between two micro-batches, with what was copied."""
    await job.until(2, is_ready)
    assert await job.connected() == 2
    await job.pipeline.update({})
    assert await job.connected() == 0


async def test_target_that_wants_schemas_of_producers_is_written_whatever_the_source_has(job: Job) -> None:
    await schemas_come_while_they_are_wanted(job)


async def test_target_that_wants_schemas_of_producers_sees_a_job_that_starts_with_typed_topics(job: Job) -> None:
    await job.west.namespaces.set_schema_validation_enforced(TOPIC.namespace_name, True)
    await job.publish("first", avro("carrier"))
    await job.until(2, is_ready)
    assert await job.connected() == 2
    await job.copy()
    assert await job.arrived() == [("first", 0)]


async def test_topics_are_written_under_the_names_that_rules_give(job: Job) -> None:
    for name in (OTHER, PLAIN):
        await job.east.topics.create(name)
    await topics_are_written_under_other_names(job, "pulsar.repl.west")


async def test_pipeline_begins_at_the_time_or_position_of_its_file(job: Job) -> None:
    await cursors_are_put_where_the_pipeline_begins(job, "pulsar.repl.west")


async def test_cursor_that_policies_opened_is_put_where_the_pipeline_begins(job: Job) -> None:
    for value in "012":
        await job.publish(value, None)
    last = (await job.east.topics.last_message_id(FIRST)).position
    await replicate_to_west(job)
    job.pipeline = job.selecting(BY_POLICIES, start=parse_start({str(FIRST): str(last)}))
    await job.until(2, is_ready)
    assert await backlog_at_source(job, "pulsar.repl.west") == [1, 0]


async def test_namespace_that_is_missing_is_created_where_the_file_allows_it(job: Job) -> None:
    await namespaces_are_created(job, "pulsar.repl.west")


async def test_topic_with_fewer_partitions_there_grows_where_the_file_says_so(job: Job) -> None:
    await job.west.topics.create_partitioned(TOPIC, 1)
    job.pipeline = job.selecting(BY_HAND, provision=ProvisionRules(on_mismatch="expand"))
    await job.until(2, lambda record: record["provisioned"] == "flights expanded to 2 partitions: the source has grown")
    await job.west.topics.expand(TOPIC, 4)
    states = job.pipeline.topics.states
    states[TOPIC] = replace(states[TOPIC], retry_at=0)
    held = await job.turn(2)
    assert (held["state"], "partitioned topic of 4 partitions" in held["reason"]) == ("HELD", True)


async def test_topic_of_another_shape_there_ends_the_job_where_the_file_says_so(job: Job) -> None:
    await job.west.topics.create_partitioned(TOPIC, 4)
    job.pipeline = job.selecting(BY_HAND, provision=ProvisionRules(on_mismatch="fail"))
    with pytest.raises(
        JobEnds, match=r"on_mismatch = fail: .* of 2 partitions .* of 4 partitions .* make the partition"
    ):
        await job.turn(2)


async def test_lag_is_told_while_spark_starts(job: Job) -> None:
    """By the cursor on the source: entries, messages, and the age of the oldest, though the job has just begun."""
    await job.publish("first", None)
    await asyncio.sleep(0.05)
    job.pipeline = job.selecting(BY_HAND)
    await job.until(2, is_ready)
    for expected in (1, 3):
        await job.pipeline.refresh_backlog()
        ((first, second),) = job.pipeline.records().values()
        assert (first["lagEntries"], first["lagMessages"]) == (expected, expected)
        assert 0.05 <= first["lagSeconds"] < 60
        assert (second["lagEntries"], second["lagMessages"], second["lagSeconds"]) == (0, 0, 0.0)
        for value in ("second", "third"):
            await job.publish(value, None)
